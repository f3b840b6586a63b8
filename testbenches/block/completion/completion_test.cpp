// SPDX-License-Identifier: Apache-2.0
// Completion and event queues: entries, laps, arming, moderation, events, halts.
#include <gtest/gtest.h>

#include <stdexcept>

#include "testbenches/bench/child.h"
#include "testbenches/block/completion/rig.h"

namespace {
using namespace completion_test;

TEST(completion, entry_as_published) {  // adapter data plane A.12: completion of a READ at index 5
  rig b;
  completion::cqe_request r;
  r.cqn = cqn;
  r.qpn = 0x48;
  r.byte_count = 0x11223344;
  r.wqe_index = 5;
  r.opcode = 0x50;
  b.cqes.send(r);
  b.run(600);
  const std::uint32_t expected[8] = {0x48, 0, 0, 0, 0, 0x11223344, 0x00050000, 0x00000050};
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(b.memory.get32(b.cqe_at(0) + 4 * i), expected[i]) << i;
}

TEST(completion, error_entry) {
  rig b;
  completion::cqe_request r;
  r.cqn = cqn;
  r.qpn = 0xff000048;
  r.opcode = 0x5e;
  r.wqe_index = 9;
  r.syndrome = 0x15;
  r.vendor_error = 0x81;
  r.byte_count = 77;
  b.cqes.send(r);
  b.run(600);
  const std::uint32_t expected[8] = {0x48, 0, 0, 0, 0, 0, 0x00098115, 0x0000005e};
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(b.memory.get32(b.cqe_at(0) + 4 * i), expected[i]) << i;
}

/// Software's rule: entry of index n is valid when its owner bit is the lap's parity.
void laps(std::uint32_t bytes, unsigned log_cq) {
  rig b(bytes, false, log_cq);
  const unsigned size = 1u << log_cq;
  for (std::uint32_t n = 0; n < 5 * size + 3; ++n) {
    b.complete(n);
    b.run(n == 0 || n * bytes % 4096 == 0 ? 800 : 200);
    const std::uint64_t e = b.cqe_at(n % size, bytes) + (bytes - 32);
    ASSERT_EQ(b.memory.get32(e + 0x14), 0x1000 + n);
    ASSERT_EQ(*b.memory.at(e + 0x1f) >> 7, n / size & 1) << n;
    const std::uint64_t next = b.cqe_at((n + 1) % size, bytes) + (bytes - 32);
    ASSERT_NE(*b.memory.at(next + 0x1f) >> 7, (n + 1) / size & 1) << n;
    b.memory.be32(record, n + 1);
  }
  EXPECT_EQ(b.count(cr::count_cqe), 5 * size + 3);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 0u);
}
TEST(completion, owner_bits_over_laps_of_32_bytes) { laps(32, 3); }
TEST(completion, owner_bits_over_laps_of_64_bytes) { laps(64, 3); }
TEST(completion, owner_bits_over_several_pages) { laps(64, 7); }

TEST(completion, steady_state_is_one_write_each) {
  rig b;
  b.complete(0);
  b.run(800);
  b.memory.log.clear();
  for (std::uint32_t n = 1; n < 6; ++n) b.complete(n);
  b.run(300);
  EXPECT_EQ(b.memory.reads(), 0u);
  EXPECT_EQ(b.memory.writes(), 5u);
}

TEST(completion, overflow_is_an_error_event) {
  rig b;
  b.block.cr_write(cr::event_map + 4 * 4, eqn);
  for (std::uint32_t n = 0; n < 10; ++n) b.complete(n);
  b.run(3000);
  EXPECT_EQ(b.count(cr::count_cqe), 8u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 2u);
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0)), 0x00040000u);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0) + 4), cqn);
  EXPECT_EQ(*b.memory.at(b.eqe_at(0) + 0x0f), 1u);
  ASSERT_EQ(b.pins.seen.size(), 1u);
}

