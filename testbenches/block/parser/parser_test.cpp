// SPDX-License-Identifier: Apache-2.0
// Where the parser sends a frame, why it drops one, and when.
#include "model/parser/parser.h"

#include <gtest/gtest.h>

#include <deque>
#include <systemc>
#include <utility>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/gid/gid_match.h"
#include "model/sim/timebase.h"
#include "testbenches/bench/held_up.h"

namespace rnic::parser {
namespace {

class rim : public sim::clocked_block {
 public:
  rim(sim::clock_domain& d, parser& p, bool ethernet = true, unsigned bytes = 16)
      : clocked_block("rim", d),
        width(bytes),
        mac("mac", d, 8),
        roce("roce", d, 2),
        plain("plain", d, 2),
        mac_out(*this),
        roce_in(*this),
        plain_in(*this) {
    for (auto* c : {&mac, &roce, &plain}) c->forward_by(sim::forwarding::cut_through);
    mac_out.bind(mac);
    p.mac_in.bind(mac);
    p.roce_out.bind(roce);
    roce_in.bind(roce);
    if (ethernet) {
      p.ethernet_out.bind(plain);
      plain_in.bind(plain);
    }
  }
  unsigned width;
  sim::fifo<payload::frame_ptr> mac, roce, plain;
  sim::fifo_out<payload::frame_ptr> mac_out;
  sim::fifo_in<payload::frame_ptr> roce_in, plain_in;
  std::deque<payload::frame_ptr> to_send;
  std::vector<std::pair<sim::cycle_t, payload::frame_ptr>> got;
  std::vector<payload::frame_ptr> got_plain;
  bool blocked = false;

 private:
  void tick() override {
    if (!blocked && roce_in.can_pop()) got.emplace_back(now(), roce_in.pop());
    if (plain_in.bound() && plain_in.can_pop()) got_plain.push_back(plain_in.pop());
    if (to_send.empty() || !mac_out.claim()) return;
    if (now() < line_free_) return wake_at(line_free_);
    line_free_ = now() + payload::beats_of(to_send.front()->length, width);
    payload::stream_out(mac_out, std::move(to_send.front()), now(), 0, width);
    to_send.pop_front();
    if (!to_send.empty()) wake_at(line_free_);
  }
  sim::cycle_t line_free_ = 0;
};

struct bench {
  explicit bench(bool ethernet = true, const parser::config& cfg = {}, const gid::match_config& how = {})
      : core("core", base, {1000, 1, 0}),
        match(how, gids),
        p("parser", core, cfg, gids, match, port, spans, stats),
        r(core, p, ethernet, cfg.bytes_per_cycle) {
    gids.cr_write(gid::cr::mac_word(0, 0), gid::cr::mac_valid | 0x0200);
    gids.cr_write(gid::cr::mac_word(0, 1), 1);
    gids.cr_write(gid::cr::gid_word(4, 2), 0xffff);
    gids.cr_write(gid::cr::gid_word(4, 3), 0x0a000001);
    gids.cr_write(gid::cr::gid_word(4, 4), gid::cr::gid_valid | 2u << gid::cr::gid_type_shift);
    gids.cr_write(gid::cr::gid_word(9, 0), 0xfe800000);
    gids.cr_write(gid::cr::gid_word(9, 3), 9);
    gids.cr_write(gid::cr::gid_word(9, 4), gid::cr::gid_valid | gid::cr::gid_vlan_valid | 77);
  }
  static wire::packet packet() {
    wire::packet w;
    w.dmac = {2, 0, 0, 0, 0, 1};
    w.smac = {2, 0, 0, 0, 0, 2};
    w.sgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
    w.dgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
    w.bth.opcode = 0x04;
    w.bth.dest_qp = 0x48;
    w.udp_dest = 4791;
    return w;
  }
  static wire::packet version1() {
    wire::packet w = packet();
    w.encap = wire::encapsulation::roce_v1;
    w.sgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8};
    w.dgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
    w.vlan_present = true;
    w.vlan_tci = 5 << 13 | 77;
    return w;
  }
  payload::frame& send(wire::packet w, std::uint32_t payload = 64) {
    payload::frame_ptr f = frames.get();
    w.payload_length = payload;
    const std::uint8_t* first = wire::build(w, f->buffer.data() + payload::frame::payload_start);
    f->begin = static_cast<std::uint32_t>(first - f->buffer.data());
    f->length = w.icrc_offset + 4;
    r.to_send.push_back(f);
    r.wake_next();
    return *r.to_send.back();
  }
  void run(unsigned cycles = 500) { sc_core::sc_start(sc_core::sc_time(cycles, sc_core::SC_NS)); }

