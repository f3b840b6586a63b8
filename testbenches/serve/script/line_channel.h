// SPDX-License-Identifier: Apache-2.0
// Lines of text between a process of the simulation and a client on a socket, or on standard input and output.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <systemc>

#include "testbenches/serve/links/real_time.h"

namespace rnic::serve::script {

/// Where the commands come from: `unix:PATH`, `tcp:HOST:PORT` (0: a free one) or `-`.
struct channel_address {
  enum class kind : std::uint8_t { unix_socket, tcp, standard };
  kind how = kind::standard;
  std::string host, port;  ///< host: or path
};
/// Throws std::invalid_argument with a line for the user.
channel_address parse_channel(const std::string& text);

/// One client at a time, the next ones wait in the socket's backlog. But for open() its functions are called in an
/// SC_THREAD and wait there while everything else goes on. What a client sends is read ahead by little more than a
/// line, and answers are not kept: a client that does not read stops itself alone.
class line_channel {
 public:
  static constexpr std::size_t longest_line = 1 << 20;

  line_channel(boost::asio::io_context& io, sim::timebase& base, real_time& clock);
  ~line_channel();
  line_channel(const line_channel&) = delete;
  line_channel& operator=(const line_channel&) = delete;

  /// Takes standard output for answers: what else is printed goes to standard error from then on. Throws
  /// std::runtime_error with a line for the user when the address cannot be had. Gives it as text, with the port that
  /// was found.
  std::string open(const channel_address& at);
  /// Waits for the next client, for ever. False: there are no more, as behind the end of standard input.
  bool accept();
  enum class arrival : std::uint8_t {
    line,      ///< without its end
    too_long,  ///< longer than longest_line, and skipped
    half,      ///< the client went away before its end
    end        ///< nothing follows
  };
  /// Waits for the next line, for ever.
  arrival next(std::string& line);
  /// False: the client is gone.
  bool send(const std::string& line);
  /// The client has closed its end: nobody waits for an answer. Over TCP this is known only after an answer was sent.
  bool gone() const;
  void hang_up();

 private:
  using error_code = boost::system::error_code;
  using protocol = boost::asio::generic::stream_protocol;
  struct client;
  template <class Done>
  void await(Done done);
  void wake();
  void read_ahead();
  void arrived(const std::shared_ptr<client>& from, const error_code& error, std::size_t bytes);

  boost::asio::io_context& io_;
  sim::timebase& base_;
  real_time& clock_;
  channel_address at_;
  std::optional<boost::asio::basic_socket_acceptor<protocol>> acceptor_;
  std::shared_ptr<client> client_;
  bool standard_open_ = false;
  sc_core::sc_event something_{sc_core::sc_gen_unique_name("script_channel")};
};

}  // namespace rnic::serve::script
