// SPDX-License-Identifier: Apache-2.0
// Doorbell decoding with the byte examples of adapter data plane A.12.
#include <gtest/gtest.h>

#include "testbenches/unit/doorbell/bench.h"

namespace {

using namespace rnic;
using namespace rnic::doorbell::test;

TEST(doorbell, send_doorbell_carries_qpn_and_page) {
  bench b;
  b.sw.write(200 * page + 0x14, {0, 0, 0x48, 0});
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 1u);
  EXPECT_EQ(b.sw.sends[0].second.qpn, 0x48u);
  EXPECT_EQ(b.sw.sends[0].second.uar, 200u);
  EXPECT_FALSE(b.sw.sends[0].second.descriptor);
}

TEST(doorbell, cq_arm_in_one_and_in_two_stores) {
  bench b;
  b.sw.write(200 * page + 0x20, {0x12, 0, 0, 0x85, 0, 0, 0, 7});
  b.sw.write(201 * page + 0x20, {0x21, 0, 0, 0x86});
  b.sw.write(202 * page + 0x20, {0x22, 0, 0, 0x87});
  b.sw.write(201 * page + 0x24, {0, 0, 0, 9});
  b.run(100);
  ASSERT_EQ(b.sw.queues.size(), 2u);
  EXPECT_EQ(b.sw.queues[0].number, 0x85u);
  EXPECT_EQ(b.sw.queues[0].index, 7u);
  EXPECT_EQ(b.sw.queues[0].command, 2);
  EXPECT_EQ(b.sw.queues[0].sequence, 1);
  EXPECT_EQ(b.sw.queues[1].number, 0x86u);
  EXPECT_EQ(b.sw.queues[1].index, 9u);
  EXPECT_EQ(b.sw.queues[1].command, 1);
  EXPECT_EQ(b.sw.queues[1].sequence, 2);
}

TEST(doorbell, first_half_of_a_cq_arm_is_used_once) {
  bench b;
  b.sw.write(201 * page + 0x20, {0x21, 0, 0, 0x86});
  b.sw.write(201 * page + 0x24, {0, 0, 0, 9});
  b.sw.write(201 * page + 0x24, {0, 0, 0, 10});
  b.run(100);
  ASSERT_EQ(b.sw.queues.size(), 1u);
  EXPECT_EQ(b.sw.queues[0].index, 9u);
  EXPECT_EQ(b.stats.value("doorbell.cq_arms"), 1u);
  EXPECT_EQ(b.stats.value("doorbell.bad_length"), 1u);
}

TEST(doorbell, first_half_of_a_cq_arm_does_not_outlive_a_reset) {
  bench b;
  b.sw.write(201 * page + 0x20, {0x21, 0, 0, 0x86});
  b.run(50);
  b.dut.device_reset();
  b.dut.cr_write(rnic::doorbell::cr::log_num_uars, 10);
  b.sw.write(201 * page + 0x24, {0, 0, 0, 9});
  b.run(50);
  EXPECT_TRUE(b.sw.queues.empty());
  EXPECT_EQ(b.stats.value("doorbell.bad_length"), 1u);
}

TEST(doorbell, eq_6_is_in_page_1_at_810) {
  bench b;
  b.sw.write(1 * page + 0x810, {0x80, 0, 0, 0x20});
  b.sw.write(128 * page + 0x810, {0x80, 0, 0, 0x20});  // not a page with EQ doorbells
  b.run(100);
  ASSERT_EQ(b.sw.queues.size(), 1u);
  EXPECT_EQ(b.sw.queues[0].what, completion::queue_doorbell::kind::eq_update);
  EXPECT_EQ(b.sw.queues[0].number, 6u);
  EXPECT_EQ(b.sw.queues[0].index, 0x20u);
  EXPECT_TRUE(b.sw.queues[0].arm);
  EXPECT_EQ(b.stats.value("doorbell.bad_offset"), 1u);
}

TEST(doorbell, blueflame_descriptor_of_one_line) {
  bench b;
  b.sw.line(bf_base + 300 * page + 256, blueflame_read(3));
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 1u);
  const scheduler::send_doorbell& d = b.sw.sends[0].second;
  EXPECT_EQ(d.qpn, 0x48u);
  EXPECT_EQ(d.uar, 300u);
  ASSERT_TRUE(d.descriptor);
  EXPECT_EQ(d.descriptor->index, 5);
  EXPECT_EQ(d.descriptor->length, 64u);
  EXPECT_EQ(d.descriptor->bytes[63], 0xab);
}

TEST(doorbell, blueflame_lines_cost_eight_cycles_each_and_may_come_in_any_order) {
  bench b;
  b.sw.line(bf_base + 300 * page + 64, std::vector<std::uint8_t>(64, 2));
  b.sw.line(bf_base + 300 * page, blueflame_read(8));
  b.sw.line(bf_base + 300 * page + 256, blueflame_read(4));
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 2u);
  EXPECT_EQ(b.sw.sends[0].second.descriptor->length, 128u);
  EXPECT_EQ(b.sw.sends[0].second.descriptor->bytes[127], 2);
  EXPECT_EQ(b.sw.sends[1].first - b.sw.sends[0].first, 8u);
}

TEST(doorbell, overwritten_blueflame_buffer_becomes_a_plain_doorbell) {
  bench b;
  b.sw.line(bf_base + 300 * page, blueflame_read(8));  // its second line never comes
  b.sw.line(bf_base + 300 * page, blueflame_read(4));
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 2u);
  EXPECT_FALSE(b.sw.sends[0].second.descriptor);
  EXPECT_TRUE(b.sw.sends[1].second.descriptor);
}

TEST(doorbell, nonsense_is_counted_and_ignored) {
  bench b;
  b.sw.write(200 * page + 0x14, {0, 0, 0x48});
  b.sw.write(200 * page + 0x18, {0, 0, 0x48, 0});
  b.sw.write(2 * bf_base + 0x14, {0, 0, 0x48, 0});
  b.sw.line(bf_base + 300 * page + 4, blueflame_read(4));
  b.run(100);
  EXPECT_TRUE(b.sw.sends.empty());
  EXPECT_EQ(b.stats.value("doorbell.bad_offset"), 2u);
  EXPECT_EQ(b.stats.value("doorbell.bad_length"), 2u);
}

}  // namespace
