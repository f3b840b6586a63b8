// SPDX-License-Identifier: Apache-2.0
// The requester at the READ engine, for READs and for their responses: when it asks, when it goes on, and what becomes
// of a grant that nobody needs.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

/// Cycles between the first packets of so many READs, posted with one doorbell.
std::vector<sim::cycle_t> intervals(bench::bench& b, unsigned reads) {
  allow_eight(b);
  for (unsigned i = 0; i < reads; ++i) b.post_read(8);
  b.ring_doorbell();
  EXPECT_TRUE(b.run_until_sent(reads));
  std::vector<sim::cycle_t> all;
  for (std::size_t i = 1; i < b.w.sent.size(); ++i) all.push_back(b.w.sent[i].first - b.w.sent[i - 1].first);
  return all;
}

TEST(read_turn, reads_follow_each_other_at_the_interval_of_the_engine) {
  bench::bench b(fast(19));
  EXPECT_EQ(intervals(b, 8), std::vector<sim::cycle_t>(7, 19));
  EXPECT_EQ(grants(b), 8u);
}

/// What a unit does for a READ begins where that asks for its turn, and not where it has it: two cycles before the
/// first one starts. The others have asked during the service of the one before.
TEST(read_turn, service_goes_on_while_a_read_waits_for_its_turn) {
  bench::setup s = fast(19);
  s.requester.read_wqe_cycles = 90;
  bench::bench b(s);
  EXPECT_EQ(intervals(b, 8), (std::vector<sim::cycle_t>{88, 90, 90, 90, 90, 90, 90}));
}

