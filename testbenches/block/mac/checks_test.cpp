// SPDX-License-Identifier: Apache-2.0
// What a port refuses, and what it counts.
#include <gtest/gtest.h>

#include "model/sim/check.h"
#include "model/wire/ethernet.h"
#include "model/wire/pause.h"
#include "testbenches/block/mac/bench.h"

namespace rnic::mac::test {
namespace {

/// Damages the n-th frame of side 0.
struct damage : fabric::cable_fault_if {
  explicit damage(unsigned which) : n(which) {}
  fate on_frame(unsigned from, payload::frame& f) override {
    if (from == 0 && n-- == 0) f.data()[30] ^= 0x10;
    return fate::pass;
  }
  unsigned n;
};

payload::frame_ptr with_fcs(payload::frame_ptr f) {
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  return f;
}

TEST(mac_checks, wrong_fcs_is_dropped_and_counted) {
  bench t;
  damage second(1);
  t.line.set_fault(&second);
  for (unsigned i = 0; i < 3; ++i) t.a.tx.send(t.frame(200, 0, false, static_cast<std::uint8_t>(i)));
  bench::run_ns(1'000);
  ASSERT_EQ(t.b.rx.notes.size(), 2u);
  EXPECT_EQ(t.b.rx.notes[0].frame->data()[18], 0);
  EXPECT_EQ(t.b.rx.notes[1].frame->data()[18], 2);
  EXPECT_EQ(t.b.mac.count().drop_fcs, 1u);
  EXPECT_EQ(t.b.mac.cr_read(cr::eth_stats + 0xb8c), 1u);  // RCRC
  EXPECT_EQ(t.b.mac.count().rx_frames, 2u);
}

/// A damaged frame of 64 bytes with its FCS is as long as a frame may be short: JAB, RCRC, RUNT at 0xb88.
TEST(mac_checks, the_shortest_frame_with_a_wrong_fcs_is_no_runt) {
  bench t;
  for (const unsigned bytes : {60u, 59u}) {
    payload::frame_ptr bad = with_fcs(t.frame(bytes));
    bad->fcs ^= 1;
    t.b.mac.deliver(std::move(bad), bytes == 60 ? 200'000 : 400'000);
  }
  bench::run_ns(1'000);
  EXPECT_EQ(t.b.mac.cr_read(cr::eth_stats + 0xb88), 0u);
  EXPECT_EQ(t.b.mac.cr_read(cr::eth_stats + 0xb8c), 1u);
  EXPECT_EQ(t.b.mac.cr_read(cr::eth_stats + 0xb90), 1u);
}

TEST(mac_checks, wrong_fcs_is_delivered_when_asked_for) {
  bench t;
  damage first(0);
  t.line.set_fault(&first);
  t.b.mac.cr_write(cr::ignore_fcs, 1);
  t.a.tx.send(t.frame(200));
  bench::run_ns(1'000);
  ASSERT_EQ(t.b.rx.notes.size(), 1u);
  EXPECT_FALSE(t.b.rx.notes[0].frame->fcs_ok);
}

TEST(mac_checks, runts_and_giants) {
  bench t;
  t.b.mac.cr_write(cr::mtu, 1522);
  t.b.mac.deliver(with_fcs(t.frame(59)), 200'000);  // 63 bytes with FCS
  t.b.mac.deliver(with_fcs(t.frame(8)), 201'000);
  t.b.mac.deliver(with_fcs(t.frame(1519)), 500'000);
  t.b.mac.deliver(with_fcs(t.frame(1518)), 900'000);
  bench::run_ns(2'000);
  ASSERT_EQ(t.b.rx.notes.size(), 1u);
  EXPECT_EQ(t.b.rx.notes[0].frame->length, 1518u);
  EXPECT_EQ(t.b.mac.count().drop_runt, 2u);
  EXPECT_EQ(t.b.mac.count().drop_too_long, 1u);
  EXPECT_EQ(t.b.mac.cr_read(cr::eth_stats + 0xb94), 2u);              // RSHORT
  EXPECT_EQ(t.b.mac.cr_read(cr::eth_stats + 0xba0), 1u);              // RdropLength
  EXPECT_EQ(t.b.mac.cr_read(cr::eth_stats + 0x288 + 8 * 8 + 4), 1u);  // giants, untagged
}

TEST(mac_checks, unknown_control_is_consumed) {
  bench t;
  payload::frame_ptr f = t.frame(60);
  wire::store_be16(f->data() + 12, 0x8808);
  wire::store_be16(f->data() + 14, 0x0002);
  t.b.mac.deliver(with_fcs(std::move(f)), 200'000);
  bench::run_ns(1'000);
  EXPECT_TRUE(t.b.rx.notes.empty());
  EXPECT_EQ(t.b.mac.count().drop_control, 1u);
}

payload::frame_ptr cnm(bench& t, bool tagged) {
  payload::frame_ptr f = t.frame(106, 6, tagged);
  wire::store_be16(f->data() + (tagged ? 16 : 12), 0x22e7);
  return with_fcs(std::move(f));
}

/// Their way: a cycle behind the check, whatever waits in the ingress buffers.
TEST(mac_checks, congestion_notification_messages_are_taken_out_where_asked_for) {
  bench t;
  sim::fifo<payload::frame_ptr> way("b.to_cnms", t.domain, 2);
  taker cnms("b.cnms", t.domain);
  t.b.mac.cnm_out.bind(way);
  cnms.in.bind(way);
  t.b.rx.from = 1'000'000;  // nobody takes frames
  t.b.mac.deliver(cnm(t, true), 100'000);
  bench::run_ns(300);
  EXPECT_TRUE(cnms.notes.empty()) << "like any other frame";
  EXPECT_EQ(t.b.mac.count().rx_frames, 1u);
  EXPECT_EQ(t.b.mac.cr_read(cr::takes_cnms), 0u);
  t.b.mac.cr_write(cr::takes_cnms, 1);
  EXPECT_EQ(t.b.mac.cr_read(cr::takes_cnms), 1u);
  t.b.mac.deliver(cnm(t, true), 400'000);
  t.b.mac.deliver(cnm(t, false), 500'000);
  t.b.mac.deliver(with_fcs(t.frame(106, 6, true)), 600'000);
  payload::frame_ptr bad = cnm(t, true);
  bad->fcs ^= 1;
  t.b.mac.deliver(std::move(bad), 700'000);
  bench::run_ns(700);
  ASSERT_EQ(cnms.notes.size(), 2u);
  EXPECT_EQ(cnms.notes[0].at, 481'000u);
  EXPECT_EQ(cnms.notes[1].at, 581'000u);
  EXPECT_EQ(t.b.mac.count().rx_cnm, 2u);
  EXPECT_EQ(t.b.mac.count().rx_frames, 2u);
  EXPECT_EQ(t.b.mac.count().drop_fcs, 1u);
  // Those for which there is no room are dropped: the line cannot wait.
  cnms.from = 2'000'000;
  for (unsigned i = 0; i < 5; ++i) t.b.mac.deliver(cnm(t, true), 1'100'000 + i * 50'000);
  bench::run_ns(600);
  EXPECT_EQ(t.b.mac.count().rx_cnm, 7u);
  EXPECT_EQ(t.b.mac.count().drop_cnm, 3u);
  EXPECT_EQ(t.b.mac.cr_read(cr::dropped_cnms), 3u);
  t.b.mac.device_reset();
  EXPECT_EQ(t.b.mac.cr_read(cr::takes_cnms), 0u);
}

TEST(mac_checks, priority_is_pcp_or_default) {
  bench t;
  t.b.mac.cr_write(cr::default_priority, 2);
  t.a.tx.send(t.frame(100, 5, true));
  t.a.tx.send(t.frame(100, 5, false));
  bench::run_ns(1'000);
  ASSERT_EQ(t.b.rx.notes.size(), 2u);
  EXPECT_EQ(t.b.rx.notes[0].frame->priority, 5);
  EXPECT_EQ(t.b.rx.notes[1].frame->priority, 2);
}

TEST(mac_checks, senders_notes_do_not_travel) {
  bench t;
  payload::frame_ptr f = t.frame(100);
  f->port = 1;
  f->insert_icrc = true;
  f->gid_index = 77;
  f->icrc_ok = false;
  f->span = 0;
  t.a.tx.send(std::move(f));
  bench::run_ns(1'000);
  ASSERT_EQ(t.b.rx.notes.size(), 1u);
  const payload::frame& r = *t.b.rx.notes[0].frame;
  EXPECT_EQ(r.port, 0);
  EXPECT_FALSE(r.insert_icrc);
  EXPECT_EQ(r.gid_index, 0);
  EXPECT_TRUE(r.icrc_ok);
}

TEST(mac_checks, link_down_drops_both_ways_and_returns_credits) {
  bench t;
  t.a.mac.cr_write(cr::port_control, 0);
  EXPECT_EQ(t.a.mac.cr_read(cr::port_status), 2u);
  for (unsigned i = 0; i < 3; ++i) t.a.tx.send(t.frame(100));
  t.b.tx.send(t.frame(100));
  bench::run_ns(1'000);
  EXPECT_TRUE(t.b.rx.notes.empty());
  EXPECT_TRUE(t.a.rx.notes.empty());
  EXPECT_EQ(t.a.mac.count().drop_tx_link_down, 3u);
  EXPECT_EQ(t.a.mac.count().drop_link_down, 1u);
  EXPECT_EQ(t.a.credits.by_priority[0], 3u);
  t.a.mac.cr_write(cr::port_control, 1);
  EXPECT_EQ(t.a.mac.cr_read(cr::port_status), 3u);
  t.a.tx.send(t.frame(100));
  bench::run_ns(1'000);
  EXPECT_EQ(t.b.rx.notes.size(), 1u);
}

TEST(mac_checks, link_down_with_full_credits_waits_for_their_room) {
  bench t;
  t.a.credits.from = 1'000;
  t.a.mac.cr_write(cr::port_control, 0);
  for (unsigned i = 0; i < 7; ++i) t.a.tx.send(t.frame(100));
  bench::run_ns(900);
  EXPECT_EQ(t.a.mac.count().drop_tx_link_down, 4u) << "the channel of credits holds four";
  bench::run_ns(1'000);
  EXPECT_EQ(t.a.mac.count().drop_tx_link_down, 7u);
  EXPECT_EQ(t.a.credits.by_priority[0], 7u);
}

/// The most bytes in the buffer when three frames of 104 bytes have come at one instant.
std::uint32_t most_of_three(std::uint64_t cycle_ps) {
  bench t({}, {}, {}, {cycle_ps, 1, 0});
  for (int i = 0; i < 3; ++i) {
    payload::frame_ptr f = t.frame(100);
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    t.a.mac.deliver(std::move(f), 1'000'000);
  }
  bench::run_ns(10'000);
  EXPECT_EQ(t.a.rx.notes.size(), 3u);
  return t.a.mac.buffers().max_occupancy(0);
}

// The first one's FCS and a beat for each cycle have left when the third is there, and nothing of the others.
TEST(mac_checks, receives_one_frame_a_cycle) { EXPECT_EQ(most_of_three(1000), 3 * 104u - 4 - 2 * 16); }

// 400 ns are as long as 23 of the shortest frames of 40 Gb/s.
TEST(mac_checks, receive_path_is_as_wide_as_the_line_is_fast) { EXPECT_EQ(most_of_three(400'000), 312u); }

TEST(mac_checks, dump_eth_stats_image) {
  bench t;
  for (unsigned i = 0; i < 3; ++i) t.a.tx.send(t.frame(1082, 3, true));
  t.a.tx.send(t.frame(60));
  payload::frame_ptr broadcast = t.frame(123);
  std::fill_n(broadcast->data(), 6, std::uint8_t{0xff});
  t.a.tx.send(std::move(broadcast));
  bench::run_ns(3'000);
  port& b = t.b.mac;
  EXPECT_EQ(b.cr_read(cr::eth_stats + 0x480 + 24 * 3), 0u);  // RTOT prio 3, high word
  EXPECT_EQ(b.cr_read(cr::eth_stats + 0x480 + 24 * 3 + 4), 3u);
  EXPECT_EQ(b.cr_read(cr::eth_stats + 0x3b8 + 24 * 3 + 4), 3u * 1086);  // ROCT
  EXPECT_EQ(b.cr_read(cr::eth_stats + 0x168 + 8 * 3 + 4), 3u);          // 1024-1518
  EXPECT_EQ(b.cr_read(cr::eth_stats + 0x000 + 8 * 8 + 4), 1u);          // 64, untagged
  EXPECT_EQ(b.cr_read(cr::eth_stats + 0x048 + 8 * 8 + 4), 1u);          // 65-127, untagged
  EXPECT_EQ(b.cr_read(cr::eth_stats + 0x2d0 + 8 * 8 + 4), 1u);          // broadcast
  EXPECT_EQ(b.cr_read(cr::eth_stats + 0xba4), 5u);                      // RTOTFRMS
  EXPECT_EQ(t.a.mac.cr_read(cr::eth_stats + 0xa98 + 24 * 3 + 4), 3u);   // TTOT
  EXPECT_EQ(t.a.mac.cr_read(cr::eth_stats + 0x9b8 + 24 * 3 + 4), 3u * 1086);
  EXPECT_EQ(t.a.mac.cr_read(cr::eth_stats + 0x728 + 8 * 3 + 4), 3u);
  b.cr_write(cr::reset_counters, 1);
  for (std::uint32_t i = 0; i < cr::eth_stats_bytes; i += 4) EXPECT_EQ(b.cr_read(cr::eth_stats + i), 0u);
  EXPECT_EQ(b.count().rx_frames, 5u);  // the simulation's own counters go on
}

TEST(mac_checks, registers) {
  bench t;
  EXPECT_EQ(t.a.mac.cr_read(cr::link_rate), 40'000u);
  EXPECT_EQ(t.a.mac.cr_read(cr::link_speed_code), 0x40u);
  EXPECT_EQ(t.a.mac.cr_read(cr::mac_high), 0x0200u);
  EXPECT_EQ(t.a.mac.cr_read(cr::mac_low), 1u);
  EXPECT_EQ(t.a.mac.cr_read(cr::mtu), 9216u);
  EXPECT_EQ(t.a.mac.cr_read(0x7ffc), 0u);
  t.a.mac.cr_write(cr::arbitration, 9);
  EXPECT_EQ(t.a.mac.cr_read(cr::arbitration), 1u);
}

TEST(mac_checks, bad_configuration_names_the_parameter) {
  payload::frame_pool pool;
  sim::span_recorder spans;
  sim::timebase base;
  sim::clock_domain domain("core", base, {1000, 1, 0});
  const auto refusal = [&](const port::config& c) -> std::string {
    try {
      port p("p", domain, c, pool, spans);
    } catch (const sim::config_error& e) {
      return e.what();
    }
    return "accepted";
  };
  port::config crossed;
  crossed.xoff_bytes = crossed.ingress_bytes + 1;
  EXPECT_NE(refusal(crossed).find("p.xoff_bytes"), std::string::npos);
  port::config low, high, unknown;
  low.mtu = 63;
  high.rate_mbps = 400'001;
  unknown.egress_arbitration = static_cast<arbitration>(3);
  EXPECT_EQ(refusal(low), "p.mtu: '63' is not legal, expected 64 to 10000 bytes");
  EXPECT_EQ(refusal(high), "p.rate_mbps: '400001' is not legal, expected 1000 to 400000 Mb/s");
  EXPECT_EQ(refusal(unknown), "p.egress_arbitration: '3' is not legal, expected strict, round_robin or ets");
}

/// 200 to 400 ns without carrier cut a frame of 180 to 500 ns; that the carrier goes once more, behind its last bit and
/// before its check at 580 ns, does not make it whole.
TEST(mac_checks, a_frame_that_was_cut_stays_cut_when_the_carrier_goes_again) {
  bench t;
  payload::frame_ptr f = t.frame(1'000);
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  f->stamp = 180'000;
  t.b.mac.deliver(std::move(f), 500'000);
  t.b.mac.carrier(false, 200'000);
  t.b.mac.carrier(true, 400'000);
  t.b.mac.carrier(false, 520'000);
  t.b.mac.carrier(true, 540'000);
  bench::run_ns(2'000);
  EXPECT_EQ(t.b.mac.count().drop_link_down, 1u);
  EXPECT_TRUE(t.b.rx.notes.empty());
}

/// A pause frame with a wrong FCS is delivered where firmware wants such frames, and stops nobody.
TEST(mac_checks, a_pause_frame_with_a_wrong_fcs_stops_nobody) {
  bench t;
  t.a.mac.cr_write(cr::pprx, 1);
  t.a.mac.cr_write(cr::ignore_fcs, 1);
  payload::frame_ptr f = t.pool.get();
  f->begin = payload::frame::payload_start;
  f->length = wire::pause_frame_length;
  wire::pause_frame p;
  p.quanta[0] = 0xffff;
  wire::encode_pause(p, {2, 0, 0, 0, 0, 9}, f->data());
  f->fcs = ~wire::ethernet_fcs(f->data(), f->length);
  t.a.mac.deliver(std::move(f), 100'000);
  bench::run_ns(1'000);
  EXPECT_EQ(t.a.mac.cr_read(cr::paused), 0u);
  EXPECT_EQ(t.a.mac.count().rx_pause, 0u);
  ASSERT_EQ(t.a.rx.notes.size(), 1u);
  EXPECT_FALSE(t.a.rx.notes[0].frame->fcs_ok);
}

TEST(mac_checks, a_notification_with_a_wrong_fcs_tells_nobody) {
  bench t;
  sim::fifo<payload::frame_ptr> way("b.to_cnms", t.domain, 2);
  taker cnms("b.cnms", t.domain);
  t.b.mac.cnm_out.bind(way);
  cnms.in.bind(way);
  t.b.mac.cr_write(cr::takes_cnms, 1);
  t.b.mac.cr_write(cr::ignore_fcs, 1);
  payload::frame_ptr bad = cnm(t, true);
  bad->fcs ^= 1;
  t.b.mac.deliver(std::move(bad), 100'000);
  bench::run_ns(700);
  EXPECT_TRUE(cnms.notes.empty());
  EXPECT_EQ(t.b.mac.count().drop_cnm, 1u);
}

}  // namespace
}  // namespace rnic::mac::test
