// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: shares and order by priority and weight, doorbells that meet, reports, what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "testbenches/block/scheduler/bench.h"

namespace {
using namespace rnic::scheduler::test;
using rnic::scheduler::config;
using rnic::scheduler::no_owner;
using rnic::scheduler::report;
namespace cr = rnic::scheduler::cr;

TEST(scheduler_turns, queue_pairs_of_a_priority_take_turns) {
  bench b;
  b.saturate({{1, 0}, {2, 0}, {3, 0}});
  b.run(60);
  EXPECT_EQ(b.order(0, 9), (numbers{1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

/// 1 and 2 share priority 0 (weight 3), 3 has priority 1 (weight 1): it gets every fourth grant, the others take turns
/// over the ends of the priority's turn.
TEST(scheduler_turns, priorities_share_by_weight) {
  config c;
  c.weights = {3, 1, 1, 1, 1, 1, 1, 1};
  c.grant_cycles = 8;  // all have reported before the next is chosen
  bench b(c);
  b.saturate({{1, 0}, {2, 0}, {3, 1}});
  b.run(400);
  // The first grant of each is at priority 0, which they have until they report.
  EXPECT_EQ(b.order(0, 15), (numbers{1, 2, 3, 3, 1, 2, 1, 3, 2, 1, 2, 3, 1, 2, 1}));
}

/// Three priorities of weights 4, 2 and 1: exactly these shares of each seven grants.
TEST(scheduler_turns, shares_are_exact) {
  config c;
  c.weights = {1, 1, 4, 1, 2, 1, 1, 1};
  c.grant_cycles = 8;
  bench b(c);
  b.saturate({{1, 2}, {2, 4}, {3, 7}});
  b.run(20 + 13 * 8 + 70 * 8);
  // Until each has reported its priority once they are at 0: one grant of it, then the turn of those that have left it.
  EXPECT_EQ(b.order(0, 13), (numbers{1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 2, 3}));
  const numbers all = b.order(13);
  ASSERT_GE(all.size(), 70u);
  for (std::size_t turn = 0; turn < 10; ++turn) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(turn * 7);
    EXPECT_EQ(numbers(first, first + 7), (numbers{1, 1, 1, 1, 2, 2, 3})) << turn;
  }
}

TEST(scheduler_turns, a_priority_without_work_leaves_its_share_to_the_others) {
  config c;
  c.weights = {2, 200, 1, 1, 1, 1, 1, 1};
  c.grant_cycles = 8;
  bench b(c);
  b.saturate({{1, 0}, {2, 2}});
  b.run(200);
  EXPECT_EQ(b.order(0, 9), (numbers{1, 2, 2, 1, 1, 2, 1, 1, 2})) << "the first of 2 is at priority 0 still";
}

/// Priority 0 had two of its three grants when there was no more for it: its next turn has three again.
TEST(scheduler_turns, a_turn_that_was_not_used_up_is_over) {
  config c;
  c.weights = {3, 1, 1, 1, 1, 1, 1, 1};
  c.grants = 1;
  bench b(c);
  b.ring(5, 2);
  b.report_of(10, 2, report::kind::idle, 1);  // 2 is at priority 1 from here on
  b.ring(20, 1);
  b.report_of(30, 1, report::kind::idle);
  b.ring(40, 2);
  for (const std::uint32_t q : {1u, 3u, 4u, 5u}) b.ring(50, q);
  b.report_of(60, 2, report::kind::more, 1);
  b.report_of(70, 1, report::kind::idle);
  b.report_of(80, 3, report::kind::idle);
  b.report_of(90, 4, report::kind::idle);
  b.report_of(100, 2, report::kind::idle, 1);
  b.report_of(110, 5, report::kind::idle);
  b.run(150);
  EXPECT_EQ(b.order(), (numbers{2, 1, 2, 1, 3, 4, 2, 5}));
}

TEST(scheduler_turns, the_priority_is_what_was_reported_last) {
  config c;
  c.grants = 1;
  bench b(c);
  b.ring(10, 1);
  b.report_of(20, 1, report::kind::idle, 6);  // 1 is at 6 from here on, 2 and 3 at 0
  b.ring(30, 2);
  b.ring(32, 1);
  b.ring(32, 3);
  b.report_of(50, 2, report::kind::more, 0);
  b.report_of(60, 1, report::kind::idle, 0);
  b.report_of(70, 3, report::kind::idle, 0);
  b.run(100);
  EXPECT_EQ(b.order(), (numbers{1, 2, 1, 3, 2})) << "2 of priority 0 had its turn, then 6's, then 0 again in order";
}

/// While they wait for a unit: the one that there is serves another queue pair.
TEST(scheduler_turns, doorbells_of_a_queue_pair_that_waits_are_merged) {
  config c;
  c.grants = 1;
  bench b(c);
  b.set_owner(1, 8);
  b.ring(5, 9);
  for (unsigned i = 0; i < 3; ++i) b.ring(10, 1, 8);
  b.ring(10, 2, 8);
  b.report_of(30, 9, report::kind::idle);
  b.report_of(40, 1, report::kind::idle);
  b.run(100);
  EXPECT_EQ(b.order(), (numbers{9, 1, 2}));
  EXPECT_EQ(b.times(), (cycles{8, 33, 43}));
  EXPECT_EQ(b.count("doorbells"), 5u);
  EXPECT_EQ(b.count("merged"), 2u);
  EXPECT_EQ(b.granted(1).uar, 8u);
}

/// Before, between and after the owner's, at each state of the queue pair: idle, ready, granted and stalled.
TEST(scheduler_turns, doorbells_of_foreign_pages_change_nothing) {
  config c;
  c.grants = 1;
  bench b(c);
  b.set_owner(1, 8);
  b.ring(5, 9);
  b.ring(10, 1, 7);
  b.ring(10, 1, 8);
  b.ring_blueflame(10, 1, 40, 7);
  b.ring_blueflame(10, 1, 5, 8);
  b.ring_blueflame(10, 1, 41, 9);
  b.report_of(30, 9, report::kind::idle);
  b.run(50);
  ASSERT_EQ(b.order(), (numbers{9, 1}));
  EXPECT_EQ(b.granted(1).uar, 8u);
  EXPECT_TRUE(b.granted(1).more) << "the one that came without a WQE";
  ASSERT_TRUE(b.granted(1).descriptor);
  EXPECT_EQ(b.granted(1).descriptor->index, 5u) << "the owner's is kept";
  b.ring(52, 1, 9);
  b.report_of(60, 1, report::kind::idle);
  b.ring(70, 1, 9);
  b.run(50);
  EXPECT_EQ(b.order(), (numbers{9, 1})) << "neither while it is served nor while it is idle";
  b.ring(110, 1, 8);
  b.report_of(120, 1, report::kind::stalled);
  b.ring(130, 1, 7);
  b.report_of(140, 1, report::kind::resume);
  b.run(100);
  ASSERT_EQ(b.order(), (numbers{9, 1, 1, 1}));
  EXPECT_TRUE(b.granted(2).doorbell);
  EXPECT_FALSE(b.granted(3).doorbell) << "resumed, not rung for";
  EXPECT_EQ(b.count("wrong_uar"), 6u);
  EXPECT_EQ(b.count("merged"), 1u);
  EXPECT_EQ(b.count("dropped_descriptors"), 0u);
}

/// Nor do they wait for a place, with the owner's behind them.
TEST(scheduler_turns, foreign_descriptors_take_no_place) {
  config c;
  c.grants = 1;
  c.descriptors = 1;
  bench b(c);
  b.set_owner(1, 8);
  b.ring(5, 9);
  b.ring_blueflame(10, 1, 5, 8);
  for (std::uint16_t n = 0; n < 6; ++n) b.ring_blueflame(12, 1, n, 7);
  b.ring(18, 2);
  b.run(25);
  EXPECT_EQ(b.count("wrong_uar"), 6u);
  EXPECT_EQ(b.count("doorbells"), 9u) << "the place is taken still";
  b.report_of(30, 9, report::kind::idle);
  b.run(20);
  ASSERT_TRUE(b.granted(1).descriptor);
  EXPECT_EQ(b.granted(1).descriptor->index, 5u);
}

/// A number that gets another owner: what waits was the last one's.
TEST(scheduler_turns, what_an_earlier_owner_rang_for_is_forgotten) {
  config c;
  c.grants = 1;
  c.descriptors = 1;
  bench b(c);
  b.set_owner(1, 8);
  b.ring(5, 9);
  b.ring(8, 1, 8);
  b.ring_blueflame(10, 1, 5, 8);
  b.ring_blueflame(12, 2, 6);
  b.run(20);
  EXPECT_EQ(b.count("doorbells"), 3u) << "the last one waits for the place";
  b.set_owner(1, 7);
  EXPECT_EQ(b.dut.cr_read(cr::owner), 7u);
  b.report_of(30, 9, report::kind::idle);
  b.report_of(40, 1, report::kind::idle);
  b.run(40);
  ASSERT_EQ(b.order(), (numbers{9, 1, 2})) << "it had its place in the line";
  EXPECT_FALSE(b.granted(1).doorbell);
  EXPECT_FALSE(b.granted(1).more);
  EXPECT_FALSE(b.granted(1).descriptor);
  EXPECT_EQ(b.granted(1).uar, 7u);
  EXPECT_TRUE(b.granted(2).descriptor);
}

TEST(scheduler_turns, owners_are_forgotten_by_a_reset) {
  bench b;
  b.set_owner(1, 8);
  b.dut.device_reset();
  b.dut.cr_write(cr::qp_select, 1);
  EXPECT_EQ(b.dut.cr_read(cr::owner), no_owner);
  b.ring(10, 1, 5);
  b.run(30);
  ASSERT_EQ(b.order(), (numbers{1})) << "who it is for, the requester finds out";
  EXPECT_EQ(b.granted(0).uar, no_owner);
  b.dut.cr_write(cr::qp_select, 1u << 20);
  b.dut.cr_write(cr::owner, 3);
  EXPECT_EQ(b.dut.cr_read(cr::owner), no_owner) << "there is no such number";
}

TEST(scheduler_turns, a_doorbell_during_service_is_a_grant_after_it) {
  bench b;
  b.ring(10, 1);
  b.ring(20, 1);
  b.report_of(30, 1, report::kind::idle);
  b.report_of(40, 1, report::kind::idle);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{13, 33}));
  EXPECT_TRUE(b.granted(1).doorbell);
  EXPECT_EQ(b.count("merged"), 0u) << "the first was with its grant";
}

/// Reports go first: the queue pair is at rest when the doorbell comes.
TEST(scheduler_turns, report_and_doorbell_in_one_cycle_lose_nothing) {
  bench b;
  b.ring(10, 1);
  b.report_of(30, 1, report::kind::idle);
  b.ring(30, 1);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{13, 33}));
  EXPECT_TRUE(b.granted(1).doorbell);
}