TEST(read_turn, a_read_that_is_alone_has_its_grant_two_cycles_after_it_has_asked) {
  bench::bench b(fast(19));
  b.spans.enable(true);
  b.post_read(8);
  scheduler::send_doorbell d;
  d.qpn = bench::qpn;
  d.uar = bench::own_uar;
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

/// What was missing of a context (two entries) is the engine's time, behind the READ that has missed it.
TEST(read_turn, a_missing_context_stops_the_engine_behind_its_read) {
  bench::setup s = fast(19);
  s.requester.miss_stall_cycles = 300;
  bench::bench b(s);
  EXPECT_EQ(intervals(b, 3), (std::vector<sim::cycle_t>{19 + 600, 19}));
}

/// A packet of a READ response with a span of its own.
sim::span_id answer(bench::bench& b, wire::operation op, std::uint32_t psn, std::size_t bytes) {
  b.respond(op, psn & 0xffffff, 0x1f, std::vector<std::uint8_t>(bytes));
  return b.w.to_rx.back()->span = b.spans.open(0);
}

/// When the stage was left, in cycles; never: it was not there.
sim::cycle_t left(const bench::bench& b, sim::span_id id, const char* stage) {
  const sim::span& s = b.spans[id];
  for (unsigned i = 0; i < s.count(); ++i)
    if (std::string(s[i].stage) == stage) return s[i].at / 2000;
  return sim::never;
}

/// READs are sent, and the engine has nothing to do any more.
struct answered : bench::bench {
  answered(const ::bench::setup& s, unsigned reads, std::uint32_t bytes) : bench(s) {
    spans.enable(true);
    allow_eight(*this);
    for (unsigned i = 0; i < reads; ++i) post_read(bytes);
    ring_doorbell();
    EXPECT_TRUE(run_until_sent(reads));
    run_ns(1000);
  }
  std::uint64_t granted() const { return stats.value("read_engine.responses.grants"); }
};

/// 5 + 8 for a piece + 4 times 32 bytes are one more than was booked.
TEST(response_turn, one_that_takes_longer_than_was_booked_has_its_grant_two_cycles_later) {
  answered b(fast(19), 1, 97);
  const sim::span_id span = answer(b, wire::operation::read_response_only, 0xfffffe, 97);
  b.run_ns(2000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(left(b, span, "read engine") - left(b, span, "complete"), 2u);
  EXPECT_EQ(b.granted(), 1u);
}

TEST(response_turn, one_that_takes_what_was_booked_asks_for_nothing) {
  answered b(fast(19), 1, 96);
  const sim::span_id span = answer(b, wire::operation::read_response_only, 0xfffffe, 96);
  b.run_ns(2000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_NE(left(b, span, "complete"), sim::never);
  EXPECT_EQ(left(b, span, "read engine"), sim::never);
  EXPECT_EQ(b.granted(), 0u);
}

/// 5 for itself, 8 for each piece of 256 bytes, 1 for each 32 bytes, of which 16 were booked with each request.
class response_interval : public testing::TestWithParam<std::pair<std::uint32_t, sim::cycle_t>> {};
TEST_P(response_interval, is_that_of_the_engine) {
  const auto [bytes, interval] = GetParam();
  answered b(fast(19), 8, bytes);
  std::vector<sim::span_id> spans;
  for (unsigned i = 0; i < 8; ++i) spans.push_back(answer(b, wire::operation::read_response_only, 0xfffffe + i, bytes));
  b.run_ns(5000);
  ASSERT_EQ(b.w.cqes.size(), 8u);
  for (unsigned i = 1; i < 8; ++i)
    EXPECT_EQ(left(b, spans[i], "read engine") - left(b, spans[i - 1], "read engine"), interval) << i;
}
INSTANTIATE_TEST_SUITE_P(bytes, response_interval,
                         testing::Values(std::pair{256u, sim::cycle_t{5}}, std::pair{257u, sim::cycle_t{14}},
                                         std::pair{512u, sim::cycle_t{21}}, std::pair{513u, sim::cycle_t{30}},
                                         std::pair{1024u, sim::cycle_t{53}}));

/// Of one READ: the first takes 53, the others all of their 69.
TEST(response_turn, packets_follow_each_other_at_the_interval_of_the_engine) {
  answered b(fast(19), 1, 4 * 1024);
  using o = wire::operation;
  std::vector<sim::span_id> spans;
  for (const o op : {o::read_response_first, o::read_response_middle, o::read_response_middle, o::read_response_last})
    spans.push_back(answer(b, op, 0xfffffe + static_cast<std::uint32_t>(spans.size()), 1024));
  b.run_ns(5000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  const auto at = [&](unsigned i) { return left(b, spans[i], "read engine"); };
  EXPECT_EQ(at(1) - at(0), 53u);
  EXPECT_EQ(at(2) - at(1), 69u);
  EXPECT_EQ(at(3) - at(2), 69u);
}

/// Its READ has missed both entries of its context. The engine is taken a cycle before the READ sees its grant, for 19
/// and 600 cycles; the response sees its own a cycle after that.
TEST(response_turn, one_waits_as_long_as_the_engine_stands_still) {
  bench::setup s = fast(19);
  s.requester.miss_stall_cycles = 300;
  bench::bench b(s);
  b.spans.enable(true);
  scheduler::send_doorbell d;
  d.qpn = bench::qpn;
  d.uar = bench::own_uar;
  d.span = b.spans.open(0);
  const sim::span_id read = d.span;
  b.post_read(1024);
  b.w.to_ring.push_back(std::move(d));
  b.w.wake_next();
  ASSERT_TRUE(b.run_until_sent(1));
  const sim::span_id span = answer(b, wire::operation::read_response_only, 0xfffffe, 1024);
  b.run_ns(5000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(left(b, span, "read engine") - left(b, read, "read engine"), 19u + 600);
}

/// The second READ of 8 bytes waits for the engine, which stands still; the response to the first does not.
TEST(response_turn, one_that_asks_for_nothing_waits_for_nothing) {
  bench::setup s = fast(19);
  s.requester.miss_stall_cycles = 2000;
  bench::bench b(s);
  b.post_read(8);
  b.post_read(8);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(1));
  b.respond(wire::operation::read_response_only, 0xfffffe, 0x1f, std::vector<std::uint8_t>(8));
  b.run_ns(1000);
  EXPECT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.sent.size(), 1u);
}

/// The engine stands still when a response asks; its queue pair is halted, which drops it. The answer to the repeated
/// READ uses its grant.
TEST(response_turn, a_grant_of_a_response_that_was_dropped_is_the_next_ones) {
  bench::setup s = fast(19);
  s.requester.miss_stall_cycles = 2000;
  bench::bench b(s);
  b.post_read(1024);
  b.ring_doorbell();
  ASSERT_TRUE(b.run_until_sent(1));
  b.respond(wire::operation::read_response_only, 0xfffffe, 0x1f, std::vector<std::uint8_t>(1024));
  b.run_ns(100);
  b.dut.cr_write(cr::qp_select, bench::qpn);
  b.dut.cr_write(cr::qp_command, cr::qp_command_halt);
  b.run_ns(20'000);
  ASSERT_EQ(b.dut.cr_read(cr::qp_status), 0u);
  EXPECT_EQ(b.stats.value("requester.dropped_halted"), 1u);
  EXPECT_EQ(b.stats.value("read_engine.responses.grants"), 1u);
  b.dut.cr_write(cr::qp_command, cr::qp_command_release);
  ASSERT_TRUE(b.run_until_sent(2));
  b.respond(wire::operation::read_response_only, 0xfffffe, 0x1f, std::vector<std::uint8_t>(1024));
  b.run_ns(20'000);
  EXPECT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.stats.value("read_engine.responses.grants"), 1u);
}

}  // namespace
