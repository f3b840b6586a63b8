// SPDX-License-Identifier: Apache-2.0
// The standing tests of the clock law: sleeping, order and seeds are invisible.
#include <gtest/gtest.h>

#include <systemc>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace rnic::sim::test
