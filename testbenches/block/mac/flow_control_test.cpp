// SPDX-License-Identifier: Apache-2.0
// Pause frames obeyed and sent.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/wire/pause.h"
#include "testbenches/block/mac/bench.h"

namespace rnic::mac::test {
namespace {

payload::frame_ptr pause_frame_of(bench& t, const wire::pause_frame& p) {
  payload::frame_ptr f = t.pool.get();
  f->begin = payload::frame::payload_start;
  f->length = wire::pause_frame_length;
  wire::encode_pause(p, {2, 0, 0, 0, 0, 9}, f->data());
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  return f;
}

wire::pause_frame pfc(std::uint8_t enabled, std::uint16_t quanta) {
  wire::pause_frame p;
  p.per_priority = true;
  p.enabled = enabled;
  p.quanta.fill(quanta);
  return p;
}

/// Bytes of a logged frame as a pause frame.
wire::pause_frame as_pause(const line_log::note& n) {
  wire::pause_frame p;
  EXPECT_EQ(wire::decode_pause(n.bytes.data(), n.bytes.size(), p), wire::pause_kind::pause);
  return p;
}

TEST(mac_flow_control, pfc_stops_a_priority_for_its_time) {
  bench t;
  t.a.mac.cr_write(cr::pfcrx, 0x08);
  // Arrives at 100 ns, is obeyed at the edge of 180 ns: 10 quanta at 40 Gb/s are 128 ns, until 308 ns.
  t.a.mac.deliver(pause_frame_of(t, pfc(0x18, 10)), 100'000);
  t.spans.enable(true);
  const sim::span_id id = t.spans.open(199'000);
  payload::frame_ptr first = t.frame(60, 3, true);
  first->span = id;
  t.a.tx.send(std::move(first), 199);      // in the port at 200 ns, while priority 3 is paused
  t.a.tx.send(t.frame(60, 4, true), 210);  // priority 4 is not obeyed here
  t.a.tx.send(t.frame(60, 3, true), 250);
  bench::run_ns(2'000);
  ASSERT_EQ(t.log.notes.size(), 3u);
  EXPECT_EQ(t.log.notes[0].priority, 4);
  EXPECT_EQ(t.log.notes[0].first_bit, 211'000u + 60'000u);
  EXPECT_EQ(t.log.notes[1].first_bit, 308'000u + 60'000u);
  EXPECT_EQ(t.log.notes[2].first_bit, 308'000u + 60'000u + 16'800u);
  EXPECT_EQ(t.a.mac.count().rx_pause, 1u);
  EXPECT_EQ(t.a.mac.count().blocked_by_pause, 2u);
  EXPECT_STREQ(t.spans[id][0].stage, "egress queue");
  EXPECT_EQ(t.spans[id][0].at, 308'000u);
  EXPECT_EQ(t.spans[id][0].waited, sim::wait::pause);
  // Nothing of MAC control reaches the blocks behind.
  EXPECT_TRUE(t.a.rx.notes.empty());
  // Flow-control mailbox: priority 3, one frame, one transition; priority 4 nothing.
  EXPECT_EQ(t.a.mac.cr_read(cr::flow_stats + 3 * 64 + 4), 1u);
  EXPECT_EQ(t.a.mac.cr_read(cr::flow_stats + 3 * 64 + 20), 1u);
  EXPECT_EQ(t.a.mac.cr_read(cr::flow_stats + 4 * 64 + 4), 0u);
}

TEST(mac_flow_control, time_zero_resumes) {
  bench t;
  t.a.mac.cr_write(cr::pfcrx, 0xff);
  t.a.mac.deliver(pause_frame_of(t, pfc(0x08, 0xffff)), 100'000);
  t.a.mac.deliver(pause_frame_of(t, pfc(0x08, 0)), 420'000);  // obeyed at 500 ns
  t.a.tx.send(t.frame(60, 3, true), 199);
  bench::run_ns(2'000);
  ASSERT_EQ(t.log.notes.size(), 1u);
  EXPECT_EQ(t.log.notes[0].first_bit, 560'000u);
}

TEST(mac_flow_control, a_long_pause_ends) {
  bench t;
  t.a.mac.cr_write(cr::pfcrx, 0xff);
  t.a.mac.deliver(pause_frame_of(t, pfc(0x08, 0xffff)), 100'000);
  t.a.tx.send(t.frame(60, 3, true), 199);
  bench::run_ns(900'000);
  // 65535 * 512 bit times of 25 ps = 838 848 000 ps from 180 ns on.
  ASSERT_EQ(t.log.notes.size(), 1u);
  EXPECT_EQ(t.log.notes[0].first_bit, 180'000u + 838'848'000u + 60'000u);
}

TEST(mac_flow_control, global_pause_stops_all_if_obeyed) {
  bench t;
  wire::pause_frame p;
  p.quanta[0] = 10;
  t.a.mac.deliver(pause_frame_of(t, p), 100'000);  // not obeyed: pprx is off
  t.a.tx.send(t.frame(60, 3, true), 199);
  bench::run_ns(1'000);
  ASSERT_EQ(t.log.notes.size(), 1u);
  EXPECT_EQ(t.log.notes[0].first_bit, 260'000u);
  t.a.mac.cr_write(cr::pprx, 1);
  t.a.mac.deliver(pause_frame_of(t, p), 1'100'000);  // obeyed at 1180 ns, until 1308 ns
  t.a.tx.send(t.frame(60, 0), 1'199);
  t.a.tx.send(t.frame(60, 7, true), 1'199);
  bench::run_ns(2'000);
  ASSERT_EQ(t.log.notes.size(), 3u);
  EXPECT_EQ(t.log.notes[1].first_bit, 1'368'000u);
}

/// One that is prolonged is one: 10 quanta at 40 Gb/s are 128 ns, of which 100 have gone when 10 more are asked for.
TEST(mac_flow_control, a_pause_that_is_prolonged_has_one_transition) {
  flow_control f(40'000);
  f.obey_pfc = 0x08;
  f.receive(pfc(0x18, 10), 1'000);
  f.receive(pfc(0x18, 10), 101'000);
  EXPECT_EQ(f.paused_until(3), 229'000u);
  EXPECT_EQ(f.of(3).rx_frames, 2u);
  EXPECT_EQ(f.of(3).rx_transitions, 1u);
  EXPECT_EQ(f.of(3).rx_duration_ps, 100'000u) << "what is to come of it has not been";
  f.settle(151'000);
  EXPECT_EQ(f.of(3).rx_duration_ps, 150'000u);
  f.settle(229'000);
  EXPECT_EQ(f.of(3).rx_duration_ps, 228'000u);
  f.receive(pfc(0x08, 10), 229'000);  // the first one has ended at this instant: another
  EXPECT_EQ(f.of(3).rx_transitions, 2u);
  f.receive(pfc(0x08, 0), 239'000);
  EXPECT_EQ(f.of(3).rx_duration_ps, 238'000u);
  EXPECT_EQ(f.of(3).rx_transitions, 2u);
}

/// Of 838.848 us, 100 ns have gone when the line loses its carrier; and it is not told of any more.
TEST(mac_flow_control, a_lost_link_ends_what_both_sides_have_asked_for) {
  flow_control f(40'000);
  f.obey_pfc = f.send_pfc = 0x08;
  f.receive(pfc(0x08, 0xffff), 1'000);
  f.tell(0x08, 51'000, 0xffff, 50);
  f.reset(101'000);
  EXPECT_EQ(f.paused(101'000), 0);
  EXPECT_EQ(f.of(3).rx_duration_ps, 100'000u);
  EXPECT_EQ(f.of(3).tx_duration_ps, 50'000u);
  EXPECT_EQ(f.refresh_at(), ~sim::time_ps{0});
  EXPECT_TRUE(f.must_tell(0x08, 101'000)) << "who comes back knows nothing";
}

/// Cleared after 100 ns of a pause which ends by a resume after 30 more.
TEST(mac_flow_control, counters_cleared_in_a_pause_count_what_is_left_of_it) {
  flow_control f(40'000);
  f.obey_pfc = f.send_pfc = 0x08;
  f.receive(pfc(0x08, 0xffff), 1'000);
  f.tell(0x08, 1'000, 0xffff, 50);
  f.clear_counters(101'000);
  f.receive(pfc(0x08, 0), 131'000);
  f.tell(0, 131'000, 0xffff, 50);
  EXPECT_EQ(f.of(3).rx_frames, 1u);
  EXPECT_EQ(f.of(3).rx_transitions, 0u);
  EXPECT_EQ(f.of(3).rx_duration_ps, 30'000u);
  EXPECT_EQ(f.of(3).tx_duration_ps, 30'000u);
}

TEST(mac_flow_control, a_pause_does_not_outlive_the_carrier) {
  bench t;
  t.a.mac.cr_write(cr::pfcrx, 0xff);
  t.a.mac.deliver(pause_frame_of(t, pfc(0x08, 0xffff)), 100'000);
  t.a.tx.send(t.frame(60, 3, true), 1'999);
  bench::run_ns(1'000);
  EXPECT_EQ(t.a.mac.cr_read(cr::paused), 0x08u);
  t.a.mac.carrier(false, 1'100'000);
  t.a.mac.carrier(true, 1'500'000);
  bench::run_ns(2'000);
  EXPECT_EQ(t.a.mac.cr_read(cr::paused), 0u);
  ASSERT_EQ(t.log.notes.size(), 1u);
  EXPECT_EQ(t.log.notes[0].first_bit, 2'000'000u + 60'000u);
}

/// A slow receiver, small buffers: the peer is stopped and let go, nothing is lost, order is kept.
void check_lossless(bool priority_based) {
  port::config slow;
  slow.ingress_bytes = 20'000;
  slow.xoff_bytes = 8'000;
  slow.xon_bytes = 4'000;
  bench t({}, slow);
  t.b.rx.from = 5'000;
  t.b.rx.interval = 300;  // 300 ns a frame of 221.2 ns
  t.b.mac.cr_write(priority_based ? cr::pfctx : cr::pptx, priority_based ? 0x08 : 1);
  t.a.mac.cr_write(priority_based ? cr::pfcrx : cr::pprx, priority_based ? 0x08 : 1);
  for (unsigned i = 0; i < 200; ++i) t.a.tx.send(t.frame(1082, 3, true, static_cast<std::uint8_t>(i)));
  bench::run_ns(100'000);
  ASSERT_EQ(t.b.rx.notes.size(), 200u);
  for (unsigned i = 0; i < 200; ++i) EXPECT_EQ(t.b.rx.notes[i].frame->data()[18], i);
  EXPECT_EQ(t.b.mac.count().drop_overflow, 0u);
  EXPECT_GT(t.b.mac.count().tx_pause, 2u);
  EXPECT_EQ(t.a.mac.count().rx_pause, t.b.mac.count().tx_pause);
  EXPECT_GT(t.b.mac.buffers().max_occupancy(3), 8'000u);
  EXPECT_LT(t.b.mac.buffers().max_occupancy(3), 20'000u);
  const auto first = std::find_if(t.log.notes.begin(), t.log.notes.end(), [](const auto& n) { return n.control; });
  ASSERT_NE(first, t.log.notes.end());
  const wire::pause_frame p = as_pause(*first);
  EXPECT_EQ(p.per_priority, priority_based);
  EXPECT_EQ(p.quanta[priority_based ? 3 : 0], 0xffff);
  EXPECT_EQ(p.enabled, priority_based ? 0x08 : 0);
}

TEST(mac_flow_control, pfc_makes_a_priority_lossless) { check_lossless(true); }
TEST(mac_flow_control, pause_makes_the_link_lossless) { check_lossless(false); }

TEST(mac_flow_control, xoff_at_the_frame_that_crosses) {
  port::config slow;
  slow.ingress_bytes = 20'000;
  slow.xoff_bytes = 4'000;
  slow.xon_bytes = 2'000;
  bench t({}, slow);
  t.b.rx.from = 1'000'000;
  t.b.mac.cr_write(cr::pfctx, 0x08);
  for (unsigned i = 0; i < 10; ++i) t.a.tx.send(t.frame(1082, 3, true));
  bench::run_ns(20'000);
  const auto first = std::find_if(t.log.notes.begin(), t.log.notes.end(), [](const auto& n) { return n.control; });
  ASSERT_NE(first, t.log.notes.end());
  // Frame i (from 0) is checked at 376 ns + i * 221.2 ns, rounded up to an edge. Two of them go on into the channel
  // behind the port (depth 2) and are not in the buffer any more; 1086 * 4 > 4000 with the sixth: 375.95 + 5 * 221.2 =
  // 1481.95, edge 1482. The line is free: the pause frame starts at once.
  EXPECT_EQ(first->first_bit, 1'482'000u + 60'000u);
}

/// Frames of 1086 bytes for a taker that lets them wait, two of them in the channel behind the port, which have their
/// room as the others. XOFF is four of them: with exactly so many the peer may go on, the fifth stops it; XON is two:
/// the peer may go on when exactly so many are left.
std::vector<line_log::note> pauses_of(unsigned frames, sim::cycle_t takes_from) {
  port::config slow;
  slow.ingress_bytes = 20'000;
  slow.xoff_bytes = 4 * 1'086;
  slow.xon_bytes = 2 * 1'086;
  bench t({}, slow);
  t.b.count_what_waits();
  t.b.rx.from = takes_from;
  t.b.rx.interval = 1'000;
  t.b.mac.cr_write(cr::pfctx, 0x08);
  for (unsigned i = 0; i < frames; ++i) t.a.tx.send(t.frame(1082, 3, true));
  bench::run_ns(30'000);
  std::vector<line_log::note> pauses;
  for (const auto& n : t.log.notes)
    if (n.control) pauses.push_back(n);
  EXPECT_EQ(t.b.mac.count().tx_pause, pauses.size());
  EXPECT_EQ(t.b.mac.buffers().max_occupancy(3), frames * 1'086);
  return pauses;
}

TEST(mac_flow_control, a_buffer_exactly_at_xoff_stops_nobody) { EXPECT_TRUE(pauses_of(4, 1'000'000).empty()); }

TEST(mac_flow_control, one_frame_above_xoff_and_exactly_at_xon) {
  const auto pauses = pauses_of(5, 10'000);
  ASSERT_EQ(pauses.size(), 2u);
  EXPECT_EQ(as_pause(pauses[0]).quanta[3], 0xffff);
  // The fifth frame is checked at 375.95 + 4 * 221.2 = 1260.75 ns, edge 1261.
  EXPECT_EQ(pauses[0].first_bit, 1'261'000u + 60'000u);
  EXPECT_EQ(as_pause(pauses[1]).quanta[3], 0);
  // Frames are taken at 10, 11 and 12 us. Two are left when the last of the third one's 68 beats has gone.
  EXPECT_EQ(pauses[1].first_bit, 12'068'000u + 60'000u);
}

/// The fourth frame crosses XOFF at 375.95 + 3 * 221.2 ns, edge 1040. The pause frame is on the line at 1100, 14.4 ns
/// long, 15.15 ns on the cable, and obeyed 80 ns behind that: edge 1210. The fifth and the sixth frame start before, at
/// 886.8 and 1108 ns, the seventh would at 1329.2: headroom is what is left of the fourth, and two frames.
std::uint64_t lost_with(std::uint32_t ingress_bytes) {
  port::config slow;
  slow.ingress_bytes = ingress_bytes;
  slow.xoff_bytes = 4'000;
  slow.xon_bytes = 2'000;
  bench t({}, slow);
  t.b.count_what_waits();
  t.b.rx.from = 20'000;
  t.b.rx.interval = 100;
  t.b.mac.cr_write(cr::pfctx, 0x08);
  t.a.mac.cr_write(cr::pfcrx, 0x08);
  for (unsigned i = 0; i < 40; ++i) t.a.tx.send(t.frame(1082, 3, true));
  bench::run_ns(60'000);
  EXPECT_EQ(t.b.rx.notes.size() + t.b.mac.count().drop_overflow, 40u);
  return t.b.mac.count().drop_overflow;
}

TEST(mac_flow_control, lossless_with_the_smallest_headroom) { EXPECT_EQ(lost_with(6 * 1'086), 0u); }
TEST(mac_flow_control, a_byte_less_of_headroom_loses_a_frame) { EXPECT_GE(lost_with(6 * 1'086 - 1), 1u); }

TEST(mac_flow_control, pause_is_refreshed_before_it_runs_out) {
  port::config slow;
  slow.ingress_bytes = 20'000;
  slow.xoff_bytes = 4'000;
  slow.xon_bytes = 2'000;
  slow.pause_quanta = 200;  // 2560 ns at 40 Gb/s, repeated after half of it
  bench t({}, slow);
  t.b.rx.from = 12'000;
  t.b.mac.cr_write(cr::pfctx, 0x08);
  t.a.mac.cr_write(cr::pfcrx, 0x08);
  for (unsigned i = 0; i < 40; ++i) t.a.tx.send(t.frame(1082, 3, true));
  bench::run_ns(30'000);
  std::vector<line_log::note> pauses;
  for (const auto& n : t.log.notes)
    if (n.control) pauses.push_back(n);
  ASSERT_GT(pauses.size(), 8u);
  for (unsigned i = 1; i < 8; ++i) EXPECT_EQ(pauses[i].first_bit - pauses[i - 1].first_bit, 1'280'000u) << i;
  // While refreshed, the peer sends nothing: no data frame between its reaction and the first resume.
  for (const auto& n : t.log.notes) {
    if (n.control) continue;
    EXPECT_TRUE(n.first_bit < pauses[0].last_bit + 400'000 || n.first_bit > 12'000'000) << n.first_bit;
  }
  EXPECT_EQ(t.b.rx.notes.size(), 40u);
  EXPECT_EQ(t.b.mac.count().drop_overflow, 0u);
}

TEST(mac_flow_control, without_it_buffers_overflow) {
  port::config slow;
  slow.ingress_bytes = 8'000;
  slow.xoff_bytes = 4'000;
  slow.xon_bytes = 2'000;
  bench t({}, slow);
  t.b.rx.from = 10'000;
  for (unsigned i = 0; i < 20; ++i) t.a.tx.send(t.frame(1082, 3, true));
  for (unsigned i = 0; i < 3; ++i) t.a.tx.send(t.frame(1082, 5, true), 5'000);  // another buffer: not touched
  bench::run_ns(30'000);
  // Seven of 1086 bytes fit into 8000, two are in the channel behind.
  EXPECT_EQ(t.b.mac.count().drop_overflow, 11u);
  EXPECT_EQ(t.b.rx.notes.size(), 12u);
  EXPECT_EQ(t.b.mac.cr_read(cr::eth_stats + 0xb9c), 11u);
  EXPECT_EQ(t.b.mac.count().tx_pause, 0u);
}

TEST(mac_flow_control, headroom_formula) {
  // The worked example of adapter data plane E.5: 32 104 B (32 236 by the other method).
  EXPECT_EQ(pfc_headroom_bytes(40'000, 100, 4'200), 32'104u);
}

/// Three frames with preamble and gap, a pause, and what the line brings while it is on its way: 5 bytes a nanosecond.
TEST(mac_flow_control, the_most_that_can_still_come) {
  EXPECT_EQ(most_after_stop(40'000, 4'200, 300'000), 3 * 4'220 + 84 + 1'500u);
  EXPECT_EQ(most_after_stop(1'000, 1'500, 1), 3 * 1'520 + 84 + 1u);
  port::config c;
  // Ways in and out of both ends, 80 + 60 ns and 15 of cycles; 3 m of cable there and back.
  EXPECT_EQ(most_after_stop(c), 3 * 4'220 + 84 + (2 * 155'000 + 30'300) * 5 / 1'000 + 1u);
  c.rate_mbps = 1'000;
  EXPECT_EQ(headroom_bytes(c), most_after_stop(c)) << "the formula is for faster lines";
}

/// At 10 Gb/s what is kept behind XOFF is for frames of the line. One for the own port that has begun to turn before
/// needs room of its own.
TEST(mac_flow_control, frames_for_the_own_port_leave_the_headroom_to_the_line) {
  port::config c;
  c.rate_mbps = 10'000;
  bench t(c, c);
  t.b.count_what_waits();
  t.b.rx.from = 1'000'000;
  t.b.mac.cr_write(cr::pfctx, 0x08);
  t.a.mac.cr_write(cr::pfcrx, 0x08);
  for (unsigned i = 0; i < 30; ++i) t.a.tx.send(t.frame(4'196, 3, true));
  // The own port's frame begins to turn while the frame of the line that crosses XOFF comes in, and the line is in use
  // when the pause is to be sent.
  t.b.tx.send(t.frame(4'196, 0, true), 43'790);
  payload::frame_ptr own = t.frame(4'196, 3, true);
  own->loopback = payload::frame::loopback_only;
  t.b.tx.send(std::move(own), 43'800);
  bench::run_ns(80'000);
  EXPECT_EQ(t.b.mac.count().drop_overflow, 0u);
}

}  // namespace
}  // namespace rnic::mac::test