TEST(scheduler_turns, who_reports_goes_before_whom_a_doorbell_brings_in_the_same_cycle) {
  config c;
  c.grants = 1;
  bench b(c);
  b.ring(10, 1);
  b.ring(30, 2);
  b.report_of(30, 1, report::kind::more);
  b.report_of(40, 1, report::kind::idle);
  b.run(100);
  EXPECT_EQ(b.order(), (numbers{1, 1, 2}));
  EXPECT_EQ(b.times(), (cycles{13, 33, 43}));
}

TEST(scheduler_turns, a_stalled_queue_pair_waits_for_its_resume_alone) {
  bench b;
  b.ring_blueflame(10, 1, 0);
  b.ring_blueflame(20, 1, 1);
  b.report_of(30, 1, report::kind::stalled);  // its second descriptor gives its place back
  b.ring_blueflame(40, 1, 2);                 // and this one gets none
  b.ring(42, 1);
  b.run(60);
  EXPECT_EQ(b.times(), cycles{13});
  EXPECT_EQ(b.count("dropped_descriptors"), 2u);
  b.report_of(70, 1, report::kind::resume);
  b.run(40);
  EXPECT_EQ(b.times(), (cycles{13, 73}));
  EXPECT_TRUE(b.granted(1).doorbell);
  EXPECT_TRUE(b.granted(1).more) << "to be read from memory";
  EXPECT_FALSE(b.granted(1).descriptor);
}

