// SPDX-License-Identifier: Apache-2.0
// Entries of timers of queue pairs: their number, their granularity, their order.
#include "model/transport/requester/timer_entries.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/sim/timebase.h"

namespace {
using namespace rnic;

struct bench {
  explicit bench(unsigned entries, std::uint32_t granularity_ps = 1000)
      : base({false, 0}),
        clock("core", base, {1000, 1, 0}),
        timers(configuration(entries, granularity_ps), clock, 10) {}
  static transport::timer_config configuration(unsigned entries, std::uint32_t granularity_ps) {
    transport::timer_config c;
    c.entries = entries;
    c.granularity_ps = granularity_ps;
    c.expiry_cycles = 1;
    return c;
  }
  void start(std::uint32_t qpn, sim::cycle_t now, sim::cycle_t span) {
    timers.start({transport::timer_command::kind::start, qpn, now + span, 0}, now);
  }
  /// What ends up to `until`, looked at as the block does: one at a time, at the edges named by earliest().
  std::vector<std::pair<std::uint32_t, sim::cycle_t>> ends(sim::cycle_t until) {
    std::vector<std::pair<std::uint32_t, sim::cycle_t>> seen;
    for (sim::cycle_t now = 0; now <= until; ++now) {
      if (timers.earliest() > now || !timers.due(now)) continue;
      seen.emplace_back(timers.end().qpn, now);
      while (timers.may_give()) timers.give(now);
    }
    return seen;
  }
  using list = std::vector<std::pair<std::uint32_t, sim::cycle_t>>;
  sim::timebase base;
  sim::clock_domain clock;
  transport::timer_entries timers;
};

TEST(timers, end_in_the_order_of_their_time) {
  bench b(8);
  b.start(3, 0, 30);
  b.start(1, 0, 10);
  b.start(2, 0, 20);
  EXPECT_EQ(b.ends(100), (bench::list{{1, 10}, {2, 20}, {3, 30}}));
  EXPECT_EQ(b.timers.earliest(), sim::never);
}

TEST(timers, end_at_multiples_of_their_granularity_and_never_early) {
  bench b(8, 16'000);
  b.start(1, 0, 1);
  b.start(2, 0, 16);
  b.start(3, 0, 17);
  b.start(4, 5, 30);
  EXPECT_EQ(b.ends(100), (bench::list{{1, 16}, {2, 17}, {3, 32}, {4, 48}}));
}

TEST(timers, a_later_start_takes_the_place_of_an_earlier_one) {
  bench b(8);
  b.start(1, 0, 10);
  b.start(1, 5, 40);
  b.start(2, 0, 50);
  b.start(2, 6, 3);
  EXPECT_EQ(b.ends(100), (bench::list{{2, 9}, {1, 45}}));
}

TEST(timers, one_that_was_stopped_does_not_end) {
  bench b(8);
  b.start(1, 0, 10);
  b.start(2, 0, 12);
  b.timers.stop(1);
  EXPECT_EQ(b.timers.running(), 1u);
  EXPECT_EQ(b.ends(100), (bench::list{{2, 12}}));
}

TEST(timers, without_an_entry_the_time_runs_from_the_moment_on_that_there_is_one) {
  bench b(2);
  b.start(1, 0, 10);
  b.start(2, 0, 30);
  b.start(3, 0, 10);  // waits for the end of 1
  b.start(4, 0, 10);  // for that of 3
  EXPECT_EQ(b.timers.running(), 2u);
  EXPECT_EQ(b.timers.waits(), 2u);
  EXPECT_EQ(b.ends(100), (bench::list{{1, 10}, {3, 20}, {2, 30}, {4, 31}}));
}

TEST(timers, one_that_is_stopped_while_it_waits_takes_no_entry) {
  bench b(1);
  b.start(1, 0, 10);
  b.start(2, 0, 10);
  b.start(3, 0, 10);
  b.timers.stop(2);
  EXPECT_EQ(b.ends(100), (bench::list{{1, 10}, {3, 20}}));
  b.start(2, 100, 10);
  EXPECT_EQ(b.ends(200), (bench::list{{2, 110}}));
}

}  // namespace
