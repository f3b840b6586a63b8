// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/script/line_channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <cstdio>
#include <stdexcept>

#include "testbenches/serve/links/frame_link.h"

namespace rnic::serve::script {

namespace asio = boost::asio;

namespace {

constexpr std::size_t longest_path = 107;  // sockaddr_un
constexpr int backlog = 16;

[[noreturn]] void wrong(const std::string& text, const std::string& why) {
  throw std::invalid_argument("--script " + text + ": " + why);
}

}  // namespace

channel_address parse_channel(const std::string& text) {
  channel_address at;
  if (text == "-") return at;
  if (text.rfind("unix:", 0) == 0) {
    at.how = channel_address::kind::unix_socket;
    at.host = text.substr(5);
    if (at.host.empty() || at.host.size() > longest_path) wrong(text, "expected a path of 1 to 107 characters");
    return at;
  }
  if (text.rfind("tcp:", 0) != 0) wrong(text, "expected unix:PATH, tcp:HOST:PORT or -");
  at.how = channel_address::kind::tcp;
  const std::string rest = text.substr(4);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string::npos || colon == 0) wrong(text, "expected tcp:HOST:PORT");
  at.host = rest.substr(0, colon);
  at.port = rest.substr(colon + 1);
  if (at.port.empty() || at.port.size() > 5 || at.port.find_first_not_of("0123456789") != std::string::npos ||
      std::stoul(at.port) > 65535)
    wrong(text, "the port is not 0 to 65535");
  if (at.host.size() > 1 && at.host.front() == '[' && at.host.back() == ']')
    at.host = at.host.substr(1, at.host.size() - 2);
  return at;
}

/// A socket, or two descriptors. Handlers keep it alive; one of an earlier client finds that it is not `client_`.
struct line_channel::client {
  explicit client(asio::io_context& io) : socket(io), in(io), out(io) {}
  protocol::socket socket;
  asio::posix::stream_descriptor in, out;
  std::array<char, 65536> chunk{};
  std::string text;          // what was read and not taken, from `taken` on
  std::size_t searched = 0;  // of it have no end of line
  bool reading = false, ended = false, broken = false, skipping = false;
};

line_channel::line_channel(asio::io_context& io, sim::timebase& base, real_time& clock)
    : io_(io), base_(base), clock_(clock) {}

line_channel::~line_channel() {
  hang_up();
  if (!acceptor_) return;
  error_code ignored;
  acceptor_->close(ignored);
  if (at_.how == channel_address::kind::unix_socket) remove_stale_socket(at_.host);
}

std::string line_channel::open(const channel_address& at) {
  at_ = at;
  if (at.how == channel_address::kind::standard) {
    client_ = std::make_shared<client>(io_);
    std::fflush(stdout);
    std::signal(SIGPIPE, SIG_IGN);  // whoever reads the answers may go away
    client_->in.assign(::dup(STDIN_FILENO));
    client_->out.assign(::dup(STDOUT_FILENO));
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    standard_open_ = true;
    return "standard input";
  }
  const bool named = at.how == channel_address::kind::unix_socket;
  try {
    protocol::endpoint endpoint;
    if (named) {
      remove_stale_socket(at.host);
      endpoint = asio::local::stream_protocol::endpoint(at.host);
    } else {
      asio::ip::tcp::resolver resolver(io_);
      endpoint = resolver.resolve(at.host, at.port)->endpoint();
    }
    acceptor_.emplace(io_);
    acceptor_->open(endpoint.protocol());
    if (!named) acceptor_->set_option(asio::socket_base::reuse_address(true));
    acceptor_->bind(endpoint);
    acceptor_->listen(backlog);
    if (named) return "unix:" + at.host;
    asio::ip::tcp::endpoint found;
    const protocol::endpoint bound = acceptor_->local_endpoint();
    found.resize(bound.size());
    std::memcpy(found.data(), bound.data(), bound.size());
    const std::string host = found.address().to_string();
    return fmt::format(found.address().is_v6() ? "tcp:[{}]:{}" : "tcp:{}:{}", host, found.port());
  } catch (const boost::system::system_error& e) {
    if (acceptor_) acceptor_.reset();
    throw std::runtime_error(fmt::format(
        "--script {}{}: {}", named ? "unix:" : "tcp:", named ? at.host : at.host + ":" + at.port, e.code().message()));
  }
}

