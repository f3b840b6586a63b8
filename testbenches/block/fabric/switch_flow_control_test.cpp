// SPDX-License-Identifier: Apache-2.0
// Who is stopped, by what, and who is not; and what is lost.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "testbenches/block/fabric/switch_rig.h"

namespace rnic::fabric::test {
namespace {

constexpr std::uint32_t length = 1000, stored_bytes = 1004;  // in the buffer, with FCS
constexpr sim::time_ps frame_time = (length + overhead + gap) * byte_ps;

switch_config lossless(lossless_by by, std::uint32_t headroom = 20'000) {
  switch_config c;
  c.buffer.flow_control = by;
  c.buffer.lossless_priorities = 0x18;  // 3 and 4
  c.buffer.bytes = 262'144;
  c.buffer.reserved_bytes = 2 * stored_bytes;
  c.buffer.headroom_bytes = headroom;
  c.buffer.lossless_alpha = 4;  // a sixteenth
  c.buffer.xon_gap_bytes = 2 * stored_bytes;
  return c;
}
constexpr int tagged(unsigned priority) { return static_cast<int>(priority << 13); }

std::optional<wire::pause_frame> pause_in(const payload::frame& f) {
  wire::pause_frame p;
  if (wire::decode_pause(f.data(), f.length, p) != wire::pause_kind::pause) return std::nullopt;
  EXPECT_EQ(wire::ethernet_fcs(f.data(), f.length), f.fcs);
  return p;
}
std::vector<wire::pause_frame> pauses(const plug& at) {
  std::vector<wire::pause_frame> all;
  for (const auto& [f, when] : at.got)
    if (const auto p = pause_in(*f)) all.push_back(*p);
  return all;
}

/// Two inputs fill the output of host 2, each at the rate of a line.
void two_to_one(rig& r, unsigned frames, int tag) {
  const sim::time_ps start = r.base.now_ps();
  for (unsigned i = 1; i <= frames; ++i)
    for (const unsigned from : {0u, 1u}) r.send(from, 2, length, start + i * frame_time, tag);
}

TEST(switch_flow_control, pause_stops_who_fills_and_lets_go) {
  rig r(4, lossless(lossless_by::pause));
  r.teach();
  two_to_one(r, 40, -1);
  r.run(r.base.now_ps() + 100'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 80u) << "nothing is lost";
  for (const unsigned from : {0u, 1u}) {
    const auto told = pauses(r.plugs[from]);
    ASSERT_EQ(told.size(), 2u) << from;
    for (unsigned i = 0; i < 2; ++i) {
      EXPECT_FALSE(told[i].per_priority);
      EXPECT_EQ(told[i].quanta[0] != 0, i == 0);
    }
  }
  EXPECT_TRUE(r.plugs[3].got.empty()) << "who has nothing in the buffer is not stopped";
}

TEST(switch_flow_control, pfc_stops_the_priority_that_fills) {
  rig r(3, lossless(lossless_by::pfc));
  r.teach();
  two_to_one(r, 40, tagged(3));
  r.run(r.base.now_ps() + 100'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 80u);
  const auto told = pauses(r.plugs[0]);
  ASSERT_EQ(told.size(), 2u);
  for (unsigned i = 0; i < 2; ++i) {
    EXPECT_TRUE(told[i].per_priority);
    EXPECT_EQ(told[i].enabled, 0x08);
    EXPECT_EQ(told[i].quanta[3] != 0, i == 0);
  }
}

/// What the peer of an output says of its priority 3; 0 quanta: it goes on.
wire::pause_frame pause_of(std::uint16_t quanta) {
  wire::pause_frame p;
  p.per_priority = true;
  p.enabled = 0x08;
  p.quanta[3] = quanta;
  return p;
}

/// Output 2 may send nothing of priority 3, from 1 us behind the time that is returned on.
sim::time_ps stop_output(rig& r) {
  const sim::time_ps start = r.base.now_ps();
  r.pause(2, pause_of(0xffff), start + 1'000'000);  // 839 us
  return start;
}

/// Then input 0 has frames for it, which take its priority 3 above XOFF.
sim::time_ps fill_a_paused_output(rig& r) {
  const sim::time_ps start = stop_output(r);
  for (unsigned i = 1; i <= 18; ++i) r.send(0, 2, length, start + 2'000'000 + i * frame_time, tagged(3));
  return start;
}

/// How many of the frames that come after XOFF, while the output does nothing, are lost.
std::uint64_t lost_after_xoff(std::uint32_t headroom, unsigned frames_after) {
  rig r(3, lossless(lossless_by::pfc, headroom));
  r.teach();
  stop_output(r);
  // Two frames are in what is reserved. Of 262144 bytes 3 * 2 * (2008 + headroom) are not shared; a sixteenth of what
  // is free of the others takes as many frames as the loop finds, then XOFF is sent.
  unsigned sent = 0;
  while (r.middle->stopped(0) == 0) {
    r.send(0, 2, length, r.base.now_ps() + frame_time, tagged(3));
    r.run(r.base.now_ps() + frame_time + 10'000);
    ++sent;
  }
  EXPECT_GT(sent, 3u);
  EXPECT_EQ(r.middle->buffer().headroom_used(0, 3), stored_bytes) << "the frame that was too much";
  for (unsigned i = 1; i < frames_after; ++i) {
    r.send(0, 2, length, r.base.now_ps() + frame_time, tagged(3));
    r.run(r.base.now_ps() + frame_time + 10'000);
  }
  return r.counted("port0.drop_headroom");
}

TEST(switch_flow_control, headroom_holds_what_comes_after_xoff) {
  EXPECT_EQ(lost_after_xoff(10 * stored_bytes, 10), 0u);
}

TEST(switch_flow_control, a_byte_less_of_headroom_loses_a_frame) {
  EXPECT_EQ(lost_after_xoff(10 * stored_bytes - 1, 10), 1u);
}

TEST(switch_flow_control, what_is_not_lossless_is_dropped_at_its_queue) {
  switch_config c = lossless(lossless_by::pfc);
  c.buffer.lossy_alpha = 4;
  rig r(3, c);
  r.teach();
  two_to_one(r, 60, tagged(0));
  r.run(r.base.now_ps() + 100'000'000);
  EXPECT_TRUE(pauses(r.plugs[0]).empty());
  EXPECT_GT(r.counted("port2.drop_queue"), 0u);
  EXPECT_EQ(r.plugs[2].got.size() + r.counted("port2.drop_queue"), 120u);
  EXPECT_EQ(r.middle->buffer().shared_used(), 0u) << "all room has been given back";
}

/// Input 0 fills output 2, which is paused; its frames to output 3 of another priority, and input 1's, go on.
TEST(switch_flow_control, no_blocking_between_what_has_nothing_to_do_with_each_other) {
  rig r(4, lossless(lossless_by::pfc));
  r.teach();
  const sim::time_ps start = fill_a_paused_output(r);
  r.run(start + 10'000'000);
  ASSERT_EQ(pauses(r.plugs[0]).size(), 1u) << "its priority 3 is above XOFF";
  EXPECT_TRUE(r.plugs[2].got.empty());
  EXPECT_EQ(r.middle->held(2), 0x08);
  EXPECT_EQ(r.middle->stopped(0), 0x08);
  const sim::time_ps then = r.base.now_ps();
  r.send(0, 3, length, then + 1'000'000, tagged(4));
  r.send(0, 2, length, then + 2'000'000, tagged(4));
  r.send(1, 3, length, then + 1'000'000, tagged(3));
  r.send(1, 2, length, then + 3'000'000, tagged(0));
  r.run(then + 5'000'000);
  EXPECT_EQ(r.plugs[3].got.size(), 2u);
  EXPECT_EQ(r.plugs[2].got.size(), 2u) << "priorities 4 and 0 of the paused output";
  EXPECT_TRUE(pauses(r.plugs[1]).empty());
  r.pause(2, pause_of(0), then + 6'000'000);
  r.run(then + 30'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 20u);
  EXPECT_EQ(pauses(r.plugs[0]).size(), 2u);
  EXPECT_EQ(r.middle->stopped(0), 0u);
}

TEST(switch_flow_control, a_pause_is_refreshed_before_it_runs_out) {
  switch_config c = lossless(lossless_by::pause);
  c.pause_quanta = 200;  // 2.56 us
  rig r(3, c);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  r.pause(2, 0xffff, start + 1'000'000);
  for (unsigned i = 1; i <= 18; ++i) r.send(0, 2, length, start + 2'000'000 + i * frame_time);
  r.run(start + 20'000'000);
  const auto told = pauses(r.plugs[0]);
  ASSERT_GE(told.size(), 8u);
  sim::time_ps last = 0;
  for (const auto& [f, at] : r.plugs[0].got) {
    if (last != 0) {
      EXPECT_LE(at - last, 200u * 512 * byte_ps / 8 / 2 + 1'000);
    }
    last = at;
  }
}

/// Priority 3 of input 0 is above XOFF because output 2 is paused; then the cable of a port is out for 2 us.
struct flapped {
  explicit flapped(unsigned at) : r(4, lossless(lossless_by::pfc)) {
    r.teach();
    const sim::time_ps start = fill_a_paused_output(r);
    r.run(start + 10'000'000);
    EXPECT_EQ(pauses(r.plugs[0]).size(), 1u);
    EXPECT_EQ(r.middle->held(2), 0x08);
    out = start + 11'000'000;
    back = start + 13'000'000;
    r.middle->port(at).carrier(false, out);
    r.run(start + 12'000'000);
    r.middle->port(at).carrier(true, back);
  }
  rig r;
  sim::time_ps out = 0, back = 0;
};

/// Pauses of one quantum, which is shorter than the frame that tells it: of those one at a time waits for the line.
TEST(switch_flow_control, no_more_pauses_are_told_than_the_line_takes) {
  switch_config c = lossless(lossless_by::pfc);
  c.pause_quanta = 1;
  rig r(3, c);
  r.teach();
  const sim::time_ps start = fill_a_paused_output(r);
  r.run(start + 20'000'000);
  ASSERT_EQ(r.middle->stopped(0), 0x08);
  const std::size_t heard = pauses(r.plugs[0]).size();
  EXPECT_GT(heard, 100u);
  EXPECT_LE(r.counted("port0.tx_pause"), heard + 2) << "on the line and in front of it";
}

/// Who comes back knows of no pause and sends: without a new one its frames would be lost.
TEST(switch_flow_control, who_comes_back_is_told_anew) {
  flapped f(0);
  f.r.run(f.back - 1'000);
  EXPECT_EQ(pauses(f.r.plugs[0]).size(), 1u) << "nobody is told over a cable that is out";
  f.r.run(f.back + 100'000);
  const auto told = pauses(f.r.plugs[0]);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[1].enabled, 0x08);
  EXPECT_EQ(told[1].quanta[3], 0xffff);
  EXPECT_GE(f.r.plugs[0].got.back().second, f.back);
}

/// What the peer had paused goes out when it is back.
TEST(switch_flow_control, a_pause_ends_with_the_cable) {
  flapped f(2);
  f.r.run(f.back - 1'000);
  EXPECT_EQ(f.r.middle->held(2), 0u);
  f.r.run(f.back + 30'000'000);
  EXPECT_GT(f.r.plugs[2].got.size(), 15u);
  EXPECT_EQ(f.r.middle->stopped(0), 0u);
  EXPECT_EQ(pauses(f.r.plugs[0]).size(), 2u) << "input 0 goes on";
}

/// By which rings that stand still are found: other priorities do not count.
TEST(switch_flow_control, what_was_sent_is_counted_by_priority) {
  rig r(3, lossless(lossless_by::pfc));
  r.teach();
  const std::uint64_t before = r.middle->sent(2, 0);
  for (unsigned i = 1; i <= 3; ++i) r.send(0, 2, length, r.base.now_ps() + i * frame_time, tagged(3));
  r.send(1, 2, length, r.base.now_ps() + frame_time, tagged(0));
  r.run(r.base.now_ps() + 10'000'000);
  EXPECT_EQ(r.middle->sent(2, 3), 3u);
  EXPECT_EQ(r.middle->sent(2, 0), before + 1);
  EXPECT_EQ(r.middle->sent(2, 4), 0u);
}

}  // namespace
}  // namespace rnic::fabric::test
