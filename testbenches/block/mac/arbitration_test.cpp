// SPDX-License-Identifier: Apache-2.0
// Who goes next on the line.
#include <gtest/gtest.h>

#include <algorithm>

#include "testbenches/block/mac/bench.h"

namespace rnic::mac::test {
namespace {

std::string order(const bench& t) {
  std::string s;
  for (const auto& n : t.log.notes) s += static_cast<char>('0' + n.priority);
  return s;
}

/// Three frames of each of priorities 1, 3 and 5, queued behind one of priority 0 that keeps the line busy.
void queue_three_each(bench& t) {
  t.a.tx.send(t.frame(1082, 0));
  for (unsigned i = 0; i < 3; ++i)
    for (const std::uint8_t p : {std::uint8_t{1}, std::uint8_t{3}, std::uint8_t{5}}) t.a.tx.send(t.frame(200, p, true));
}

TEST(mac_arbitration, strict) {
  bench t;
  t.a.mac.cr_write(cr::arbitration, 0);
  queue_three_each(t);
  bench::run_ns(3'000);
  EXPECT_EQ(order(t), "0555333111");
}

TEST(mac_arbitration, round_robin) {
  bench t;
  queue_three_each(t);
  bench::run_ns(3'000);
  EXPECT_EQ(order(t), "0135135135");
}

/// Class 1 and 3 share 75 : 25 in group 7, class 5 is in group 0 and goes before both.
TEST(mac_arbitration, ets_shares_bytes_and_serves_groups_strictly) {
  port::config many;
  many.egress_frames = 200;
  bench t(many);
  t.a.mac.cr_write(cr::arbitration, 2);
  t.a.mac.cr_write(cr::scheduler + 4 * 1, 7u << 16 | 75);
  t.a.mac.cr_write(cr::scheduler + 4 * 3, 7u << 16 | 25);
  t.a.mac.cr_write(cr::scheduler + 4 * 5, 0u << 16 | 100);
  t.a.tx.send(t.frame(9000, 0));  // 1.8 us in which all others queue up
  for (unsigned i = 0; i < 200; ++i) {
    t.a.tx.send(t.frame(496, 1, true));
    t.a.tx.send(t.frame(996, 3, true));
    if (i < 3) t.a.tx.send(t.frame(200, 5, true));
  }
  bench::run_ns(40'000);
  const std::string s = order(t);
  EXPECT_EQ(s.substr(0, 4), "0555");
  unsigned long bytes[8] = {};
  for (std::size_t i = 4; i < 154; ++i) bytes[t.log.notes[i].priority] += t.log.notes[i].bytes.size();
  const double share = static_cast<double>(bytes[1]) / static_cast<double>(bytes[1] + bytes[3]);
  EXPECT_NEAR(share, 0.75, 0.01);
}

/// Priorities 3 and 4 are of class 3, priority 5 of class 5: half of the line each, and of the first one's half each of
/// its two priorities has half, whatever the other class sends between their frames.
TEST(mac_arbitration, ets_serves_the_priorities_of_a_class_in_turn) {
  port::config many;
  many.egress_frames = 200;
  bench t(many);
  t.a.mac.cr_write(cr::arbitration, 2);
  t.a.mac.cr_write(cr::prio2tc, 0x76533210);
  t.a.mac.cr_write(cr::scheduler + 4 * 3, 7u << 16 | 50);
  t.a.mac.cr_write(cr::scheduler + 4 * 5, 7u << 16 | 50);
  t.a.tx.send(t.frame(9000, 0));
  for (unsigned i = 0; i < 100; ++i)
    for (const std::uint8_t p : {std::uint8_t{3}, std::uint8_t{4}, std::uint8_t{5}}) t.a.tx.send(t.frame(996, p, true));
  bench::run_ns(40'000);
  const std::string s = order(t).substr(1, 80);
  EXPECT_EQ(std::count(s.begin(), s.end(), '3'), 20) << s;
  EXPECT_EQ(std::count(s.begin(), s.end(), '4'), 20) << s;
  EXPECT_EQ(std::count(s.begin(), s.end(), '5'), 40) << s;
}

/// New shares count from now on: a class that went before another one has nothing to make up for.
TEST(mac_arbitration, new_shares_forget_what_was_before) {
  port::config many;
  many.egress_frames = 400;
  bench t(many);
  t.a.mac.cr_write(cr::arbitration, 2);
  t.a.mac.cr_write(cr::scheduler + 4 * 1, 5u << 16 | 100);
  t.a.mac.cr_write(cr::scheduler + 4 * 3, 6u << 16 | 100);
  for (unsigned i = 0; i < 200; ++i)
    for (const std::uint8_t priority : {std::uint8_t{1}, std::uint8_t{3}}) t.a.tx.send(t.frame(996, priority, true));
  bench::run_ns(20'000);
  const std::size_t before = t.log.notes.size();
  ASSERT_GT(before, 80u);
  EXPECT_EQ(order(t).find('3'), std::string::npos);
  t.a.mac.cr_write(cr::scheduler + 4 * 1, 7u << 16 | 50);
  t.a.mac.cr_write(cr::scheduler + 4 * 3, 7u << 16 | 50);
  bench::run_ns(20'000);
  const std::string s = order(t).substr(before, 50);
  ASSERT_EQ(s.size(), 50u);
  EXPECT_NEAR(static_cast<double>(std::count(s.begin(), s.end(), '1')), 25.0, 1.0) << s;
}

/// Class 2 may take 10 Gb/s: alone it leaves the line idle, beside another one it gets all of them, and what it has not
/// used it cannot claim later.
TEST(mac_arbitration, class_with_a_highest_rate) {
  port::config many;
  many.egress_frames = 400;
  bench t(many);
  t.a.mac.cr_write(cr::max_rate + 4 * 2, 10'000);
  EXPECT_EQ(t.a.mac.cr_read(cr::max_rate + 4 * 2), 10'000u);
  const auto rate = [&t](unsigned priority, std::size_t first) {  // Gb/s on the line, preamble, FCS and gap included
    std::uint64_t bits = 0;
    sim::time_ps begin = 0, end = 0, last = 0;
    for (std::size_t i = first; i < t.log.notes.size(); ++i) {
      const auto& n = t.log.notes[i];
      if (n.priority != priority) continue;
      if (begin == 0) begin = n.first_bit;
      end = n.first_bit;
      last = (n.bytes.size() + 24) * 8;
      bits += last;
    }
    return static_cast<double>(bits - last) / static_cast<double>(end - begin) * 1000;
  };
  for (unsigned i = 0; i < 50; ++i) t.a.tx.send(t.frame(996, 2, true));
  bench::run_ns(60'000);
  ASSERT_EQ(t.log.notes.size(), 50u);
  EXPECT_NEAR(rate(2, 0), 10.0, 0.02);
  for (unsigned i = 0; i < 150; ++i) {
    t.a.tx.send(t.frame(996, 4, true));
    if (i % 2 == 0) t.a.tx.send(t.frame(996, 2, true));
  }
  bench::run_ns(70'000);
  ASSERT_EQ(t.log.notes.size(), 275u);
  EXPECT_NEAR(rate(2, 50), 10.0, 0.1);
  t.a.mac.cr_write(cr::max_rate + 4 * 2, 0);
  for (unsigned i = 0; i < 50; ++i) t.a.tx.send(t.frame(996, 2, true));
  bench::run_ns(20'000);
  EXPECT_NEAR(rate(2, 275), 40.0, 0.1);
}

/// At 100 Mb/s a frame of 1020 bytes with preamble, FCS and gap keeps its class back for 81.6 us. What is to wait under
/// another rate is counted anew: the next one goes at once, and the one behind it after 816 ns.
TEST(mac_arbitration, a_changed_highest_rate_owes_nothing_of_the_last_one) {
  bench t;
  t.a.mac.cr_write(cr::max_rate + 4 * 2, 100);
  for (unsigned i = 0; i < 3; ++i) t.a.tx.send(t.frame(996, 2, true));
  bench::run_ns(20'000);
  ASSERT_EQ(t.log.notes.size(), 1u);
  t.a.mac.cr_write(cr::max_rate + 4 * 2, 10'000);
  bench::run_ns(3'000);
  ASSERT_EQ(t.log.notes.size(), 3u);
  EXPECT_EQ(t.log.notes[1].first_bit, 20'001'000u + 60'000u);
  EXPECT_EQ(t.log.notes[2].first_bit, 20'817'000u + 60'000u);
}

/// Why a frame was in its queue: its class at the highest rate, others on the line, or its own bytes, which come 4 a
/// cycle (1 ns) while the line takes 5.
TEST(mac_arbitration, what_a_frame_has_waited_for) {
  port::config narrow;
  narrow.datapath_bytes = 4;
  bench t(narrow);
  t.spans.enable(true);
  t.a.mac.cr_write(cr::max_rate + 4 * 2, 10'000);
  const auto send = [&t](std::uint8_t priority, sim::cycle_t at) {
    payload::frame_ptr f = t.frame(996, priority, true);
    f->first_byte = at;
    const sim::span_id id = t.spans.open(at * 1'000);
    f->span = id;
    t.a.tx.send(std::move(f), at);
    return id;
  };
  const sim::span_id bytes = send(0, 1'000), others = send(0, 1'010);
  const sim::span_id quick = send(2, 30'000), held = send(2, 30'400);
  bench::run_ns(40'000);
  const auto why = [&t](sim::span_id id) {
    EXPECT_STREQ(t.spans[id][0].stage, "egress queue");
    return t.spans[id][0].waited;
  };
  EXPECT_EQ(why(bytes), sim::wait::bytes);
  EXPECT_EQ(why(others), sim::wait::arbitration);
  EXPECT_EQ(why(quick), sim::wait::bytes);
  EXPECT_EQ(why(held), sim::wait::rate_limit);
}

TEST(mac_arbitration, credits_come_back_when_a_frame_starts) {
  bench t;
  for (unsigned i = 0; i < 5; ++i) t.a.tx.send(t.frame(1082, 3, true));
  t.a.tx.send(t.frame(60, 6, true));
  bench::run_ns(300);
  EXPECT_EQ(t.a.credits.by_priority[3], 2u);  // the first at 2 ns, the second at 223 ns
  bench::run_ns(2'000);
  EXPECT_EQ(t.a.credits.by_priority[3], 5u);
  EXPECT_EQ(t.a.credits.by_priority[6], 1u);
}

TEST(mac_arbitration, a_full_priority_holds_the_channel_and_nothing_is_lost) {
  port::config one;
  one.egress_frames = 1;  // three frames a priority
  bench t(one);
  for (unsigned i = 0; i < 30; ++i) t.a.tx.send(t.frame(1082, 2, true, static_cast<std::uint8_t>(i)));
  bench::run_ns(10'000);
  ASSERT_EQ(t.b.rx.notes.size(), 30u);
  for (unsigned i = 0; i < 30; ++i) EXPECT_EQ(t.b.rx.notes[i].frame->data()[18], i);
  for (unsigned i = 1; i < 30; ++i) EXPECT_EQ(t.log.notes[i].first_bit - t.log.notes[i - 1].first_bit, 221'200u);
}

/// After a reset all classes are in one group with equal shares, and none owes what it has had in another group before.
TEST(mac_arbitration, a_reset_forgets_what_classes_have_had) {
  port::config many;
  many.egress_frames = 400;
  many.egress_arbitration = arbitration::ets;
  bench t(many);
  t.a.mac.cr_write(cr::scheduler + 4 * 1, 5u << 16 | 1);
  for (unsigned i = 0; i < 100; ++i) t.a.tx.send(t.frame(996, 1, true));
  bench::run_ns(30'000);
  ASSERT_EQ(t.log.notes.size(), 100u);
  t.a.mac.device_reset();
  t.a.mac.cr_write(cr::port_control, 1);
  for (unsigned i = 0; i < 100; ++i)
    for (const std::uint8_t priority : {std::uint8_t{3}, std::uint8_t{1}}) t.a.tx.send(t.frame(996, priority, true));
  bench::run_ns(20'000);
  unsigned of_one = 0, all = 0;
  for (std::size_t i = 100; i < t.log.notes.size(); ++i, ++all) of_one += t.log.notes[i].priority == 1 ? 1 : 0;
  ASSERT_GT(all, 80u);
  EXPECT_NEAR(of_one, all / 2.0, 2);
}

/// 10 Gb/s, frames of 9 KB, which last 7.2 us: the class of the first group gets the 4.5 Gb/s that it may have, though
/// each of its frames waits for one of the other class.
TEST(mac_arbitration, a_limited_class_makes_up_for_a_long_frame_of_others) {
  port::config c;
  c.rate_mbps = 10'000;
  c.egress_frames = 400;
  bench t(c, c);
  t.a.mac.cr_write(cr::arbitration, 2);
  t.a.mac.cr_write(cr::scheduler + 4 * 4, 1u << 16 | 100);
  t.a.mac.cr_write(cr::max_rate + 4 * 6, 4'500);
  for (unsigned i = 0; i < 200; ++i)
    for (const std::uint8_t priority : {std::uint8_t{4}, std::uint8_t{6}}) t.a.tx.send(t.frame(8'996, priority, true));
  bench::run_ns(1'500'000);
  unsigned limited = 0;
  for (const auto& n : t.log.notes) limited += n.priority == 6 ? 1 : 0;
  EXPECT_NEAR(limited * 9'020 * 8 / 1'500'000.0, 4.5, 0.1) << "Gb/s";
}

}  // namespace
}  // namespace rnic::mac::test