/// Once for each descriptor, in their order; the flag of more comes with the first grant after the plain doorbell.
TEST(scheduler_turns, descriptors_come_one_a_grant_in_order) {
  bench b;
  b.ring_blueflame(10, 1, 7);
  b.ring_blueflame(14, 1, 8);
  b.ring(15, 1);
  b.ring_blueflame(16, 1, 9);
  for (const unsigned when : {20u, 30u, 40u}) b.report_of(when, 1, report::kind::idle);
  b.run(100);
  ASSERT_EQ(b.times(), (cycles{13, 23, 33}));
  for (unsigned i = 0; i < 3; ++i) {
    ASSERT_TRUE(b.granted(i).descriptor) << i;
    EXPECT_EQ(b.granted(i).descriptor->index, 7 + i);
    EXPECT_TRUE(b.granted(i).doorbell) << i;
  }
  EXPECT_FALSE(b.granted(0).more);
  EXPECT_TRUE(b.granted(1).more);
  EXPECT_FALSE(b.granted(2).more);
  EXPECT_EQ(b.count("dropped_descriptors"), 0u);
}

TEST(scheduler_turns, a_resume_while_granted_is_another_turn) {
  bench b;
  b.ring(10, 1);
  b.report_of(20, 1, report::kind::resume);
  b.report_of(30, 1, report::kind::stalled);  // the acknowledgement that it waits for had come
  b.report_of(40, 1, report::kind::stalled);
  b.run(100);
  EXPECT_EQ(b.times(), (cycles{13, 33}));
  EXPECT_EQ(b.count("resumes"), 1u);
  EXPECT_EQ(b.count("stalls"), 1u) << "the first was none";
}

