// SPDX-License-Identifier: Apache-2.0
// Doorbells to the cycle: alone, back to back, behind a full channel; and BlueFlame buffers that lose their place.
#include <gtest/gtest.h>

#include "testbenches/unit/doorbell/bench.h"

namespace {

using namespace rnic;
using namespace rnic::doorbell::test;
using cycles = std::vector<sim::cycle_t>;

/// Cycles of the send doorbells, from the first write on.
cycles times(const bench& b) {
  cycles t;
  for (const auto& s : b.sw.sends) t.push_back(s.first - b.sw.written.at(0));
  return t;
}

void ring(bench& b, std::uint8_t qpn) { b.sw.write(200 * page + 0x14, {0, 0, qpn, 0}); }

TEST(doorbell_timing, a_doorbell_takes_two_cycles) {
  bench b;
  ring(b, 1);
  b.run(100);
  EXPECT_EQ(times(b), cycles{2}) << "taken one cycle after the write, seen one cycle later";
}

TEST(doorbell_timing, one_doorbell_a_cycle) {
  bench b;
  for (std::uint8_t q = 1; q <= 4; ++q) ring(b, q);
  b.run(100);
  EXPECT_EQ(times(b), (cycles{2, 3, 4, 5}));
}

TEST(doorbell_timing, decoding_takes_its_parameter) {
  doorbell::config c;
  c.decode_cycles = 3;
  bench b(c);
  for (std::uint8_t q = 1; q <= 4; ++q) ring(b, q);
  b.run(100);
  EXPECT_EQ(times(b), (cycles{2, 5, 8, 11}));
}

TEST(doorbell_timing, a_doorbell_behind_a_blueflame_line_waits_eight_cycles) {
  bench b;
  b.sw.line(bf_base + 300 * page, blueflame_read(4));
  ring(b, 1);
  b.sw.write(200 * page + 0x20, {0x12, 0, 0, 0x85, 0, 0, 0, 7});
  b.run(100);
  EXPECT_EQ(times(b), (cycles{2, 10}));
  EXPECT_EQ(b.sw.queues_at.at(0) - b.sw.written.at(0), 11u);
}

/// Two places for send doorbells. What is behind the one that has none waits too, for whichever channel it is.
TEST(doorbell_timing, a_full_channel_stalls_what_is_behind) {
  bench b({}, 2);
  b.sw.take_sends_from(40);
  for (std::uint8_t q = 1; q <= 4; ++q) ring(b, q);
  b.sw.write(200 * page + 0x20, {0x12, 0, 0, 0x85, 0, 0, 0, 7});
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 4u);
  for (std::uint8_t q = 0; q < 4; ++q) EXPECT_EQ(b.sw.sends[q].second.qpn, q + 1u);
  EXPECT_EQ(b.sw.sends[0].first, 40u);
  EXPECT_EQ(b.sw.sends[1].first, 41u);
  EXPECT_EQ(b.sw.sends[2].first, 42u) << "its place was free at 41";
  EXPECT_EQ(b.sw.sends[3].first, 43u);
  EXPECT_EQ(b.sw.queues_at.at(0), 44u);
  EXPECT_EQ(b.stats.value("doorbell.sends"), 4u) << "counted once, however often they were tried";
  EXPECT_EQ(b.stats.value("doorbell.cq_arms"), 1u);
}

/// The last place is enough for a line, and without one it waits.
TEST(doorbell_timing, a_blueflame_line_needs_a_free_place) {
  bench b({}, 2);
  b.sw.take_sends_from(40);
  ring(b, 1);
  b.sw.line(bf_base + 300 * page, blueflame_read(4));  // takes the last
  b.sw.line(bf_base + 301 * page, blueflame_read(4));  // finds none
  b.run(30);
  EXPECT_EQ(b.stats.value("doorbell.blueflames"), 1u);
  b.run(30);
  EXPECT_EQ(b.stats.value("doorbell.blueflames"), 2u);
  ASSERT_EQ(b.sw.sends.size(), 3u);
  EXPECT_EQ(b.sw.sends[2].first, 42u) << "taken at 41, when the one popped at 40 has made room";
}

std::vector<std::uint8_t> second_line(std::uint8_t value) { return std::vector<std::uint8_t>(64, value); }
std::uint64_t buffer(unsigned n) { return bf_base + (100 + n) * page; }

/// Sixteen buffers wait for their second line; the seventeenth takes the place of the one that has waited longest.
TEST(doorbell_blueflame, a_buffer_that_loses_its_place_becomes_a_plain_doorbell) {
  bench b;
  for (unsigned n = 0; n < 16; ++n) b.sw.line(buffer(n), blueflame_read(8));
  b.run(200);
  EXPECT_TRUE(b.sw.sends.empty()) << "exactly as many as there are places";
  EXPECT_EQ(b.stats.value("doorbell.blueflame_partial"), 0u);
  b.sw.line(buffer(16), blueflame_read(8));
  b.run(20);
  ASSERT_EQ(b.sw.sends.size(), 1u);
  EXPECT_EQ(b.sw.sends[0].second.qpn, 0x48u);
  EXPECT_EQ(b.sw.sends[0].second.uar, 100u) << "the page of the first";
  EXPECT_FALSE(b.sw.sends[0].second.descriptor);
  EXPECT_EQ(b.stats.value("doorbell.blueflame_partial"), 1u);
  for (unsigned n = 1; n <= 16; ++n) b.sw.line(buffer(n) + 64, second_line(static_cast<std::uint8_t>(n)));
  b.run(400);
  ASSERT_EQ(b.sw.sends.size(), 17u);
  for (unsigned n = 1; n <= 16; ++n) {
    const scheduler::send_doorbell& d = b.sw.sends[n].second;
    ASSERT_TRUE(d.descriptor) << n;
    EXPECT_EQ(d.uar, 100 + n);
    EXPECT_EQ(d.descriptor->length, 128u);
    EXPECT_EQ(d.descriptor->bytes[127], n);
  }
  EXPECT_EQ(b.stats.value("doorbell.blueflames"), 16u);
  EXPECT_EQ(b.stats.value("doorbell.blueflame_partial"), 1u);
}

