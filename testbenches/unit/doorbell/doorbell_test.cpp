// SPDX-License-Identifier: Apache-2.0
// Doorbell decoding with the byte examples of adapter data plane A.12.
#include <gtest/gtest.h>

#include "model/sim/simulation.h"
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

/// Whatever other functions store, and other pages of its own that do not share its place.
TEST(doorbell, first_half_of_a_cq_arm_is_its_functions) {
  bench b;
  const auto half = [&b](std::uint16_t function, std::uint64_t at, std::uint8_t value) {
    pcie::mmio_write w;
    w.function = function;
    w.offset = at;
    w.length = 4;
    w.data[3] = value;
    b.sw.todo.push_back(w);
    b.sw.wake_next();
  };
  half(3, 201 * page + 0x20, 1);
  for (std::uint16_t f = 0; f < 127; ++f)
    if (f != 3)
      for (const unsigned p : {9u, 137u, 188u, 201u, 214u, 265u}) half(f, p * page + 0x20, 2);
  half(3, 202 * page + 0x20, 3);
  half(3, 201 * page + 0x24, 4);
  b.run(2000);
  ASSERT_EQ(b.sw.queues.size(), 1u);
  EXPECT_EQ(b.sw.queues[0].number, 1u);
  EXPECT_EQ(b.sw.queues[0].index, 4u);
  EXPECT_EQ(b.sw.queues[0].function, 3u);
  half(3, 265 * page + 0x20, 5);  // 64 pages further
  half(3, 201 * page + 0x20, 6);
  half(3, 265 * page + 0x24, 7);
  b.run(100);
  EXPECT_EQ(b.sw.queues.size(), 1u) << "another page has taken the place";
  EXPECT_EQ(b.stats.value("doorbell.bad_length"), 1u);
}

/// The store in front waits for the scheduler, which takes nothing. When it is no doorbell any more it goes at once.
TEST(doorbell, a_reset_and_registers_let_go_of_what_was_held_up) {
  for (const unsigned how : {0u, 1u, 2u}) {
    const rnic::sim::simulation kernel;
    bench b({}, 1);
    b.sw.take_sends_from(1'000'000);
    for (unsigned i = 0; i < 3; ++i) b.sw.line(bf_base + 300 * page + 256 * i, blueflame_read(4));
    b.run(100);
    EXPECT_EQ(b.in.look(nullptr).occupancy, 2u) << how;
    if (how == 0) b.dut.device_reset();
    if (how == 1) b.dut.cr_write(rnic::doorbell::cr::blueflame_enable, 0);
    if (how == 2) b.dut.cr_write(rnic::doorbell::cr::log_num_uars, 2);
    b.run(2);
    EXPECT_EQ(b.in.look(nullptr).occupancy, 1u) << how;
    b.run(20);
    EXPECT_EQ(b.in.look(nullptr).occupancy, 0u) << how;
    EXPECT_EQ(b.stats.value(how == 1 ? "doorbell.blueflame_disabled" : "doorbell.bad_offset"), 2u) << how;
  }
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

TEST(doorbell, event_queue_behind_a_functions_last) {
  bench b;
  b.dut.cr_write(rnic::doorbell::cr::first_virtual_eq, 32);
  b.dut.cr_write(rnic::doorbell::cr::eqs_of_virtual, 4);
  for (const std::uint64_t at : {1 * page + 0x800, page - page + 0x818}) {
    b.sw.write(at, {0x80, 0, 0, 0x20});
    b.sw.todo.back().function = 1;
  }
  b.run(100);
  ASSERT_EQ(b.sw.queues.size(), 1u);
  EXPECT_EQ(b.sw.queues[0].number, 35u);
  EXPECT_EQ(b.stats.value("doorbell.bad_offset"), 1u);
}

}  // namespace
