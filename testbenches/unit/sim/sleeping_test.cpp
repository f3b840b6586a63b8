// SPDX-License-Identifier: Apache-2.0
// The standing tests of the clock law: sleeping, order and seeds are invisible.
#include <gtest/gtest.h>

#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/simulation.h"
#include "testbenches/unit/sim/toy_network.h"

namespace rnic::sim::test {
namespace {

constexpr unsigned items = 400;

/// Several networks side by side in one kernel live through the same time.
void run() { sc_core::sc_start(sc_core::sc_time(300, sc_core::SC_US)); }

void expect_same(const toy_network& x, const toy_network& y) {
  ASSERT_EQ(x.consumed.size(), 2U * items);
  EXPECT_TRUE(x.received == y.received);
  EXPECT_TRUE(x.consumed == y.consumed);
}

TEST(Sleeping, EqualsAlwaysTicking) {
  toy_network sleeping({}, items);
  toy_network ticking({true, 0}, items);
  run();
  expect_same(sleeping, ticking);
  EXPECT_LT(sleeping.core.ticks() * 10, ticking.core.ticks());
}

TEST(Order, OfTicksInAnEdgeChangesNothing) {
  toy_network plain({}, items);
  toy_network one({false, 12345}, items);
  toy_network two({false, 999}, items);
  toy_network three({true, 31337}, items);
  run();
  expect_same(plain, one);
  expect_same(plain, two);
  expect_same(plain, three);
}

/// Asks for edges in its first tick, and notes those at which it is ticked.
class sleeper final : public clocked_block {
 public:
  sleeper(clock_domain& domain, std::vector<cycle_t> wanted)
      : clocked_block("sleeper", domain), wanted_(std::move(wanted)) {
    wake_next();
  }
  void tick() override {
    ticked.push_back(now());
    for (const cycle_t edge : std::exchange(wanted_, {})) wake_at(edge);
  }
  std::vector<cycle_t> ticked;

 private:
  std::vector<cycle_t> wanted_;
};

TEST(Sleeping, KeepsEveryWakeUpHoweverFar) {
  timebase base;
  clock_domain clock("clock", base, clock_period::from_khz(1'000'000));
  sleeper one(clock, {70'000, 5'000, 20'000, 70'000, 5'000, 9'000});
  sleeper two(clock, {5'001, 20'000, 4'000});
  sleeper gone(clock, {});
  {
    const sleeper leaves(clock, {30'000});
    sc_core::sc_start(sc_core::sc_time(10, sc_core::SC_US));
  }
  run();
  EXPECT_EQ(std::vector<cycle_t>(one.ticked.begin() + 1, one.ticked.end()),
            (std::vector<cycle_t>{5'000, 9'000, 20'000, 70'000}));
  EXPECT_EQ(std::vector<cycle_t>(two.ticked.begin() + 1, two.ticked.end()),
            (std::vector<cycle_t>{4'000, 5'001, 20'000}));
  EXPECT_EQ(gone.ticked.size(), 1U);
}

TEST(Idle, CostsNoKernelActivations) {
  toy_network n({}, 10);
  run();
  const std::uint64_t before = n.base.kernel_activations();
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_SEC));
  EXPECT_EQ(n.consumed.size(), 20U);
  EXPECT_EQ(n.base.kernel_activations(), before);
}

/// Answers a program five cycles after it rings.
class bell final : public clocked_block {
 public:
  explicit bell(clock_domain& domain) : clocked_block("bell", domain) {}
  void ring() {
    due_ = now() + 5;
    answered = false;
    wake_at(due_);
  }
  void tick() override {
    if (now() != due_ || answered) return;
    answered = true;
    if (passing)
      domain().base().end_pass();
    else
      domain().base().notify(answer);
  }
  bool passing = false, answered = true;
  sc_core::sc_event answer;

 private:
  cycle_t due_ = 0;
};

struct visit {
  std::vector<record> seen;
  std::uint64_t activations = 0, ticks = 0;
};

/// A program that lets time pass, looks, rings and waits for the answer; `others`: another process is due now and then.
visit visits(bool ahead, bool others) {
  const simulation kernel;
  toy_network n({}, items);
  bell rung(n.core);
  visit v;
  std::uint64_t looked = 0;
  if (ahead) n.base.run_ahead_until(~time_ps{0});
  if (others) {
    sc_core::sc_spawn([&] {
      for (;; ++looked) sc_core::wait(sc_core::sc_time(137'123, sc_core::SC_PS));
    });
  }
  sc_core::sc_spawn([&] {
    std::uint64_t state = 7;
    for (unsigned i = 0; i < 3000; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const time_ps until = n.base.now_ps() + 1 + (state >> 33) % 60'000;
      if (!n.base.pass(until)) sc_core::wait(sc_core::sc_time::from_value(until - sc_core::sc_time_stamp().value()));
      v.seen.push_back({looked, n.consumed.size(), n.received.size(), n.base.now_ps()});
      rung.ring();
      rung.passing = true;
      const bool passed = n.base.pass(~time_ps{0});
      rung.passing = false;
      while (!passed && !rung.answered) sc_core::wait(rung.answer);
      v.seen.push_back({looked, n.consumed.size(), n.received.size(), n.base.now_ps()});
    }
    n.base.leave();
    sc_core::sc_stop();
  });
  sc_core::sc_start();
  EXPECT_EQ(v.seen.size(), 6000U);
  EXPECT_GT(n.consumed.size(), 0U);
  v.activations = n.base.kernel_activations();
  v.ticks = n.core.ticks() + n.port.ticks();
  return v;
}

TEST(Program, SeesTheSameAheadOfTheKernel) {
  for (const bool others : {false, true}) {
    const visit in_kernel = visits(false, others);
    const visit ahead = visits(true, others);
    EXPECT_TRUE(in_kernel.seen == ahead.seen);
    EXPECT_EQ(in_kernel.ticks, ahead.ticks);
    EXPECT_LT(ahead.activations * (others ? 4 : 1000), in_kernel.activations);
  }
}

}  // namespace
}  // namespace rnic::sim::test
