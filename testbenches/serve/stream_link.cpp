// SPDX-License-Identifier: Apache-2.0
// TCP and UNIX streams with QEMU's framing.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "model/wire/bytes.h"
#include "testbenches/serve/frame_link.h"

namespace rnic::serve {

namespace {

namespace asio = boost::asio;
using protocol = asio::generic::stream_protocol;
using error_code = boost::system::error_code;

constexpr std::size_t header_bytes = 4;
constexpr std::size_t longest_claim = 4096 + 65536;  // the largest frame that QEMU knows (NET_BUFSIZE)
constexpr std::size_t most_queued = 1 << 20;         // bytes on their way out
constexpr std::chrono::milliseconds retry_after{100};

class stream_link final : public frame_link {
 public:
  stream_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver);
  ~stream_link() override;
  void send(const std::uint8_t* frame, std::size_t length) override;
  std::size_t queued() const override { return waiting_.size() + writing_.size(); }

 private:
  void listen();
  void accept();
  void connect();
  void connect_later();
  void open();
  void close();
  void read();
  void parse(const std::uint8_t* data, std::size_t length);
  bool take_header();
  void write();

  link_spec spec_;
  std::optional<protocol::endpoint> endpoint_;
  std::optional<asio::basic_socket_acceptor<protocol>> acceptor_;
  protocol::socket socket_;
  asio::steady_timer again_;
  bool connected_ = false;
  std::uint64_t round_ = 0;  // of connections: handlers of an earlier one have nothing to say

  std::array<std::uint8_t, 65536> input_{};
  std::array<std::uint8_t, header_bytes> header_{};
  std::size_t header_have_ = 0;
  std::size_t wanted_ = 0;  // bytes of the frame under way that are still to come
  bool skipping_ = false;   // it is too long to be kept
  std::vector<std::uint8_t> frame_;
  std::vector<std::uint8_t> waiting_, writing_;
};

protocol::endpoint endpoint_of(asio::io_context& io, const link_spec& s, const std::string& host,
                               const std::string& port) {
  if (s.unix_path) return asio::local::stream_protocol::endpoint(host);
  asio::ip::tcp::resolver resolver(io);
  return resolver.resolve(host, port).begin()->endpoint();
}

stream_link::stream_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver)
    : frame_link(receiver), spec_(spec), socket_(io), again_(io) {
  frame_.reserve(max_frame);
  const bool listens = spec.how == link_spec::kind::listen;
  endpoint_ = listens ? endpoint_of(io, spec, spec.local, spec.local_port)
                      : endpoint_of(io, spec, spec.remote, spec.remote_port);
  if (listens) {
    acceptor_.emplace(io);
    listen();
  } else {
    connect();
  }
}

stream_link::~stream_link() {
  if (!acceptor_) return;
  error_code ignored;
  acceptor_->close(ignored);
  if (spec_.unix_path) remove_stale_socket(spec_.local);
}

void stream_link::listen() {
  if (spec_.unix_path) remove_stale_socket(spec_.local);
  acceptor_->open(endpoint_->protocol());
  if (!spec_.unix_path) acceptor_->set_option(asio::socket_base::reuse_address(true));
  acceptor_->bind(*endpoint_);
  acceptor_->listen();
  accept();
}

/// One peer at a time; the next one waits in the backlog.
void stream_link::accept() {
  acceptor_->async_accept(socket_, [this](const error_code& error) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      ++counters_.errors;
      again_.expires_after(retry_after);
      again_.async_wait([this](const error_code& aborted) {
        if (!aborted) accept();
      });
      return;
    }
    open();
  });
}

void stream_link::connect() {
  error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(*endpoint_, [this](const error_code& error) {
    if (error == asio::error::operation_aborted) return;
    if (error) return connect_later();
    open();
  });
}

void stream_link::connect_later() {
  again_.expires_after(retry_after);
  again_.async_wait([this](const error_code& aborted) {
    if (!aborted) connect();
  });
}

void stream_link::open() {
  if (!spec_.unix_path) {
    const int on = 1;
    ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ++counters_.connections;
  connected_ = true;
  ++round_;
  header_have_ = wanted_ = 0;
  skipping_ = false;
  frame_.clear();
  read();
}

/// The peer is gone, or what it says makes no sense: wait for the next one.
void stream_link::close() {
  if (!connected_) return;
  connected_ = false;
  ++round_;
  ++counters_.disconnections;
  if (header_have_ != 0) ++counters_.half_frames;
  error_code ignored;
  socket_.close(ignored);
  waiting_.clear();
  if (acceptor_)
    accept();
  else
    connect_later();
}

void stream_link::read() {
  socket_.async_read_some(asio::buffer(input_), [this, round = round_](const error_code& error, std::size_t got) {
    if (round != round_) return;
    if (error) return close();
    parse(input_.data(), got);
    if (round == round_) read();
  });
}

/// header_ is complete. False when it cannot be true.
bool stream_link::take_header() {
  wanted_ = wire::load_be32(header_.data());
  if (wanted_ == 0 || wanted_ > longest_claim) {
    ++counters_.bad_length;
    header_have_ = 0;
    return false;
  }
  skipping_ = wanted_ > max_frame;
  frame_.clear();
  return true;
}

void stream_link::parse(const std::uint8_t* data, std::size_t length) {
  while (length != 0) {
    if (header_have_ < header_bytes) {
      const std::size_t n = std::min(header_bytes - header_have_, length);
      std::memcpy(header_.data() + header_have_, data, n);
      header_have_ += n;
      data += n;
      length -= n;
      if (header_have_ == header_bytes && !take_header()) return close();
      continue;
    }
    const std::size_t n = std::min(wanted_, length);
    if (!skipping_) frame_.insert(frame_.end(), data, data + n);
    data += n;
    length -= n;
    wanted_ -= n;
    if (wanted_ != 0) continue;
    header_have_ = 0;
    if (skipping_)
      ++counters_.drop_oversized;
    else
      arrived(frame_.data(), frame_.size());
  }
}

void stream_link::send(const std::uint8_t* frame, std::size_t length) {
  if (!connected_) {
    ++counters_.drop_no_peer;
    return;
  }
  if (queued() + header_bytes + length > most_queued) {
    ++counters_.drop_queue_full;
    return;
  }
  count_out(length);
  const std::size_t at = waiting_.size();
  waiting_.resize(at + header_bytes);
  wire::store_be32(&waiting_[at], static_cast<std::uint32_t>(length));
  waiting_.insert(waiting_.end(), frame, frame + length);
  if (writing_.empty()) write();
}

void stream_link::write() {
  if (waiting_.empty()) return;
  writing_.swap(waiting_);
  asio::async_write(socket_, asio::buffer(writing_), [this, round = round_](const error_code& error, std::size_t) {
    writing_.clear();
    if (round == round_ && error) return close();
    if (connected_) write();
  });
}

}  // namespace

std::unique_ptr<frame_link> make_stream_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver) {
  return std::make_unique<stream_link>(io, spec, receiver);
}

}  // namespace rnic::serve
