// SPDX-License-Identifier: Apache-2.0
// A clock between its edges, blocks that go, who watches, and the wheel once around.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/timebase.h"
#include "model/sim/wake_wheel.h"

namespace rnic::sim::test {
namespace {

using cycles = std::vector<cycle_t>;

void run_ps(time_ps ps) { sc_core::sc_start(sc_core::sc_time::from_value(ps)); }

class scripted final : public clocked_block {
 public:
  cycles ticked;
  std::map<cycle_t, std::function<void()>> calls;
  explicit scripted(clock_domain& clock) : clocked_block("scripted", clock) {}

 private:
  void tick() override {
    ticked.push_back(now());
    if (const auto c = calls.find(now()); c != calls.end()) c->second();
  }
};

// 427 MHz: 2341.92 ps.
TEST(ClockDomain, BetweenEdgesItIsAtTheLastOne) {
  timebase base;
  clock_domain d("d", base, clock_period::from_khz(427'000));
  scripted block(d);
  EXPECT_EQ(d.longest_cycle(), 2342u);
  block.wake_at(1);
  run_ps(5000);
  EXPECT_EQ(d.now(), 2u);
  EXPECT_EQ(d.now_ps(), 4683u);
  EXPECT_EQ(block.now_ps(), 4683u);
  d.as_in_tick([&] { EXPECT_EQ(d.now_ps(), 4683u); });
  block.wake_next();  // not in a tick: the edge behind 2
  run_ps(5000);
  EXPECT_EQ(block.ticked, (cycles{1, 3}));
}

// What is asked for between two edges is earlier than what is known already.
TEST(ClockDomain, AnEarlierEdgeIsAskedForBetweenEdges) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  scripted block(d);
  block.wake_at(100);
  run_ps(10'000);
  d.as_in_tick([&] { block.wake_next(); });
  d.as_in_tick([&] { block.wake_at(20); });
  run_ps(200'000);
  EXPECT_EQ(block.ticked, (cycles{11, 20, 100}));
}

// In the tick of another one, with a tick of its own asked for at the next edge.
TEST(ClockDomain, ABlockThatGoesIsNotTickedAgain) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  scripted stays(d);
  auto goes = std::make_unique<scripted>(d);
  stays.calls[1] = [&] {
    goes->wake_next();
    goes.reset();
    stays.wake_at(5);
  };
  stays.wake_at(1);
  run_ps(20'000);
  EXPECT_EQ(stays.ticked, (cycles{1, 5}));
  EXPECT_EQ(d.active_edges(), 2u);
}

TEST(ClockDomain, WhoWatchesSeesEachEdgeAndIsNoBlock) {
  struct watcher final : edge_watcher_if {
    cycles seen;
    void served(clock_domain& of) override { seen.push_back(of.now()); }
  } eyes;
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  scripted block(d);
  for (const cycle_t k : {1u, 3u, 8u}) block.wake_at(k);
  d.watch(&eyes);
  run_ps(5000);
  d.watch(nullptr);
  run_ps(5000);
  EXPECT_EQ(eyes.seen, (cycles{1, 3}));
  EXPECT_EQ(d.ticks(), 3u);
  EXPECT_EQ(d.active_edges(), 3u);
}

// 512 slots: that of edge 600 is in the word of edge 89's, before it.
TEST(WakeWheel, FindsWhatIsOnceAroundInItsOwnWord) {
  wake_wheel w;
  w.mark(7, 600);
  EXPECT_EQ(w.next_after(600 - 248), 600u);
  EXPECT_EQ(w.next_after(599), 600u);
  EXPECT_EQ(w.take(600), 1u << 7);
  EXPECT_EQ(w.next_after(600), never);
}

// The place of a block that has gone is the next one's, which may ask for the same edge.
TEST(WakeWheel, WhoComesToTheSamePlaceHasNoWakeUpsYet) {
  wake_wheel w;
  w.keep_far(3, 5000);
  w.forget(3);
  EXPECT_EQ(w.next_after(0), never);
  w.keep_far(3, 5000);
  EXPECT_EQ(w.next_after(0), 5000u);
  EXPECT_EQ(w.take(5000), 1u << 3);
}

}  // namespace
}  // namespace rnic::sim::test
