// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/address_exchange.h"

#include <fmt/format.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <stdexcept>

#include "model/wire/ethernet.h"

namespace rnic::serve {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr sim::time_ps retry_after = 100'000 * sim::ps_per_us;
constexpr sim::time_ps for_ever = ~sim::time_ps{0};

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
    : base_(base), clock_(clock), resolver_(io), acceptor_(io), socket_(io) {}

/// Starts an operation and sleeps until its handler has run; one that takes too long is cancelled.
template <class Start>
bool address_exchange::wait_for(Start start, sim::time_ps timeout_ps) {
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
  const sim::time_ps now = base_.now_ps();
  const sim::time_ps deadline = timeout_ps > for_ever - now ? for_ever : now + timeout_ps;
  while (!s->done) {
    if (deadline == for_ever) {
      sc_core::wait(done_);
      continue;
    }
    if (base_.now_ps() >= deadline) {
      close();
      return false;
    }
    sc_core::wait(sc_core::sc_time::from_value(deadline - base_.now_ps()), done_);
  }
  return !s->error;
}

void address_exchange::listen(std::uint16_t port) {
  try {
    const tcp::endpoint endpoint(tcp::v4(), port);
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen();
  } catch (const boost::system::system_error& e) {
    throw std::runtime_error(fmt::format("--port {}: {}", port, e.code().message()));
  }
}

bool address_exchange::accept() {
  close();
  return wait_for(
      [this](auto handler) { acceptor_.async_accept(socket_, [handler](const error_code& error) { handler(error); }); },
      for_ever);
}

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
  const tcp::endpoint endpoint = found->begin()->endpoint();
  const sim::time_ps deadline = base_.now_ps() + timeout_ps;
  while (base_.now_ps() < deadline) {
    close();
    const bool connected =
        wait_for([&](auto handler) { socket_.async_connect(endpoint, [handler](const error_code& e) { handler(e); }); },
                 deadline - base_.now_ps());
    if (connected) return true;
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

std::optional<std::string> address_exchange::receive(std::size_t bytes, sim::time_ps timeout_ps) {
  const auto kept = std::make_shared<std::string>(bytes, '\0');
  const bool ok = wait_for(
      [&](auto handler) {
        asio::async_read(socket_, asio::buffer(kept->data(), bytes),
                         [handler, kept](const error_code& error, std::size_t) { handler(error); });
      },
      timeout_ps);
  if (!ok) return std::nullopt;
  return *kept;
}

void address_exchange::close() {
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace rnic::serve
