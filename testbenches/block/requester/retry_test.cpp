// SPDX-License-Identifier: Apache-2.0
// What the requester does with what comes back, or does not come back.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "model/transport/transport_cr.h"
#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;

std::uint8_t rc(operation o) { return wire::make_opcode(wire::transport::rc, o); }

std::vector<std::uint8_t> pattern(std::size_t n, int seed) {
  std::vector<std::uint8_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::uint8_t>(i * 13 + static_cast<std::size_t>(seed));
  return v;
}

TEST(responses, one_acknowledgement_completes_all_before_it_signalled_or_not) {
  bench::bench b;
  b.post_write(10, false);
  b.post_write(10, true);
  b.post_write(10, false);
  b.post_write(10, true);
  b.ring_doorbell();
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 4u);
  b.ack(0);
  b.run_ns(500);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.wqe_index, 1);
  b.ack(1);
  b.run_ns(500);
  ASSERT_EQ(b.w.cqes.size(), 2u);
  EXPECT_EQ(b.w.cqes[1].second.wqe_index, 3);
}

/// The message table gives one a cycle: each that software is not told of costs one in front of the completion.
TEST(responses, messages_that_nobody_is_told_of_cost_a_cycle_each) {
  bench::bench b;
  sim::cycle_t alone = 0;
  std::uint32_t psn = b.context.next_psn;
  for (const std::uint32_t silent : {0u, 1u, 2u, 7u}) {
    for (std::uint32_t i = 0; i < silent; ++i) b.post_write(10, false);
    b.post_write(10, true);
    b.ring_doorbell();
    b.run_ns(6000);
    b.w.cqes.clear();
    psn = (psn + silent) & 0xffffff;
    const sim::cycle_t asked = b.core.now();
    b.ack(psn);
    b.run_ns(500);
    ASSERT_EQ(b.w.cqes.size(), 1u) << silent;
    if (silent == 0) alone = b.w.cqes[0].first - asked;
    EXPECT_EQ(b.w.cqes[0].first - asked, alone + silent);
    psn = (psn + 1) & 0xffffff;
  }
}

TEST(responses, acknowledgement_of_what_was_never_sent_is_ignored) {
  bench::bench b;
  b.post_write(10);
  b.ring_doorbell();
  b.run_ns(3000);
  b.ack(5);
  b.ack(0xfffff0);
  b.run_ns(500);
  EXPECT_TRUE(b.w.cqes.empty());
  EXPECT_EQ(b.stats.value("requester.ghost_responses"), 1u);
  EXPECT_EQ(b.stats.value("requester.duplicate_responses"), 1u);
}

TEST(responses, sequence_nak_resends_from_the_middle_of_the_message) {
  bench::bench b;
  b.post_write(4096);
  b.post_write(100);
  b.ring_doorbell();
  b.run_ns(5000);
  ASSERT_EQ(b.w.sent.size(), 5u);
  b.respond(operation::acknowledge, 0, 0x60);  // third packet is missing
  b.respond(operation::acknowledge, 0, 0x60);
  b.run_ns(5000);
  ASSERT_EQ(b.w.sent.size(), 8u);
  EXPECT_EQ(b.sent(5).bth.opcode, rc(operation::write_middle));
  EXPECT_EQ(b.sent(5).bth.psn.value(), 0u);
  EXPECT_EQ(b.payload(5), b.payload(2));
  EXPECT_EQ(b.sent(6).bth.opcode, rc(operation::write_last));
  EXPECT_EQ(b.sent(7).bth.opcode, rc(operation::write_only));
  EXPECT_EQ(b.sent(7).bth.psn.value(), 2u);
  b.ack(2);
  b.run_ns(1000);
  EXPECT_EQ(b.w.cqes.size(), 2u);
  EXPECT_EQ(b.dut.cr_read(transport::cr::diagnostics + 0x104), 1u);  // the second one is late
}

