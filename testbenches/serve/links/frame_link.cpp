// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/links/frame_link.h"

#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/system/system_error.hpp>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace rnic::serve {

namespace {

constexpr std::size_t longest_path = 107;  // sockaddr_un

[[noreturn]] void wrong(const std::string& text, const std::string& why) {
  throw std::invalid_argument("--link " + text + ": " + why);
}

/// Splits `HOST:PORT` or `[HOST]:PORT`.
std::pair<std::string, std::string> host_and_port(const std::string& text, const std::string& all) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) wrong(all, "expected HOST:PORT, not '" + text + "'");
  std::string host = text.substr(0, colon);
  const std::string port = text.substr(colon + 1);
  if (port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos || std::stoul(port) > 65535)
    wrong(all, "port " + port + " is not 0 to 65535");
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) wrong(all, "expected HOST:PORT, not '" + text + "'");
  return {host, port};
}

std::string path_of(const std::string& text, const std::string& all) {
  if (text.empty()) wrong(all, "a path is missing");
  if (text.size() > longest_path) wrong(all, "the path is longer than the 107 characters that a socket can have");
  return text;
}

void one_end(link_spec& s, const std::string& rest, std::string& host, std::string& port) {
  if (s.unix_path)
    host = path_of(rest, s.text);
  else
    std::tie(host, port) = host_and_port(rest, s.text);
}

}  // namespace

link_spec parse_link(const std::string& text) {
  link_spec s;
  s.text = text;
  const std::size_t first = text.find(':');
  const std::string kind = text.substr(0, first);
  std::string rest = first == std::string::npos ? "" : text.substr(first + 1);
  if (kind == "tap") {
    s.how = link_spec::kind::tap;
    if (rest.empty() || rest.size() > 15) wrong(text, "expected tap:NAME with a name of 1 to 15 characters");
    s.local = rest;
    return s;
  }
  if (kind == "listen") {
    s.how = link_spec::kind::listen;
  } else if (kind == "connect") {
    s.how = link_spec::kind::connect;
  } else if (kind == "datagram") {
    s.how = link_spec::kind::datagram;
  } else {
    wrong(text, "expected listen:, connect:, datagram: or tap:");
  }
  const std::size_t second = rest.find(':');
  const std::string family = rest.substr(0, second);
  rest = second == std::string::npos ? "" : rest.substr(second + 1);
  const bool datagram = s.how == link_spec::kind::datagram;
  const std::string network = datagram ? "udp" : "tcp";
  if (family != "unix" && family != network)
    wrong(text, "expected " + kind + ":" + network + ": or " + kind + ":unix:");
  s.unix_path = family == "unix";
  if (datagram) {
    const std::size_t comma = rest.find(',');
    if (comma == std::string::npos) wrong(text, "expected the own and the peer's address, with a comma between them");
    one_end(s, rest.substr(0, comma), s.local, s.local_port);
    one_end(s, rest.substr(comma + 1), s.remote, s.remote_port);
    if (s.local == s.remote && s.local_port == s.remote_port)
      wrong(text, "expected an address of the peer's that is another than the own one");
  } else if (s.how == link_spec::kind::listen) {
    one_end(s, rest, s.local, s.local_port);
  } else {
    one_end(s, rest, s.remote, s.remote_port);
  }
  return s;
}

link_counters frame_link::counters() const {
  link_counters c = counters_;
  c.drop_kernel = lost_in_kernel();
  return c;
}

bool frame_link::may_read() {
  if (finished_) return false;
  if (!receiver_.ready()) stalled_ = true;
  return !stalled_;
}

void frame_link::resume() {
  if (!stalled_) return;
  stalled_ = false;
  read_on();
}

void frame_link::arrived(const std::uint8_t* frame, std::size_t length) {
  if (length < min_frame) {
    ++counters_.drop_runt;
    return;
  }
  if (length > max_frame) {
    ++counters_.drop_oversized;
    return;
  }
  ++counters_.frames_in;
  counters_.bytes_in += length;
  receiver_.frame_arrived(frame, length);
}

void remove_stale_socket(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_socket(path, error)) return;
  // Nobody serves sockets of this kind, so connecting disturbs no one: "wrong type" says that the socket lives.
  boost::asio::io_context io;
  const boost::asio::generic::seq_packet_protocol kind(AF_UNIX, 0);
  boost::asio::generic::seq_packet_protocol::socket probe(io, kind);
  const boost::asio::local::stream_protocol::endpoint there(path);
  boost::system::error_code answer;
  probe.connect({there.data(), there.size()}, answer);
  if (answer == boost::asio::error::connection_refused) std::filesystem::remove(path, error);
}

std::unique_ptr<frame_link> make_link(boost::asio::io_context& io, const link_spec& spec, frame_receiver_if& receiver) {
  try {
    switch (spec.how) {
      case link_spec::kind::listen:
      case link_spec::kind::connect:
        return make_stream_link(io, spec, receiver);
      case link_spec::kind::datagram:
        return make_datagram_link(io, spec, receiver);
      case link_spec::kind::tap:
        break;
    }
    return make_tap_link(io, spec, receiver);
  } catch (const boost::system::system_error& e) {
    throw std::runtime_error("--link " + spec.text + ": " + e.code().message());
  }
}

}  // namespace rnic::serve
