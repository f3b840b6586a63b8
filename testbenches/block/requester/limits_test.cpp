// SPDX-License-Identifier: Apache-2.0
// The requester exactly at its limits: window, turns, credits, rates; whose answers count, and what a reset forgets.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/transport/transport_cr.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;

std::uint64_t count(const bench::bench& b, const char* name) { return b.stats.value(std::string("requester.") + name); }

/// A queue pair whose PSNs begin at 0x100, and which asks for acknowledgements at the ends of messages.
void begin_at_256(bench::bench& b) {
  b.context.next_psn = b.context.unacked_psn = 0x100;
  b.context.ack_request_log = 23;
  b.make_qp(bench::qpn);
}

TEST(limits, as_many_unacknowledged_packets_as_the_window_and_the_last_asks) {
  bench::setup s;
  s.requester.max_unacked_packets = 4;
  bench::bench b(s);
  begin_at_256(b);
  b.post_write(8 * 1024);
  b.ring_doorbell();
  b.run_ns(5000);
  ASSERT_EQ(b.w.sent.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(b.sent(i).bth.ack_request, i == 3) << i;
  b.ack(0x100);
  b.run_ns(5000);
  ASSERT_EQ(b.w.sent.size(), 5u);
  EXPECT_TRUE(b.sent(4).bth.ack_request);
}

TEST(limits, a_turn_is_as_many_wqes_as_its_parameter) {
  bench::setup s;
  s.requester.turn_wqes = 2;
  bench::bench b(s);
  for (unsigned i = 0; i < 6; ++i) b.post_write(8);
  b.ring_doorbell();
  b.run_ns(10'000);
  EXPECT_EQ(b.w.sent.size(), 6u);
  EXPECT_EQ(b.stats.value("scheduler.grants"), 3u);
}

/// What has no packet is a part of a turn as well: else a queue pair with nothing else would keep its unit.
TEST(limits, a_turn_counts_wqes_that_send_nothing) {
  bench::setup s;
  s.requester.turn_wqes = 2;
  bench::bench b(s);
  constexpr std::uint32_t nop = 0, units = 1, signalled = 0xc;
  for (unsigned i = 0; i < 6; ++i) b.post({nop, units, signalled, 0});
  b.ring_doorbell();
  b.run_ns(10'000);
  EXPECT_EQ(b.w.cqes.size(), 6u);
  EXPECT_EQ(b.stats.value("scheduler.grants"), 3u);
}

/// SENDs of a queue pair that knows of no receive.
void send_without_credits(bench::bench& b, unsigned many) {
  b.context.flags = 0;
  begin_at_256(b);
  for (unsigned i = 0; i < many; ++i) b.post_send(10);
  b.ring_doorbell();
  b.run_ns(5000);
}

/// Without a credit one SEND finds out. Of an answer that tells of one receive behind it, one message more than that
/// goes; and one that acknowledges several tells of what is behind the last of them.
TEST(limits, sends_go_for_the_receives_that_are_told_and_one_more) {
  constexpr std::uint8_t one_receive = 1;
  bench::bench b;
  send_without_credits(b, 4);
  EXPECT_EQ(b.w.sent.size(), 1u);
  b.respond(operation::acknowledge, 0x100, one_receive);
  b.run_ns(5000);
  EXPECT_EQ(b.w.sent.size(), 3u);
  for (unsigned i = 0; i < 2; ++i) b.post_send(10);
  b.ring_doorbell();
  b.run_ns(5000);
  EXPECT_EQ(b.w.sent.size(), 3u);
  b.respond(operation::acknowledge, 0x102, one_receive);
  b.run_ns(5000);
  EXPECT_EQ(b.w.cqes.size(), 3u);
  EXPECT_EQ(b.w.sent.size(), 5u);
}

/// A cycle in which queue pairs stand still counts for what they wait for; 500 cycles are a microsecond.
TEST(limits, queue_pairs_stand_still_for_receives_until_one_is_told) {
  bench::bench b;
  send_without_credits(b, 2);
  ASSERT_EQ(b.w.sent.size(), 1u);
  const sim::cycle_t sent = b.w.sent[0].first, told = b.core.now();
  const std::uint64_t lasts = count(b, "standstill.receives_cycles");
  EXPECT_GE(lasts, told - sent - 300);
  EXPECT_LE(lasts, told - sent);
  b.respond(operation::acknowledge, 0x100, 1);
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 2u);
  // From when the service time of the first message was over and the descriptor of the second one had come, to the next
  // turn: the answer's way in and the scheduler belong to it.
  const std::uint64_t stood = count(b, "standstill.receives_cycles");
  EXPECT_GE(stood, lasts);
  EXPECT_LE(stood, b.w.sent[1].first - b.w.sent[0].first + 200);
  b.ack(0x101);
  b.run_ns(4000);
  EXPECT_EQ(count(b, "standstill.receives_cycles"), stood);
  EXPECT_EQ(count(b, "standstill.reads_cycles") + count(b, "standstill.egress_cycles"), 0u);
}

TEST(limits, a_receiver_that_is_not_ready_and_a_timer_in_vain_are_told_apart) {
  bench::setup s;
  s.ack_timeout = 1;  // 8.192 us: 4096 cycles
  s.requester.timers.granularity_ps = 1;
  bench::bench b(s);
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  b.respond(operation::acknowledge, 0xfffffe, 0x20 | 1);  // 10 us: 5000 cycles
  b.run_ns(11'500);
  ASSERT_EQ(b.w.sent.size(), 2u);
  const std::uint64_t waited = count(b, "standstill.receiver_cycles");
  EXPECT_GE(waited, 5000u);
  EXPECT_LE(waited, 5020u);
  EXPECT_EQ(count(b, "standstill.timeout_cycles"), 0u);
  b.run_ns(9000);  // nobody answers
  ASSERT_EQ(count(b, "timeouts"), 1u);
  EXPECT_GE(count(b, "standstill.timeout_cycles"), 4096u);
  EXPECT_LE(count(b, "standstill.timeout_cycles"), 4120u);
  EXPECT_EQ(count(b, "standstill.receiver_cycles"), waited);
}

/// What was missing of contexts is a part of the send engine's time, and counted as that.
TEST(limits, the_send_engine_stands_still_for_a_context_that_is_fetched) {
  bench::setup s;
  s.requester.miss_stall_cycles = 70;
  bench::bench b(s);
  b.post_write(10);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(count(b, "context_stall_cycles"), 140u) << "both entries of an acknowledged queue pair";
  b.ack(0xfffffe);
  b.post_write(10);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 2u);
  EXPECT_EQ(count(b, "context_stall_cycles"), 140u);
}

/// IBA 9.6.1: an answer comes by the port of the connection and in its partition, of which it may be a limited member.
TEST(limits, answers_of_another_port_or_partition_are_not_the_peers) {
  bench::bench b;
  b.post_write(10);
  b.ring_doorbell();
  b.run_ns(3000);
  b.ack(0xfffffe);
  b.w.to_rx.back()->port = 1;
  b.ack(0xfffffe);
  b.w.to_rx.back()->packet.bth.pkey = 0x8001;
  b.run_ns(1000);
  EXPECT_TRUE(b.w.cqes.empty());
  EXPECT_EQ(count(b, "foreign_responses"), 2u);
  b.ack(0xfffffe);
  b.w.to_rx.back()->packet.bth.pkey = 0x7fff;
  b.run_ns(1000);
  EXPECT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(count(b, "foreign_responses"), 2u);
}

/// The first packet of an answer is lost. One that was on its way behind it restarts the timer, and only once.
TEST(limits, an_old_answer_holds_up_the_timer_once) {
  bench::setup s;
  s.ack_timeout = 1;  // 8.192 us
  bench::bench b(s);
  b.post_read(3 * 1024);
  b.ring_doorbell();
  b.run_ns(3000);
  b.respond(operation::read_response_middle, 0xffffff, 0x1f, std::vector<std::uint8_t>(1024));
  b.run_ns(2000);
  ASSERT_EQ(b.w.sent.size(), 2u) << "asked for again";
  const auto again = [&](unsigned then_ns) {
    b.respond(operation::read_response_last, 0, 0x1f, std::vector<std::uint8_t>(1024));
    b.run_ns(then_ns);
  };
  again(7000);
  EXPECT_EQ(count(b, "timeouts"), 0u);
  for (unsigned i = 0; i < 3; ++i) again(2000);
  EXPECT_EQ(count(b, "timeouts"), 1u);
}

/// Going back twice: what was sent before the first time was sent, though less was sent between the two.
TEST(limits, an_acknowledgement_of_what_was_sent_before_the_first_of_two_losses_counts) {
  bench::bench b;
  begin_at_256(b);
  b.post_write(12 * 1024);
  b.ring_doorbell();
  b.run_ns(6000);
  ASSERT_EQ(b.w.sent.size(), 12u);
  b.respond(operation::acknowledge, 0x102, 0x60);
  ASSERT_TRUE(b.run_until_sent(12 + 2));
  b.respond(operation::acknowledge, 0x103, 0x60);
  ASSERT_TRUE(b.run_until_sent(12 + 5));
  EXPECT_EQ(count(b, "retransmissions"), 2u);
  b.ack(0x10b);
  b.run_ns(200);
  EXPECT_EQ(count(b, "ghost_responses"), 0u);
}

/// A descriptor that software never finishes is read as often as its parameter says, then it is an error.
TEST(limits, a_stamped_descriptor_is_read_so_many_times) {
  bench::setup s;
  s.requester.stamp_retries = 3;
  bench::bench b(s);
  std::vector<std::uint32_t> words = {0x0a, 6, 0xc, 0};
  for (unsigned i = 0; i < 5; ++i) words.insert(words.end(), {4, bench::good_key, 0, bench::data});
  words[16] = 0xffffffff;  // its second line is not written
  b.post(words);
  b.ring_doorbell();
  b.run_ns(10'000);
  EXPECT_EQ(b.stats.value("descriptor_fetch.fetches"), 3u);
  EXPECT_TRUE(b.w.sent.empty());
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x02);
}

/// Frames that the rules of their queue pair do not let out take no room in the egress queue.
TEST(limits, a_frame_that_is_blocked_gives_its_egress_room_back) {
  bench::setup s;
  s.type = icm::service::ethernet;
  s.requester.egress_frames = 2;
  bench::bench b(s);
  b.context.dest.remote_gid[0] = icm::ethernet_rule_own_source;
  b.make_qp(bench::qpn);
  const std::uint8_t own[6] = {2, 2, 3, 4, 5, 6};
  std::copy_n(own, 6, b.w.memory.begin() + bench::data + 0x106);
  for (unsigned i = 0; i < 4; ++i) b.post_send(64);
  b.post_send(64, bench::data + 0x100);
  b.ring_doorbell();
  b.run_ns(10'000);
  EXPECT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(b.w.cqes.size(), 5u);
  EXPECT_EQ(count(b, "ethernet_blocked"), 4u);
}

/// How long a unit keeps a queue pair for its rate, and the grants that its message takes. Of 1122 bytes on the line at
/// 2 Gb/s the packet behind comes 2244 cycles later; it asks when the engine is free, 19 + 64 after the first.
class hold : public ::testing::TestWithParam<std::pair<unsigned, unsigned>> {};

TEST_P(hold, is_for_a_wait_of_no_more_than_its_parameter) {
  bench::setup s;
  s.requester.miss_stall_cycles = 0;
  s.requester.congestion.hold_cycles = GetParam().first;
  bench::bench b(s);
  b.context.rate_limit = 3 << 14 | 2;  // 2 Gb/s
  b.make_qp(bench::qpn);
  b.run_ns(3000);  // idle for longer than what would be made up for
  b.post_write(2 * 1024);
  b.ring_doorbell();
  b.run_ns(40'000);
  ASSERT_EQ(b.w.sent.size(), 2u);
  EXPECT_EQ(b.w.sent[1].first - b.w.sent[0].first, 2244u);
  EXPECT_EQ(b.stats.value("scheduler.grants"), GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(limits, hold, ::testing::Values(std::pair{2160u, 2u}, std::pair{2161u, 1u}));

/// Executes operations on keys, one a cycle.
struct key_engine : sim::clocked_block {
  key_engine(sim::clock_domain& d, icm::key_port& of) : clocked_block("keys", d) {
    of.request.bind(requests);
    request.bind(requests);
    response.bind(answers);
    of.response.bind(answers);
  }
  unsigned done = 0;

 private:
  void tick() override {
    if (!request.can_pop() || !response.claim()) return;
    response.push({request.pop().tag, icm::key_status::ok});
    ++done;
  }
  sim::fifo<icm::key_operation> requests{"key_requests", domain(), 2};
  sim::fifo<icm::key_answer> answers{"key_answers", domain(), 2};
  sim::fifo_in<icm::key_operation> request{*this};
  sim::fifo_out<icm::key_answer> response{*this};
};

/// A fast registration behind a READ: with a fence it waits for the answer, without one for the READ's packet only.
class fence : public ::testing::TestWithParam<bool> {};

TEST_P(fence, of_an_operation_on_keys_waits_for_reads) {
  bench::bench b;
  key_engine keys(b.core, b.dut.keys);
  b.context.flags |= icm::requester_flag_fast_reg;
  b.make_qp(bench::qpn);
  b.post_read(8);
  b.post({0x19, GetParam() ? 0x44u : 4u, 0xc, 0, 0, 0x500, 0, 0x6000, 0, 0, 0, 4096, 0, 12, 0, 0});
  b.ring_doorbell();
  b.run_ns(5000);
  EXPECT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(keys.done, GetParam() ? 0u : 1u);
  EXPECT_TRUE(b.w.cqes.empty());
  b.respond(operation::read_response_only, 0xfffffe, 0x1f, std::vector<std::uint8_t>(8));
  b.run_ns(5000);
  EXPECT_EQ(keys.done, 1u);
  EXPECT_EQ(b.w.cqes.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(limits, fence, ::testing::Bool());

/// A reset gives a queue pair that rests its whole rate back.
TEST(limits, rates_do_not_outlive_a_reset) {
  bench::bench b;
  b.context.rate_limit = 1 << 14 | 1000;  // 1 Mb/s: the next packet in 9 ms
  b.make_qp(bench::qpn);
  b.post_write(1024);
  b.ring_doorbell();
  b.run_ns(3000);
  b.ack(0xfffffe);
  b.run_ns(1000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  b.dut.cr_write(transport::cr::reset, 1);
  b.run_ns(100);
  ASSERT_EQ(b.dut.cr_read(transport::cr::reset), 0u);
  b.context.rate_limit = 0;
  b.context.next_wqe = b.posted;
  b.make_qp(bench::qpn);
  b.dut.cr_write(transport::cr::qp_select, bench::qpn);
  b.dut.cr_write(transport::cr::qp_command, transport::cr::qp_command_release);
  b.post_write(1024);
  b.ring_doorbell();
  b.run_ns(5000);
  EXPECT_EQ(b.w.sent.size(), 2u);
}

}  // namespace