/// A repetition waits for its addresses when the acknowledgement of what was sent before comes: software has the
/// buffers back, so nothing of them is read or sent any more. What is not acknowledged is.
TEST(responses, repetition_that_has_not_left_ends_with_its_message) {
  bench::bench b;
  b.post_write(4096);
  b.post_write(100);
  b.ring_doorbell();
  b.run_ns(5000);
  ASSERT_EQ(b.w.sent.size(), 5u);
  b.w.translates = false;
  b.respond(operation::acknowledge, 0, 0x60);  // third packet is missing
  b.run_ns(3000);
  const std::uint64_t read = b.w.gather.read_bytes;
  b.ack(1);
  b.run_ns(1000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  b.w.translates = true;
  b.w.wake_next();
  b.run_ns(5000);
  ASSERT_EQ(b.w.sent.size(), 6u);
  EXPECT_EQ(b.w.gather.read_bytes - read, 100u);
  EXPECT_EQ(b.sent(5).bth.psn.value(), 2u);
  EXPECT_EQ(b.payload(5), b.payload(4));
  b.ack(2);
  b.run_ns(1000);
  EXPECT_EQ(b.w.cqes.size(), 2u);
  b.post_write(10);  // what comes behind them leaves
  b.ring_doorbell();
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), 7u);
}

TEST(responses, timeouts_end_in_0x15_and_the_rest_is_flushed_in_order) {
  bench::setup s;
  s.ack_timeout = 1;  // 8.192 us
  s.retry_limit = 2;
  bench::bench b(s);
  b.post_write(10, false);
  b.post_write(10, false);
  b.ring_doorbell();
  b.run_ns(7000);
  EXPECT_EQ(b.w.sent.size(), 2u);
  b.run_ns(4000);
  EXPECT_EQ(b.w.sent.size(), 4u);  // first retry
  b.run_ns(20000);
  EXPECT_EQ(b.w.sent.size(), 6u);  // second and last
  b.post_write(10, false);         // into the error state: flushed by its doorbell
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.cqes.size(), 3u);
  EXPECT_EQ(b.w.cqes[0].second.opcode & 0x5f, 0x5e);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x15);
  EXPECT_EQ(b.w.cqes[0].second.vendor_error, 0x81);
  for (std::uint16_t i = 0; i < 3; ++i) EXPECT_EQ(b.w.cqes[i].second.wqe_index, i);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_EQ(b.w.cqes[i].second.syndrome, 0x05);
  EXPECT_EQ(b.w.errors, std::vector<std::uint32_t>{bench::qpn});
  EXPECT_EQ(b.dut.cr_read(transport::cr::diagnostics + 0x134), 3u);
}

TEST(responses, retry_count_of_7_can_stand_for_more) {
  bench::setup s;
  s.ack_timeout = 1;  // 8.192 us
  s.requester.extra_retries = 3;
  bench::bench b(s);
  b.post_write(10);
  b.ring_doorbell();
  b.run_ns(150'000);
  EXPECT_EQ(b.w.sent.size(), 1u + 7 + 3);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x15);
}

TEST(responses, retry_count_of_7_is_7_retries_by_default) {
  bench::setup s;
  s.ack_timeout = 1;
  bench::bench b(s);
  b.post_write(10);
  b.ring_doorbell();
  b.run_ns(150'000);
  EXPECT_EQ(b.w.sent.size(), 1u + 7);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x15);
}

TEST(responses, receiver_not_ready_waits_its_timer) {
  bench::setup s;
  s.rnr_limit = 1;
  bench::bench b(s);
  b.post_send(10);
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 2u);
  b.respond(operation::acknowledge, 0xfffffe, 0x20 | 2);  // 20 us
  b.respond(operation::acknowledge, 0xfffffe, 0x60);      // for the second packet: the timer decides
  b.run_ns(19000);
  EXPECT_EQ(b.w.sent.size(), 2u);
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 4u);
  EXPECT_EQ(b.sent(2).bth.psn.value(), 0xfffffeu);
  b.respond(operation::acknowledge, 0xfffffe, 0x20 | 2);
  b.run_ns(2000);
  ASSERT_GE(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x16);
  EXPECT_EQ(b.w.cqes[0].second.vendor_error, 0x87);
  EXPECT_EQ(b.dut.cr_read(transport::cr::diagnostics + 0x6c), 2u);
}

bench::setup with_one_retry() {
  bench::setup s;
  s.retry_limit = 1;
  s.ack_timeout = 3;  // 33 us
  return s;
}

