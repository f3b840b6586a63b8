// SPDX-License-Identifier: Apache-2.0
// When the scheduler grants, to the cycle: idle, back to back, stalled by each neighbour, full.
#include <gtest/gtest.h>

#include "testbenches/bench/child.h"
#include "testbenches/block/scheduler/bench.h"

namespace {
using namespace rnic::scheduler::test;
using rnic::scheduler::config;
using rnic::scheduler::grant;
using rnic::scheduler::report;

using blockers = std::map<std::string, std::uint64_t>;

/// Pushed at 10: the doorbell is taken at 11, the grant is given at 12 and seen at 13.
TEST(scheduler_timing, a_doorbell_that_finds_it_idle_takes_three_cycles) {
  bench b;
  b.set_owner(5, 77);
  b.ring(10, 5, 77);
  b.run(100);
  ASSERT_EQ(b.times(), cycles{13});
  EXPECT_EQ(b.granted(0).qpn, 5u);
  EXPECT_EQ(b.granted(0).uar, 77u);
  EXPECT_TRUE(b.granted(0).doorbell);
  EXPECT_TRUE(b.granted(0).more);
  EXPECT_FALSE(b.granted(0).descriptor);
  EXPECT_EQ(b.count("doorbells"), 1u);
  EXPECT_EQ(b.count("grants"), 1u);
  EXPECT_EQ(b.count("merged"), 0u);
}

TEST(scheduler_timing, grants_follow_each_other_every_grant_cycles) {
  bench b;  // 2
  for (unsigned i = 0; i < 4; ++i) b.ring(10 + i, 1 + i);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{13, 15, 17, 19}));
  EXPECT_EQ(b.order(), (numbers{1, 2, 3, 4}));
}

TEST(scheduler_timing, the_rate_is_that_of_its_parameter) {
  config c;
  c.grant_cycles = 5;
  bench b(c);
  for (unsigned i = 0; i < 4; ++i) b.ring(10, 1 + i);
  b.ring(40, 9);  // idle since 33: no waiting
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{13, 18, 23, 28, 43}));
}

TEST(scheduler_timing, a_cycle_a_grant_when_it_may) {
  config c;
  c.grant_cycles = 1;
  bench b(c);
  for (unsigned i = 0; i < 4; ++i) b.ring(10, 1 + i);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{13, 14, 15, 16}));
}

/// The last cycle in which the time from the grant before is not over yet, and the first in which it is.
TEST(scheduler_timing, a_doorbell_just_before_and_just_after_the_end_of_the_interval) {
  config c;
  c.grant_cycles = 8;
  bench b(c);
  b.ring(10, 1);  // given at 12: free at 20
  b.ring(17, 2);  // taken at 18, would be given at 19
  b.run(40);
  EXPECT_EQ(b.times(), (cycles{13, 21}));
  b.ring(48, 3);  // free at 28; taken at 49, given at 50: free at 58
  b.ring(56, 4);  // taken at 57, given at 58
  b.run(60);
  EXPECT_EQ(b.times(), (cycles{13, 21, 51, 59}));
}

/// Two places in the channel. What is popped at 40 is a free place at 41.
TEST(scheduler_timing, a_full_grant_channel_stalls_it_until_the_cycle_after_a_pop) {
  bench b({}, false, 2);
  for (unsigned i = 0; i < 4; ++i) b.ring(10, 1 + i);
  b.sides.take_from(40);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{40, 41, 42, 44})) << "given at 12, 14, 41 and 43";
  EXPECT_EQ(b.order(), (numbers{1, 2, 3, 4}));
  EXPECT_EQ(b.grant_channel.max_occupancy(), 2u);
  EXPECT_EQ(b.blocked(), (blockers{{"requester", 25}})) << "free from 16 to 41";
}

/// What the stall let go by does not come back as a burst: the interval counts from the late grant.
TEST(scheduler_timing, after_a_stall_grants_keep_their_interval) {
  config c;
  c.grant_cycles = 4;
  bench b(c, false, 1);
  for (unsigned i = 0; i < 3; ++i) b.ring(10, 1 + i);
  b.sides.take_from(40);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{40, 42, 46}));
}

TEST(scheduler_timing, as_many_in_service_as_there_are_units_and_not_one_more) {
  config c;
  c.grants = 2;
  bench b(c);
  for (unsigned i = 0; i < 4; ++i) b.ring(10, 1 + i);
  b.report_of(50, 1, report::kind::idle);  // taken at 51, the next is given at 52
  b.report_of(70, 3, report::kind::idle);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{13, 15, 53, 73}));
  EXPECT_EQ(b.order(), (numbers{1, 2, 3, 4}));
  EXPECT_EQ(b.blocked(), (blockers{{"processing units", 54}})) << "free from 16 to 52 and from 54 to 72";
}

/// The unit that is given back and the next grant of it, without a pause.
TEST(scheduler_timing, one_unit_serves_a_grant_every_four_cycles) {
  config c;
  c.grants = 1;
  bench b(c);
  b.saturate({{1, 0}, {2, 0}});  // a report one cycle after the grant was seen
  b.run(30);
  EXPECT_EQ(b.times(), (cycles{13, 17, 21, 25, 29}));
  EXPECT_EQ(b.order(), (numbers{1, 2, 1, 2, 1}));
}