void line_channel::wake() { base_.notify(something_, clock_.present()); }

template <class Done>
void line_channel::await(Done done) {
  while (!done()) sc_core::wait(something_);
}

bool line_channel::accept() {
  if (at_.how == channel_address::kind::standard) {
    if (!standard_open_) return false;
    standard_open_ = false;
    read_ahead();
    return true;
  }
  for (;;) {
    const auto c = std::make_shared<client>(io_);
    const auto result = std::make_shared<std::optional<error_code>>();
    acceptor_->async_accept(c->socket, [this, c, result](const error_code& error) {
      *result = error;
      wake();
    });
    await([&] { return result->has_value(); });
    if (**result == asio::error::operation_aborted) return false;
    if (**result) {  // such as no descriptor left for it
      sc_core::wait(sc_core::sc_time::from_value(sim::ps_per_s / 10));
      continue;
    }
    client_ = c;
    read_ahead();
    return true;
  }
}

void line_channel::read_ahead() {
  const auto c = client_;
  if (!c || c->reading || c->ended || c->text.size() > longest_line) return;
  c->reading = true;
  const auto handler = [this, c](const error_code& error, std::size_t bytes) { arrived(c, error, bytes); };
  const auto buffer = asio::buffer(c->chunk);
  if (c->in.is_open())
    c->in.async_read_some(buffer, handler);
  else
    c->socket.async_read_some(buffer, handler);
}

void line_channel::arrived(const std::shared_ptr<client>& from, const error_code& error, std::size_t bytes) {
  if (from != client_) return;
  from->reading = false;
  from->text.append(from->chunk.data(), bytes);
  if (error) from->ended = true;
  if (error && error != asio::error::eof) from->broken = true;
  read_ahead();
  wake();
}

line_channel::arrival line_channel::next(std::string& line) {
  const auto c = client_;
  if (!c) return arrival::end;
  for (;;) {
    const std::size_t end = c->text.find('\n', c->searched);
    if (end != std::string::npos) {
      line = c->text.substr(0, end);
      c->text.erase(0, end + 1);
      c->searched = 0;
      read_ahead();
      const bool skipped = c->skipping || line.size() > longest_line;
      c->skipping = false;
      if (skipped) return arrival::too_long;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return arrival::line;
    }
    c->searched = c->text.size();
    if (c->text.size() > longest_line) {
      c->skipping = true;
      c->text.clear();
      c->searched = 0;
      read_ahead();
    }
    if (c->ended) {
      const bool half = c->skipping || !c->text.empty();
      c->text.clear();
      c->searched = 0;
      c->skipping = false;
      return half ? arrival::half : arrival::end;
    }
    sc_core::wait(something_);
  }
}

bool line_channel::send(const std::string& line) {
  const auto c = client_;
  if (!c || c->broken) return false;
  const auto text = std::make_shared<std::string>(line + "\n");
  const auto done = std::make_shared<bool>(false);
  const auto handler = [this, c, text, done](const error_code& error, std::size_t) {
    *done = true;
    if (error) c->broken = true;
    wake();
  };
  if (c->out.is_open())
    asio::async_write(c->out, asio::buffer(*text), handler);
  else
    asio::async_write(c->socket, asio::buffer(*text), handler);
  await([&] { return *done; });
  return !c->broken;
}

bool line_channel::gone() const {
  if (!client_ || client_->broken) return true;
  if (!client_->ended || client_->in.is_open()) return false;
  pollfd look{const_cast<client&>(*client_).socket.native_handle(), 0, 0};
  return ::poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLERR)) != 0;
}

void line_channel::hang_up() {
  if (!client_) return;
  error_code ignored;
  client_->socket.close(ignored);
  client_->in.close(ignored);
  client_->out.close(ignored);
  client_.reset();
}

}  // namespace rnic::serve::script