// Soft-RoCE answers what was on its way behind a packet that was not ready with a sequence NAK.
TEST(responses, sequence_nak_behind_receiver_not_ready_is_no_loss_however_late) {
  bench::bench b(with_one_retry());
  b.post_send(3000);
  b.ring_doorbell();
  b.run_ns(4000);
  for (unsigned round = 1; round <= 10; ++round) {
    ASSERT_EQ(b.w.sent.size(), 3 * round);
    b.respond(operation::acknowledge, 0xfffffe, 0x20 | 1);  // 10 us
    b.run_ns(14'000);
    b.respond(operation::acknowledge, 0xfffffe, 0x60);  // three packets are there again
    b.run_ns(2000);
  }
  EXPECT_TRUE(b.w.cqes.empty());
  b.ack(0);
  b.run_ns(1000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x4a);
}

TEST(responses, loss_behind_receiver_not_ready_is_noticed_by_the_timer) {
  bench::bench b(with_one_retry());
  b.post_send(3000);
  b.ring_doorbell();
  b.run_ns(4000);
  b.respond(operation::acknowledge, 0xfffffe, 0x20 | 1);
  b.run_ns(14'000);
  ASSERT_EQ(b.w.sent.size(), 6u);
  b.run_ns(40'000);  // the first packet was lost; a NAK of it would look like one of those before
  ASSERT_EQ(b.w.sent.size(), 9u);
  b.run_ns(50'000);
  ASSERT_EQ(b.w.cqes.size(), 1u);  // that was a loss
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x15);
}

TEST(responses, loss_behind_a_single_packet_that_was_not_ready_is_noticed_at_once) {
  bench::bench b(with_one_retry());
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  b.respond(operation::acknowledge, 0xfffffe, 0x20 | 1);
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(14'000);
  ASSERT_EQ(b.w.sent.size(), 3u);
  b.respond(operation::acknowledge, 0xfffffe, 0x60);  // of the second message: nothing was behind the first before
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), 5u);
}

TEST(responses, fatal_nak_completes_what_is_before_it) {
  bench::bench b;
  for (int i = 0; i < 3; ++i) b.post_write(10);
  b.ring_doorbell();
  b.run_ns(3000);
  b.respond(operation::acknowledge, 0xffffff, 0x62);
  b.run_ns(3000);
  ASSERT_EQ(b.w.cqes.size(), 3u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x48);
  EXPECT_EQ(b.w.cqes[1].second.syndrome, 0x13);
  EXPECT_EQ(b.w.cqes[1].second.vendor_error, 0x88);
  EXPECT_EQ(b.w.cqes[2].second.syndrome, 0x05);
}

TEST(responses, bad_key_waits_for_the_messages_before_it) {
  bench::bench b;
  b.post_send(16);
  b.post_send(16, bench::data, bench::bad_key);
  b.post_send(16);
  b.ring_doorbell();
  b.run_ns(4000);
  EXPECT_EQ(b.w.sent.size(), 1u);
  EXPECT_TRUE(b.w.cqes.empty());
  b.ack(0xfffffe);
  b.run_ns(3000);
  ASSERT_EQ(b.w.cqes.size(), 3u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x4a);
  EXPECT_EQ(b.w.cqes[1].second.syndrome, 0x04);
  EXPECT_EQ(b.w.cqes[2].second.syndrome, 0x05);
}

TEST(responses, bad_opcode_is_a_local_operation_error) {
  bench::bench b;
  b.post({0x1d, 2, 0xc, 0, 0, 0, 0, 0});
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x02);
}

TEST(responses, read_data_is_in_memory_before_its_completion) {
  bench::bench b;
  b.post_read(2100, bench::data + 0x8000 - 50);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(b.sent(0).bth.opcode, rc(operation::read_request));
  EXPECT_EQ(b.sent(0).reth.length, 2100u);
  const auto bytes = pattern(2100, 5);
  b.respond(operation::read_response_first, 0xfffffe, 0x1f, {bytes.begin(), bytes.begin() + 1024});
  b.respond(operation::read_response_middle, 0xffffff, 0x1f, {bytes.begin() + 1024, bytes.begin() + 2048});
  b.respond(operation::read_response_last, 0, 0x1f, {bytes.begin() + 2048, bytes.end()});
  b.run_ns(150);
  EXPECT_TRUE(b.w.cqes.empty());  // the write takes 200 ns
  b.run_ns(1000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x50);
  EXPECT_EQ(b.w.cqes[0].second.byte_count, 2100u);
  EXPECT_EQ(std::memcmp(b.w.memory.data() + bench::data + 0x8000 - 50, bytes.data(), 2100), 0);
}

TEST(responses, lost_read_response_is_asked_for_again_from_where_it_is_missing) {
  bench::bench b;
  b.post_read(3000);
  b.ring_doorbell();
  b.run_ns(3000);
  const auto bytes = pattern(3000, 9);
  b.respond(operation::read_response_first, 0xfffffe, 0x1f, {bytes.begin(), bytes.begin() + 1024});
  b.respond(operation::read_response_last, 0, 0x1f, {bytes.begin() + 2048, bytes.end()});
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 2u);
  EXPECT_EQ(b.sent(1).bth.psn.value(), 0xffffffu);
  EXPECT_EQ(b.sent(1).reth.va, 0x7f0000005000u + 1024);
  EXPECT_EQ(b.sent(1).reth.length, 3000u - 1024);
  // As the Linux software responder answers: no FIRST.
  b.respond(operation::read_response_middle, 0xffffff, 0x1f, {bytes.begin() + 1024, bytes.begin() + 2048});
  b.respond(operation::read_response_last, 0, 0x1f, {bytes.begin() + 2048, bytes.end()});
  b.run_ns(2000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x50);
  EXPECT_EQ(std::memcmp(b.w.memory.data() + bench::data, bytes.data(), 3000), 0);
}

