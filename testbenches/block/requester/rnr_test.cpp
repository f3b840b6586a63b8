// SPDX-License-Identifier: Apache-2.0
// Receivers that are not ready: how long the requester waits, and how often (IBA volume 1, 9.7.5.2.8).
#include <gtest/gtest.h>

#include <array>

#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;
using wire::operation;

constexpr std::uint8_t rnr_nak = 0x20;

/// Table 46 of the standard, in microseconds.
constexpr std::array<std::uint64_t, 32> published_us = {
    655'360, 10,     20,     30,     40,     60,      80,      120,     160,     240,    320,
    480,     640,    960,    1'280,  1'920,  2'560,   3'840,   5'120,   7'680,   10'240, 15'360,
    20'480,  30'720, 40'960, 61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520};

/// Every edge can be the end of a timer.
bench::setup exact(std::uint32_t core_khz = 500'000) {
  bench::setup s;
  s.core_khz = core_khz;
  s.requester.timers.granularity_ps = 1;
  return s;
}

/// Cycles from a NAK's way into the requester to the repetition's out of it.
sim::cycle_t wait_of(bench::bench& b, std::uint8_t code) {
  const std::size_t before = b.w.sent.size();
  const sim::cycle_t asked = b.core.now() + 1;
  b.respond(operation::acknowledge, 0xfffffe, static_cast<std::uint8_t>(rnr_nak | code));
  b.run_ns(published_us[code] * 1000 + 5000);
  EXPECT_EQ(b.w.sent.size(), before + 1) << "code " << unsigned{code};
  EXPECT_EQ(b.sent(before).bth.psn.value(), 0xfffffeu);
  return b.w.sent.at(before).first - asked;
}

TEST(receiver_not_ready, all_codes_wait_their_time_to_the_cycle) {
  bench::bench b(exact());
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  // The NAK's way in, and from the end of the wait its expiration, the scheduler, the payload's fetch, the frame's way
  // out: its WQE is still on chip.
  constexpr sim::cycle_t around = 156;
  for (std::uint8_t code = 0; code < 32; ++code)
    EXPECT_EQ(wait_of(b, code), published_us[code] * 500 + around) << "code " << unsigned{code};
}

/// 10 us are 3333 and a third of these cycles: the longest wait is 163 840 000 of them, not 49 152 times 3334.
TEST(receiver_not_ready, a_period_that_does_not_divide_the_wait_is_rounded_once) {
  bench::bench b(exact(333'333));
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(4000);
  ASSERT_EQ(b.w.sent.size(), 1u);
  const sim::cycle_t shortest = wait_of(b, 1), longest = wait_of(b, 31);
  EXPECT_EQ(longest - shortest, 163'839'837u - 3'334u) << "491.52 ms and 10 us at 333.333 MHz, each rounded up";
}

/// A timer ends at a multiple of its granularity and never early.
TEST(receiver_not_ready, a_wait_ends_at_the_next_multiple_of_the_granularity) {
  bench::setup s = exact();
  s.requester.timers.granularity_ps = 16'000'000;
  bench::bench b(s);
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  b.respond(operation::acknowledge, 0xfffffe, rnr_nak | 1);  // at 3 us: 13 us would be enough
  b.run_ns(12'900);
  EXPECT_EQ(b.w.sent.size(), 1u);
  b.run_ns(1000);
  EXPECT_EQ(b.w.sent.size(), 2u) << "16 us";
}

void nak(bench::bench& b, std::uint32_t psn) {
  b.respond(operation::acknowledge, psn, rnr_nak | 1);
  b.run_ns(15'000);
}

bench::setup with_two_retries() {
  bench::setup s = exact();
  s.rnr_limit = 2;
  return s;
}

TEST(receiver_not_ready, as_many_retries_as_its_limit_and_not_one_more) {
  bench::bench b(with_two_retries());
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  for (std::size_t n = 1; n <= 2; ++n) {
    nak(b, 0xfffffe);
    ASSERT_EQ(b.w.sent.size(), 1 + n);
    ASSERT_TRUE(b.w.cqes.empty());
  }
  nak(b, 0xfffffe);
  EXPECT_EQ(b.w.sent.size(), 3u);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x16);
  EXPECT_EQ(b.stats.value("requester.rnr_naks"), 3u);
}

/// An acknowledgement of something new gives all retries back, as often as there is one.
TEST(receiver_not_ready, retries_are_restored_by_an_acknowledgement) {
  bench::bench b(with_two_retries());
  for (unsigned n = 0; n < 4; ++n) {
    const std::uint32_t psn = (0xfffffe + n) & 0xffffff;
    b.post_send(10);
    b.ring_doorbell();
    b.run_ns(3000);
    nak(b, psn);
    nak(b, psn);
    ASSERT_EQ(b.w.sent.size(), 3u * (n + 1)) << n;
    b.ack(psn);
    b.run_ns(1000);
    ASSERT_EQ(b.w.cqes.size(), n + 1) << n;
    ASSERT_EQ(b.w.cqes.back().second.opcode, 0x4a) << n;
  }
}

/// The NAK of the second message says that the first has arrived: that is progress too, and then one retry is used.
TEST(receiver_not_ready, retries_are_restored_by_what_a_nak_acknowledges) {
  bench::bench b(with_two_retries());
  b.post_send(10);
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  nak(b, 0xfffffe);
  nak(b, 0xfffffe);
  ASSERT_TRUE(b.w.cqes.empty());
  nak(b, 0xffffff);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.opcode, 0x4a);
  nak(b, 0xffffff);
  EXPECT_EQ(b.w.cqes.size(), 1u) << "the second of two";
  nak(b, 0xffffff);
  ASSERT_EQ(b.w.cqes.size(), 2u);
  EXPECT_EQ(b.w.cqes[1].second.syndrome, 0x16);
}

/// An acknowledgement that says nothing new restores nothing.
TEST(receiver_not_ready, an_old_acknowledgement_restores_nothing) {
  bench::bench b(with_two_retries());
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  nak(b, 0xfffffe);
  b.ack(0xfffffd);
  b.run_ns(1000);
  nak(b, 0xfffffe);
  b.ack(0xfffffd);
  b.run_ns(1000);
  nak(b, 0xfffffe);
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.w.cqes[0].second.syndrome, 0x16);
}

/// Seven stands for no limit.
TEST(receiver_not_ready, seven_is_without_end) {
  bench::setup s = exact();
  s.rnr_limit = 7;
  bench::bench b(s);
  b.post_send(10);
  b.ring_doorbell();
  b.run_ns(3000);
  for (std::size_t n = 1; n <= 20; ++n) {
    nak(b, 0xfffffe);
    ASSERT_EQ(b.w.sent.size(), 1 + n);
  }
  EXPECT_TRUE(b.w.cqes.empty());
}

}  // namespace
