// SPDX-License-Identifier: Apache-2.0
// What two systems agree on, and when (IEEE 802.1AX-2014, 6.4); times are those of 6.4.4.
#include "host_driver/lacp/lacp_agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace rnic::host_driver::lacp {
namespace {

constexpr std::uint64_t s = 1'000'000'000'000;
namespace bit = wire::lacp_state;
using receive = lacp_port::receive_state;
using mux = lacp_port::mux_state;

constexpr std::array<mac_address, 2> addresses(std::uint8_t who) {
  return {mac_address{2, 0, 0, 0, who, 1}, mac_address{2, 0, 0, 0, who, 2}};
}

settings fast() {
  settings c;
  c.rate = settings::speed::fast;
  return c;
}

/// One system, and what it has sent.
struct system_of : port_output_if {
  system_of(std::uint8_t who, const settings& c) : agent(addresses(who)[0], addresses(who), c, *this) {}
  struct frame {
    unsigned port;
    std::uint64_t at;
    std::vector<std::uint8_t> bytes;
  };
  void transmit(unsigned port, const std::uint8_t* f, std::size_t length) override {
    frames.push_back({port, now, {f, f + length}});
    sent.push_back(frames.back());
  }
  wire::lacp_unit last(unsigned port) const {
    wire::lacp_unit u;
    wire::marker_unit m;
    for (const frame& f : sent)
      if (f.port == port) wire::decode_slow_protocol(f.bytes.data() + 14, f.bytes.size() - 14, u, m);
    return u;
  }
  std::vector<std::uint64_t> seconds(unsigned port) const {
    std::vector<std::uint64_t> all;
    for (const frame& f : sent)
      if (f.port == port) all.push_back(f.at / s);
    return all;
  }

  std::uint64_t now = 0;
  std::vector<frame> frames, sent;  // on their way, all
  lacp_agent agent;
};

/// Two systems at two cables; a frame takes a microsecond.
struct bench {
  explicit bench(const settings& a = {}, const settings& b = {})
      : ends{std::make_unique<system_of>(1, a), std::make_unique<system_of>(2, b)} {}
  system_of& a() { return *ends[0]; }
  system_of& b() { return *ends[1]; }
  void at(std::uint64_t time) {
    now = time;
    for (auto& e : ends) e->now = time;
  }
  void link(unsigned port, bool up, unsigned rate_mbps = 40'000) {
    for (auto& e : ends) e->agent.set_link(port, up, rate_mbps, now);
    deliver();
  }
  void both(bool up = true) {
    link(1, up);
    link(2, up);
  }
  void deliver() {
    while (!a().frames.empty() || !b().frames.empty()) {
      at(now + 1'000'000);
      for (unsigned i = 0; i < 2; ++i)
        for (const auto& f : std::exchange(ends[i]->frames, {}))
          if (!mute[i][f.port - 1]) ends[1 - i]->agent.receive(f.port, f.bytes.data(), f.bytes.size(), now);
    }
  }
  /// Lets time pass, as processes do that wait for what is due.
  void until(std::uint64_t end) {
    for (;;) {
      const std::uint64_t next = std::min(a().agent.next_ps(), b().agent.next_ps());
      if (next > end) break;
      ASSERT_GE(next + 10'000'000, now) << "something was due before";
      at(std::max(next, now));
      for (auto& e : ends) e->agent.tick(now);
      deliver();
    }
    at(std::max(end, now));
  }
  std::pair<unsigned, unsigned> distributing() { return {a().agent.distributing(), b().agent.distributing()}; }