TEST(responses, acknowledgement_behind_a_read_does_not_complete_it) {
  bench::bench b;
  b.post_write(10);
  b.post_read(100);
  b.post_write(10);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 3u);
  b.ack(0);  // of the last WRITE: the response of the READ was lost
  b.run_ns(3000);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x48);
  ASSERT_EQ(b.w.sent.size(), 5u);
  EXPECT_EQ(b.sent(3).bth.opcode, rc(operation::read_request));
  EXPECT_EQ(b.sent(3).bth.psn.value(), 0xffffffu);
}

TEST(responses, reads_wait_for_max_rd_atomic) {
  bench::bench b;  // two
  for (int i = 0; i < 3; ++i) b.post_read(10);
  b.ring_doorbell();
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), 2u);
  b.respond(operation::read_response_only, 0xfffffe, 0x1f, pattern(10, 1));
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), 3u);
}

TEST(responses, error_of_the_other_half_flushes) {
  bench::bench b;
  for (int i = 0; i < 3; ++i) b.post_write(10, false);
  b.ring_doorbell();
  b.run_ns(3000);
  b.ack(0xfffffe);
  b.run_ns(500);
  b.w.to_error.push_back(bench::qpn);
  b.w.wake_next();
  b.run_ns(3000);
  ASSERT_EQ(b.w.cqes.size(), 2u);
  EXPECT_EQ(b.w.cqes[0].second.wqe_index, 1);
  EXPECT_EQ(b.w.cqes[1].second.wqe_index, 2);
  EXPECT_EQ(b.w.cqes[1].second.syndrome, 0x05);
  EXPECT_TRUE(b.w.errors.empty());
}

TEST(control, halted_queue_pair_is_in_memory_and_goes_on_after_release) {
  namespace cr = transport::cr;
  bench::bench b;
  b.post_write(3000);
  b.ring_doorbell();
  b.run_ns(3000);
  b.ack(0xfffffe);
  b.run_ns(500);
  b.dut.cr_write(cr::qp_select, bench::qpn);
  b.dut.cr_write(cr::qp_command, cr::qp_command_halt);
  EXPECT_EQ(b.dut.cr_read(cr::qp_status), 1u);
  b.run_ns(3000);
  EXPECT_EQ(b.dut.cr_read(cr::qp_status), 0u);
  const icm::requester_context c = b.stored(bench::qpn);
  EXPECT_EQ(c.next_psn, 0xffffffu);
  EXPECT_EQ(c.next_wqe, 0u);
  EXPECT_EQ(c.message_offset, 1024u);
  const std::size_t before = b.w.sent.size();
  b.ack(0);
  b.ring_doorbell();
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), before);
  b.dut.cr_write(cr::qp_command, cr::qp_command_release);
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), before + 2);
  EXPECT_EQ(b.sent(before).bth.opcode, rc(operation::write_middle));
  b.ack(0);
  b.run_ns(1000);
  EXPECT_EQ(b.w.cqes.size(), 1u);
}

