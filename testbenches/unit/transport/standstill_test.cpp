// SPDX-License-Identifier: Apache-2.0
// For how long queue pairs stood still: each cycle counts once, however many of them do.
#include "model/transport/requester/standstill.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace {
using namespace rnic;
using transport::standstill;

TEST(standstill, a_cycle_counts_once_for_all_queue_pairs) {
  transport::standstill_clock clock;
  clock.begin(10);
  clock.begin(12);
  clock.end(15);
  EXPECT_EQ(clock.cycles(), 0u) << "one of them still waits";
  clock.end(20);
  EXPECT_EQ(clock.cycles(), 10u);
  clock.begin(30);
  clock.end(30);
  clock.begin(40);
  clock.end(41);
  EXPECT_EQ(clock.cycles(), 11u);
  EXPECT_THROW(clock.end(50), sim::invariant_error);
}

TEST(standstill, a_queue_pair_waits_for_the_last_thing_that_it_was_told) {
  transport::standstills all;
  sim::statistics stats;
  sim::cycle_t now = 0;
  all.announce(stats, "requester", [&now] { return now; });
  standstill first = standstill::none, second = standstill::none;
  all.begin(first, standstill::reads, 100);
  all.begin(second, standstill::receives, 110);
  all.begin(first, standstill::receives, 150);
  all.end(second, 160);
  all.end(first, 170);
  all.end(first, 200);  // has ended
  EXPECT_EQ(first, standstill::none);
  EXPECT_EQ(stats.value("requester.standstill.reads_cycles"), 50u);
  EXPECT_EQ(stats.value("requester.standstill.receives_cycles"), 60u);
  EXPECT_EQ(stats.value("requester.standstill.egress_cycles"), 0u);
}

TEST(standstill, what_lasts_counts_when_it_is_read) {
  transport::standstills all;
  sim::statistics stats;
  sim::cycle_t now = 0;
  all.announce(stats, "requester", [&now] { return now; });
  standstill pair = standstill::none;
  all.begin(pair, standstill::egress, 100);
  now = 130;
  EXPECT_EQ(stats.value("requester.standstill.egress_cycles"), 30u);
  EXPECT_EQ(stats.value("requester.standstill.egress_cycles"), 30u) << "read twice";
  now = 120;
  EXPECT_EQ(stats.value("requester.standstill.egress_cycles"), 30u) << "the reader's clock is behind";
  all.end(pair, 150);
  EXPECT_EQ(stats.value("requester.standstill.egress_cycles"), 50u) << "and each cycle counts once";
  now = 200;
  EXPECT_EQ(stats.value("requester.standstill.egress_cycles"), 50u);
}

/// Against the set of all cycles.
TEST(standstill, waits_in_vain_count_each_cycle_once_however_they_overlap) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    transport::vain_waits waits;
    std::set<sim::cycle_t> cycles;
    sim::cycle_t now = 1000;
    for (unsigned i = 0; i < 60; ++i) {
      now += random() % 30;
      const sim::cycle_t began = now - random() % (i % 7 == 0 ? 400 : 40);
      waits.ended(began, now);
      for (sim::cycle_t c = began; c < now; ++c) cycles.insert(c);
      ASSERT_EQ(waits.cycles(), cycles.size()) << "seed " << seed << ", wait " << i;
    }
  }
}

}  // namespace