  sim::timebase base;
  sim::clock_domain core;
  gid::gid_table gids;
  gid::gid_match match;
  std::uint16_t port = 4791;
  sim::span_recorder spans;
  sim::statistics stats;
  payload::frame_pool frames;
  parser p;
  rim r;
};

TEST(parser, roce_goes_on_with_headers_and_gid_index) {
  bench b;
  b.send(bench::packet()).priority = 5;
  b.send(bench::version1());
  b.run();
  ASSERT_EQ(b.r.got.size(), 2u);
  const payload::frame& one = *b.r.got[0].second;
  EXPECT_EQ(one.gid_index, 4u);
  EXPECT_EQ(one.priority, 5);
  EXPECT_EQ(one.packet.bth.dest_qp, 0x48u);
  EXPECT_EQ(one.packet.payload_length, 64u);
  EXPECT_EQ(b.r.got[1].second->gid_index, 9u);
  EXPECT_EQ(b.stats.value("parser.roce_frames"), 2u);
}

TEST(parser, of_the_first_generation_takes_v2_for_plain_udp) {
  parser::config first;
  first.roce_v2 = false;
  bench b(true, first);
  b.send(bench::packet());
  b.send(bench::packet()).buffer[payload::frame::payload_start - 20] ^= 1;  // damaged or not: it does not look inside
  b.send(bench::version1());
  wire::packet elsewhere = bench::packet();
  elsewhere.dmac[5] = 9;
  b.send(elsewhere);
  b.run();
  ASSERT_EQ(b.r.got.size(), 1u);
  EXPECT_EQ(b.r.got[0].second->gid_index, 9u);
  EXPECT_EQ(b.r.got_plain.size(), 3u);
  EXPECT_EQ(b.stats.value("parser.ethernet_frames"), 3u);
  EXPECT_EQ(b.stats.value("parser.unclaimed_frames"), 0u);  // for steering it is no RoCE that nobody takes
}

TEST(parser, latency_and_rate) {
  bench b;
  for (unsigned i = 0; i < 6; ++i) b.send(bench::packet(), 1024);
  const std::uint32_t length = b.r.to_send[0]->length;
  b.run(1000);
  ASSERT_EQ(b.r.got.size(), 6u);
  // One cycle into the channel from the MAC, 3 until the fourth beat has brought the last of 54 bytes of headers, 2 in
  // the parser's stages, 2 in the match, one cycle out of it.
  EXPECT_EQ(b.r.got[0].first, 1u + 1u + 3u + 2u + 2u + 1u);
  EXPECT_EQ(b.r.got[0].second->first_byte, b.r.got[0].first);
  for (unsigned i = 1; i < 6; ++i) EXPECT_EQ(b.r.got[i].first - b.r.got[i - 1].first, (length + 15) / 16);
}

/// Four frames through a datapath of `width` bytes; the edge at which the first one leaves, and that the last byte of
/// none leaves beside one of the next.
void check_decision(unsigned width, bool first_version, std::uint32_t payload, sim::cycle_t expected) {
  parser::config cfg;
  cfg.bytes_per_cycle = width;
  bench b(true, cfg);
  for (unsigned i = 0; i < 4; ++i) b.send(first_version && i % 2 == 0 ? bench::version1() : bench::packet(), payload);
  b.run(20'000);
  ASSERT_EQ(b.r.got.size(), 4u);
  EXPECT_EQ(b.r.got[0].first, expected);
  for (unsigned i = 1; i < b.r.got.size(); ++i) {
    const payload::frame& before = *b.r.got[i - 1].second;
    EXPECT_GT(b.r.got[i].second->first_byte, payload::last_byte_at(before, width)) << width << ", frame " << i;
  }
}

// Seen at 2; headers of 54 bytes (IPv4) and of 70 (tag, GRH); then 2 + 2 cycles and the channel.
constexpr sim::cycle_t behind_headers = 2 + 2 + 1;
TEST(parser, decides_behind_the_last_byte_of_the_headers_1) { check_decision(1, false, 256, 2 + 53 + behind_headers); }
TEST(parser, decides_behind_the_last_byte_of_the_headers_16) { check_decision(16, false, 256, 2 + 3 + behind_headers); }
TEST(parser, decides_behind_the_last_byte_of_a_grh_16) { check_decision(16, true, 256, 2 + 4 + behind_headers); }
TEST(parser, decides_behind_the_last_byte_of_the_headers_64) { check_decision(64, false, 256, 2 + 0 + behind_headers); }
TEST(parser, decides_behind_the_last_byte_of_a_grh_64) { check_decision(64, true, 256, 2 + 1 + behind_headers); }
TEST(parser, decides_behind_the_last_byte_of_the_headers_256) { check_decision(256, false, 0, 2 + 0 + behind_headers); }

/// Entries 20.. in the bucket of packet()'s GID: their first two bytes fold to nothing.
void crowd_bucket(bench& b, unsigned entries) {
  for (unsigned i = 20; i < 20 + entries; ++i) {
    b.gids.cr_write(gid::cr::gid_word(i, 0), i << 25 | i << 16);
    b.gids.cr_write(gid::cr::gid_word(i, 2), 0xffff);
    b.gids.cr_write(gid::cr::gid_word(i, 3), 0x0a000001);
    b.gids.cr_write(gid::cr::gid_word(i, 4), gid::cr::gid_valid | 2u << gid::cr::gid_type_shift);
  }
}

TEST(parser, gid_match_is_a_stage_with_cycles_and_counters) {
  gid::match_config slow;
  slow.compare_cycles = 5;
  bench b(true, {}, slow);
  b.send(bench::packet());
  wire::packet elsewhere = bench::packet();
  elsewhere.dgid[15] = 77;
  b.send(elsewhere);
  wire::packet group = bench::packet();
  group.dgid = {0xff, 0x0e};
  group.encap = wire::encapsulation::roce_v2_ipv6;
  group.dmac = {0x33, 0x33, 0, 0, 0, 0};
  b.send(group);
  b.run();
  ASSERT_EQ(b.r.got.size(), 2u);
  EXPECT_EQ(b.r.got[0].first, 1u + 1u + 3u + 2u + 5u + 1u);
  EXPECT_EQ(b.stats.value("parser.gid_match.look_ups"), 2u);  // not for a group
  EXPECT_EQ(b.stats.value("parser.gid_match.hits"), 1u);
}

/// Four frames whose entry lies behind `others` in its bucket. One enters in 8 cycles; an entry is read in 2.
void check_hashed(unsigned others) {
  gid::match_config hashed;
  hashed.method = gid::match_method::hashed;
  bench b(true, {}, hashed);
  crowd_bucket(b, others);
  if (others != 0) b.gids.cr_write(gid::cr::gid_word(4, 4), 0);  // the same GID in front of them
  b.gids.cr_write(gid::cr::gid_word(50, 2), 0xffff);
  b.gids.cr_write(gid::cr::gid_word(50, 3), 0x0a000001);
  b.gids.cr_write(gid::cr::gid_word(50, 4), gid::cr::gid_valid | 2u << gid::cr::gid_type_shift);
  for (int i = 0; i < 4; ++i) b.send(bench::packet());
  b.run();
  ASSERT_EQ(b.r.got.size(), 4u);
  EXPECT_EQ(b.r.got[0].second->gid_index, others == 0 ? 4u : 50u);
  const unsigned reading = 2 * (others + 1), enters = (b.r.got[0].second->length + 15) / 16;
  EXPECT_EQ(enters, 8u);
  EXPECT_EQ(b.r.got[0].first, 1u + 1u + 3u + 2u + 1u + reading + 1u);
  for (unsigned i = 1; i < 4; ++i) EXPECT_EQ(b.r.got[i].first - b.r.got[i - 1].first, std::max(enters, reading)) << i;
}

TEST(parser, hashed_gid_match_finds_the_first_of_a_bucket_in_one_probe) { check_hashed(0); }
TEST(parser, hashed_gid_match_reads_its_bucket_and_holds_back_what_follows) { check_hashed(8); }

/// The other port's table: 10.0.0.77 in row 20, which is of the first of its three functions.
struct of_two_ports : bench {
  of_two_ports() {
    other.cr_write(gid::cr::gid_word(20, 2), 0xffff);
    other.cr_write(gid::cr::gid_word(20, 3), 0x0a00004d);
    other.cr_write(gid::cr::gid_word(20, 4), gid::cr::gid_valid | 2u << gid::cr::gid_type_shift);
    other.cr_write(gid::cr::num_vfs, 3);
    p.also_look_up(other, other_match);
    theirs.dgid[15] = 77;
  }
  gid::gid_table other;
  gid::gid_match other_match{{}, other};
  wire::packet theirs = packet();
};

TEST(parser, the_other_ports_table_is_looked_up_where_firmware_says_so) {
  of_two_ports b;
  b.send(b.theirs);
  b.run();
  EXPECT_EQ(b.r.got_plain.size(), 1u);
  b.gids.cr_write(gid::cr::both_tables, 1);
  b.send(b.theirs);
  b.send(bench::packet());
  b.theirs.dgid[15] = 78;  // nobody's
  b.send(b.theirs);
  b.run();
  ASSERT_EQ(b.r.got.size(), 2u);
  EXPECT_EQ(b.r.got[0].second->gid_index, gid::table_size + 20u);
  EXPECT_EQ(b.r.got[0].second->function, 1u);
  EXPECT_EQ(b.r.got[1].second->gid_index, 4u);
  EXPECT_EQ(b.r.got[1].second->function, payload::frame::any_function) << "this port has no functions";
  EXPECT_EQ(b.r.got_plain.size(), 2u);
  EXPECT_EQ(b.stats.value("parser.gid_match.look_ups"), 1u + 2 + 1 + 2);
  EXPECT_EQ(b.stats.value("parser.gid_match.hits"), 2u);
}

/// Behind the one in its own table.
TEST(parser, the_second_look_up_has_cycles_of_its_own) {
  of_two_ports b;
  b.gids.cr_write(gid::cr::both_tables, 1);
  b.send(b.theirs);
  b.run();
  ASSERT_EQ(b.r.got.size(), 1u);
  EXPECT_EQ(b.r.got[0].first, 1u + 1u + 3u + 2u + (2u + 2u) + 1u);
}

TEST(parser, back_pressure_loses_nothing_and_keeps_order) {
  bench b;
  b.r.blocked = true;
  for (unsigned i = 0; i < 30; ++i) {
    wire::packet w = bench::packet();
    w.bth.psn = wire::psn_t(i);
    b.send(w);
  }
  b.run();
  EXPECT_TRUE(b.r.got.empty());
  EXPECT_FALSE(b.r.to_send.empty());
  b.r.blocked = false;
  b.r.wake_next();
  b.run(2000);
  ASSERT_EQ(b.r.got.size(), 30u);
  for (unsigned i = 0; i < 30; ++i) EXPECT_EQ(b.r.got[i].second->packet.bth.psn.value(), i);
}

// Frames of eight beats are taken from edge 2 on: two for the channel and five for the pipeline, the last one at 50. So
// the input is free, and waits, from 58 on, until room in the channel of edge 201 is seen at 202.
TEST(parser, says_by_whom_it_is_held_up) {
  bench b;
  b.r.blocked = true;
  for (unsigned i = 0; i < 30; ++i) b.send(bench::packet());
  b.run(58);
  EXPECT_EQ(rnic::bench::held_up(b.core, "parser.input"), "");
  b.run(142);
  EXPECT_EQ(rnic::bench::held_up(b.core, "parser.input"), "icrc check 142; ");
  b.r.blocked = false;
  b.r.wake_next();
  b.run(1000);
  EXPECT_EQ(rnic::bench::held_up(b.core, "parser.input"), "icrc check 144; ");
}

TEST(parser, group_address_of_ethernet_is_for_group_gids_only) {
  bench b(false);
  wire::packet w = bench::packet();
  w.dmac[0] |= 1;  // its own but for the group bit, which no ICRC covers
  b.send(w);
  b.run(200);
  EXPECT_EQ(b.p.dropped(drop::not_our_mac), 1u);
  EXPECT_TRUE(b.r.got.empty());
}

TEST(parser, each_reason_has_its_counter) {
  bench b(false);
  const auto expect = [&](drop why) {
    b.run(200);
    EXPECT_EQ(b.p.dropped(why), 1u) << to_string(why);
    EXPECT_EQ(b.stats.value(std::string("parser.drop.") + to_string(why)), 1u);
    EXPECT_TRUE(b.r.got.empty());
  };
  const auto changed = [&](auto change) {
    wire::packet w = bench::packet();
    change(w);
    return w;
  };
  b.send(changed([](wire::packet& w) { w.dmac[5] = 7; }));
  expect(drop::not_our_mac);
  b.send(changed([](wire::packet& w) { w.dgid[15] = 7; }));
  expect(drop::not_our_gid);
  b.send(changed([](wire::packet& w) { w.bth.version = 1; }));
  expect(drop::bad_version);
  b.send(changed([](wire::packet& w) { w.ipv4_fragment = 0x2000; }));
  expect(drop::fragment);
  b.send(bench::packet()).fcs_ok = false;
  expect(drop::bad_fcs);
  b.send(bench::packet()).length -= 10;
  expect(drop::truncated);
  {
    payload::frame& f = b.send(bench::packet());
    f.data()[14 + 10] ^= 0x55;
    expect(drop::bad_ip_checksum);
  }
  {
    payload::frame& f = b.send(bench::packet());
    f.data()[14 + 20 + 8] = 0xc8;  // no transport has this code
    expect(drop::unknown_opcode);
  }
  wire::packet w = bench::version1();
  w.vlan_tci = 78;
  b.send(w);
  expect(drop::wrong_vlan);
}

TEST(parser, entry_of_a_vlan_takes_no_frame_without_its_tag) {
  bench b(false);
  wire::packet w = bench::version1();
  w.vlan_present = false;
  b.send(w);
  w.vlan_present = true;
  w.vlan_tci = 5 << 13;  // a priority, and no VLAN
  b.send(w);
  b.run();
  EXPECT_EQ(b.p.dropped(drop::wrong_vlan), 2u);
  EXPECT_TRUE(b.r.got.empty());
}

TEST(parser, fourteen_bytes_are_the_shortest_frame) {
  bench b;
  for (const std::uint32_t length : {14u, 13u}) {
    payload::frame& f = b.send(bench::packet());
    f.data()[12] = 0x88;  // of no protocol that it looks into
    f.data()[13] = 0xcc;
    f.length = length;
  }
  b.run();
  ASSERT_EQ(b.r.got_plain.size(), 1u);
  EXPECT_EQ(b.r.got_plain[0]->length, 14u);
  EXPECT_EQ(b.p.dropped(drop::truncated), 1u);
}

// Two short frames fill the channel, a long one waits for room, and the pipeline is empty behind it: the next one has
// its headers long before the 68 beats of the long one are over, and waits for the last of them.
TEST(parser, none_overtakes_the_bytes_of_one_that_had_to_wait) {
  bench b;
  b.r.blocked = true;
  b.send(bench::packet());
  b.send(bench::packet());
  b.send(bench::packet(), 1024);
  b.run(300);
  EXPECT_TRUE(b.r.got.empty());
  b.r.blocked = false;
  b.r.wake_next();
  b.run(10);
  EXPECT_EQ(b.r.got.size(), 3u) << "the channel has room";
  b.send(bench::packet());
  b.run();
  ASSERT_EQ(b.r.got.size(), 4u);
  EXPECT_EQ(b.r.got[3].first - b.r.got[2].first, 68u);
  EXPECT_EQ(b.r.got[3].second->first_byte, payload::last_byte_at(*b.r.got[2].second, 16) + 1);
}

TEST(parser, version_of_the_gid_counts) {
  bench b(false);
  wire::packet w = bench::packet();
  w.encap = wire::encapsulation::roce_v1;  // the entry is for v2
  b.send(w);
  b.run();
  EXPECT_EQ(b.p.dropped(drop::not_our_gid), 1u);
}

TEST(parser, multicast_passes) {
  bench b;
  wire::packet w = bench::packet();
  w.dmac = {1, 0, 0x5e, 0, 0, 5};
  w.dgid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 0, 0, 5};
  b.send(w);
  b.run();
  EXPECT_EQ(b.r.got.size(), 1u);
}

TEST(parser, anything_else_is_ethernet) {
  bench b;
  wire::packet w = bench::packet();
  w.udp_dest = 53;
  b.send(w);
  b.port = 53;
  b.send(bench::packet());  // RoCE has moved to another port
  b.run();
  EXPECT_EQ(b.r.got.size(), 1u);
  EXPECT_EQ(b.r.got_plain.size(), 1u);
  EXPECT_EQ(b.p.ethernet_frames(), 1u);
}

TEST(parser, roce_for_others_is_ethernet) {
  bench b;
  wire::packet w = bench::packet();
  w.dmac[5] = 7;
  b.send(w);
  w = bench::packet();
  w.dgid[15] = 7;
  b.send(w);
  b.send(bench::packet()).fcs_ok = false;  // the port lets it through when it was told to
  w = bench::packet();
  w.bth.version = 1;  // ours, but wrong
  b.send(w);
  b.run();
  EXPECT_TRUE(b.r.got.empty());
  EXPECT_EQ(b.r.got_plain.size(), 3u);
  EXPECT_EQ(b.p.unclaimed_frames(), 2u);
  EXPECT_EQ(b.p.dropped(drop::bad_version), 1u);
}

TEST(parser, ethernet_without_consumer_is_counted) {
  bench b(false);
  wire::packet w = bench::packet();
  w.udp_dest = 53;
  b.send(w);
  b.run();
  EXPECT_EQ(b.p.dropped(drop::ethernet_not_bound), 1u);
}

TEST(parser, noise_never_stops_it) {
  bench b;
  std::uint32_t x = 1;
  for (unsigned i = 0; i < 2000; ++i) {
    payload::frame& f = b.send(i % 2 != 0 ? bench::packet() : bench::version1(), i % 100);
    for (unsigned n = 0; n < 1 + i % 7; ++n) {
      x = x * 1664525 + 1013904223;
      f.data()[(x >> 8) % f.length] = static_cast<std::uint8_t>(x >> 24);
    }
    if (i % 5 == 0) f.length = (x >> 5) % (f.length + 1);
  }
  b.run(60000);
  std::uint64_t all = b.p.roce_frames() + b.p.ethernet_frames();
  for (unsigned d = 0; d < static_cast<unsigned>(drop::count); ++d) all += b.p.dropped(static_cast<drop>(d));
  EXPECT_EQ(all, 2000u);
}

}  // namespace
}  // namespace rnic::parser