using trace = std::vector<std::uint64_t>;

// The same story in benches that live side by side (one kernel): the first as usual, the second with all blocks ticked
// at all edges, the others with the blocks in another order.
std::vector<trace> story() {
  std::vector<std::unique_ptr<bench::bench>> all;
  for (const sim::timebase::options& o : {sim::timebase::options{false, 0}, sim::timebase::options{true, 0},
                                          sim::timebase::options{false, 7}, sim::timebase::options{true, 12345}}) {
    bench::setup s;
    s.time = o;
    s.ack_timeout = 1;
    all.push_back(std::make_unique<bench::bench>(s));
  }
  const auto each = [&](auto&& f) {
    for (auto& b : all) f(*b);
  };
  const auto run = [&](std::uint64_t ns) { all.front()->run_ns(ns); };
  each([](bench::bench& b) {
    b.post_write(4096);
    b.post_read(1500);
    b.post_send(30);
    for (int i = 0; i < 3; ++i) b.post({0x0a, 2, 0, 0, 0x80000004, 0x776f7264, 0, 0});
    b.ring_doorbell();
  });
  run(3001);  // not at an edge
  each([](bench::bench& b) { b.respond(operation::acknowledge, 0, 0x60); });
  run(3000);
  each([](bench::bench& b) {
    b.ack(1);
    b.respond(operation::read_response_first, 2, 0x1f, pattern(1024, 1));
    b.respond(operation::read_response_last, 3, 0x1f, pattern(476, 2));
  });
  run(20000);
  each([](bench::bench& b) { b.respond(operation::acknowledge, 4, 0x20 | 1); });
  run(20000);
  each([](bench::bench& b) { b.ack(7); });
  run(2000);
  std::vector<trace> traces;
  each([&](bench::bench& b) {
    trace t;
    for (const auto& [at, f] : b.w.sent) {
      t.push_back(at);
      t.push_back(f->packet.bth.psn.value());
    }
    for (const auto& [at, e] : b.w.cqes) t.push_back(at << 8 | e.syndrome);
    traces.push_back(std::move(t));
  });
  return traces;
}

TEST(determinism, neither_sleep_nor_order_of_blocks_can_be_seen) {
  const std::vector<trace> traces = story();
  EXPECT_GE(traces[0].size(), 20u);
  for (std::size_t i = 1; i < traces.size(); ++i) EXPECT_EQ(traces[i], traces[0]) << i;
}

TEST(responses, without_a_timer_a_nak_behind_the_wait_is_a_loss) {
  bench::setup s;
  s.retry_limit = 1;
  s.ack_timeout = 0;
  bench::bench b(s);
  b.post_send(3000);
  b.ring_doorbell();
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 3u);
  b.respond(operation::acknowledge, 0xfffffe, 0x20 | 1);  // 10 us
  b.run_ns(14'000);
  ASSERT_EQ(b.w.sent.size(), 6u);
  b.respond(operation::acknowledge, 0xfffffe, 0x60);  // the first was lost
  b.run_ns(3000);
  EXPECT_EQ(b.w.sent.size(), 9u);
}

TEST(responses, a_fenced_send_waits_for_one_read) {
  bench::bench b;
  b.make_qp(bench::qpn);
  b.post_read(8);
  b.post({0x0a, 0x42, 0xc, 0, 10, bench::good_key, 0, static_cast<std::uint32_t>(bench::data)});
  b.ring_doorbell();
  b.run_ns(5000);
  EXPECT_EQ(b.w.sent.size(), 1u);
}

}  // namespace