/// The EQ engine has had its turn in the cycle of the loss: it comes in the next one, whatever the CQ engine does then.
std::string overflow_writes(bool always) {
  return rnic::bench::in_child([always] {
    completion::completion_config c;
    c.cqe_cycles = 300;
    rig b(32, always, 3, c);
    b.block.cr_write(cr::event_map + 4 * 4, eqn);
    for (std::uint32_t n = 0; n < 10; ++n) b.complete(n);
    b.run(8000);
    std::string seen;
    for (const auto& s : b.memory.log)
      if (s.op == pcie::dma_request::kind::write) seen += std::to_string(s.at) + ' ';
    return seen;
  });
}
TEST(completion, the_event_of_a_loss_does_not_wait_for_the_next_entry) {
  const std::string seen = overflow_writes(false);
  EXPECT_GT(seen.size(), 30u);
  EXPECT_EQ(overflow_writes(true), seen);
}

/// A doorbell gives room while the record is read. When the CQ is full again the record is read anew: what came of the
/// first read is old.
TEST(completion, a_record_that_was_read_before_there_was_room_does_not_count) {
  rig b;
  b.memory.be32(record, 0);
  for (std::uint32_t n = 0; n < 8; ++n) b.complete(n);
  b.run(3000);
  ASSERT_EQ(b.count(cr::count_cqe), 8u);
  b.complete(8);
  b.run(30);
  EXPECT_EQ(b.count(cr::count_cqe), 8u) << "its record is being read";
  b.arm(2, 1, 8);
  b.run(400);
  ASSERT_EQ(b.count(cr::count_cqe), 9u);
  for (std::uint32_t n = 9; n < 16; ++n) b.complete(n);
  b.run(2000);
  ASSERT_EQ(b.count(cr::count_cqe), 16u);
  b.memory.be32(record, 12);
  b.complete(16);
  b.run(2000);
  EXPECT_EQ(b.count(cr::count_cqe), 17u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 0u);
}

/// 64 entries: number 69 has that of 5, and is nobody's. Software that rings for it does not keep firmware waiting.
TEST(completion, doorbells_of_numbers_beyond_the_table_leave_a_halt_alone) {
  rig b;
  b.complete(0);
  b.run(800);
  b.command(cr::queue_command_halt);
  unsigned busy = 0;
  for (unsigned i = 0; i < 200; ++i) {
    completion::queue_doorbell d;
    d.number = cqn + 64;
    b.doorbells.send(d);
    b.run(7);
    if (i >= 100) busy += b.block.cr_read(cr::cq_status) & 1;
  }
  EXPECT_EQ(busy, 0u);
  EXPECT_GT(b.count(cr::count_bad_doorbell), 100u);
}

TEST(completion, a_lost_completion_stops_its_queue_pair_and_a_flushed_one_does_not) {
  rig b;
  for (std::uint32_t n = 0; n < 8; ++n) b.complete(n);
  b.run(2000);
  EXPECT_TRUE(b.to_requester.seen.empty());
  completion::cqe_request r;
  r.cqn = cqn;
  r.qpn = 0x49;
  r.opcode = rnic::abi::cqe::opcode_error;
  r.syndrome = static_cast<std::uint8_t>(rnic::abi::cqe::error::flushed);
  b.cqes.send(r);
  b.complete(9);
  b.cqes.send(r);
  b.run(2000);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 3u);
  EXPECT_EQ(b.to_requester.seen, std::vector<std::uint32_t>{0x48});
  EXPECT_EQ(b.to_responder.seen, std::vector<std::uint32_t>{0x48});
}

