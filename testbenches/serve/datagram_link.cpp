// SPDX-License-Identifier: Apache-2.0
// UDP and UNIX datagrams, one frame each.
#include <array>
#include <boost/asio/generic/datagram_protocol.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <deque>
#include <vector>

#include "testbenches/serve/frame_link.h"

namespace rnic::serve {

namespace {

namespace asio = boost::asio;
using protocol = asio::generic::datagram_protocol;
using error_code = boost::system::error_code;

constexpr std::size_t most_queued = 1 << 20;  // bytes on their way out

class datagram_link final : public frame_link {
 public:
  datagram_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver);
  ~datagram_link() override {
    error_code ignored;
    socket_.close(ignored);
    if (spec_.unix_path) remove_stale_socket(spec_.local);
  }
  void send(const std::uint8_t* frame, std::size_t length) override;
  std::size_t queued() const override { return queued_; }

 private:
  void receive();
  bool try_send(const std::uint8_t* frame, std::size_t length);
  void send_later();

  link_spec spec_;
  protocol::socket socket_;
  protocol::endpoint peer_, from_;
  std::array<std::uint8_t, 65536> input_{};
  std::deque<std::vector<std::uint8_t>> waiting_;
  std::size_t queued_ = 0;
};

protocol::endpoint endpoint_of(asio::io_context& io, const link_spec& s, const std::string& host,
                               const std::string& port) {
  if (s.unix_path) return asio::local::datagram_protocol::endpoint(host);
  asio::ip::udp::resolver resolver(io);
  return resolver.resolve(host, port).begin()->endpoint();
}

datagram_link::datagram_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver)
    : frame_link(receiver), spec_(spec), socket_(io) {
  const protocol::endpoint own = endpoint_of(io, spec, spec.local, spec.local_port);
  peer_ = endpoint_of(io, spec, spec.remote, spec.remote_port);
  if (spec.unix_path) remove_stale_socket(spec.local);
  socket_.open(own.protocol());
  socket_.bind(own);
  socket_.non_blocking(true);
  receive();
}

/// From whom it comes does not matter, as on a cable.
void datagram_link::receive() {
  socket_.async_receive_from(asio::buffer(input_), from_, [this](const error_code& error, std::size_t got) {
    if (error == asio::error::operation_aborted) return;
    if (error)
      ++counters_.errors;  // what came of an earlier send, such as a port that nobody listens at
    else
      arrived(input_.data(), got);
    receive();
  });
}

/// False when the peer's queue is full.
bool datagram_link::try_send(const std::uint8_t* frame, std::size_t length) {
  error_code error;
  socket_.send_to(asio::buffer(frame, length), peer_, 0, error);
  if (error == asio::error::would_block || error == asio::error::try_again || error == asio::error::no_buffer_space)
    return false;
  if (error)
    ++counters_.drop_no_peer;
  else
    count_out(length);
  return true;
}

void datagram_link::send(const std::uint8_t* frame, std::size_t length) {
  if (waiting_.empty() && try_send(frame, length)) return;
  if (queued_ + length > most_queued) {
    ++counters_.drop_queue_full;
    return;
  }
  waiting_.emplace_back(frame, frame + length);
  queued_ += length;
  if (waiting_.size() == 1) send_later();
}

void datagram_link::send_later() {
  socket_.async_wait(protocol::socket::wait_write, [this](const error_code& error) {
    if (error == asio::error::operation_aborted) return;
    while (!waiting_.empty() && try_send(waiting_.front().data(), waiting_.front().size())) {
      queued_ -= waiting_.front().size();
      waiting_.pop_front();
    }
    if (!waiting_.empty()) send_later();
  });
}

}  // namespace

std::unique_ptr<frame_link> make_datagram_link(asio::io_context& io, const link_spec& spec,
                                               frame_receiver_if& receiver) {
  return std::make_unique<datagram_link>(io, spec, receiver);
}

}  // namespace rnic::serve
