// SPDX-License-Identifier: Apache-2.0
// Edges, wake-ups, channels and arbitration, with literal cycles.
#include <gtest/gtest.h>

#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/arbiter.h"
#include "testbenches/unit/sim/toy_network.h"

namespace rnic::sim::test {
namespace {

/// Asks for the wake-ups it was told to, one after the other.
class sleeper final : public clocked_block {
 public:
  std::vector<cycle_t> woken;
  sleeper(clock_domain& domain, std::vector<cycle_t> plan) : clocked_block("sleeper", domain), plan_(std::move(plan)) {
    wake_at(plan_.front());
  }

 private:
  void tick() override {
    if (next_ < plan_.size() && plan_[next_] == now()) {
      woken.push_back(now());
      ++next_;
    }
    if (next_ < plan_.size()) wake_at(plan_[next_]);
  }
  std::vector<cycle_t> plan_;
  std::size_t next_ = 0;
};

void run_ns(std::uint64_t ns) { sc_core::sc_start(sc_core::sc_time::from_value(ns * 1000)); }

TEST(FastDivider, DividesAsTheMachineDoes) {
  const std::uint64_t top = fast_divider::limit - 1;
  for (const std::uint64_t d :
       {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{7}, std::uint64_t{33}, std::uint64_t{427},
        std::uint64_t{1'000'003}, (std::uint64_t{1} << 32) + 1, std::uint64_t{1} << 62, top}) {
    const fast_divider by(d);
    for (const std::uint64_t q : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{12'345'678'901}, top / d}) {
      if (q > top / d) continue;
      ASSERT_EQ(by(q * d), q) << d;
      ASSERT_TRUE(q == 0 || by(q * d - 1) == q - 1) << d;
    }
    ASSERT_EQ(by(top), top / d) << d;
  }
}

TEST(Edges, DoNotDrift) {
  timebase base;
  // 322.265625 MHz has 322265625 edges in a second, 427 MHz 427000000: the last one of the second is exactly there.
  const clock_domain port("port", base, {102'400, 33, 0});
  EXPECT_EQ(port.edge_time(322'265'625), ps_per_s);
  EXPECT_EQ(port.edge_time(1), 3103U);
  EXPECT_EQ(port.edge_time(33), 102'400U);
  EXPECT_EQ(port.edge_at_or_after(ps_per_s), 322'265'625U);
  const clock_domain core("core", base, clock_period::from_khz(427'000));
  EXPECT_EQ(core.edge_time(427'000'000), ps_per_s);
  EXPECT_EQ(core.edge_time(1), 2341U);
}

TEST(Edges, NowAndEdgeTimeAgreeAtEveryEdge) {
  timebase base;
  for (const clock_period p : {clock_period{102'400, 33, 0}, clock_period::from_khz(427'000),
                               clock_period{102'400, 33, 1551}, clock_period::from_khz(156'250)}) {
    const clock_domain d("d", base, p);
    for (cycle_t k = 1; k < 20'000; ++k) {
      ASSERT_EQ(d.edge_at_or_after(d.edge_time(k)), k);
      ASSERT_EQ(d.edge_at_or_after(d.edge_time(k) + 1), k + 1);
    }
  }
}

TEST(Edges, StayExactForAnHour) {
  timebase base;
  const clock_domain core("core", base, clock_period::from_khz(427'000));
  EXPECT_EQ(core.edge_time(427'000'000ULL * 3600), 3600 * ps_per_s);
  EXPECT_EQ(core.edge_at_or_after(3600 * ps_per_s), 427'000'000ULL * 3600);
  EXPECT_EQ(core.cycles(3600 * ps_per_s), 427'000'000ULL * 3600);
}

// 64 bits hold picoseconds for 213 days, but edge * 10^6 only for 12 hours at 427 MHz.
TEST(Edges, StayExactForHalfAYear) {
  timebase base;
  clock_domain core("core", base, clock_period::from_khz(427'000));
  const std::uint64_t seconds = 180 * 24 * 3600ull;
  EXPECT_EQ(core.edge_time(427'000'000 * seconds), ps_per_s * seconds);
  EXPECT_EQ(core.edge_at_or_after(ps_per_s * seconds), 427'000'000 * seconds);
  EXPECT_EQ(core.edge_at_or_after(ps_per_s * seconds + 1), 427'000'000 * seconds + 1);
  EXPECT_EQ(core.edge_time(427'000'000 * seconds + 1), ps_per_s * seconds + 2341);
}

TEST(Wheel, WakesAtNearAndFarEdges) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  const std::vector<cycle_t> plan = {0, 1, 64, 4095, 4096, 8191, 8192, 12'288, 100'000, 104'095, 108'192};
  sleeper s(d, plan);
  run_ns(200'000);
  EXPECT_EQ(s.woken, plan);
  EXPECT_EQ(d.active_edges(), plan.size());
}

/// A block that is gone leaves those that asked for the same edges, and no edges of its own: neither in the wheel, once
/// around or later, nor behind it.
TEST(Wheel, AnotherMayGoThatAskedForTheSameEdges) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  sleeper stays(d, {5, 6, 700, 5000});
  { const sleeper same(d, {5}), alone(d, {9}), far(d, {5000}), near(d, {700}); }
  run_ns(20'000);
  EXPECT_EQ(stays.woken, (std::vector<cycle_t>{5, 6, 700, 5000}));
  EXPECT_EQ(d.active_edges(), 4U);
  EXPECT_EQ(d.ticks(), 4U);
}

TEST(Wheel, WakesAfterALongSleepFromOutside) {
  timebase base;
  clock_domain d("d", base, {102'400, 33, 0});
  sleeper s(d, {5, 1'000'003});
  run_ns(3'000'000);
  s.wake_at(d.now() + 1);  // a tick that finds nothing to do
  run_ns(200'000);
  EXPECT_EQ(s.woken, (std::vector<cycle_t>{5, 1'000'003}));
}

TEST(Wheel, RefusesThePast) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  sleeper s(d, {1});
  run_ns(10);
  EXPECT_THROW(s.wake_at(3), invariant_error);
}

/// Pushes whenever it can.
class source final : public clocked_block {
 public:
  fifo_out<unsigned> out{*this};
  std::vector<cycle_t> pushed;
  explicit source(clock_domain& domain, unsigned count) : clocked_block("source", domain), left_(count) { wake_at(1); }

 private:
  void tick() override {
    if (left_ == 0 || !out.can_push()) return;
    out.push(left_--);
    pushed.push_back(now());
    wake_next();
  }
  unsigned left_;
};

class sink final : public clocked_block {
 public:
  fifo_in<unsigned> in{*this};
  std::vector<cycle_t> popped;
  sink(clock_domain& domain, cycle_t open_at) : clocked_block("sink", domain), open_at_(open_at) {}

 private:
  void tick() override {
    if (!in.can_pop()) return;
    if (now() < open_at_) return wake_at(open_at_);
    in.pop();
    popped.push_back(now());
  }
  cycle_t open_at_;
};

using cycles = std::vector<cycle_t>;

TEST(Fifo, ShowsAnItemAfterItsLatency) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  fifo<unsigned> f("f", d, 8, 3);
  source from(d, 3);
  sink to(d, 0);
  from.out.bind(f);
  to.in.bind(f);
  run_ns(100);
  EXPECT_EQ(from.pushed, (cycles{1, 2, 3}));
  EXPECT_EQ(to.popped, (cycles{4, 5, 6}));
}

TEST(Fifo, HoldsTheProducerUntilTheCycleAfterAPop) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  fifo<unsigned> f("f", d, 2);
  source from(d, 5);
  sink to(d, 10);
  from.out.bind(f);
  to.in.bind(f);
  run_ns(100);
  // Full after 1 and 2. Pops at 10, 11 free slots for 11, 12; from there on one item a cycle.
  EXPECT_EQ(from.pushed, (cycles{1, 2, 11, 12, 13}));
  EXPECT_EQ(to.popped, (cycles{10, 11, 12, 13, 14}));
  EXPECT_EQ(f.max_occupancy(), 2U);
}

/// Pops what comes.
class popper final : public clocked_block {
 public:
  fifo_in<int> in{*this};
  std::vector<cycle_t> popped;
  explicit popper(clock_domain& domain) : clocked_block("popper", domain) {}

 private:
  void tick() override {
    EXPECT_THROW(domain().as_in_tick([] {}), invariant_error) << "an edge is being served";
    if (!in.can_pop()) return;
    in.drop();
    popped.push_back(now());
  }
};

/// Long after the last edge that had work, at an edge and between two.
TEST(ClockDomain, WhatIsDoneBetweenEdgesIsDoneInTheLastOne) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  fifo<int> channel("channel", d, 4);
  popper block(d);
  block.in.bind(channel);
  run_ns(3000);
  d.as_in_tick([&channel] { channel.push(1); });
  sc_core::sc_start(sc_core::sc_time::from_value(2500));
  EXPECT_EQ(block.popped, (std::vector<cycle_t>{3001}));
  d.as_in_tick([&] {
    EXPECT_EQ(d.now(), 3002U);
    EXPECT_EQ(d.edge(), 3002U);
    channel.push(2);
  });
  run_ns(1);
  EXPECT_EQ(block.popped, (std::vector<cycle_t>{3001, 3003}));
  EXPECT_EQ(d.now(), 3003U);
  // Without it, the edge that this would follow was served long ago.
  run_ns(1000);
  EXPECT_THROW(channel.push(3), invariant_error);
}

TEST(Fifo, RefusesAnImpossibleSize) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  EXPECT_THROW(fifo<unsigned>("f", d, 0), config_error);
  EXPECT_THROW(fifo<unsigned>("f", d, 32769), config_error);
  EXPECT_EQ(fifo<unsigned>("deepest", d, 32768).depth(), 32768U);
  EXPECT_THROW(fifo<unsigned>("f", d, 1, 0), config_error);
}

TEST(RoundRobin, ServesEveryRequesterInTurn) {
  round_robin turn;
  const std::uint64_t requests = (std::uint64_t{1} << 63) | 0b1011;
  std::vector<int> order;
  for (int i = 0; i < 8; ++i) order.push_back(turn.pick(requests));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 3, 63, 0, 1, 3, 63}));
  EXPECT_EQ(turn.pick(0), -1);
  EXPECT_EQ(turn.pick(0b10), 1);
}

}  // namespace
}  // namespace rnic::sim::test