/// More units than the time of a turn has intervals: the interval decides.
TEST(scheduler_timing, enough_units_give_a_grant_every_interval) {
  bench b;
  b.saturate({{1, 0}, {2, 0}});
  b.run(24);
  EXPECT_EQ(b.times(), (cycles{13, 15, 17, 19, 21, 23}));
}

/// A lone queue pair: grant seen at 13, report given at 14, taken at 15, granted at 16, seen at 17.
TEST(scheduler_timing, a_lone_queue_pair_comes_round_every_four_cycles) {
  bench b;
  b.saturate({{1, 0}});
  b.run(26);
  EXPECT_EQ(b.times(), (cycles{13, 17, 21, 25}));
}

TEST(scheduler_timing, resume_takes_three_cycles_as_a_doorbell_does) {
  bench b;
  b.ring(10, 1);
  b.report_of(20, 1, report::kind::stalled);
  b.report_of(40, 1, report::kind::resume);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{13, 43}));
  EXPECT_FALSE(b.granted(1).doorbell);
  EXPECT_FALSE(b.granted(1).more);
  EXPECT_EQ(b.count("stalls"), 1u);
  EXPECT_EQ(b.count("resumes"), 1u);
}

/// Two descriptors have a place. The third waits in the channel, in front of a doorbell that needs none, until one of
/// the two leaves with a grant.
TEST(scheduler_timing, a_descriptor_without_a_place_holds_up_the_doorbells_behind_it) {
  config c;
  c.grants = 1;
  c.descriptors = 2;
  bench b(c);
  b.ring(5, 9);  // in service, so that nobody moves
  b.ring_blueflame(10, 1, 0);
  b.ring_blueflame(10, 2, 0);
  b.ring_blueflame(10, 3, 0);
  b.ring(10, 4);
  b.run(40);
  EXPECT_EQ(b.count("doorbells"), 3u) << "exactly as many as have a place";
  b.sides.report_at(50, {9, report::kind::idle, 0});  // taken at 51: 1 is granted at 52, 3 and 4 come in
  b.run(20);
  EXPECT_EQ(b.times(), (cycles{8, 53}));
  EXPECT_EQ(b.count("doorbells"), 5u);
  b.report_of(70, 1, report::kind::idle);
  b.report_of(80, 2, report::kind::idle);
  b.report_of(90, 3, report::kind::idle);
  b.run(60);
  EXPECT_EQ(b.order(), (numbers{9, 1, 2, 3, 4}));
  for (const unsigned i : {1u, 2u, 3u}) EXPECT_TRUE(b.granted(i).descriptor) << i;
  EXPECT_FALSE(b.granted(4).descriptor);
  EXPECT_EQ(b.count("dropped_descriptors"), 0u);
}

/// Four places in the channel in front of it. It takes no doorbell while the descriptors' places are taken, so the
/// fifth waits outside: 9 and 1 were taken, 2 to 5 lie in the channel, 6 finds it full.
TEST(scheduler_timing, doorbells_wait_outside_when_the_channel_is_full_as_well) {
  config c;
  c.grants = 1;
  c.descriptors = 1;
  bench b(c);
  b.ring(5, 9);
  for (std::uint32_t q = 1; q <= 5; ++q) b.ring_blueflame(9 + q, q, 0);
  b.run(40);
  EXPECT_EQ(b.sides.refused, 0u);
  EXPECT_EQ(b.count("doorbells"), 2u);
  b.ring_blueflame(45, 6, 0);
  b.run(20);
  EXPECT_EQ(b.sides.refused, 1u);
  EXPECT_EQ(b.doorbell_channel.max_occupancy(), 4u);
  for (std::uint32_t i = 0; i < 6; ++i) b.report_of(70 + 10 * i, i == 0 ? 9 : i, report::kind::idle);
  b.run(100);
  EXPECT_EQ(b.order(), (numbers{9, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(b.count("doorbells"), 7u);
}

std::uint64_t digest(bool always) {
  config c;
  c.grants = 3;
  c.descriptors = 2;
  c.grant_cycles = 3;
  c.weights[1] = 2;
  bench b(c, always, 1);
  unsigned turn = 0;
  b.sides.service_cycles = 7;
  b.sides.serve = [&turn](const grant& g) {
    static constexpr report::kind kinds[] = {report::kind::more, report::kind::idle, report::kind::stalled};
    return report{g.qpn, kinds[++turn % 3], static_cast<std::uint8_t>(g.qpn % 3)};
  };
  for (std::uint32_t i = 0; i < 120; ++i) {
    const rnic::sim::cycle_t when = 10 + i * i % 97 + i;
    if (i % 3 == 0)
      b.ring_blueflame(when, 1 + i % 5, static_cast<std::uint16_t>(i));
    else if (i % 7 == 0)
      b.report_of(when, 1 + i % 5, report::kind::resume, 1);
    else
      b.ring(when, 1 + i % 5);
  }
  b.run(3000);
  std::uint64_t h = 1469598103934665603u;
  const auto mix = [&h](std::uint64_t x) { h = (h ^ x) * 1099511628211u; };
  for (const auto& n : b.sides.seen) mix(n.at), mix(n.what.qpn), mix(n.what.descriptor ? 1 : 0), mix(n.what.more);
  for (const auto& [name, value] : b.stats.all()) mix(*value);
  mix(b.sides.seen.size());
  return h;
}

TEST(scheduler_timing, sleeping_is_invisible) {
  EXPECT_EQ(rnic::bench::in_child([] { return digest(false); }), rnic::bench::in_child([] { return digest(true); }));
}

}  // namespace
