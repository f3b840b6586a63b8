// SPDX-License-Identifier: Apache-2.0
// The requester at the READ engine: when it asks, when it goes on, and what becomes of a grant that nobody needs.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "model/transport/transport_cr.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
namespace cr = transport::cr;

/// READs of one queue pair of which eight may be under way, and whose service does not bind.
bench::setup fast(unsigned read_request_cycles) {
  bench::setup s;
  s.requester.read_wqe_cycles = 1;
  s.requester.read_request_cycles = read_request_cycles;
  s.requester.miss_stall_cycles = 0;
  s.requester.prefetch_bytes = 1024;
  return s;
}

void allow_eight(bench::bench& b) {
  b.context.log_max_rd_atomic = 3;
  b.make_qp(bench::qpn);
}

std::uint64_t grants(const bench::bench& b) { return b.stats.value("read_engine.requester.grants"); }

TEST(read_turn, reads_follow_each_other_at_the_interval_of_the_engine) {
  bench::bench b(fast(19));
  allow_eight(b);
  for (unsigned i = 0; i < 8; ++i) b.post_read(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(8));
  for (unsigned i = 1; i < 8; ++i) EXPECT_EQ(b.w.sent[i].first - b.w.sent[i - 1].first, 19u) << i;
  EXPECT_EQ(grants(b), 8u);
}

TEST(read_turn, a_read_that_is_alone_has_its_grant_two_cycles_after_it_has_asked) {
  bench::bench b(fast(19));
  b.spans.enable(true);
  b.post_read(8);
  scheduler::send_doorbell d;
  d.qpn = bench::qpn;
  d.uar = 0x80;
  d.span = b.spans.open(0);
  const sim::span_id span = d.span;
  b.w.to_ring.push_back(std::move(d));
  b.w.wake_next();
  ASSERT_TRUE(b.run_until_sent(1));
  const sim::span& s = b.spans[span];
  unsigned i = 1;
  while (i < s.count() && std::string(s[i].stage) != "read engine") ++i;
  ASSERT_LT(i, s.count());
  EXPECT_STREQ(s[i - 1].stage, "descriptor");
  EXPECT_EQ(s[i].at - s[i - 1].at, 2u * 2000) << "picoseconds";
}

/// The second READ waits for the engine when its queue pair is stopped. Behind the release both are sent, the first one
/// again: of the three one has what was granted before the halt.
TEST(read_turn, a_halt_between_request_and_grant_loses_nothing) {
  bench::bench b(fast(2000));
  b.post_read(8);
  b.post_read(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(1));
  ASSERT_EQ(grants(b), 1u);
  b.dut.cr_write(cr::qp_select, bench::qpn);
  b.dut.cr_write(cr::qp_command, cr::qp_command_halt);
  b.run_ns(10'000);
  ASSERT_EQ(b.dut.cr_read(cr::qp_status), 0u);
  EXPECT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(grants(b), 2u) << "asked for before the halt";
  b.dut.cr_write(cr::qp_command, cr::qp_command_release);
  b.run_ns(30'000);
  EXPECT_EQ(b.w.sent.size(), 3u);
  EXPECT_EQ(grants(b), 3u);
}

/// Its queue pair is discarded: the grant is the next one's, and there is no second one for that.
TEST(read_turn, a_grant_of_a_queue_pair_that_is_gone_is_used_by_the_next_read) {
  bench::bench b(fast(2000));
  b.post_read(8);
  b.post_read(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(1));
  b.dut.cr_write(cr::qp_select, bench::qpn);
  b.dut.cr_write(cr::qp_command, cr::qp_command_discard);
  b.run_ns(10'000);
  ASSERT_EQ(b.dut.cr_read(cr::qp_status), 0u);
  ASSERT_EQ(grants(b), 2u);
  b.context.next_wqe = 2;
  b.make_qp(bench::qpn);
  b.dut.cr_write(cr::qp_command, cr::qp_command_release);
  b.post_read(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(2));
  b.run_ns(10'000);
  EXPECT_EQ(grants(b), 2u);
  b.post_read(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(3));
  EXPECT_EQ(grants(b), 3u);
}

/// One more than may be under way: the fourth has asked, and gives its unit to others. They find its grant.
TEST(read_turn, a_turn_that_is_given_up_leaves_its_grant) {
  bench::bench b(fast(19));
  for (unsigned i = 0; i < 3; ++i) b.post_read(8);  // two may be under way
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(2));
  b.run_ns(1000);
  EXPECT_EQ(b.w.sent.size(), 2u);
  EXPECT_EQ(grants(b), 3u);
  b.respond(wire::operation::read_response_only, 0xfffffe, 0x1f, std::vector<std::uint8_t>(8));
  ASSERT_TRUE(b.run_until_sent(3));
  EXPECT_EQ(grants(b), 3u);
}

/// What was missing of a context is the engine's time, behind the READ that has missed it.
TEST(read_turn, a_missing_context_stops_the_engine_behind_its_read) {
  bench::setup s = fast(19);
  s.requester.miss_stall_cycles = 300;
  bench::bench b(s);
  allow_eight(b);
  for (unsigned i = 0; i < 3; ++i) b.post_read(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(3));
  EXPECT_EQ(b.w.sent[1].first - b.w.sent[0].first, 19u + 600) << "two entries";
  EXPECT_EQ(b.w.sent[2].first - b.w.sent[1].first, 19u);
}

}  // namespace
