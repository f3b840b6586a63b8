// SPDX-License-Identifier: Apache-2.0
// Times on the line to the picosecond, against literals worked out by hand.
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/wire/ethernet.h"
#include "model/wire/packet.h"
#include "testbenches/block/mac/bench.h"

namespace rnic::mac::test {
namespace {

port::config at_rate(std::uint32_t mbps) {
  port::config c;
  c.rate_mbps = mbps;
  return c;
}

/// Frames of 1082 bytes before the FCS (RoCE v2 over IPv4, 1024 bytes of payload): 8 + 1082 + 4 + 12 = 1106 byte times.
void check_back_to_back(std::uint32_t mbps, sim::time_ps interval, sim::time_ps first_to_last_bit) {
  bench t(at_rate(mbps), at_rate(mbps));
  for (unsigned i = 0; i < 20; ++i) t.a.tx.send(t.frame(1082));
  bench::run_ns(30'000);
  ASSERT_EQ(t.log.notes.size(), 20u);
  // The sender pushes at edge 1, the port takes the frame at edge 2 and starts it; the first bit leaves 60 ns later.
  EXPECT_EQ(t.log.notes[0].first_bit, 62'000u);
  for (unsigned i = 0; i < 20; ++i) {
    EXPECT_EQ(t.log.notes[i].first_bit, 62'000 + i * interval) << i;
    EXPECT_EQ(t.log.notes[i].last_bit, 62'000 + i * interval + first_to_last_bit) << i;
  }
}

TEST(mac_timing, back_to_back_10g) { check_back_to_back(10'000, 884'800, 875'200); }
TEST(mac_timing, back_to_back_40g) { check_back_to_back(40'000, 221'200, 218'800); }
TEST(mac_timing, back_to_back_100g) { check_back_to_back(100'000, 88'480, 87'520); }

TEST(mac_timing, back_to_back_56g_keeps_fractions) {
  bench t(at_rate(56'000), at_rate(56'000));
  // 1107 byte times at 56 Gb/s are 158142 6/7 ps: seven of them are exactly 1 107 000 ps.
  for (unsigned i = 0; i < 15; ++i) t.a.tx.send(t.frame(1083));
  bench::run_ns(10'000);
  ASSERT_EQ(t.log.notes.size(), 15u);
  EXPECT_EQ(t.log.notes[0].first_bit, 62'000u);
  EXPECT_EQ(t.log.notes[1].first_bit, 62'000u + 158'142u);
  EXPECT_EQ(t.log.notes[2].first_bit, 62'000u + 316'285u);
  EXPECT_EQ(t.log.notes[7].first_bit, 62'000u + 1'107'000u);
  EXPECT_EQ(t.log.notes[14].first_bit, 62'000u + 2'214'000u);
}

TEST(mac_timing, end_to_end_and_stages) {
  bench t;
  t.spans.enable(true);
  payload::frame_ptr f = t.frame(1082);
  const sim::span_id id = t.spans.open(1'000);
  f->span = id;
  t.a.tx.send(std::move(f));
  bench::run_ns(1'000);
  ASSERT_EQ(t.b.rx.notes.size(), 1u);
  // start 2000, first bit 62000, last bit 62000 + 1094 * 200 = 280800, 3 m of cable 15150: 295950; 80 ns later 375950:
  // edge 376; pushed there, taken at edge 377.
  EXPECT_EQ(t.b.rx.notes[0].frame->stamp, 295'950u);
  EXPECT_EQ(t.b.rx.notes[0].at, 377'000u);
  const sim::span& s = t.spans[id];
  using mark = std::tuple<std::string, sim::time_ps, sim::wait>;
  std::vector<mark> marks;
  for (unsigned i = 0; i != s.count(); ++i) marks.emplace_back(s[i].stage, s[i].at, s[i].waited);
  // MAC 22, PCS 26, PMA 12 ns; PMA 14, PCS 36, MAC 30 ns and to the edge.
  const std::vector<mark> wanted = {{"egress queue", 2'000, sim::wait::none}, {"mac tx", 24'000, sim::wait::none},
                                    {"pcs tx", 50'000, sim::wait::none},      {"pma tx", 62'000, sim::wait::none},
                                    {"wire", 295'950, sim::wait::wire},       {"pma rx", 309'950, sim::wait::none},
                                    {"pcs rx", 345'950, sim::wait::none},     {"mac rx", 376'000, sim::wait::none}};
  EXPECT_EQ(marks, wanted);
}

TEST(mac_timing, a_code_word_is_gathered_and_decoded_behind_the_last_bit) {
  port::config coded;
  coded.fec = port_config::line_code::rs_528_514;
  bench t(coded, coded);
  t.spans.enable(true);
  payload::frame_ptr f = t.frame(1082);
  const sim::span_id id = t.spans.open(1'000);
  f->span = id;
  t.a.tx.send(std::move(f));
  bench::run_ns(2'000);
  ASSERT_EQ(t.b.rx.notes.size(), 1u);
  const sim::span& s = t.spans[id];
  ASSERT_EQ(s.count(), 11u);
  // 5120 bits at 40 Gb/s are 128 ns.
  const sim::time_ps last_bit = s[4].at;
  const std::pair<const char*, sim::time_ps> stages[] = {{"pma rx", 14'000},
                                                         {"rs-fec word", 142'000},
                                                         {"rs-fec locate", 166'000},
                                                         {"rs-fec correct", 191'000},
                                                         {"pcs rx", 227'000}};
  for (unsigned i = 0; i != std::size(stages); ++i) {
    EXPECT_STREQ(s[5 + i].stage, stages[i].first);
    EXPECT_EQ(s[5 + i].at - last_bit, stages[i].second) << stages[i].first;
    EXPECT_EQ(s[5 + i].waited, i == 1 ? sim::wait::wire : sim::wait::none);
  }
  EXPECT_STREQ(s[10].stage, "mac rx");
}

TEST(mac_timing, short_frames_are_padded) {
  bench t;
  t.a.tx.send(t.frame(20));
  t.a.tx.send(t.frame(60));
  t.a.tx.send(t.frame(60));
  bench::run_ns(1'000);
  ASSERT_EQ(t.log.notes.size(), 3u);
  // 8 + 64 + 12 = 84 byte times = 16800 ps at 40 Gb/s.
  EXPECT_EQ(t.log.notes[1].first_bit - t.log.notes[0].first_bit, 16'800u);
  EXPECT_EQ(t.log.notes[2].first_bit - t.log.notes[1].first_bit, 16'800u);
  ASSERT_EQ(t.b.rx.notes.size(), 3u);
  EXPECT_EQ(t.b.rx.notes[0].frame->length, 60u);
  EXPECT_EQ(t.b.rx.notes[0].frame->data()[20], 0);
}

/// Bytes of line time of the packets in calibration 7.1.
TEST(mac_timing, wire_bytes_of_roce_packets) {
  using wire::encapsulation;
  struct row {
    std::uint8_t opcode;
    encapsulation encap;
    bool vlan;
    std::uint32_t payload, wire_bytes;
  };
  const row rows[] = {
      {0x0a, encapsulation::roce_v2_ipv4, false, 2, 102},   {0x0a, encapsulation::roce_v2_ipv4, false, 64, 162},
      {0x0a, encapsulation::roce_v2_ipv4, false, 256, 354}, {0x0a, encapsulation::roce_v2_ipv4, false, 1024, 1122},
      {0x11, encapsulation::roce_v2_ipv4, false, 0, 86},    {0x0c, encapsulation::roce_v2_ipv4, false, 0, 98},
      {0x81, encapsulation::roce_v2_ipv4, false, 16, 98},   {0x14, encapsulation::roce_v2_ipv4, false, 0, 110},
      {0x0a, encapsulation::roce_v1, false, 2, 114},        {0x0a, encapsulation::roce_v1, false, 1024, 1134},
      {0x11, encapsulation::roce_v1, false, 0, 98},         {0x0a, encapsulation::roce_v2_ipv6, false, 2, 122},
      {0x0a, encapsulation::roce_v2_ipv6, false, 256, 374}, {0x11, encapsulation::roce_v2_ipv6, false, 0, 106},
      {0x11, encapsulation::roce_v2_ipv6, true, 0, 110}};
  bench t;
  for (const row& r : rows) {
    wire::packet p;
    p.bth.opcode = r.opcode;
    p.encap = r.encap;
    p.vlan_present = r.vlan;
    p.payload_length = r.payload;
    payload::frame_ptr f = t.pool.get();
    std::uint8_t* first = wire::build(p, f->buffer.data() + payload::frame::payload_start);
    f->begin = static_cast<std::uint32_t>(first - f->buffer.data());
    f->length = p.icrc_offset + 4;
    t.a.tx.send(std::move(f));
  }
  t.a.tx.send(t.frame(60));
  bench::run_ns(3'000);
  ASSERT_EQ(t.log.notes.size(), std::size(rows) + 1);
  for (std::size_t i = 0; i < std::size(rows); ++i)
    EXPECT_EQ(t.log.notes[i + 1].first_bit - t.log.notes[i].first_bit, rows[i].wire_bytes * 200) << i;
}

/// At a core clock that does not divide the frame time the line still has no gaps: 30.86 million WRITEs of 64 bytes a
/// second at 40 Gb/s (calibration 7.1).
TEST(mac_timing, line_rate_does_not_depend_on_the_core_clock) {
  bench t({}, {}, {}, sim::clock_period::from_khz(427'000));
  for (unsigned i = 0; i < 1000; ++i) t.a.tx.send(t.frame(138));
  bench::run_ns(40'000);
  ASSERT_EQ(t.log.notes.size(), 1000u);
  EXPECT_EQ(t.log.notes[999].first_bit - t.log.notes[0].first_bit, 999u * 162 * 200);
}

/// A frame of 1082 bytes whose first byte is in the port at edge 2, `width` more in each cycle behind.
sim::time_ps first_bit_of_a_frame_that_comes_in(unsigned width) {
  port::config c;
  c.datapath_bytes = width;
  bench t(c, {});
  payload::frame_ptr f = t.frame(1082);
  f->first_byte = 2;
  t.a.tx.send(std::move(f));
  t.a.tx.send(t.frame(60));
  bench::run_ns(3'000);
  EXPECT_EQ(t.log.notes.size(), 2u);
  EXPECT_EQ(t.log.notes[1].first_bit - t.log.notes[0].first_bit, 1'106u * 200) << "the line has no gap";
  return t.log.notes[0].first_bit;
}

TEST(mac_timing, cut_through_starts_with_the_first_byte_of_a_datapath_that_is_faster_than_the_line) {
  EXPECT_EQ(first_bit_of_a_frame_that_comes_in(16), 62'000u);
}

TEST(mac_timing, cut_through_starts_with_the_first_byte_of_a_datapath_as_fast_as_the_line) {
  EXPECT_EQ(first_bit_of_a_frame_that_comes_in(5), 62'000u);  // the preamble comes first
}

TEST(mac_timing, cut_through_starts_when_no_byte_of_a_slower_datapath_comes_late) {
  // The last two bytes, 1080 and 1081, are there at edge 2 + 540, and the line wants them 1088 byte times of 200 ps
  // behind the start.
  EXPECT_EQ(first_bit_of_a_frame_that_comes_in(2), 542'000u - 1'088 * 200 + 60'000);
}

TEST(mac_timing, last_bytes_are_written_while_the_frame_is_on_the_line) {
  bench t;
  payload::frame_ptr f = t.frame(1082);
  f->first_byte = 2;
  f->open = true;
  payload::frame_ptr same = f;
  t.a.tx.send(std::move(f));
  bench::run_ns(60);  // it is on the line; its last byte is there at edge 2 + 67
  same->data()[1081] = 0xa5;
  same->open = false;
  same.reset();
  bench::run_ns(1'000);
  ASSERT_EQ(t.b.rx.notes.size(), 1u);
  EXPECT_EQ(t.b.rx.notes[0].frame->data()[1081], 0xa5);
  EXPECT_EQ(t.b.rx.notes[0].frame->stamp, 295'950u) << "as any other";
}

TEST(mac_timing, frames_are_read_out_of_the_ingress_buffer_a_beat_a_cycle) {
  port::config narrow;
  narrow.datapath_bytes = 4;  // at 1 GHz slower than the line
  bench t({}, narrow);
  for (unsigned i = 0; i < 3; ++i) t.a.tx.send(t.frame(1082));
  bench::run_ns(3'000);
  ASSERT_EQ(t.b.rx.notes.size(), 3u);
  EXPECT_EQ(t.b.rx.notes[0].at, 377'000u);
  EXPECT_EQ(t.b.rx.notes[1].at, 377'000u + 271'000);  // 1082 bytes
  EXPECT_EQ(t.b.rx.notes[2].at, 377'000u + 2 * 271'000);
  EXPECT_EQ(t.b.rx.notes[2].frame->first_byte, 377u + 2 * 271);
}

TEST(mac_timing, cable_length) {
  bench t;
  EXPECT_EQ(t.line.propagation_ps(), 15'150u);
  fabric::cable longer(t.a.mac, t.b.mac, {100, 5'050});
  EXPECT_EQ(longer.propagation_ps(), 505'000u);
}

}  // namespace
}  // namespace rnic::mac::test