TEST(completion, a_consumer_index_that_cannot_be_read_is_an_access_violation) {
  rig b;
  b.block.cr_write(cr::event_map + 4 * 4, eqn);
  b.cq.db_record = 0x80000;  // beyond memory
  b.store_cq();
  for (std::uint32_t n = 0; n < 9; ++n) b.complete(n);
  b.run(3000);
  EXPECT_EQ(b.count(cr::count_cqe), 8u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 1u);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0)), 0x00040000u);
  EXPECT_EQ(*b.memory.at(b.eqe_at(0) + 0x0f), 2u);
  b.command(cr::queue_command_halt);
  b.run(1000);
  EXPECT_EQ(b.stored_cq().status, 10u);
}

TEST(completion, event_and_interrupt_come_after_the_entry) {
  rig b;
  b.complete(0);
  b.run(800);
  b.arm(2, 1, 1);
  EXPECT_EQ(b.count(cr::count_eqe), 0u);
  b.memory.log.clear();
  b.complete(1);
  b.run(800);
  ASSERT_EQ(b.pins.seen.size(), 1u);
  EXPECT_EQ(b.pins.seen[0].first, 11u);
  std::vector<std::uint64_t> writes;
  sim::cycle_t last = 0;
  for (const auto& s : b.memory.log)
    if (s.op == pcie::dma_request::kind::write) {
      writes.push_back(s.address);
      last = s.at;
    }
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0], b.cqe_at(1));
  EXPECT_EQ(writes[1], b.eqe_at(0));
  EXPECT_GT(b.pins.seen[0].second, last);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0)), 0u);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0) + 4), cqn);
  b.complete(2);  // one event for each arm
  b.run(800);
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
}

TEST(completion, arming_races) {
  rig b;
  b.complete(0);
  b.run(800);
  b.arm(2, 1, 0);  // a completion is beyond the index: at once
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
  b.arm(2, 1, 0);  // the arm that has fired, again
  EXPECT_EQ(b.count(cr::count_stale_arm), 1u);
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
  b.arm(1, 2, 0);  // solicited: there was none
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
  b.complete(1);
  b.run(400);
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
  b.complete(2, true);
  b.run(400);
  EXPECT_EQ(b.count(cr::count_eqe), 2u);
  b.arm(1, 3, 2);  // the solicited one is beyond index 2
  EXPECT_EQ(b.count(cr::count_eqe), 3u);
  b.arm(1, 0, 3);
  EXPECT_EQ(b.count(cr::count_eqe), 3u);
  completion::queue_doorbell d;
  d.number = 60;
  d.command = 2;
  b.doorbells.send(d);
  b.run(400);
  EXPECT_EQ(b.count(cr::count_bad_doorbell), 1u);
}

TEST(completion, moderation_by_count_and_by_time) {
  rig b;
  b.cq.period_us = 5;
  b.cq.max_count = 3;
  b.store_cq();
  b.arm(2, 1, 0);
  b.complete(0);
  b.complete(1);
  b.run(2000);
  EXPECT_EQ(b.count(cr::count_eqe), 0u);
  b.complete(2);
  b.run(800);
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
  b.arm(2, 2, 3);
  b.complete(3);
  b.run(4800);
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
  b.run(1000);
  EXPECT_EQ(b.count(cr::count_eqe), 2u);
}

TEST(completion, event_queue_arms_fires_wraps_and_overflows) {
  rig b(64);
  b.block.cr_write(cr::event_map + 4 * 2, eqn);
  completion::event_request e;
  e.type = 2;
  e.data = {0, 0, 0, 0x48};
  for (unsigned n = 0; n < 9; ++n) b.events.send(e);
  b.run(2000);
  EXPECT_EQ(b.count(cr::count_eqe), 7u);  // never more than size - 1
  EXPECT_EQ(b.count(cr::count_eq_overflow), 2u);
  EXPECT_EQ(b.pins.seen.size(), 1u);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0, 64) + 0x20), 0x00020000u);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0, 64) + 0x24), 0x48u);
  b.eq_doorbell(7, false);
  EXPECT_EQ(b.pins.seen.size(), 1u);
  b.events.send(e);
  b.events.send(e);
  b.run(500);
  EXPECT_EQ(b.pins.seen.size(), 1u);  // not armed
  EXPECT_EQ(*b.memory.at(b.eqe_at(7, 64) + 0x3f), 0u);
  EXPECT_EQ(*b.memory.at(b.eqe_at(0, 64) + 0x3f), 0x80u);
  b.eq_doorbell(7, true);  // there is something beyond the index
  EXPECT_EQ(b.pins.seen.size(), 2u);
  b.eq_doorbell(9, true);
  EXPECT_EQ(b.pins.seen.size(), 2u);
  b.events.send(e);
  b.run(500);
  EXPECT_EQ(b.pins.seen.size(), 3u);
}

