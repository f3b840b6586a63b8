// SPDX-License-Identifier: Apache-2.0
// When an agent speaks, and how long it remembers (IEEE 802.1AB 9.2.5 to 9.2.10).
#include "host_driver/dcb/lldp_agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace rnic::host_driver::dcb {
namespace {

constexpr std::uint64_t s = 1'000'000'000'000;
constexpr mac_address own{2, 0, 0, 0, 0, 1};

wire::lldp_unit unit_of(std::uint8_t who, std::uint16_t ttl_s = 121) {
  wire::lldp_unit u;
  u.chassis = {wire::lldp_id::chassis_mac, {2, 0, 0, 0, 0, who}};
  u.port = {wire::lldp_id::port_mac, {2, 0, 0, 0, 0, who}};
  u.ttl_s = ttl_s;
  u.system_name = "host" + std::to_string(who);
  return u;
}

std::vector<std::uint8_t> frame_of(std::uint8_t who, const wire::lldp_unit& u) {
  std::vector<std::uint8_t> f(wire::lldp_nearest_bridge.begin(), wire::lldp_nearest_bridge.end());
  f.insert(f.end(), {2, 0, 0, 0, 0, who, 0x88, 0xcc});
  const auto body = wire::encode_lldp(u);
  f.insert(f.end(), body.begin(), body.end());
  return f;
}

struct bench : frame_output_if {
  explicit bench(const lldp_timers& timers = {}) : agent(own, timers, *this) {}
  void transmit(const std::uint8_t* frame, std::size_t length) override {
    sent.push_back(now);
    last.assign(frame, frame + length);
    wire::lldp_faults none;
    const auto u = wire::decode_lldp(frame + 14, length - 14, none);
    ttl.push_back(u ? u->ttl_s : -1);
  }
  /// Lets time pass, as a process does that waits for what is due.
  bool until(std::uint64_t end) {
    bool changed = false;
    while (agent.next_ps() <= end) {
      EXPECT_GT(agent.next_ps(), now) << "it would never end";
      if (agent.next_ps() <= now) return changed;
      now = agent.next_ps();
      changed |= agent.tick(now);
    }
    now = end;
    return changed;
  }
  void start() { agent.start(unit_of(1), now); }
  bool hear(std::uint8_t who, std::uint16_t ttl_s = 121) { return hear(who, unit_of(who, ttl_s)); }
  bool hear(std::uint8_t who, const wire::lldp_unit& u) {
    const auto f = frame_of(who, u);
    return agent.receive(f.data(), f.size(), now);
  }
  std::vector<std::uint64_t> seconds() const {
    std::vector<std::uint64_t> all;
    for (const std::uint64_t t : sent) all.push_back(t / s);
    return all;
  }