  std::uint64_t now = 0;
  std::array<std::unique_ptr<system_of>, 2> ends;
  std::array<std::array<bool, 2>, 2> mute{};  // frames of a system and port that are lost
};

using masks = std::pair<unsigned, unsigned>;
using times = std::vector<std::uint64_t>;

TEST(LacpAgent, TwoSystemsAggregateAfterAggregateWait) {
  bench b;
  b.both();
  b.until(2 * s - 1);
  EXPECT_EQ(b.distributing(), (masks{0, 0}));
  EXPECT_FALSE(b.a().agent.settled());
  b.until(3 * s + s / 100);  // the limit of three units a second may hold one back
  EXPECT_EQ(b.distributing(), (masks{3, 3}));
  EXPECT_TRUE(b.a().agent.settled());
  const wire::lacp_unit u = b.a().last(1);
  EXPECT_EQ(u.actor.system, addresses(1)[0]);
  EXPECT_EQ(u.actor.key, 11 << 1 | 1) << "40 Gb/s, full duplex";
  EXPECT_EQ(u.actor.port, 1);
  EXPECT_EQ(u.partner.system, addresses(2)[0]);
  EXPECT_EQ(b.a().agent.port(2).partner().port, 2);
}

/// In the end both say that all is well: active, long timeout, aggregated, in sync, collecting, distributing.
TEST(LacpAgent, StatesAreSaidToThePartner) {
  bench b({}, fast());
  b.both();
  b.until(40 * s);
  EXPECT_EQ(b.a().agent.port(1).actor().state, 0x3d);
  EXPECT_EQ(b.b().agent.port(1).actor().state, 0x3f);
  EXPECT_EQ(b.b().last(1).partner.state, 0x3d) << "b has heard of it";
}

/// Who asks for units each second gets them each second; the other one each thirty.
TEST(LacpAgent, SpeaksAsOftenAsThePartnerAsks) {
  bench b({}, fast());
  b.both();
  b.until(10 * s);
  const auto count = [&](system_of& e, std::uint64_t from, std::uint64_t to) {
    return std::count_if(e.sent.begin(), e.sent.end(),
                         [&](const auto& f) { return f.port == 1 && f.at > from && f.at <= to; });
  };
  b.until(70 * s);
  EXPECT_EQ(count(b.a(), 10 * s, 70 * s), 60);
  EXPECT_EQ(count(b.b(), 10 * s, 70 * s), 2);
  EXPECT_EQ(b.distributing(), (masks{3, 3}));
}

TEST(LacpAgent, NotMoreThanThreeUnitsASecond) {
  bench b;
  b.both();
  b.until(5 * s);
  // A partner that is wrong about us in each of many units.
  wire::lacp_unit u = b.b().last(1);
  u.partner.port = 77;
  const std::size_t before = b.a().sent.size();
  for (unsigned i = 0; i < 100; ++i) {
    std::vector<std::uint8_t> f(14);
    f[12] = 0x88;
    f[13] = 0x09;
    const auto body = wire::encode_lacp(u);
    f.insert(f.end(), body.begin(), body.end());
    b.a().agent.receive(1, f.data(), f.size(), b.now);
  }
  EXPECT_LE(b.a().sent.size() - before, 3u);
  EXPECT_GE(b.a().sent.size() - before, 1u);
  EXPECT_EQ(b.a().agent.distributing(), 2u) << "it is not in sync with us";
  EXPECT_LE(b.a().agent.next_ps(), b.now + s) << "the next one as soon as it may";
}

/// Three seconds until a partner counts as silent: port 1 alone then, as with Linux.
TEST(LacpAgent, WithoutAPartnerPortOneIsAlone) {
  bench b;
  b.mute = {{{true, true}, {true, true}}};
  b.both();
  b.until(3 * s - 1);
  EXPECT_EQ(b.distributing(), (masks{0, 0}));
  b.until(3 * s + s / 1000);
  EXPECT_EQ(b.distributing(), (masks{1, 1}));
  EXPECT_EQ(b.a().agent.port(1).receiving(), receive::defaulted);
  EXPECT_TRUE(b.a().agent.settled());
  EXPECT_EQ(b.a().agent.port(2).selected(), lacp_port::selection::standby);
  b.link(1, false);
  EXPECT_EQ(b.distributing(), (masks{2, 2})) << "it has waited";
  b.link(1, true);
  b.until(20 * s);
  EXPECT_EQ(b.distributing(), (masks{2, 2})) << "nothing is gained by going back";
}

/// Silent for 90 s, or for 3 s where the short timeout is asked for; the port expires, and goes for good 3 s later.
TEST(LacpAgent, ASilentPartnerTakesItsPortOut) {
  for (const bool is_fast : {false, true}) {
    const settings c = is_fast ? fast() : settings{};
    bench b(c, c);
    b.both();
    b.until(6 * s);
    ASSERT_EQ(b.distributing(), (masks{3, 3}));
    b.mute[1][1] = true;  // b's port 2 is not heard any more
    std::uint64_t heard = 0;
    for (const auto& f : b.b().sent)
      if (f.port == 2) heard = f.at;
    const std::uint64_t gone = heard + (is_fast ? 3 : 90) * s;
    b.until(gone - s / 10);
    EXPECT_EQ(b.a().agent.distributing(), 3u);
    b.until(gone + s / 10);
    EXPECT_EQ(b.a().agent.distributing(), 1u);
    EXPECT_EQ(b.a().agent.port(2).receiving(), receive::expired);
    EXPECT_EQ(b.a().agent.port(2).mux(), mux::attached);
    EXPECT_EQ(b.b().agent.distributing(), 1u) << "it has heard that it is not in sync";
    b.until(gone + 4 * s);
    EXPECT_EQ(b.a().agent.port(2).receiving(), receive::defaulted);
    EXPECT_EQ(b.a().agent.port(2).selected(), lacp_port::selection::standby);
    b.mute[1][1] = false;
    b.until(gone + 40 * s);
    EXPECT_EQ(b.distributing(), (masks{3, 3})) << "it speaks again";
  }
}

/// A port whose link comes back was selected before: no wait, a few units are enough.
TEST(LacpAgent, ALinkThatComesBackIsUsedAtOnce) {
  bench b;
  b.both();
  b.until(10 * s);
  b.link(2, false);
  EXPECT_EQ(b.distributing(), (masks{1, 1}));
  b.until(20 * s);
  b.link(2, true);
  EXPECT_EQ(b.distributing(), (masks{3, 3}));
  EXPECT_LT(b.now, 20 * s + s / 1000);
}

/// A port starts to distribute when its partner collects, and stops before it stops collecting.
TEST(LacpAgent, NobodySendsToWhoDoesNotCollect) {
  bench b;
  b.both();
  b.until(3 * s);
  wire::lacp_unit u = b.b().last(1);
  u.actor.state = static_cast<std::uint8_t>(u.actor.state & ~(bit::collecting | bit::distributing));
  std::vector<std::uint8_t> f(14);
  f[12] = 0x88;
  f[13] = 0x09;
  const auto body = wire::encode_lacp(u);
  f.insert(f.end(), body.begin(), body.end());
  EXPECT_TRUE(b.a().agent.receive(1, f.data(), f.size(), b.now));
  EXPECT_EQ(b.a().agent.port(1).mux(), mux::collecting);
  EXPECT_EQ(b.a().agent.distributing(), 2u);
}

/// Rates differ, so keys differ, and one port is the bond's as long as it has a link: the one that had a partner first,
/// and of two that come back together the faster one.
TEST(LacpAgent, PortsOfDifferentRatesAreNotAggregated) {
  bench b;
  b.link(1, true, 10'000);
  b.until(1 * s);
  b.link(2, true, 40'000);
  b.until(8 * s);
  EXPECT_EQ(b.distributing(), (masks{1, 1}));
  b.link(1, false, 10'000);
  EXPECT_EQ(b.distributing(), (masks{2, 2})) << "it has waited, and has a partner";
  b.link(1, true, 10'000);
  b.until(12 * s);
  EXPECT_EQ(b.distributing(), (masks{2, 2}));
}

/// Ports at two partners: one of them is the bond's partner.
TEST(LacpAgent, OnePartnerAtATime) {
  bench b;
  system_of other(3, {});
  b.link(1, true);
  b.until(5 * s);
  EXPECT_EQ(b.distributing(), (masks{1, 1}));
  other.now = b.now;
  b.a().agent.set_link(2, true, 40'000, b.now);
  other.agent.set_link(2, true, 40'000, b.now);
  for (unsigned round = 0; round < 50; ++round) {
    for (const auto& f : std::exchange(b.a().frames, {}))
      if (f.port == 2) other.agent.receive(2, f.bytes.data(), f.bytes.size(), b.now);
    for (const auto& f : std::exchange(other.frames, {})) b.a().agent.receive(2, f.bytes.data(), f.bytes.size(), b.now);
    b.at(b.now + s / 5);
    other.now = b.now;
    b.a().agent.tick(b.now);
    other.agent.tick(b.now);
  }
  EXPECT_EQ(b.a().agent.port(2).receiving(), receive::current);
  EXPECT_EQ(b.a().agent.distributing(), 1u);
  EXPECT_EQ(other.agent.distributing(), 0u) << "it is told that we are not in sync";
}

TEST(LacpAgent, TwoPassiveSystemsDoNotAggregate) {
  settings passive;
  passive.active = false;
  bench both_passive(passive, passive);
  both_passive.both();
  for (unsigned i = 1; i <= 300; ++i) {
    both_passive.until(i * s);
    EXPECT_LE(both_passive.distributing(), (masks{1, 1})) << i;
  }
  bench one(passive, {});
  one.both();
  one.until(10 * s);
  EXPECT_EQ(one.distributing(), (masks{3, 3}));
}

TEST(LacpAgent, BadUnitsAreCountedAndDoNothing) {
  bench b;
  b.both();
  b.until(5 * s);
  const std::vector<std::uint8_t> good = b.b().sent.back().bytes;
  const auto before = b.a().agent.port(1).next_ps();
  const auto hear = [&](const std::vector<std::uint8_t>& f) {
    EXPECT_FALSE(b.a().agent.receive(1, f.data(), f.size(), b.now));
  };
  const auto counted = b.a().agent.count(1).lacpdus_in;
  for (std::size_t length = 0; length < 14 + wire::slow_protocol_bytes; ++length)
    hear({good.begin(), good.begin() + static_cast<long>(length)});
  EXPECT_EQ(b.a().agent.count(1).illegal_in, 14 + wire::slow_protocol_bytes);
  std::vector<std::uint8_t> f = good;
  f[14] = 3;  // a marker's neighbour, OAM
  hear(f);
  EXPECT_EQ(b.a().agent.count(1).unknown_in, 1u);
  EXPECT_EQ(b.a().agent.count(1).lacpdus_in, counted);
  // Our own, that came back: by its source address, and by the system that it says.
  hear(b.a().sent.back().port == 1 ? b.a().sent.back().bytes : b.a().sent.front().bytes);
  f = b.a().sent.front().bytes;
  f[11] = 99;
  hear(f);
  EXPECT_EQ(b.a().agent.count(1).loopback_in, 1u);
  EXPECT_EQ(b.a().agent.port(1).next_ps(), before);
  EXPECT_EQ(b.distributing(), (masks{3, 3}));
}

TEST(LacpAgent, MarkersAreAnswered) {
  bench b;
  b.both();
  b.until(5 * s);
  const wire::marker_unit m{false, 9, {2, 0, 0, 0, 2, 1}, 0x01020304};
  std::vector<std::uint8_t> f = b.b().sent.back().bytes;
  f.resize(14);
  const auto body = wire::encode_marker(m);
  f.insert(f.end(), body.begin(), body.end());
  b.a().agent.receive(2, f.data(), f.size(), b.now);
  const auto& answer = b.a().sent.back();
  EXPECT_EQ(answer.port, 2u);
  wire::lacp_unit none;
  wire::marker_unit r;
  ASSERT_EQ(wire::decode_slow_protocol(answer.bytes.data() + 14, answer.bytes.size() - 14, none, r),
            wire::slow_protocol::marker);
  EXPECT_TRUE(r.response);
  EXPECT_EQ(r.transaction, m.transaction);
  EXPECT_EQ(r.system, m.system);
  const std::size_t before = b.a().sent.size();
  b.a().agent.receive(2, answer.bytes.data(), answer.bytes.size(), b.now);
  EXPECT_EQ(b.a().sent.size(), before) << "its own address: it came back";
  f[16] = 2;
  b.a().agent.receive(2, f.data(), f.size(), b.now);
  EXPECT_EQ(b.a().agent.count(2).marker_responses_in, 1u);
  EXPECT_EQ(b.a().sent.size(), before) << "a response is not answered";
}

// ---------------------------------------------------------------- churn (6.4.17)

using churn = churn_machine::state;

/// Nobody speaks: port 1 is alone and in sync, port 2 is on standby, which after a minute is called churn.
TEST(LacpAgent, APortThatNeverGetsInSyncChurnsAfterAMinute) {
  bench b;
  b.mute = {{{true, true}, {true, true}}};
  b.both();
  b.until(60 * s - 1);
  EXPECT_EQ(b.a().agent.port(1).actor_churn().is(), churn::no_churn);
  EXPECT_EQ(b.a().agent.port(2).actor_churn().is(), churn::monitor);
  b.until(60 * s + 10'000'000);  // links came some microseconds after 0
  EXPECT_EQ(b.a().agent.port(2).actor_churn().is(), churn::churn);
  EXPECT_EQ(b.a().agent.port(2).actor_churn().churned(), 1u);
  EXPECT_EQ(b.a().agent.port(2).partner_churn().is(), churn::no_churn) << "nobody is taken to be in sync (6.4.9)";
  b.mute = {};
  b.until(100 * s);
  EXPECT_EQ(b.distributing(), (masks{3, 3}));
  EXPECT_EQ(b.a().agent.port(2).actor_churn().is(), churn::no_churn);
  EXPECT_EQ(b.a().agent.port(2).actor_churn().churned(), 1u);
}

/// a hears b, and b does not hear a: what b says of its partner is never a.
TEST(LacpAgent, APartnerThatNeverGetsInSyncChurns) {
  bench b;
  b.mute[0] = {true, true};
  b.both();
  b.until(59 * s);
  EXPECT_EQ(b.a().agent.port(1).partner_churn().is(), churn::monitor);
  b.until(62 * s);
  EXPECT_EQ(b.a().agent.port(1).partner_churn().is(), churn::churn);
  EXPECT_EQ(b.a().agent.port(1).actor_churn().is(), churn::no_churn) << "its own end is attached";
}

/// Watched again when sync is lost, and from the beginning with each link.
TEST(LacpAgent, ChurnIsWatchedAnewWithEachLink) {
  bench b;
  b.both();
  b.until(10 * s);
  EXPECT_EQ(b.a().agent.port(1).actor_churn().is(), churn::no_churn);
  EXPECT_EQ(b.a().agent.port(1).partner_churn().is(), churn::no_churn);
  b.link(1, false);
  EXPECT_EQ(b.a().agent.port(1).actor_churn().is(), churn::monitor);
  b.until(200 * s);
  EXPECT_EQ(b.a().agent.port(1).actor_churn().is(), churn::monitor) << "without a link no time counts";
  EXPECT_EQ(b.a().agent.port(1).actor_churn().churned(), 0u);
  b.link(1, true);
  b.until(205 * s);
  EXPECT_EQ(b.a().agent.port(1).actor_churn().is(), churn::no_churn);
  EXPECT_EQ(to_string(churn::churn), std::string("churned"));
}

}  // namespace
}  // namespace rnic::host_driver::lacp