/// The rest of a descriptor that was taken for a plain doorbell is nobody's: least of all a part of the next one that
/// is written to the same buffer.
TEST(doorbell_blueflame, what_comes_late_of_an_evicted_descriptor_is_not_of_the_next) {
  doorbell::config c;
  c.bf_gathers = 2;
  bench b(c);
  b.sw.line(buffer(0), blueflame_read(8));
  b.sw.line(buffer(1), blueflame_read(8));
  b.sw.line(buffer(2), blueflame_read(8));  // takes the place of 0
  b.sw.line(buffer(0) + 64, second_line(7));
  for (unsigned n = 1; n <= 2; ++n) b.sw.line(buffer(n) + 64, second_line(static_cast<std::uint8_t>(n)));
  b.run(200);
  ASSERT_EQ(b.sw.sends.size(), 3u);
  EXPECT_FALSE(b.sw.sends[0].second.descriptor);
  for (unsigned n = 1; n <= 2; ++n) {
    ASSERT_TRUE(b.sw.sends[n].second.descriptor) << n;
    EXPECT_EQ(b.sw.sends[n].second.descriptor->bytes[127], n);
  }
  b.sw.line(buffer(0) + 64, second_line(9));  // write combining may send the second line first
  b.run(50);
  EXPECT_EQ(b.sw.sends.size(), 3u);
  b.sw.line(buffer(0), blueflame_read(8));
  b.run(50);
  ASSERT_EQ(b.sw.sends.size(), 4u);
  ASSERT_TRUE(b.sw.sends[3].second.descriptor);
  EXPECT_EQ(b.sw.sends[3].second.descriptor->bytes[127], 9);
  EXPECT_EQ(b.stats.value("doorbell.blueflame_partial"), 1u);
  EXPECT_EQ(b.stats.value("doorbell.blueflames"), 3u);
}

/// As many descriptors as there are places may have lost theirs: the rest of each is known.
TEST(doorbell_blueflame, the_rests_of_several_evicted_descriptors_are_dropped) {
  doorbell::config c;
  c.bf_gathers = 2;
  bench b(c);
  for (unsigned n = 0; n < 4; ++n) b.sw.line(buffer(n), blueflame_read(8));  // 2 and 3 take the places of 0 and 1
  for (unsigned n = 0; n < 4; ++n) b.sw.line(buffer(n) + 64, second_line(static_cast<std::uint8_t>(n)));
  b.run(400);
  ASSERT_EQ(b.sw.sends.size(), 4u);
  for (unsigned n = 0; n < 4; ++n) EXPECT_EQ(bool(b.sw.sends[n].second.descriptor), n >= 2) << n;
  EXPECT_EQ(b.stats.value("doorbell.blueflame_partial"), 2u);
  EXPECT_EQ(b.stats.value("doorbell.blueflames"), 2u);
}

/// What of it never comes is not waited for: the first line of the next descriptor ends that.
TEST(doorbell_blueflame, the_next_descriptor_in_the_buffer_of_an_evicted_one_is_whole) {
  doorbell::config c;
  c.bf_gathers = 1;
  bench b(c);
  b.sw.line(buffer(0), blueflame_read(8));
  b.sw.line(buffer(1), blueflame_read(4));  // takes its place, and is complete
  b.sw.line(buffer(0), blueflame_read(8));
  b.run(100);
  EXPECT_EQ(b.sw.sends.size(), 2u) << "its second line has not been written yet";
  b.sw.line(buffer(0) + 64, second_line(9));
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 3u);
  ASSERT_TRUE(b.sw.sends[2].second.descriptor);
  EXPECT_EQ(b.sw.sends[2].second.descriptor->bytes[127], 9);
}

/// Without its first bytes nobody knows whose doorbell it is: nothing is rung.
TEST(doorbell_blueflame, a_buffer_without_its_first_line_is_lost_with_its_place) {
  doorbell::config c;
  c.bf_gathers = 1;
  bench b(c);
  b.sw.line(buffer(0) + 64, second_line(7));
  b.sw.line(buffer(1), blueflame_read(4));
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 1u);
  EXPECT_EQ(b.sw.sends[0].second.uar, 101u);
  EXPECT_EQ(b.stats.value("doorbell.blueflame_partial"), 1u);
}

/// The longest descriptor fills the buffer; a longer one cannot be in it.
TEST(doorbell_blueflame, a_descriptor_of_the_whole_buffer_and_one_that_is_longer) {
  bench b;
  b.sw.line(buffer(0), blueflame_read(16));
  for (unsigned line = 1; line < 4; ++line) b.sw.line(buffer(0) + 64 * line, second_line(5));
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 1u);
  ASSERT_TRUE(b.sw.sends[0].second.descriptor);
  EXPECT_EQ(b.sw.sends[0].second.descriptor->length, 256u);
  b.sw.line(buffer(0), blueflame_read(17));
  b.run(100);
  ASSERT_EQ(b.sw.sends.size(), 2u);
  EXPECT_FALSE(b.sw.sends[1].second.descriptor);
  EXPECT_EQ(b.stats.value("doorbell.blueflame_bad"), 1u);
}

}  // namespace