TEST(scheduler_turns, a_resume_of_one_that_is_queued_or_resumed_is_one_turn) {
  config c;
  c.grants = 1;
  bench b(c);
  b.ring(10, 1);
  b.report_of(14, 1, report::kind::stalled);
  b.ring(20, 2);                             // the unit is taken
  b.report_of(30, 1, report::kind::resume);  // waits for it
  b.report_of(35, 1, report::kind::resume, 3);
  b.report_of(40, 2, report::kind::idle);
  b.report_of(50, 1, report::kind::resume);  // in service: twice is once
  b.report_of(52, 1, report::kind::resume);
  b.report_of(60, 1, report::kind::idle);
  b.report_of(70, 1, report::kind::idle);
  b.run(100);
  EXPECT_EQ(b.order(), (numbers{1, 2, 1, 1}));
  EXPECT_EQ(b.count("resumes"), 3u) << "not the one at 35";
}

TEST(scheduler_turns, an_idle_queue_pair_that_resumes_has_a_turn) {
  bench b;
  b.report_of(10, 1, report::kind::resume);
  b.run(50);
  EXPECT_EQ(b.times(), cycles{13});
  EXPECT_FALSE(b.granted(0).doorbell);
}

TEST(scheduler_turns, numbers_beyond_the_table_are_counted) {
  config c;
  c.log_qps = 8;
  bench b(c);
  b.ring(10, 255);
  b.ring(11, 256);
  b.ring(12, 0xffffff);
  b.run(100);
  EXPECT_EQ(b.order(), numbers{255});
  EXPECT_EQ(b.count("bad_qpn"), 2u);
  EXPECT_EQ(b.count("doorbells"), 3u);
}

TEST(scheduler_turns, reset_forgets_doorbells_and_gives_their_places_back) {
  config c;
  c.grants = 1;
  c.descriptors = 1;
  bench b(c);
  b.ring(10, 1);
  b.ring(20, 1);
  b.ring_blueflame(20, 1, 3);
  b.run(30);
  EXPECT_EQ(b.wqes.in_use(), 1u);
  b.dut.device_reset();
  EXPECT_EQ(b.wqes.in_use(), 0u);
  b.report_of(40, 1, report::kind::idle);
  b.run(30);
  EXPECT_EQ(b.times(), cycles{13}) << "the doorbells at 20 are gone";
  b.ring_blueflame(70, 1, 4);  // the one place is free
  b.run(30);
  ASSERT_EQ(b.times(), (cycles{13, 73}));
  EXPECT_FALSE(b.granted(1).more);
}

TEST(scheduler_turns, a_report_without_a_grant_is_our_own_mistake) {
  bench b;
  b.report_of(10, 1, report::kind::idle);
  EXPECT_THROW(b.run(20), std::exception);
}

TEST(scheduler_turns, parameters_have_bounds) {
  const auto refused = [](void (*change)(config&)) {
    config c;
    change(c);
    try {
      bench b(c);
    } catch (const rnic::sim::config_error&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused([](config& c) { c.log_qps = 7; }));
  EXPECT_TRUE(refused([](config& c) { c.log_qps = 25; }));
  EXPECT_TRUE(refused([](config& c) { c.grants = 0; }));
  EXPECT_TRUE(refused([](config& c) { c.grant_cycles = 0; }));
  EXPECT_TRUE(refused([](config& c) { c.descriptors = 0; }));
  EXPECT_TRUE(refused([](config& c) { c.weights[7] = 0; }));
}

}  // namespace
