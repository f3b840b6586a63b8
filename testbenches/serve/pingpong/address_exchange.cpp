// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/pingpong/address_exchange.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "model/wire/ethernet.h"
#include "testbenches/serve/host/peer_watch.h"

namespace rnic::serve {

namespace {

namespace asio = boost::asio;

constexpr sim::time_ps retry_after = 100'000 * sim::ps_per_us;

std::optional<std::uint32_t> hexadecimal(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

}  // namespace

std::string to_text(const peer_address& a) {
  std::string text = fmt::format("{:04x}:{:06x}:{:06x}:", a.lid, a.qpn, a.psn);
  for (const std::uint8_t byte : a.gid) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<peer_address> parse_peer(const std::string& text) {
  constexpr std::size_t lid_at = 0, qpn_at = 5, psn_at = 12, gid_at = 19, length = gid_at + 32;
  if (text.size() < length || text[qpn_at - 1] != ':' || text[psn_at - 1] != ':' || text[gid_at - 1] != ':')
    return std::nullopt;
  const auto lid = hexadecimal(text.substr(lid_at, 4)), qpn = hexadecimal(text.substr(qpn_at, 6)),
             psn = hexadecimal(text.substr(psn_at, 6));
  if (!lid || !qpn || !psn) return std::nullopt;
  peer_address a{static_cast<std::uint16_t>(*lid), *qpn, *psn, {}};
  for (std::size_t i = 0; i < a.gid.size(); ++i) {
    const auto byte = hexadecimal(text.substr(gid_at + 2 * i, 2));
    if (!byte) return std::nullopt;
    a.gid[i] = static_cast<std::uint8_t>(*byte);
  }
  return a;
}

std::string to_line(const peer_address& a) {
  return fmt::format("LID 0x{:04x}, QPN 0x{:06x}, PSN 0x{:06x}, GID {}", a.lid, a.qpn, a.psn, wire::to_string(a.gid));
}

address_exchange::address_exchange(asio::io_context& io, sim::timebase& base, real_time& clock)
    : base_(base), clock_(clock), io_(io), resolver_(io), socket_(io) {}

/// Starts an operation and sleeps until its handler has run; one that takes too long is cancelled. `of_client`: of one
/// that we serve while others may wait.
template <class Start>
bool address_exchange::wait_for(Start start, sim::time_ps timeout_ps, bool of_client,
                                const std::function<void()>& meanwhile) {
  struct state {
    bool done = false;
    error_code error;
  };
  const auto s = std::make_shared<state>();
  start([this, s](const error_code& error) {
    s->done = true;
    s->error = error;
    base_.notify(done_, clock_.present());
  });
  const sim::time_ps began = base_.now_ps();
  sim::time_ps deadline = timeout_ps > for_ever - began ? for_ever : began + timeout_ps;
  while (!s->done) {
    if (of_client && deadline != for_ever && others_wait()) deadline = std::min(deadline, began + crowded_ps);
    if (deadline == for_ever && !meanwhile) {
      sc_core::wait(done_);
      continue;
    }
    if (base_.now_ps() >= deadline) {
      close();
      return false;
    }
    if (meanwhile) meanwhile();
    const sim::time_ps left = deadline - base_.now_ps();
    sc_core::wait(sc_core::sc_time::from_value(meanwhile ? std::min(left, peer_watch::look_every_ps) : left), done_);
  }
  return !s->error;
}

// ---------------------------------------------------------------- those who come

void address_exchange::open(const tcp::endpoint& at) {
  tcp::acceptor acceptor(io_, at.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  // The unspecified address of IPv6 is that of IPv4 too; beside 127.0.0.1, ::1 is not.
  if (at.address().is_v6()) acceptor.set_option(asio::ip::v6_only(!at.address().is_unspecified()));
  acceptor.bind(at);
  acceptor.listen();
  acceptors_.push_back(std::move(acceptor));
}

void address_exchange::listen(const std::string& address, std::uint16_t port, std::size_t first_bytes) {
  first_bytes_ = first_bytes;
  error_code error;
  const auto at = asio::ip::make_address(address.empty() ? "127.0.0.1" : address, error);
  if (error) throw std::runtime_error(fmt::format("--exchange {}: not an IP address", address));
  try {
    open({at, port});
  } catch (const boost::system::system_error& e) {
    if (address.empty()) throw std::runtime_error(fmt::format("--port {}: {}", port, e.code().message()));
    throw std::runtime_error(fmt::format("--exchange {}, --port {}: {}", address, port, e.code().message()));
  }
  if (address.empty()) {
    try {
      open({asio::ip::address_v6::loopback(), port});
    } catch (const boost::system::system_error& e) {
      if (e.code() == boost::system::errc::address_in_use)
        throw std::runtime_error(fmt::format("--port {}: {}", port, e.code().message()));  // else: no IPv6 here
    }
  }
  for (tcp::acceptor& a : acceptors_) expect_next(a);
}

void address_exchange::expect_next(tcp::acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](const error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) greet(std::move(socket));
    expect_next(acceptor);
  });
}

/// One more client: it waits in the background for its first word.
void address_exchange::greet(tcp::socket&& socket) {
  if (silent_.size() + talked_.size() >= most_waiting) {
    if (silent_.empty()) {
      ++count_.turned_away;
      return;
    }
    error_code ignored;
    silent_.front()->socket.close(ignored);  // its read ends
    ++count_.silent;
    silent_.pop_front();
  }
  const auto who = std::make_shared<caller>(std::move(socket));
  silent_.push_back(who);
  who->word.resize(first_bytes_);
  who->patience.expires_after(std::chrono::seconds(silent_s));
  who->patience.async_wait([this, who](const error_code& error) {
    if (error || std::find(silent_.begin(), silent_.end(), who) == silent_.end()) return;
    ++count_.silent;
    silent_.remove(who);
    error_code ignored;
    who->socket.close(ignored);
    fmt::print("a client of the exchange of addresses said nothing for {} s\n", silent_s);
    std::fflush(stdout);
  });
  asio::async_read(who->socket, asio::buffer(who->word),
                   [this, who](const error_code& error, std::size_t) { heard(who, !error); });
}

void address_exchange::heard(const std::shared_ptr<caller>& who, bool all) {
  who->patience.cancel();
  const auto at = std::find(silent_.begin(), silent_.end(), who);
  if (at == silent_.end()) return;
  silent_.erase(at);
  if (!all) {
    ++count_.gone;
    return;
  }
  ++count_.clients;
  talked_.push_back(who);
  base_.notify(done_, clock_.present());
}

bool address_exchange::accept() {
  close();
  while (talked_.empty()) sc_core::wait(done_);
  socket_ = std::move(talked_.front()->socket);
  word_ = std::move(talked_.front()->word);
  talked_.pop_front();
  return true;
}

// ---------------------------------------------------------------- the conversation

bool address_exchange::connect(const std::string& host, std::uint16_t port, sim::time_ps timeout_ps) {
  const auto found = std::make_shared<tcp::resolver::results_type>();
  const bool resolved = wait_for(
      [&](auto handler) {
        resolver_.async_resolve(host, std::to_string(port),
                                [handler, found](const error_code& e, const tcp::resolver::results_type& results) {
                                  *found = results;
                                  handler(e);
                                });
      },
      timeout_ps);
  if (!resolved || found->empty()) return false;
  const sim::time_ps deadline = base_.now_ps() + timeout_ps;
  while (base_.now_ps() < deadline) {
    for (const auto& at : *found) {
      close();
      const auto connect_to = [this, endpoint = at.endpoint()](auto handler) {
        socket_.async_connect(endpoint, [handler](const error_code& e) { handler(e); });
      };
      if (base_.now_ps() < deadline && wait_for(connect_to, deadline - base_.now_ps())) return true;
    }
    sc_core::wait(sc_core::sc_time::from_value(retry_after));
  }
  return false;
}

bool address_exchange::send(const std::string& bytes) {
  const auto kept = std::make_shared<std::string>(bytes);
  return wait_for(
      [&](auto handler) {
        asio::async_write(socket_, asio::buffer(*kept),
                          [handler, kept](const error_code& error, std::size_t) { handler(error); });
      },
      10 * sim::ps_per_s);
}

std::optional<std::string> address_exchange::receive(std::size_t bytes, sim::time_ps timeout_ps,
                                                     const std::function<void()>& meanwhile) {
  std::string text = word_.substr(0, bytes);
  word_.erase(0, text.size());
  if (text.size() == bytes) return text;
  const auto kept = std::make_shared<std::string>(bytes - text.size(), '\0');
  const bool ok = wait_for(
      [&](auto handler) {
        asio::async_read(socket_, asio::buffer(*kept),
                         [handler, kept](const error_code& error, std::size_t) { handler(error); });
      },
      timeout_ps, listens(), meanwhile);
  if (!ok) return std::nullopt;
  return text + *kept;
}

bool address_exchange::peer_closed() {
  if (!socket_.is_open()) return true;
  pollfd state{socket_.native_handle(), POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void address_exchange::close() {
  error_code ignored;
  socket_.close(ignored);
  word_.clear();
}

}  // namespace rnic::serve
