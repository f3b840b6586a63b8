// SPDX-License-Identifier: Apache-2.0
// For how long a packet without payload in host memory has the transmit engine.
#include <gtest/gtest.h>

#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;

/// SEND of `lines` times 64 bytes of WQE with `bytes` of payload in it.
std::vector<std::uint32_t> inline_send(unsigned lines, std::uint32_t bytes) {
  std::vector<std::uint32_t> words{0x0a, 4 * lines, 0xc, 0};
  if (bytes != 0) words.push_back(0x80000000 | bytes);
  words.resize(16 * lines);  // segments of no bytes
  return words;
}

/// Cycles from each of eight packets of one batch to the next.
std::vector<sim::cycle_t> intervals(const std::vector<std::uint32_t>& words, const transport::requester_config& c) {
  bench::setup s;
  s.type = icm::service::uc;
  s.requester = c;
  s.requester.wqe_cycles = 1;  // of one queue pair, which does not bind
  s.requester.miss_stall_cycles = 0;
  s.requester.prefetch_bytes = 1024;
  bench::bench b(s);
  b.make_qp(bench::qpn);
  for (unsigned i = 0; i < 8 && (i + 1) * words.size() / 16 < 15; ++i) b.post(words);
  b.ring_doorbell();
  b.run_ns(10'000);
  std::vector<sim::cycle_t> out;
  for (std::size_t i = 1; i < b.w.sent.size(); ++i) out.push_back(b.w.sent[i].first - b.w.sent[i - 1].first);
  return out;
}

std::vector<sim::cycle_t> each(std::size_t n, sim::cycle_t cycles) { return std::vector<sim::cycle_t>(n, cycles); }

// 427 MHz: 32.8 and 25.1 M/s; ConnectX-3, datagrams of 16 to a doorbell: 32.1 and 26.0 (ATC'16, table 5).
TEST(transmit_engine, takes_an_empty_message_when_it_has_its_descriptor) {
  EXPECT_EQ(intervals(inline_send(1, 0), {}), each(7, 9 + 4));
}
TEST(transmit_engine, takes_a_descriptor_of_one_line_in_four_cycles_more) {
  EXPECT_EQ(intervals(inline_send(1, 28), {}), each(7, 9 + 4));
}
TEST(transmit_engine, takes_a_descriptor_of_two_lines_in_eight_cycles_more) {
  EXPECT_EQ(intervals(inline_send(2, 28), {}), each(6, 9 + 8));
}

transport::requester_config quick() {
  transport::requester_config c;
  c.descriptor_cycles = 1;
  return c;
}
TEST(transmit_engine, does_not_wait_for_payload_that_is_not_there) {
  EXPECT_EQ(intervals(inline_send(1, 0), quick()), each(7, 9));
}
TEST(transmit_engine, waits_for_payload_of_the_descriptor) {
  EXPECT_EQ(intervals(inline_send(1, 28), quick()), each(7, 11));
}

// 500 MHz: 167 M/s without payload; Connect-IB 157.
transport::requester_config later_generation() {
  transport::requester_config c;
  c.datapath_bytes = 64;
  c.descriptor_cycles = 2;
  c.empty_cycles = 3;
  c.inline_cycles = 4;
  return c;
}
TEST(transmit_engine, of_a_later_generation_takes_an_empty_message_in_three_cycles) {
  EXPECT_EQ(intervals(inline_send(1, 0), later_generation()), each(7, 3));
}
TEST(transmit_engine, of_a_later_generation_takes_a_line_in_a_cycle) {
  EXPECT_EQ(intervals(inline_send(2, 28), later_generation()), each(6, 4));
}

/// Cycles from the first packet to the second, of the one entry of a UC context and the two of an RC context.
sim::cycle_t behind_a_miss(icm::service type) {
  bench::setup s;
  s.type = type;
  s.requester.wqe_cycles = 1;
  bench::bench b(s);
  b.make_qp(bench::qpn);
  for (int i = 0; i < 3; ++i) b.post(inline_send(1, 28));
  b.ring_doorbell();
  b.run_ns(10'000);
  EXPECT_EQ(b.w.sent.size(), 3u);
  EXPECT_EQ(b.w.sent[2].first - b.w.sent[1].first, 13u);
  return b.w.sent[1].first - b.w.sent[0].first;
}
TEST(transmit_engine, stands_still_for_the_entry_of_a_uc_context) {
  EXPECT_EQ(behind_a_miss(icm::service::uc), 13u + 170);
}
TEST(transmit_engine, stands_still_for_both_entries_of_an_rc_context) {
  EXPECT_EQ(behind_a_miss(icm::service::rc), 13u + 2 * 170);
}

}  // namespace
