// SPDX-License-Identifier: Apache-2.0
// Frames for the own port: literal cycles idle, back to back, stalled by each neighbour.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/simulation.h"
#include "model/wire/pause.h"
#include "testbenches/block/mac/bench.h"

namespace rnic::mac::test {
namespace {

/// 100 bytes before the FCS are seven beats.
payload::frame_ptr looped(bench& t, std::uint32_t length = 100, std::uint8_t priority = 0, std::uint8_t mark = 0) {
  payload::frame_ptr f = t.frame(length, priority, priority != 0, mark);
  f->loopback = payload::frame::loopback_only;
  return f;
}

std::vector<sim::time_ps> times(const taker& rx) {
  std::vector<sim::time_ps> all;
  for (const taker::note& n : rx.notes) all.push_back(n.at);
  return all;
}

TEST(mac_turnaround, beats_and_turn_and_nothing_of_the_line) {
  bench t;
  t.spans.enable(true);
  payload::frame_ptr f = looped(t, 1082);
  const sim::span_id id = t.spans.open(1'000);
  f->span = id;
  t.a.tx.send(std::move(f));
  bench::run_ns(1'000);
  // Accepted and started at edge 2, 68 beats: complete at 69; at the check at 73, where it is handed out.
  EXPECT_EQ(times(t.a.rx), std::vector<sim::time_ps>{74'000});
  const sim::span& s = t.spans[id];
  using mark = std::tuple<std::string, sim::time_ps, sim::wait>;
  std::vector<mark> marks;
  for (unsigned i = 0; i != s.count(); ++i) marks.emplace_back(s[i].stage, s[i].at, s[i].waited);
  EXPECT_EQ(marks,
            (std::vector<mark>{{"loopback queue", 2'000, sim::wait::none}, {"loopback", 73'000, sim::wait::none}}));
  EXPECT_TRUE(t.log.notes.empty());
  EXPECT_EQ(t.a.mac.count().looped, 1u);
  EXPECT_EQ(t.a.mac.count().tx_frames, 0u);
  EXPECT_EQ(t.a.mac.count().rx_frames, 1u);
  EXPECT_EQ(t.a.mac.count().rx_bytes, 1086u);
  EXPECT_EQ(t.a.rx.notes[0].frame->loopback, payload::frame::loopback_only);
  EXPECT_EQ(t.a.mac.cr_read(cr::eth_stats + 0xa98 + 24 * 9 + 4), 1u);  // TTOT, loopback
}

TEST(mac_turnaround, turn_cycles_are_the_parameter) {
  port::config c;
  c.turn_cycles = 9;
  bench t(c);
  t.a.tx.send(looped(t));
  bench::run_ns(1'000);
  EXPECT_EQ(times(t.a.rx), std::vector<sim::time_ps>{18'000});  // start 2, complete 8, check 17
}

TEST(mac_turnaround, back_to_back_at_the_width_of_the_datapath) {
  bench t;
  for (unsigned i = 0; i < 4; ++i) t.a.tx.send(looped(t));
  bench::run_ns(1'000);
  EXPECT_EQ(times(t.a.rx), (std::vector<sim::time_ps>{13'000, 20'000, 27'000, 34'000}));
}

TEST(mac_turnaround, short_frames_are_padded) {
  bench t;
  t.a.tx.send(looped(t, 40));
  bench::run_ns(1'000);
  ASSERT_EQ(t.a.rx.notes.size(), 1u);
  EXPECT_EQ(t.a.rx.notes[0].frame->length, 60u);
  EXPECT_EQ(t.a.rx.notes[0].at, 10'000u);  // four beats
}

TEST(mac_turnaround, is_not_before_the_last_beat_is_there) {
  bench t;
  payload::frame_ptr f = looped(t);
  f->first_byte = 20;  // seven beats, the last one at edge 26
  t.a.tx.send(std::move(f));
  t.a.tx.send(looped(t));
  bench::run_ns(1'000);
  EXPECT_EQ(times(t.a.rx), (std::vector<sim::time_ps>{31'000, 38'000}));  // complete 26, and 27 + 6
}

TEST(mac_turnaround, the_line_and_a_pause_do_not_hold_it_up) {
  bench t;
  t.a.mac.cr_write(cr::pprx, 1);
  payload::frame_ptr pause = t.frame(60);
  pause->length = wire::pause_frame_length;
  wire::pause_frame p;
  p.quanta.fill(0xffff);
  wire::encode_pause(p, {2, 0, 0, 0, 0, 9}, pause->data());
  pause->fcs = wire::ethernet_fcs(pause->data(), pause->length);
  t.a.mac.deliver(std::move(pause), 20'000);  // obeyed at 100
  t.a.tx.send(t.frame(100), 200);
  t.a.tx.send(looped(t), 200);
  bench::run_ns(1'000);
  EXPECT_TRUE(t.log.notes.empty());
  EXPECT_EQ(times(t.a.rx), std::vector<sim::time_ps>{213'000});  // pushed at 201, accepted at 202
}

TEST(mac_turnaround, waits_while_its_buffer_would_be_above_xoff) {
  port::config c;
  c.xoff_bytes = 250;
  c.xon_bytes = 150;
  bench t(c);
  t.a.count_what_waits();
  t.a.rx.from = 500;
  for (unsigned i = 0; i < 6; ++i) t.a.tx.send(looped(t));
  t.a.tx.send(looped(t, 100, 5));
  bench::run_ns(400);
  // Started at 2 and 9; a third one would make it 312 bytes. Priority 5 goes on.
  EXPECT_EQ(t.a.mac.buffers().occupancy(0), 2u * 104);
  EXPECT_EQ(t.a.mac.buffers().occupancy(5), 104u);
  EXPECT_EQ(t.a.mac.count().looped, 3u);
  t.a.rx.interval = 10;
  bench::run_ns(1'000);
  ASSERT_EQ(t.a.rx.notes.size(), 7u);
  EXPECT_EQ(t.a.mac.count().drop_overflow, 0u);
  // Each further one starts when the beats that have left have made room for it below XOFF.
  EXPECT_LE(t.a.mac.buffers().max_occupancy(0), 250u);
  EXPECT_EQ(t.a.mac.count().looped, 7u);
}

TEST(mac_turnaround, waits_for_room_for_its_credit) {
  bench t;
  t.a.credits.from = 100;
  for (unsigned i = 0; i < 6; ++i) t.a.tx.send(looped(t));
  bench::run_ns(90);
  EXPECT_EQ(t.a.mac.count().looped, 4u) << "the channel of credits holds four";
  bench::run_ns(1'000);
  EXPECT_EQ(t.a.mac.count().looped, 6u);
  EXPECT_EQ(t.a.credits.by_priority[0], 6u);
}

TEST(mac_turnaround, a_full_queue_keeps_frames_in_the_channel) {
  port::config c;
  c.egress_frames = 1;
  c.xoff_bytes = 1;
  c.xon_bytes = 1;
  bench t(c);
  t.a.count_what_waits();
  t.a.rx.from = 400;
  for (unsigned i = 0; i < 12; ++i) t.a.tx.send(looped(t));
  bench::run_ns(300);
  // Started at 2, when the buffer is empty; four in the queue, four in the channel, three with the sender.
  EXPECT_EQ(t.a.mac.count().looped, 1u);
  EXPECT_EQ(t.a.tx.items.size(), 3u);
  bench::run_ns(1'000);
  EXPECT_EQ(t.a.rx.notes.size(), 12u);
  EXPECT_EQ(t.a.mac.count().drop_overflow, 0u);
}

TEST(mac_turnaround, is_dropped_while_the_link_is_down) {
  bench t;
  t.a.mac.cr_write(cr::port_control, 0);
  for (unsigned i = 0; i < 3; ++i) t.a.tx.send(looped(t));
  bench::run_ns(1'000);
  EXPECT_TRUE(t.a.rx.notes.empty());
  EXPECT_EQ(t.a.mac.count().drop_tx_link_down, 3u);
  EXPECT_EQ(t.a.credits.by_priority[0], 3u);
}

TEST(mac_turnaround, the_own_copy_of_a_multicast_turns_and_the_frame_goes_on) {
  bench t;
  payload::frame_ptr f = t.frame(100);
  f->loopback = payload::frame::loopback_too;
  t.a.tx.send(std::move(f));
  bench::run_ns(1'000);
  EXPECT_EQ(t.log.notes.size(), 1u);
  ASSERT_EQ(t.b.rx.notes.size(), 1u);
  EXPECT_EQ(t.b.rx.notes[0].frame->loopback, payload::frame::loopback_none);
  ASSERT_EQ(t.a.rx.notes.size(), 1u);
  EXPECT_EQ(t.a.rx.notes[0].at, 13'000u);  // its bytes were known when it was given to the line, at edge 2
  EXPECT_EQ(t.a.rx.notes[0].frame->loopback, payload::frame::loopback_too);
  EXPECT_EQ(t.a.credits.by_priority[0], 1u) << "a frame has one credit";
  EXPECT_EQ(t.a.mac.count().tx_frames, 1u);
  EXPECT_EQ(t.a.mac.count().looped, 1u);
}

/// A frame for the line and the own port whose ICRC is known late (RTL engine) turns around when one does whose ICRC is
/// known early (model engine), and whatever block is ticked first.
sim::time_ps turned_with(bool open, std::uint64_t order) {
  const sim::simulation kernel;
  sim::timebase::options o;
  o.shuffle_seed = order;
  bench t({}, {}, o);
  payload::frame_ptr f = t.frame(300, 3, true);
  f->loopback = payload::frame::loopback_too;
  f->first_byte = 100;  // 19 beats: the last one at edge 118
  f->open = open;
  payload::frame_ptr same = f;
  t.a.tx.send(std::move(f), 99);
  bench::run_ns(110);
  same->open = false;  // its ICRC is written while its last beats come
  same.reset();
  bench::run_ns(2'000);
  EXPECT_EQ(t.a.rx.notes.size(), 1u);
  return t.a.rx.notes.empty() ? 0 : t.a.rx.notes[0].at;
}

TEST(mac_turnaround, a_copy_turns_when_its_last_byte_is_there_whoever_makes_the_icrc) {
  EXPECT_EQ(turned_with(false, 0), turned_with(true, 0));
}

}  // namespace
}  // namespace rnic::mac::test
