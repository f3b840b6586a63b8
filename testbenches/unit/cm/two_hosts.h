// SPDX-License-Identifier: Apache-2.0
// Two connection managers with a network in between that loses, repeats and lies.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "host_driver/cm/connection_manager.h"

namespace rnic::host_driver::cm::test {

using kind = event::kind;

constexpr std::uint64_t service = 0x0000000001061c06;
constexpr std::uint64_t answer_time = 4'096'000ull << 20;

inline gid_bytes host(std::uint8_t n) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, n}; }

struct node : mad_output_if {
  explicit node(std::uint8_t n, connection_manager_config c = {})
      : number(n), host_software(std::in_place, *this, with_guid(c, n)) {}
  static connection_manager_config with_guid(connection_manager_config c, std::uint8_t n, std::uint32_t first = 0) {
    c.ca_guid = n;
    c.first_id = first != 0 ? first : n * 1000u;
    return c;
  }
  /// As another process of the same host, which knows of nothing.
  void begin_anew(std::uint32_t first_id) {
    host_software.emplace(*this, with_guid({}, number, first_id));
    out.clear();
  }
  void send_mad(const address& to, const mad& datagram) override { out.push_back({to, datagram}); }
  /// The next event, and it is of this kind.
  event take(kind what) {
    EXPECT_TRUE(manager.has_event());
    if (!manager.has_event()) return {};
    const event e = manager.take_event();
    EXPECT_EQ(e.what, what);
    return e;
  }

  std::uint8_t number;
  std::deque<std::pair<address, mad>> out;
  std::optional<connection_manager> host_software;
  connection_manager& manager = *host_software;
};

struct network {
  node a{1}, b{2};
  std::uint64_t now = 1000;
  std::function<bool(const contents&)> drop = [](const contents&) { return false; };

  static address from(const node& n) {
    address x;
    x.gid = host(n.number);
    return x;
  }
  /// Until nothing is under way any more.
  void deliver() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto [sender, receiver] : {std::pair<node*, node*>{&a, &b}, {&b, &a}}) {
        while (!sender->out.empty()) {
          const mad m = sender->out.front().second;
          sender->out.pop_front();
          moved = true;
          if (drop(*decode(m.data(), m.size()))) continue;
          receiver->manager.receive(from(*sender), m.data(), m.size(), now);
        }
      }
    }
  }
  void wait(std::uint64_t ps) {
    now += ps;
    a.manager.tick(now);
    b.manager.tick(now);
    deliver();
  }
  connection_id ask(std::uint32_t qpn = 0x77) {
    connection_data d;
    d.service_id = service;
    d.qpn = qpn;
    d.psn = 0x1234;
    private_area p{};
    p[50] = 9;
    const auto id = a.manager.connect(from(b), d, p, now);
    deliver();
    return id;
  }
  /// Both identities of an established connection.
  std::pair<connection_id, connection_id> established(std::uint32_t qpn = 0x77) {
    b.manager.listen(service);
    const auto ida = ask(qpn);
    const event request = b.take(kind::request);
    connection_data d;
    d.qpn = qpn + 1;
    EXPECT_TRUE(b.manager.accept(request.id, d, {}, now));
    deliver();
    a.take(kind::reply);
    EXPECT_TRUE(a.manager.confirm(ida, {}));
    deliver();
    b.take(kind::established);
    EXPECT_EQ(a.manager.state_of(ida), state::established);
    EXPECT_EQ(b.manager.state_of(request.id), state::established);
    return {ida, request.id};
  }
};

/// Loses the first `n` messages of a kind.
inline std::function<bool(const contents&)> first(unsigned n, message what) {
  return [n, what](const contents& c) mutable { return c.kind == what && n != 0 && n-- != 0; };
}

}  // namespace rnic::host_driver::cm::test
