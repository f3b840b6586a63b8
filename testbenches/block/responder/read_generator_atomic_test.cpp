// SPDX-License-Identifier: Apache-2.0
// The READ generator and atomics: what it hands over to the atomic unit, and what does not wait for that.
#include <cstring>

#include "testbenches/bench/child.h"
#include "testbenches/block/responder/generator_bench.h"

namespace rnic::transport::test::generator {
namespace {

using told = read_report::kind;

TEST(read_generator, an_atomic_changes_memory_once_and_answers_what_was_there) {
  rig r;
  std::memset(r.w.memory.data() + 0x2000, 0, 8);
  r.start(r.add(0, 100, 0x2000, 5), 10);
  r.start(r.add(0, 101, 0x2000, 7));
  r.run(1000);
  ASSERT_EQ(r.w.answers.size(), 2u);
  EXPECT_EQ(r.w.answers[0].job.original, 0u);
  EXPECT_EQ(r.w.answers[1].job.original, 5u);
  EXPECT_EQ(r.w.memory[0x2000], 12u);
  EXPECT_EQ(r.w.operands.reads[0].first - r.w.commanded[0], to_memory + 1) << "by way of the atomic unit";
  ASSERT_EQ(r.w.reports.size(), 2u);
  EXPECT_TRUE(r.w.reports[1].second.executed);
  EXPECT_EQ(r.w.reports[1].second.original, 5u);
  EXPECT_EQ(r.w.reports[1].second.psn, 101u);
  EXPECT_EQ(r.count("atomics"), 2u);
}

/// From memory's answer to the report: seen a cycle later, as many cycles as the lock is held for, a cycle to memory,
/// 20 there and one back, a cycle to the generator; the report is seen a cycle after it was made.
sim::cycle_t from_operand_to_report(unsigned align, unsigned execute, unsigned store) {
  return rnic::bench::in_child([=] {
    responder_config c;
    c.atomics.align_cycles = align;
    c.atomics.execute_cycles = execute;
    c.atomics.store_cycles = store;
    rig r(c);
    r.start(r.add(0, 100, 0x2000, 5), 10);
    r.run(500);
    return r.w.reports.at(0).first - r.w.operands.answers.at(0);
  });
}
TEST(read_generator, an_atomic_holds_its_lock_for_the_cycles_of_its_parameters) {
  EXPECT_EQ(from_operand_to_report(7, 0, 0), 1u + 7 + 1 + 20 + 1 + 1 + 1);
  EXPECT_EQ(from_operand_to_report(0, 8, 0), 1u + 8 + 1 + 20 + 1 + 1 + 1);
  EXPECT_EQ(from_operand_to_report(9, 8, 9), 1u + 26 + 1 + 20 + 1 + 1 + 1);
}

TEST(read_generator, reads_do_not_wait_for_atomics_of_others) {
  rig r;
  for (std::uint16_t f = 0; f < 4; ++f) r.start(r.add(f, 100, 0x2000, 1));
  r.start(r.request(9, 100, 0x1000, 64));
  r.run(1500);
  ASSERT_EQ(r.w.answers.size(), 5u);
  EXPECT_EQ(r.w.answers[0].job.remote_qpn, 0x1009u);
}

/// The queue pair whose atomic waits in the unit is given up, and its place is another's: that has nothing to do with
/// the unit, which the one in front of it has for 500 cycles more.
TEST(read_generator, a_read_does_not_wait_for_the_turn_of_an_atomic_that_was_given_up) {
  rig r;
  r.w.read_cycles = 500;
  r.start(r.add(0, 100, 0x2000, 1), 10);
  r.start(r.add(1, 100, 0x2000, 1));
  r.start(r.other(kind::discard, 1, 0));
  r.run(60);
  ASSERT_EQ(r.told(told::discarded), 1u);
  ASSERT_EQ(r.w.operands.reads.size(), 1u) << "of the first";
  r.start(r.request(1, 300, 0x1000, 64));
  r.run(60);
  ASSERT_EQ(r.w.payload.reads.size(), 1u);
  EXPECT_EQ(r.w.payload.reads[0].first - r.w.commanded.back(), to_memory);
}

/// The same where the unit has no place for it: it stands in the generator's queue for it, and so does what is left of
/// it when the place is another's.
TEST(read_generator, a_read_does_not_wait_for_a_place_of_the_unit) {
  responder_config c;
  c.atomics.waiting = 1;
  rig r(c);
  r.w.read_cycles = 500;
  for (std::uint16_t f = 0; f < 4; ++f) r.start(r.add(f, 100, 0x2000, 1), 10);
  r.start(r.other(kind::discard, 2, 0));
  r.run(100);
  ASSERT_EQ(r.told(told::discarded), 1u);
  EXPECT_EQ(r.atomic_jobs.pushes(), 2u) << "one with the engine, one that waits";
  r.start(r.request(2, 300, 0x1000, 64));
  r.run(60);
  ASSERT_EQ(r.w.payload.reads.size(), 1u);
  EXPECT_EQ(r.w.payload.reads[0].first - r.w.commanded.back(), to_memory);
  r.run(3000);
  EXPECT_EQ(r.count("atomics"), 3u);
  EXPECT_EQ(r.told(told::ended), 5u);
}

/// Command, job, outcome and report: seen a cycle after they were sent. What waits costs no read of memory.
TEST(read_generator, an_atomic_that_waits_in_the_unit_is_given_up_at_once) {
  rig r;
  r.w.read_cycles = 500;
  r.start(r.add(0, 100, 0x2000, 1), 10);
  r.start(r.add(1, 100, 0x2000, 1));
  r.start(r.other(kind::discard, 1, 0), 20);
  r.run(100);
  ASSERT_EQ(r.w.reports.size(), 2u);
  EXPECT_EQ(r.w.reports[0].second.what, told::ended);
  EXPECT_FALSE(r.w.reports[0].second.executed);
  EXPECT_EQ(r.w.reports[0].first - r.w.commanded[2], 4u);
  EXPECT_EQ(r.w.reports[1].second.what, told::discarded);
  EXPECT_EQ(r.stats.value("atomic_unit.abandoned"), 1u);
  r.run(1000);
  EXPECT_EQ(r.w.operands.reads.size(), 1u);
  EXPECT_EQ(r.w.answers.size(), 1u);
}

/// Nothing of a key is under way when it is let go: jobs that wait in the unit have been executed, those that had no
/// place there are refused.
TEST(read_generator, a_key_is_let_go_behind_the_jobs_of_the_unit) {
  responder_config c;
  c.atomics.waiting = 1;
  rig r(c);
  std::memset(r.w.memory.data() + 0x2000, 0, 8);
  for (std::uint16_t f = 0; f < 4; ++f) r.start(r.add(f, 100, 0x2000, 1));
  r.start(r.other(kind::revoke, 0, 0), 30);
  r.run(2000);
  EXPECT_EQ(r.w.memory[0x2000], 2u);
  EXPECT_EQ(r.told(told::fault), 2u);
  ASSERT_EQ(r.told(told::revoked), 1u);
  unsigned executed = 0;
  for (const auto& [at, x] : r.w.reports) {
    if (x.what == told::revoked) {
      EXPECT_EQ(executed, 2u);
    }
    executed += x.executed ? 1 : 0;
  }
}

/// One place more is one job more that is there when the first ends.
unsigned jobs_at_once(unsigned waiting) {
  return rnic::bench::in_child([waiting] {
    responder_config c;
    c.atomics.waiting = waiting;
    rig r(c);
    r.w.read_cycles = 500;
    for (std::uint16_t f = 0; f < 12; ++f) r.start(r.add(f, 100, 0x2000, 1));
    r.run(200);
    return static_cast<unsigned>(r.atomic_jobs.pushes());
  });
}
TEST(read_generator, hands_over_as_many_atomics_as_the_unit_has_places) {
  EXPECT_EQ(jobs_at_once(1), 2u);
  EXPECT_EQ(jobs_at_once(2), 3u);
  EXPECT_EQ(jobs_at_once(5), 6u);
}

}  // namespace
}  // namespace rnic::transport::test::generator
