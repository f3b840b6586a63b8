// SPDX-License-Identifier: Apache-2.0
// The moderation table alone: when a period ends, a full table, a neighbour without room.
#include "model/completion/moderation.h"

#include <gtest/gtest.h>

#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"

namespace {
using namespace rnic;
using completion::moderation;

struct time_of_a_bench {
  sim::timebase base{{false, 0}};
  sim::clock_domain clock{"core", base, {3000, 1, 0}};  // 1 us is not a whole number of cycles
};

/// The table in a block that starts periods in its first cycle and writes down when each was taken.
struct bench final : time_of_a_bench, sim::clocked_block {
  explicit bench(unsigned depth) : clocked_block("bench", clock), table(*this, depth) {}

  void run(std::vector<std::pair<std::uint32_t, std::uint16_t>> cqs) {
    wanted = std::move(cqs);
    wake_next();
    sc_core::sc_start(sc_core::sc_time(10, sc_core::SC_US));
  }
  void tick() override {
    if (starts_last) serve();
    for (const auto& [number, period_us] : wanted) started.push_back(table.start(false, number, period_us));
    if (!wanted.empty()) begun = now();
    wanted.clear();
    if (!starts_last) serve();
  }
  void serve() {
    if (table.none()) return;
    table.serve([this](const moderation::period& p) {
      if (refusals != 0) {
        --refusals;
        wake_next();  // who gives room wakes the block
        return false;
      }
      taken.emplace_back(p.number, now() - begun);
      return true;
    });
  }

  moderation table;
  std::vector<std::pair<std::uint32_t, std::uint16_t>> wanted;
  std::vector<bool> started;
  sim::cycle_t begun = 0;
  unsigned refusals = 0;
  bool starts_last = false;  ///< behind serve(): nothing but the start itself asks for the tick in which it ends
  std::vector<std::pair<std::uint32_t, sim::cycle_t>> taken;  // CQ, cycles after the start
};
using results = std::vector<std::pair<std::uint32_t, sim::cycle_t>>;

TEST(Moderation, PeriodEndsAtTheFirstEdgeAtOrAfterItsDeadline) {
  bench b(4);
  b.run({{7, 1}, {8, 3}});  // 333.3 and 1000 cycles of 3 ns
  EXPECT_EQ(b.taken, (results{{7, 334}, {8, 1000}}));
  EXPECT_TRUE(b.table.none());
}

TEST(Moderation, AStartAloneWakesTheBlockWhenItEnds) {
  bench b(4);
  b.starts_last = true;
  b.run({{7, 1}});
  EXPECT_EQ(b.taken, (results{{7, 334}}));
}

TEST(Moderation, FullTableSaysNoButNotToAQueueThatIsInIt) {
  bench b(2);
  b.run({{1, 3}, {2, 3}, {3, 3}, {1, 1}});  // the period that runs goes on, the second start of 1 does not shorten it
  EXPECT_EQ(b.started, (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(b.taken, (results{{1, 1000}, {2, 1001}}));
}

/// Each end is an access to a context: one a cycle, those that cannot end let the others pass.
TEST(Moderation, PeriodsEndOneInACycle) {
  bench b(8);
  b.refusals = 1;
  b.run({{1, 3}, {2, 3}, {3, 3}, {4, 3}});
  EXPECT_EQ(b.taken, (results{{2, 1000}, {1, 1001}, {3, 1002}, {4, 1003}}));
}

TEST(Moderation, PeriodIsOfferedUntilItIsTaken) {
  bench b(2);
  b.refusals = 5;
  b.run({{1, 3}});
  EXPECT_EQ(b.taken, (results{{1, 1005}}));
}

TEST(Moderation, CqAndEqOfOneNumberAreTwoQueues) {
  bench b(2);
  EXPECT_TRUE(b.table.start(false, 5, 1));
  EXPECT_FALSE(b.table.runs(true, 5));
  b.table.end(true, 5);
  EXPECT_TRUE(b.table.runs(false, 5));
  b.table.end(false, 5);
  EXPECT_TRUE(b.table.none());
}

}  // namespace