TEST(completion, moderation_of_interrupts_by_count_and_by_time) {
  rig b;
  b.eq.period_us = 5;
  b.eq.max_count = 3;
  b.store_eq();
  b.block.cr_write(cr::event_map + 4 * 2, eqn);
  completion::event_request e;
  e.type = 2;
  const auto raise = [&](unsigned count, unsigned then_ns) {
    for (unsigned n = 0; n < count; ++n) b.events.send(e);
    b.run(then_ns);
  };
  raise(2, 2000);
  EXPECT_EQ(b.count(cr::count_eqe), 2u);
  EXPECT_EQ(b.pins.seen.size(), 0u);
  raise(1, 800);
  EXPECT_EQ(b.pins.seen.size(), 1u) << "three entries";
  b.eq_doorbell(3, true);
  raise(1, 4200);
  EXPECT_EQ(b.pins.seen.size(), 1u);
  b.run(1000);
  EXPECT_EQ(b.pins.seen.size(), 2u) << "five microseconds";
  raise(4, 8000);
  EXPECT_EQ(b.pins.seen.size(), 2u) << "not armed";
  b.eq_doorbell(4, true);
  EXPECT_EQ(b.pins.seen.size(), 3u) << "more than three are unread";
}

TEST(completion, firmware_raises_events) {
  rig b;
  b.block.cr_write(cr::event_kind, 0x0a00);
  b.block.cr_write(cr::event_data, 0x00001234);
  b.block.cr_write(cr::event_data + 12, 0x55667788);
  b.block.cr_write(cr::event_push, 1);
  b.run(400);
  EXPECT_EQ(b.count(cr::count_event_unmapped), 1u);
  b.block.cr_write(cr::event_eqn, eqn);
  b.block.cr_write(cr::event_push, 1);
  b.run(800);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0)), 0x000a0000u);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0) + 0x04), 0x1234u);
  EXPECT_EQ(b.memory.get32(b.eqe_at(0) + 0x10), 0x55667788u);
  EXPECT_EQ(b.pins.seen.size(), 1u);
}

TEST(completion, halt_edits_and_release) {
  rig b;
  for (std::uint32_t n = 0; n < 3; ++n) b.complete(n);
  b.run(800);
  b.complete(3);
  b.command(cr::queue_command_halt);
  EXPECT_EQ(b.block.cr_read(cr::cq_status), 1u);
  b.run(800);
  EXPECT_EQ(b.block.cr_read(cr::cq_status), 0u);
  EXPECT_EQ(b.count(cr::count_cqe), 3u);
  b.cq = b.stored_cq();
  EXPECT_EQ(b.cq.producer, 3u);
  b.cq.producer = 6;
  b.store_cq();
  b.command(cr::queue_command_release);
  b.run(800);
  EXPECT_EQ(b.memory.get32(b.cqe_at(6) + 0x14), 0x1003u);
  b.command(cr::queue_command_discard);
  b.complete(4);
  b.run(800);
  EXPECT_EQ(b.block.cr_read(cr::cq_status), 0u);
  EXPECT_EQ(b.count(cr::count_discarded), 1u);
  EXPECT_EQ(b.stored_cq().producer, 6u);
}

