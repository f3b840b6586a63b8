// SPDX-License-Identifier: Apache-2.0
// The requester and the block of its timers: what it tells of them, expirations that cross that, queue pairs that go.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/transport/transport_cr.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using ::bench::first_psn;
using wire::operation;
namespace cr = transport::cr;

constexpr std::uint64_t cycle_ns = 2, timeout_ns = 16'384;

/// Every edge can be the end of a timer, which runs for 16.384 us.
bench::setup exact() {
  bench::setup s;
  s.ack_timeout = 2;
  s.requester.timers.granularity_ps = 1;
  return s;
}

/// SENDs that leave at once and are not answered.
void send(bench::bench& b, unsigned messages = 1) {
  for (unsigned n = 0; n != messages; ++n) b.post_send(10);
  b.ring_doorbell();
}

TEST(requester_timers, a_restart_sends_no_command) {
  bench::bench b(exact());
  send(b, 3);
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 3u);
  EXPECT_EQ(b.timer_commands.pushes(), 1u) << "of the first packet";
  EXPECT_EQ(b.ack_timers.running(), 1u);
  for (const std::uint32_t psn : {0xfffffeu, 0xffffffu}) {
    b.ack(psn);
    b.run_ns(1000);
  }
  EXPECT_EQ(b.timer_commands.pushes(), 1u);
  b.ack(0);
  b.run_ns(1000);
  EXPECT_EQ(b.timer_commands.pushes(), 2u) << "nothing is under way";
  EXPECT_EQ(b.ack_timers.running(), 0u);
}

/// A port that takes nothing until it is opened.
struct slow_port final : ::bench::neighbour_if {
  void step() override {}
  bool rests(unsigned port) override { return !open && port == ::bench::world::of_tx; }
  void asked(unsigned, std::uint64_t, std::uint32_t) override {}
  void sent(const payload::frame&) override {}
  bool open = false;
};

/// Two packets, of which the second asks for an acknowledgement and waits for two time-outs behind the first.
TEST(requester_timers, run_from_the_packet_that_asks) {
  bench::setup s = exact();
  s.requester.egress_frames = 1;
  bench::bench b(s);
  slow_port port;
  b.w.neighbour = &port;
  b.w.wake_next();
  b.post_write(1500);
  b.ring_doorbell();
  b.run_ns(3 * timeout_ns);
  EXPECT_EQ(b.stats.value("requester.packets"), 1u);
  EXPECT_EQ(b.stats.value("requester.retransmissions"), 0u);
  EXPECT_EQ(b.ack_timers.running(), 0u);
  port.open = true;
  ASSERT_TRUE(b.run_until_sent(2));
  EXPECT_EQ(b.ack_timers.running(), 1u);
  b.run_ns(timeout_ns - 500);
  EXPECT_EQ(b.w.sent.size(), 2u);
  b.run_ns(1500);
  ASSERT_GE(b.w.sent.size(), 3u);
  EXPECT_EQ(b.sent(2).bth.psn.value(), first_psn);
}

/// The block's timer runs from the first packet on, the queue pair's from the acknowledgement at 8 us.
TEST(requester_timers, the_rest_of_a_later_deadline_is_a_start_at_the_end_of_the_earlier_one) {
  bench::bench b(exact());
  send(b, 2);
  b.run_ns(8000);
  b.ack(first_psn);
  b.run_ns(timeout_ns - 200);
  EXPECT_EQ(b.stats.value("requester.timers_extended"), 1u);
  EXPECT_EQ(b.timer_commands.pushes(), 2u);
  EXPECT_EQ(b.stats.value("requester.timeouts"), 0u);
  b.run_ns(400);
  EXPECT_EQ(b.stats.value("requester.timeouts"), 1u);
  EXPECT_EQ(b.stats.value("requester.timers_crossed"), 0u);
}

/// How often the acknowledgement of a message, `cycles` later for each bench, came in time, crossed the expiration,
/// came too late; nothing runs in the first two, and how much does in the last.
struct outcome {
  unsigned in_time = 0, crossed = 0, late = 0, entries = 0;
};
template <class What>
outcome around_the_end(unsigned cycles, What what) {
  std::vector<std::unique_ptr<bench::bench>> all;  // in one kernel
  for (unsigned n = 0; n != cycles; ++n) {
    all.push_back(std::make_unique<bench::bench>(exact()));
    send(*all.back());
  }
  bench::bench& first = *all.front();
  while (first.ack_timers.running() == 0) first.run_ns(cycle_ns);
  first.run_ns(timeout_ns - cycles / 2 * cycle_ns);
  for (auto& b : all) {
    what(*b);
    first.run_ns(cycle_ns);
  }
  first.run_ns(5000);
  outcome o;
  for (auto& b : all) {
    const bool crossed = b->stats.value(b->dut.name() + ".timers_crossed") != 0;
    const bool late = b->stats.value(b->dut.name() + ".timeouts") != 0;
    EXPECT_FALSE(crossed && late);
    EXPECT_TRUE(late || b->w.sent.size() == 1);
    EXPECT_TRUE(late || b->ack_timers.running() == 0);
    o.entries += b->ack_timers.running();
    (crossed ? o.crossed : late ? o.late : o.in_time) += 1;
  }
  return o;
}

