// SPDX-License-Identifier: Apache-2.0
// UDP and UNIX datagrams, one frame each.
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/generic/datagram_protocol.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <sstream>

#include "testbenches/serve/links/whole_frame_link.h"

namespace rnic::serve {

namespace {

namespace asio = boost::asio;
using protocol = asio::generic::datagram_protocol;
using error_code = boost::system::error_code;

constexpr std::chrono::milliseconds after_error{1};
constexpr int receive_buffer = 4 << 20;  // bytes of a UDP socket, as far as the machine allows it

class datagram_link final : public whole_frame_link {
 public:
  datagram_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver);
  ~datagram_link() override {
    error_code ignored;
    socket_.close(ignored);
    if (spec_.unix_path) remove_stale_socket(spec_.local);
  }

 private:
  bool has_peer() const override { return there_.value_or(true); }
  outcome attempt(const std::uint8_t* frame, std::size_t length) override;
  bool watch() override;
  void read_on() override;
  std::uint64_t lost_in_kernel() const override;
  void wait_for_room(protocol::socket& at);
  void peer_is(bool there, const error_code& why);
  void heard();

  link_spec spec_;
  protocol::socket socket_;
  // Connected to the peer, never sent on. A socket that is not connected counts as writable whatever the peer does; the
  // other way round, one that is connected hears nobody but its peer, so it cannot be the bound one.
  protocol::socket towards_peer_;
  std::uint64_t watch_ = 0;  // handlers of an earlier one have nothing to say
  protocol::endpoint peer_, from_, last_from_;
  std::optional<bool> there_;  // whether the peer's address was bound when it was last sent to
  asio::steady_timer after_error_;
  std::array<std::uint8_t, 65536> input_{};
};

protocol::endpoint endpoint_of(asio::io_context& io, const link_spec& s, const std::string& host,
                               const std::string& port) {
  if (s.unix_path) return asio::local::datagram_protocol::endpoint(host);
  asio::ip::udp::resolver resolver(io);
  return resolver.resolve(host, port).begin()->endpoint();
}

std::string udp_address(const protocol::endpoint& e) {
  asio::ip::udp::endpoint address;
  if (e.size() > address.capacity()) return "?";
  std::memcpy(address.data(), e.data(), e.size());
  address.resize(e.size());
  std::ostringstream text;
  text << address;
  return text.str();
}

datagram_link::datagram_link(asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver)
    : whole_frame_link(io, receiver), spec_(spec), socket_(io), towards_peer_(io), after_error_(io) {
  const protocol::endpoint own = endpoint_of(io, spec, spec.local, spec.local_port);
  peer_ = endpoint_of(io, spec, spec.remote, spec.remote_port);
  if (spec.unix_path) remove_stale_socket(spec.local);
  socket_.open(own.protocol());
  error_code ignored;
  if (!spec.unix_path) socket_.set_option(asio::socket_base::receive_buffer_size(receive_buffer), ignored);
  socket_.bind(own);
  socket_.non_blocking(true);
  read_on();
}

/// From whom it comes does not matter, as on a cable.
void datagram_link::read_on() {
  if (!may_read()) return;
  socket_.async_receive_from(asio::buffer(input_), from_, [this](const error_code& error, std::size_t got) {
    if (error == asio::error::operation_aborted || finished()) return;
    if (!error) {
      heard();
      arrived(input_.data(), got);
      return read_on();
    }
    ++counters_.errors;
    after_error_.expires_after(after_error);
    after_error_.async_wait([this](const error_code& aborted) {
      if (!aborted) read_on();
    });
  });
}

/// Of a UDP peer nothing is known but what it sends.
void datagram_link::heard() {
  if (spec_.unix_path || from_ == last_from_) return;
  last_from_ = from_;
  receiver().link_event("frames come from " + udp_address(from_));
}

std::uint64_t datagram_link::lost_in_kernel() const {
  if (spec_.unix_path) return 0;  // there the sender waits
  std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t length = sizeof memory;
  auto& socket = const_cast<protocol::socket&>(socket_);  // NOLINT: its number cannot be had of a const one
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_MEMINFO, memory.data(), &length) != 0) return 0;
  return memory[SK_MEMINFO_DROPS];
}

whole_frame_link::outcome datagram_link::attempt(const std::uint8_t* frame, std::size_t length) {
  error_code error;
  socket_.send_to(asio::buffer(frame, length), peer_, 0, error);
  if (error == asio::error::would_block || error == asio::error::try_again || error == asio::error::no_buffer_space ||
      error == asio::error::no_memory)
    return outcome::no_room;
  peer_is(!error, error);
  return error ? outcome::no_peer : outcome::sent;
}

/// A UDP peer that is there cannot be told from one that is not.
void datagram_link::peer_is(bool there, const error_code& why) {
  if (there_ == there) return;
  const bool known = there_.has_value();
  there_ = there;
  const std::string& at = spec_.unix_path ? spec_.remote : spec_.remote + ":" + spec_.remote_port;
  if (!there)
    receiver().link_event(
        (spec_.unix_path && known ? "the peer has gone, frames for it are lost (" : "frames are lost (") + at + ": " +
        why.message() + ")");
  else if (spec_.unix_path)
    receiver().link_event("the peer has come (" + at + ")");
  else if (known)
    receiver().link_event("frames leave again for " + at);
  if (there && known) receiver().peer_came();
}

/// Where the own buffer is full, the bound socket tells; where the peer's queue is, the connected one.
bool datagram_link::watch() {
  ++watch_;
  if (!writable(socket_.native_handle())) {
    wait_for_room(socket_);
    return true;
  }
  if (!spec_.unix_path) return false;
  error_code error;
  if (towards_peer_.is_open()) towards_peer_.cancel(error);
  towards_peer_.connect(peer_, error);  // again each time: by its path, which may be another socket's by now
  if (error) return false;
  wait_for_room(towards_peer_);
  return true;
}

void datagram_link::wait_for_room(protocol::socket& at) {
  at.async_wait(protocol::socket::wait_write, [this, watch = watch_](const error_code& error) {
    if (!error && watch == watch_) try_again();
  });
}

}  // namespace

std::unique_ptr<frame_link> make_datagram_link(asio::io_context& io, const link_spec& spec,
                                               frame_receiver_if& receiver) {
  return std::make_unique<datagram_link>(io, spec, receiver);
}

}  // namespace rnic::serve
