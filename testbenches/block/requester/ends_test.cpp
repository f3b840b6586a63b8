// SPDX-License-Identifier: Apache-2.0
// Messages that cannot end as they began: a WQE that is changed under way, data that cannot be written, a flush.
#include <gtest/gtest.h>

#include <cstring>

#include "model/scheduler/scheduler_cr.h"
#include "model/transport/transport_cr.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;
namespace cr = transport::cr;

bool has_cqe(const bench::bench& b, std::uint32_t qpn) {
  for (const auto& [at, e] : b.w.cqes)
    if (e.qpn == qpn) return true;
  return false;
}

/// A WQE whose first packets were sent is read again, and cannot be executed any more.
TEST(requester_ends, a_wqe_that_was_changed_amid_its_packets_ends_in_error) {
  bench::setup s;
  s.requester.processing_units = 1;
  s.requester.turn_bytes = 1u;
  bench::bench b(s);
  constexpr std::uint32_t other = bench::qpn + 1;
  b.make_qp(other);  // of the same queue: takes the unit, so the WQE is read once more
  b.post_write(5000);
  b.ring_doorbell();
  scheduler::send_doorbell d;
  d.qpn = other;
  d.uar = bench::own_uar;
  b.w.to_ring.push_back(d);
  for (unsigned i = 0; i != 10'000 && b.stats.value("requester.packets") < 2; ++i) b.run_ns(2);
  ASSERT_EQ(b.stats.value("requester.packets"), 2u);
  b.w.memory[bench::ring + 3] = 0x1f;  // no operation of a send queue
  b.run_ns(50'000);
  EXPECT_TRUE(has_cqe(b, bench::qpn));
  EXPECT_TRUE(has_cqe(b, other));
  for (const auto& [at, e] : b.w.cqes) EXPECT_EQ(e.wqe_index, 0u);
}

/// The READ's data may not be written; the SEND behind it was acknowledged meanwhile.
TEST(requester_ends, nothing_succeeds_behind_a_read_that_failed) {
  bench::bench b;
  b.post({0x10, 3, 0xc, 0, 0x7f00, 0x5000, 0xabcd, 0, 80, bench::bad_key, 0, static_cast<std::uint32_t>(bench::data)});
  b.post_send(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(2));
  b.respond(operation::read_response_only, 0xfffffe, 0x1f, std::vector<std::uint8_t>(80));
  b.ack(0xffffff);
  b.run_ns(10'000);
  ASSERT_EQ(b.w.cqes.size(), 2u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x04);
  EXPECT_EQ(b.w.cqes[1].second.syndrome, 0x05);
}

/// What is flushed is software's again.
TEST(requester_ends, no_response_is_written_behind_the_flush_of_its_read) {
  bench::bench b;
  b.post_read(80);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(1));
  b.w.translates = false;
  b.respond(operation::read_response_only, 0xfffffe, 0x1f, std::vector<std::uint8_t>(80, 0x5a));
  b.run_ns(500);
  b.w.to_error.push_back(bench::qpn);
  b.w.wake_next();
  b.run_ns(10'000);
  const bool flushed = !b.w.cqes.empty();
  const std::uint8_t before = b.w.memory[bench::data];
  b.w.translates = true;
  b.w.wake_next();
  b.run_ns(10'000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_TRUE(!flushed || b.w.memory[bench::data] == before);
}

/// A grant that waits for a unit outlives its queue pair: its BlueFlame WQE is not the next one's of the number.
TEST(requester_ends, a_grant_from_before_a_discard_brings_no_wqe_to_the_next_queue_pair_of_the_number) {
  bench::setup s;
  s.requester.processing_units = 1;
  bench::bench b(s);
  constexpr std::uint32_t other = bench::qpn + 1;
  b.make_qp(other);
  b.w.translates = false;  // the only unit waits for the other one's queue
  payload::pool<scheduler::blueflame_wqe> pool;
  scheduler::send_doorbell first, second;
  first.qpn = other;
  second.qpn = bench::qpn;
  first.uar = second.uar = bench::own_uar;
  b.w.to_ring.push_back(first);
  b.w.wake_next();
  b.run_ns(5000);  // its context is there
  second.descriptor = pool.get();
  std::memset(second.descriptor->bytes.data(), 0, 64);
  second.descriptor->bytes[7] = 1;     // a NOP of 16 bytes, index 0,
  second.descriptor->bytes[11] = 0xc;  // signalled
  second.descriptor->length = 64;
  b.w.to_ring.push_back(second);
  second.descriptor.reset();
  b.w.wake_next();
  b.run_ns(100);
  ASSERT_EQ(b.w.cqes.size(), 0u);
  b.dut.cr_write(cr::qp_select, bench::qpn);
  b.dut.cr_write(cr::qp_command, cr::qp_command_discard);
  for (unsigned i = 0; i != 20'000 && b.dut.cr_read(cr::qp_status) != 0; ++i) b.run_ns(2);
  ASSERT_EQ(b.dut.cr_read(cr::qp_status), 0u);
  // RESET to INIT by the same owner; nothing has been posted to the new queue.
  b.sched.cr_write(scheduler::cr::qp_select, bench::qpn);
  b.sched.cr_write(scheduler::cr::owner, scheduler::no_owner);
  b.sched.cr_write(scheduler::cr::owner, bench::own_uar);
  b.make_qp(bench::qpn);
  b.dut.cr_write(cr::qp_select, bench::qpn);
  b.dut.cr_write(cr::qp_command, cr::qp_command_release);
  b.run_ns(100);
  b.w.translates = true;
  b.w.wake_next();
  b.run_ns(50'000);
  EXPECT_EQ(b.w.cqes.size(), 0u);
}

}  // namespace