/// The expiration is pushed at one edge, n, and seen at n + 1. A stop that is sent at n - 1, at n, or would be at n + 1
/// crosses it.
TEST(requester_timers, an_expiration_that_crosses_the_stop_is_nobodys) {
  const outcome o = around_the_end(16, [](bench::bench& b) { b.ack(first_psn); });
  EXPECT_EQ(o.crossed, 3u);
  EXPECT_GT(o.in_time, 2u);
  EXPECT_GT(o.late, 2u);
}

void command(bench::bench& b, std::uint32_t what) {
  b.dut.cr_write(cr::qp_select, bench::qpn);
  b.dut.cr_write(cr::qp_command, what);
}

/// Whatever the cycle.
TEST(requester_timers, a_queue_pair_that_is_discarded_leaves_no_entry) {
  const outcome o = around_the_end(16, [](bench::bench& b) { command(b, cr::qp_command_discard); });
  EXPECT_EQ(o.entries, 0u);
  EXPECT_GT(o.in_time, 2u);
  EXPECT_GT(o.late, 2u);
}

/// When firmware is told that it is gone, nothing of it runs: the number may be another's.
void expect_no_entry_behind(std::uint32_t what) {
  bench::bench b(exact());
  send(b);
  b.run_ns(3000);
  ASSERT_EQ(b.ack_timers.running(), 1u);
  command(b, what);
  while (b.dut.cr_read(cr::qp_status) != 0) b.run_ns(cycle_ns);
  EXPECT_EQ(b.ack_timers.running(), 0u);
}
TEST(requester_timers, a_queue_pair_that_was_halted_has_no_entry) { expect_no_entry_behind(cr::qp_command_halt); }
TEST(requester_timers, a_queue_pair_that_was_discarded_has_no_entry) { expect_no_entry_behind(cr::qp_command_discard); }

/// The next queue pair of that number has its own time from its first packet on.
TEST(requester_timers, the_next_queue_pair_of_a_number_has_its_own_time) {
  bench::bench b(exact());
  send(b);
  b.run_ns(3000);
  command(b, cr::qp_command_discard);
  while (b.dut.cr_read(cr::qp_status) != 0) b.run_ns(cycle_ns);
  b.context.next_wqe = b.posted;
  b.make_qp(bench::qpn);
  command(b, cr::qp_command_release);
  b.run_ns(5000);
  const std::size_t before = b.w.sent.size();
  send(b);
  while (b.ack_timers.running() == 0) b.run_ns(cycle_ns);
  b.run_ns(timeout_ns - 10 * cycle_ns);
  EXPECT_EQ(b.w.sent.size(), before + 1);
  EXPECT_EQ(b.stats.value("requester.timeouts"), 0u);
  b.run_ns(20 * cycle_ns);
  EXPECT_EQ(b.stats.value("requester.timeouts"), 1u);
  EXPECT_EQ(b.stats.value("requester.timers_crossed") + b.stats.value("requester.timers_extended"), 0u);
}

/// One command a cycle, for as many queue pairs as have a timer.
TEST(requester_timers, a_reset_ends_with_no_timer) {
  constexpr std::uint32_t many = 48;
  bench::setup s = exact();
  s.ack_timeout = 6;  // 262 us
  bench::bench b(s);
  b.post_send(10);
  for (std::uint32_t q = 0; q != many; ++q) {
    b.make_qp(0x100 + q);
    scheduler::send_doorbell d;
    d.qpn = 0x100 + q;
    d.uar = bench::own_uar;
    b.w.to_ring.push_back(d);
  }
  b.w.wake_next();
  while (b.w.sent.size() < many) b.run_ns(100);
  ASSERT_EQ(b.ack_timers.running(), many);
  b.dut.device_reset();
  b.run_ns(10 * cycle_ns);
  EXPECT_GT(b.ack_timers.running(), many - 10) << "not at once";
  while (b.dut.cr_read(cr::reset) != 0) b.run_ns(cycle_ns);
  EXPECT_EQ(b.ack_timers.running(), 0u);
  EXPECT_EQ(b.timer_commands.pushes(), 2 * many);
  b.run_ns(20 * timeout_ns);
  EXPECT_EQ(b.stats.value("ack_timers.expired"), 0u);
}

}  // namespace
