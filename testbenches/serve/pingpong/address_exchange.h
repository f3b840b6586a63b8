// SPDX-License-Identifier: Apache-2.0
// The TCP conversation by which the verbs examples tell each other their addresses.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <utility>

#include "host_driver/gid_rules.h"
#include "testbenches/serve/links/real_time.h"

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

/// What became of those who came to a listening exchange.
struct exchange_counters {
  std::uint64_t clients = 0;      ///< that said their first word
  std::uint64_t silent = 0;       ///< that said none for address_exchange::silent_s, or made room for others
  std::uint64_t gone = 0;         ///< that left before it
  std::uint64_t turned_away = 0;  ///< when all places were taken by clients that had
};

/// A TCP socket of the machine for processes of the simulation: its functions are called in an SC_THREAD and wait there
/// while everything else goes on. False or nothing: the peer is gone, or did not answer within the time. Any number of
/// clients may come; the first that has said its first word is served first, and one that says nothing holds up nobody.
class address_exchange {
 public:
  static constexpr std::size_t message_bytes = 52;
  static constexpr std::size_t most_waiting = 64;  ///< clients; beyond, one that is silent makes room
  static constexpr unsigned silent_s = 20;
  /// For the next word of a client while others wait for their turn.
  static constexpr sim::time_ps crowded_ps = 5 * sim::ps_per_s;

  address_exchange(boost::asio::io_context& io, sim::timebase& base, real_time& clock);

  /// Listens at this IP address of the machine, at its loopback addresses when it is empty. `first_bytes`: of a
  /// client's first word. Throws std::runtime_error with a line for the user when that cannot be had.
  void listen(const std::string& address, std::uint16_t port, std::size_t first_bytes);
  /// Waits for the next client, for ever.
  bool accept();
  /// At any of the host's addresses. Tries again until `timeout_ps` have passed: the server may not be there yet.
  bool connect(const std::string& host, std::uint16_t port, sim::time_ps timeout_ps);
  bool send(const std::string& bytes);
  /// Exactly `bytes` bytes. `meanwhile` is called every few milliseconds of waiting; what it throws ends that.
  std::optional<std::string> receive(std::size_t bytes, sim::time_ps timeout_ps,
                                     const std::function<void()>& meanwhile = {});
  /// Whether the peer has closed its side, or is gone. What it said before may still be received.
  bool peer_closed();
  /// Whether clients that have said their first word wait for their turn.
  bool others_wait() const { return !talked_.empty(); }
  void close();
  bool listens() const { return !acceptors_.empty(); }
  const exchange_counters& count() const { return count_; }

 private:
  using error_code = boost::system::error_code;
  using tcp = boost::asio::ip::tcp;
  struct caller {
    explicit caller(tcp::socket&& s) : socket(std::move(s)), patience(socket.get_executor()) {}
    tcp::socket socket;
    boost::asio::steady_timer patience;
    std::string word;
  };
  using callers = std::list<std::shared_ptr<caller>>;
  template <class Start>
  bool wait_for(Start start, sim::time_ps timeout_ps, bool of_client = false,
                const std::function<void()>& meanwhile = {});
  void open(const tcp::endpoint& at);
  void expect_next(tcp::acceptor& acceptor);
  void greet(tcp::socket&& socket);
  void heard(const std::shared_ptr<caller>& who, bool all);

  sim::timebase& base_;
  real_time& clock_;
  boost::asio::io_context& io_;
  tcp::resolver resolver_;
  std::list<tcp::acceptor> acceptors_;
  tcp::socket socket_;
  std::size_t first_bytes_ = 0;
  callers silent_, talked_;  // the oldest first
  std::string word_;         // of the present client: said, and not received yet
  exchange_counters count_;
  sc_core::sc_event done_{sc_core::sc_gen_unique_name("exchange_done")};
};

}  // namespace rnic::serve
