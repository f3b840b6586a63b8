// SPDX-License-Identifier: Apache-2.0
// The TCP conversation by which the verbs examples tell each other their addresses.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <systemc>

#include "host_driver/gid_rules.h"
#include "testbenches/serve/real_time.h"

namespace rnic::serve {

/// Who one side of a connection is.
struct peer_address {
  std::uint16_t lid = 0;  ///< RoCE has none
  std::uint32_t qpn = 0, psn = 0;
  host_driver::gid_bytes gid{};
};
/// `%04x:%06x:%06x:%s` with the GID as 32 digits: 51 characters, on the line with a zero behind them.
std::string to_text(const peer_address& a);
std::optional<peer_address> parse_peer(const std::string& text);
/// As the examples print it: `LID 0x0000, QPN 0x000011, PSN 0x123456, GID ::ffff:10.0.0.1`.
std::string to_line(const peer_address& a);

/// A TCP socket of the machine for processes of the simulation: its functions are called in an SC_THREAD and wait there
/// while everything else goes on. False or nothing: the peer is gone, or did not answer within the time.
class address_exchange {
 public:
  static constexpr std::size_t message_bytes = 52;

  address_exchange(boost::asio::io_context& io, sim::timebase& base, real_time& clock);

  /// Throws std::runtime_error with a line for the user when the port cannot be had.
  void listen(std::uint16_t port);
  /// Waits for the next client, for ever.
  bool accept();
  /// Tries again until `timeout_ps` have passed: the server may not be there yet.
  bool connect(const std::string& host, std::uint16_t port, sim::time_ps timeout_ps);
  bool send(const std::string& bytes);
  /// Exactly `bytes` bytes.
  std::optional<std::string> receive(std::size_t bytes, sim::time_ps timeout_ps);
  void close();

 private:
  using error_code = boost::system::error_code;
  template <class Start>
  bool wait_for(Start start, sim::time_ps timeout_ps);

  sim::timebase& base_;
  real_time& clock_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::socket socket_;
  sc_core::sc_event done_{sc_core::sc_gen_unique_name("exchange_done")};
};

}  // namespace rnic::serve