TEST(completion, invalid_queues_and_buffers_are_counted) {
  rig b;
  completion::cqe_request r;
  r.cqn = 9;  // all zero context
  b.cqes.send(r);
  r.cqn = 1u << 20 | 9;
  b.cqes.send(r);
  b.run(800);
  EXPECT_EQ(b.count(cr::count_cqe_invalid), 2u);
  b.cq.address = 0x800;  // MTT not present
  b.store_cq();
  b.complete(0);
  b.complete(1);
  b.run(2000);
  EXPECT_EQ(b.count(cr::count_cqe), 0u);
  EXPECT_EQ(b.count(cr::count_cqe_invalid), 3u);
  EXPECT_EQ(b.count(cr::count_cq_overflow), 1u);  // the CQ is in its error state by then
}

completion::cqe_request other(std::uint32_t n) {
  completion::cqe_request r;
  r.cqn = cqn;
  r.qpn = n;
  return r;
}

std::uint64_t digest(bool always) {
  rig b(64, always, 5);
  b.cq.period_us = 2;
  b.cq.max_count = 2;
  b.store_cq();
  for (std::uint32_t n = 0; n < 60; ++n) {
    b.complete(n, n % 4 == 0);
    if (n % 3 == 0) b.other_cqes.send(other(n));
    b.run(1 + n * 7 % 90);
    b.memory.be32(record, n < 20 ? 0 : n - 20);  // behind what has been written
    if (n % 5 == 0) b.arm(n % 2 == 0 ? 2 : 1, static_cast<std::uint8_t>(n / 5 & 3), n);
    if (n % 8 == 0) b.eq_doorbell(n / 8, true);
  }
  b.run(20000);
  std::uint64_t h = 0;
  const auto mix = [&h](std::uint64_t x) { h = (h ^ x) * 1099511628211u; };
  for (const auto& s : b.memory.log) mix(s.at), mix(s.address);
  for (const auto& s : b.pins.seen) mix(s.second);
  for (std::uint32_t o = cr::count_cqe; o <= cr::count_discarded; o += 4) mix(b.count(o));
  mix(b.block.cqs.counters().hits), mix(b.block.eqs.counters().hits);
  if (b.count(cr::count_cqe) < 60 || b.count(cr::count_eqe) < 3) throw std::runtime_error("not much happened");
  return h;
}
TEST(completion, sleeping_is_invisible) {
  EXPECT_EQ(rnic::bench::in_child([] { return digest(false); }), rnic::bench::in_child([] { return digest(true); }));
}

TEST(completion, an_error_is_solicited) {
  rig b;
  b.arm(1, 1, 0);
  completion::cqe_request r;
  r.cqn = cqn;
  r.qpn = 0x48;
  r.opcode = 0x5e;
  r.syndrome = 0x05;
  b.cqes.send(r);
  b.run(800);
  EXPECT_EQ(b.count(cr::count_eqe), 1u);
}

TEST(completion, an_error_names_the_shared_queue) {
  rig b;
  completion::cqe_request r;
  r.cqn = cqn;
  r.qpn = 0x48;
  r.opcode = 0x5e;
  r.syndrome = 0x05;
  r.remote_qpn = 0x123456;
  b.cqes.send(r);
  b.run(800);
  EXPECT_EQ(b.memory.get32(b.cqe_at(0) + 8) | b.memory.get32(b.cqe_at(0) + 12), 0x123456u);
}

TEST(completion, arm_by_another_page) {
  rig b;
  b.complete(0);
  b.run(800);
  completion::queue_doorbell d;
  d.number = cqn;
  d.command = 2;
  d.sequence = 1;
  d.uar = b.cq.uar + 1;
  b.doorbells.send(d);
  b.run(800);
  EXPECT_EQ(b.count(cr::count_eqe), 0u);
  EXPECT_EQ(b.count(cr::count_bad_doorbell), 1u);
}

}  // namespace