  std::uint64_t now = 0;
  std::vector<std::uint64_t> sent;
  std::vector<int> ttl;
  std::vector<std::uint8_t> last;
  lldp_agent agent;
};

using times = std::vector<std::uint64_t>;

TEST(LldpAgent, SpeaksAtOnceAndEveryThirtySeconds) {
  bench b;
  b.start();
  b.until(100 * s);
  EXPECT_EQ(b.seconds(), (times{0, 30, 60, 90}));
  EXPECT_EQ(b.ttl, (std::vector<int>{121, 121, 121, 121}));
  EXPECT_EQ(b.agent.count().frames_out, 4u);
  EXPECT_TRUE(std::equal(b.last.begin(), b.last.begin() + 14,
                         std::vector<std::uint8_t>{1, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc}.begin()));
}

/// Four units a second apart, the first of them at once; then as before.
TEST(LldpAgent, SpeaksFastToANewNeighbour) {
  bench b;
  b.start();
  b.until(10 * s);
  EXPECT_TRUE(b.hear(2));
  b.until(50 * s);
  EXPECT_EQ(b.seconds(), (times{0, 10, 11, 12, 13, 43}));
  EXPECT_FALSE(b.hear(2)) << "nothing new";
  b.until(60 * s);
  EXPECT_EQ(b.sent.size(), 6u);
}

TEST(LldpAgent, TellsAChangeAtOnceAsLongAsItHasCredit) {
  bench b;
  b.start();
  b.until(10 * s);
  for (unsigned i = 0; i < 20; ++i) b.agent.change(unit_of(1), b.now);
  b.until(20 * s);
  EXPECT_EQ(b.seconds(), (times{0, 10, 10, 10, 10, 10, 11})) << "five in a row, and one for all others";
}

TEST(LldpAgent, CreditComesBackOneASecond) {
  lldp_timers t;
  t.credit_max = 2;
  bench b(t);
  b.start();
  b.agent.change(unit_of(1), b.now);
  b.agent.change(unit_of(1), b.now);
  EXPECT_EQ(b.sent.size(), 2u);
  b.until(s - 1);
  EXPECT_EQ(b.sent.size(), 2u);
  b.until(s);
  EXPECT_EQ(b.sent.size(), 3u);
}

TEST(LldpAgent, ForgetsWhoIsSilent) {
  bench b;
  b.start();
  b.hear(2, 50);
  b.until(20 * s);
  b.hear(2, 50);
  EXPECT_FALSE(b.until(70 * s - 1));
  EXPECT_EQ(b.agent.neighbours().size(), 1u);
  EXPECT_TRUE(b.until(70 * s));
  EXPECT_TRUE(b.agent.neighbours().empty());
  EXPECT_EQ(b.agent.count().ageouts, 1u);
}

TEST(LldpAgent, ForgetsWhoSaysGoodBye) {
  bench b;
  b.start();
  b.hear(2);
  b.hear(3);
  EXPECT_TRUE(b.hear(2, 0));
  EXPECT_FALSE(b.hear(2, 0));
  ASSERT_EQ(b.agent.neighbours().size(), 1u);
  EXPECT_EQ(b.agent.neighbours().front().unit.system_name, "host3");
  EXPECT_EQ(b.agent.count().deletes, 1u);
  EXPECT_EQ(b.agent.count().ageouts, 0u);
}

TEST(LldpAgent, SaysGoodByeItselfAndWaitsBeforeItComesBack) {
  bench b;
  b.start();
  b.hear(2);
  b.until(10 * s);
  const std::size_t before = b.sent.size();
  b.agent.stop(b.now);
  ASSERT_EQ(b.sent.size(), before + 1);
  EXPECT_EQ(b.ttl.back(), 0);
  EXPECT_TRUE(b.agent.neighbours().empty());
  EXPECT_EQ(b.agent.next_ps(), lldp_agent::never);
  EXPECT_FALSE(b.hear(2)) << "it does not listen";
  b.agent.stop(b.now);
  EXPECT_EQ(b.sent.size(), before + 1);
  b.start();
  b.until(12 * s - 1);
  EXPECT_EQ(b.sent.size(), before + 1);
  b.until(12 * s);
  EXPECT_EQ(b.sent.size(), before + 2);
}

TEST(LldpAgent, DoesNotHearItself) {
  bench b;
  b.start();
  EXPECT_FALSE(b.agent.receive(b.last.data(), b.last.size(), b.now));
  EXPECT_TRUE(b.agent.neighbours().empty());
  EXPECT_EQ(b.agent.count().frames_in, 0u);
}

TEST(LldpAgent, HasRoomForEight) {
  bench b;
  b.start();
  for (std::uint8_t who = 2; who < 12; ++who) b.hear(who, who == 2 ? 5 : 121);
  EXPECT_EQ(b.agent.neighbours().size(), 8u);
  EXPECT_EQ(b.agent.count().too_many, 2u);
  b.until(5 * s);
  EXPECT_TRUE(b.hear(11)) << "there is room again";
}

TEST(LldpAgent, CountsWhatIsBad) {
  bench b;
  b.start();
  const auto receive = [&b](std::vector<std::uint8_t> f) { return b.agent.receive(f.data(), f.size(), b.now); };
  auto f = frame_of(2, unit_of(2));
  EXPECT_FALSE(receive({f.begin(), f.begin() + 13}));
  EXPECT_FALSE(receive({f.begin(), f.begin() + 20}));
  auto other = f;
  other[13] = 0xcd;
  EXPECT_FALSE(receive(other));
  EXPECT_EQ(b.agent.count().frames_discarded, 3u);
  f.resize(f.size() - 2);
  f.insert(f.end(), {0xfe, 5, 0, 0x80, 0xc2, 11, 0, 0, 0});
  EXPECT_TRUE(receive(f)) << "the unit without the short TLV";
  EXPECT_EQ(b.agent.count().tlvs_discarded, 1u);
  EXPECT_EQ(b.agent.count().frames_discarded, 3u);
  EXPECT_EQ(b.agent.count().frames_in_errors, 4u);
  EXPECT_EQ(b.agent.count().frames_in, 4u);
}

TEST(LldpAgent, TimeToLiveHasSixteenBits) {
  lldp_timers t;
  t.tx_interval_s = 3600;
  t.tx_hold = 100;
  EXPECT_EQ(bench(t).agent.ttl_s(), 65'535);
}

/// Figure 9-3: without a link nothing is sent, and one that is back is spoken to at once, not when the interval is
/// over.
TEST(LldpAgent, SpeaksAtOnceWhenTheLinkIsBack) {
  bench b;
  b.start();
  b.until(20 * s);
  EXPECT_FALSE(b.agent.set_link(false, b.now));
  b.until(45 * s);
  b.agent.change(unit_of(1), b.now);
  EXPECT_EQ(b.seconds(), (times{0}));
  EXPECT_FALSE(b.agent.set_link(true, b.now)) << "nobody was known";
  b.until(80 * s);
  EXPECT_EQ(b.seconds(), (times{0, 45, 75}));
  EXPECT_FALSE(b.agent.set_link(true, b.now)) << "nothing new";
  EXPECT_EQ(b.sent.size(), 3u);
}

/// A neighbour stays for its time without a link, and is to speak again when there is one (figure 9-4).
TEST(LldpAgent, KnowsNobodyBehindANewLink) {
  bench b;
  b.start();
  b.hear(2, 100);
  b.hear(3, 10);
  b.until(5 * s);
  b.agent.set_link(false, b.now);
  EXPECT_TRUE(b.until(20 * s)) << "one has aged";
  ASSERT_EQ(b.agent.neighbours().size(), 1u);
  EXPECT_TRUE(b.agent.set_link(true, b.now));
  EXPECT_TRUE(b.agent.neighbours().empty());
  EXPECT_TRUE(b.hear(2, 100));
}

/// A farewell over a link that is down would be for nobody.
TEST(LldpAgent, EndsInSilenceWithoutALink) {
  bench b;
  b.start();
  b.agent.set_link(false, b.now);
  const std::size_t before = b.sent.size();
  b.agent.stop(b.now);
  EXPECT_EQ(b.sent.size(), before);
  EXPECT_EQ(b.agent.next_ps(), lldp_agent::never);
}

}  // namespace
}  // namespace rnic::host_driver::dcb
