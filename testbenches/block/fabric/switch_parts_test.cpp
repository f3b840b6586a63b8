// SPDX-License-Identifier: Apache-2.0
// Parts of a switch by themselves: room, queues, addresses, marks, VLANs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "model/fabric/congestion_marker.h"
#include "model/fabric/forwarding_table.h"
#include "model/fabric/output_queues.h"
#include "model/fabric/shared_buffer.h"
#include "model/fabric/vlan_rules.h"
#include "model/sim/check.h"
#include "testbenches/block/fabric/switch_rig.h"

namespace rnic::fabric::test {
namespace {

using verdict = shared_buffer::verdict;

/// Two ports, priority 3 lossless: of 65536 bytes 2 * (1000 + 4000) are not shared.
buffer_config small() {
  buffer_config c;
  c.bytes = 65'536;
  c.flow_control = lossless_by::pfc;
  c.lossless_priorities = 0x08;
  c.reserved_bytes = 1000;
  c.headroom_bytes = 4000;
  c.lossless_alpha = 16;  // a quarter
  c.lossy_alpha = 32;     // a half
  c.xon_gap_bytes = 1500;
  return c;
}
const std::vector<switch_config::port> two(2);

TEST(shared_buffer, reserved_then_shared_then_headroom_then_nothing) {
  const buffer_config c = small();
  shared_buffer b(c, two, "switch.buffer");
  EXPECT_EQ(b.admit(0, 1, 3, 1000), verdict::stored);
  EXPECT_EQ(b.shared_used(), 0u);
  // s + 1000 <= (55536 - s) / 4 up to s = 10308: eleven frames.
  for (unsigned i = 0; i < 11; ++i) {
    EXPECT_EQ(b.admit(0, 1, 3, 1000), verdict::stored) << i;
    EXPECT_EQ(b.above(0), 0u) << i;
  }
  EXPECT_EQ(b.shared_used(), 11'000u);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(b.admit(0, 1, 3, 1000), verdict::stored) << i;
    EXPECT_EQ(b.above(0), 0x08) << i;
  }
  EXPECT_EQ(b.shared_used(), 11'000u);
  EXPECT_EQ(b.headroom_used(0, 3), 4000u);
  EXPECT_EQ(b.admit(0, 1, 3, 1), verdict::no_headroom);
  EXPECT_EQ(b.above(1), 0u) << "the other input has nothing in it";
  // Four frames leave: the headroom is empty. The threshold is (55536 - 11000) / 4 = 11134; with 10000 shared bytes it
  // is 11384, 1384 above; with 9000 it is 11634, more than 1500 above.
  for (unsigned i = 0; i < 5; ++i) {
    b.release(0, 1, 3, 1000);
    EXPECT_EQ(b.above(0), 0x08) << i;
  }
  b.release(0, 1, 3, 1000);
  EXPECT_EQ(b.above(0), 0u);
  EXPECT_EQ(b.queued(1, 3), 10'000u);
  EXPECT_EQ(b.most_queued(1, 3), 16'000u);
  EXPECT_EQ(b.most_shared(), 11'000u);
  for (unsigned i = 0; i < 10; ++i) b.release(0, 1, 3, 1000);
  EXPECT_EQ(b.shared_used(), 0u);
  EXPECT_EQ(b.queued(1, 3), 0u);
}

TEST(shared_buffer, a_lossy_queue_has_its_part_of_what_is_free) {
  const buffer_config c = small();
  shared_buffer b(c, two, "switch.buffer");
  // q + 1000 <= (55536 - q) / 2 up to q = 17845: eighteen frames.
  unsigned stored = 0;
  while (b.admit(0, 1, 0, 1000) == verdict::stored) ++stored;
  EXPECT_EQ(stored, 18u);
  EXPECT_EQ(b.admit(0, 1, 0, 1000), verdict::queue_full);
  // Another queue has half of what these left.
  stored = 0;
  while (b.admit(0, 1, 5, 1000) == verdict::stored) ++stored;
  EXPECT_EQ(stored, 12u);  // q + 1000 <= (37536 - q) / 2 up to q = 11845
  EXPECT_EQ(b.above(0), 0u);
  b.release(0, 1, 0, 1000);
  EXPECT_EQ(b.admit(1, 1, 0, 1000), verdict::queue_full) << "others have come in";
  for (unsigned i = 0; i < 12; ++i) b.release(0, 1, 5, 1000);
  EXPECT_EQ(b.admit(1, 1, 0, 1000), verdict::stored);
}

TEST(shared_buffer, pause_counts_all_priorities_of_an_input_as_one) {
  buffer_config c = small();
  c.flow_control = lossless_by::pause;
  shared_buffer b(c, two, "switch.buffer");
  for (unsigned i = 0; i < 13; ++i) EXPECT_EQ(b.admit(0, 1, i % 8, 1000), verdict::stored);
  EXPECT_EQ(b.above(0), 0xff);
  EXPECT_EQ(b.headroom_used(0, 5), 1000u);
}

TEST(shared_buffer, what_is_reserved_must_fit) {
  buffer_config c = small();
  c.headroom_bytes = (65'536 - 2 * 1000) / 2;
  EXPECT_THROW(shared_buffer(c, two, "switch.buffer"), sim::config_error);
  c.headroom_bytes = (65'536 - 2 * 1000) / 2 - 1;
  EXPECT_NO_THROW(shared_buffer(c, two, "switch.buffer"));
}

TEST(shared_buffer, headroom_is_computed_from_rate_and_cable) {
  buffer_config c = small();
  c.bytes = 12u << 20;
  c.headroom_bytes = 0;
  std::vector<switch_config::port> ports(2);
  ports[1].metres = 100;
  ports[1].rate_mbps = 100'000;
  const shared_buffer b(c, ports, "switch.buffer");
  // (301 + 2.16 * 3) * 40 + 2.72 * 4200 and (301 + 216) * 100 + 2.72 * 4200
  EXPECT_EQ(b.headroom(0), 23'724u);
  EXPECT_EQ(b.headroom(1), 63'124u);
}

/// Slow lines and long frames, for which the formula is less than what can come: three frames of 4220 bytes, a pause of
/// 84, and 315.3 ns of the line; three of 10020.
TEST(shared_buffer, headroom_is_never_less_than_what_can_come) {
  buffer_config c = small();
  c.bytes = 12u << 20;
  c.headroom_bytes = 0;
  std::vector<switch_config::port> ports(2);
  ports[0].rate_mbps = 1'000;
  ports[1].rate_mbps = 10'000;
  const shared_buffer slow(c, ports, "switch.buffer");
  EXPECT_EQ(slow.headroom(0), 3 * 4'220 + 84 + 40u);
  EXPECT_EQ(bytes_after_stop(ports[0], c.frame_bytes), slow.headroom(0));
  c.frame_bytes = 10'000;
  const shared_buffer jumbo(c, ports, "switch.buffer");
  EXPECT_EQ(jumbo.headroom(1), 3 * 10'020 + 84 + 395u);
  // A peer whose FEC takes 200 ns more: 2500 bytes of a line of 100 Gb/s.
  switch_config::port fast;
  fast.rate_mbps = 100'000;
  const std::uint32_t before = bytes_after_stop(fast, 4'200);
  fast.stop_ps += 200'000;
  EXPECT_EQ(bytes_after_stop(fast, 4'200), before + 2'500);
}

/// Each of `priorities_used` has frames of its size for ever; how many bytes each has of `picks`.
std::map<unsigned, std::uint64_t> served(switch_scheduling how, const std::array<std::uint8_t, priorities>& weights,
                                         const std::map<unsigned, std::uint32_t>& sizes, std::uint8_t ready,
                                         unsigned picks, std::uint32_t quantum = 1'600) {
  weights_config c;
  for (unsigned p = 0; p < priorities; ++p) static_cast<sim::parameter<std::uint8_t>&>(c.of[p]) = weights[p];
  c.quantum_bytes = quantum;
  output_queues q(how, c);
  const auto entry_of = [](std::uint32_t bytes) {
    output_queues::entry e;
    e.bytes = bytes;
    return e;
  };
  for (const auto& [p, bytes] : sizes)
    for (unsigned i = 0; i < 2; ++i) q.push(p, entry_of(bytes));
  std::map<unsigned, std::uint64_t> out;
  for (unsigned i = 0; i < picks; ++i) {
    const unsigned p = q.pick(ready);
    out[p] += q.pop(p).bytes;
    q.push(p, entry_of(sizes.at(p)));
  }
  return out;
}

TEST(output_queues, strict) {
  const auto out = served(switch_scheduling::strict, {1, 1, 1, 1, 1, 1, 1, 1}, {{1, 100}, {4, 100}}, 0x12, 100);
  EXPECT_EQ(out, (std::map<unsigned, std::uint64_t>{{4, 10'000}}));
}

TEST(output_queues, weights_are_shares_of_bytes_whatever_the_sizes) {
  const auto out =
      served(switch_scheduling::weighted, {1, 3, 1, 1, 6, 1, 1, 1}, {{0, 1504}, {1, 84}, {4, 4164}}, 0x13, 100'000);
  const double unit = static_cast<double>(out.at(0));
  EXPECT_NEAR(static_cast<double>(out.at(1)) / unit, 3, 0.03);
  EXPECT_NEAR(static_cast<double>(out.at(4)) / unit, 6, 0.06);
}

/// Who has a quantum of ten frames sends ten before the other one's turn.
TEST(output_queues, quantum_is_what_a_turn_may_send) {
  for (const std::uint32_t frames : {1u, 10u}) {
    const auto out =
        served(switch_scheduling::weighted, {1, 1, 1, 1, 1, 1, 1, 1}, {{2, 500}, {5, 500}}, 0x24, frames, frames * 500);
    EXPECT_EQ(out, (std::map<unsigned, std::uint64_t>{{2, frames * 500}}));
  }
}

TEST(output_queues, who_may_not_send_is_passed_over_and_saves_nothing) {
  std::array<std::uint8_t, priorities> equal;
  equal.fill(1);
  auto out = served(switch_scheduling::weighted, equal, {{0, 1000}, {1, 1000}, {2, 1000}}, 0x05, 1000);
  EXPECT_EQ(out.count(1), 0u);
  EXPECT_NEAR(static_cast<double>(out[0]), static_cast<double>(out[2]), 2000);
}

/// The frames of some come at the rate of the line: whenever one is out, the next one is there. Those of the others
/// wait.
std::map<unsigned, std::uint64_t> served_as_they_come(const std::array<std::uint8_t, priorities>& weights,
                                                      const std::vector<unsigned>& at_line_rate,
                                                      const std::vector<unsigned>& waiting, std::uint32_t bytes,
                                                      std::uint32_t quantum) {
  weights_config c;
  for (unsigned p = 0; p < priorities; ++p) static_cast<sim::parameter<std::uint8_t>&>(c.of[p]) = weights[p];
  c.quantum_bytes = quantum;
  output_queues q(switch_scheduling::weighted, c);
  const auto add = [&](unsigned p) {
    output_queues::entry e;
    e.bytes = bytes;
    q.push(p, std::move(e));
  };
  for (const unsigned p : waiting)
    for (unsigned i = 0; i < 2; ++i) add(p);
  std::map<unsigned, std::uint64_t> out;
  constexpr unsigned picks = 8000;
  for (unsigned i = 0; i < picks; ++i) {
    for (const unsigned p : at_line_rate) add(p);
    const unsigned p = q.pick(q.waiting());
    out[p] += q.pop(p).bytes;
    if (std::find(waiting.begin(), waiting.end(), p) != waiting.end()) add(p);
  }
  return out;
}

/// Whatever the quantum: none of them keeps its turn because it is never seen without a frame.
TEST(output_queues, who_sends_as_fast_as_the_line_has_a_share_of_it) {
  for (const std::uint32_t quantum : {600u, 1098u, 1600u, 3000u, 4200u}) {
    auto out = served_as_they_come({1, 1, 1, 1, 1, 1, 1, 1}, {1}, {2}, 1098, quantum);
    EXPECT_NEAR(static_cast<double>(out[1]) / static_cast<double>(out[2]), 1, 0.05) << quantum;
    out = served_as_they_come({1, 1, 1, 1, 1, 1, 1, 1}, {1, 2}, {}, 1098, quantum);
    EXPECT_NEAR(static_cast<double>(out[1]) / static_cast<double>(out[2]), 1, 0.05) << quantum;
    out = served_as_they_come({1, 1, 2, 5, 1, 1, 1, 1}, {1, 2, 3}, {}, 1098, quantum);
    EXPECT_NEAR(static_cast<double>(out[2]) / static_cast<double>(out[1]), 2, 0.1) << quantum;
    EXPECT_NEAR(static_cast<double>(out[3]) / static_cast<double>(out[1]), 5, 0.25) << quantum;
  }
}

payload::frame_ptr udp4(rig& r, std::uint16_t source_port, std::uint8_t traffic_class = 0, int tag = -1) {
  payload::frame_ptr f = r.frame(1, 2, 200, tag);
  const std::uint32_t type = tag >= 0 ? 16 : 12;
  std::uint8_t* d = f->data();
  wire::store_be16(d + type, 0x0800);
  std::uint8_t* ip = d + type + 2;
  std::memset(ip, 0, 28);
  ip[0] = 0x45;
  ip[1] = traffic_class;
  wire::store_be16(ip + 2, static_cast<std::uint16_t>(200 - type - 2));
  ip[8] = 64;
  ip[9] = 17;
  wire::store_be32(ip + 12, 0x0a000001);
  wire::store_be32(ip + 16, 0x0a000002);
  wire::store_be16(ip + 20, source_port);
  wire::store_be16(ip + 22, 4791);
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < 20; i += 2) sum += wire::load_be16(ip + i);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  wire::store_be16(ip + 10, static_cast<std::uint16_t>(~sum));
  f->fcs = wire::ethernet_fcs(d, f->length);
  return f;
}

TEST(forwarding_table, learns_moves_and_keeps_what_is_given) {
  rig r(1);
  forwarding_table t(2, 1);
  const payload::frame_ptr f = r.frame(1, 2, 60);
  const std::uint8_t* to = f->data();
  EXPECT_EQ(t.port_of(0, *f), forwarding_table::unknown);
  t.learn(0, to, 5);
  EXPECT_EQ(t.port_of(0, *f), 5);
  EXPECT_EQ(t.port_of(7, *f), forwarding_table::unknown) << "another VLAN";
  t.learn(0, to, 6);
  EXPECT_EQ(t.port_of(0, *f), 6);
  t.learn(7, to, 1);
  t.learn(8, to, 1);
  EXPECT_EQ(t.port_of(8, *f), forwarding_table::unknown) << "there is room for two";
  t.learn(0, to, 4);
  EXPECT_EQ(t.port_of(0, *f), 4) << "which move all the same";
  t.give(0, {2, 0, 0, 0, 0, 2}, {3});
  t.learn(0, to, 9);
  EXPECT_EQ(t.port_of(0, *f), 3);
  const std::uint8_t group[6] = {0x01, 0, 0x5e, 0, 0, 1};
  forwarding_table of_groups(2, 1);
  of_groups.learn(0, group, 1);
  payload::frame_ptr g = r.frame(1, 2, 60);
  std::memcpy(g->data(), group, 6);
  EXPECT_EQ(of_groups.port_of(0, *g), forwarding_table::unknown);
}

TEST(forwarding_table, equal_ways_by_the_udp_source_port) {
  rig r(1);
  forwarding_table t(16, 1), other(16, 2);
  for (forwarding_table* table : {&t, &other}) table->give(0, {2, 0, 0, 0, 0, 2}, {4, 5, 6, 7});
  std::map<int, unsigned> used;
  unsigned apart = 0;
  for (unsigned port = 0; port < 4000; ++port) {
    const payload::frame_ptr f = udp4(r, static_cast<std::uint16_t>(0xc000 + port));
    const int first = t.port_of(0, *f);
    EXPECT_EQ(first, t.port_of(0, *udp4(r, static_cast<std::uint16_t>(0xc000 + port), 3)))
        << "a mark does not change a flow's way";
    ++used[first];
    if (other.port_of(0, *f) != first) ++apart;
  }
  ASSERT_EQ(used.size(), 4u);
  for (const auto& [port, flows] : used) EXPECT_NEAR(flows, 1000, 110) << port;  // four standard deviations
  EXPECT_NEAR(apart, 3000, 110) << "another switch chooses apart";
}

std::uint16_t header_sum(const payload::frame& f, std::uint32_t at) {
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < 20; i += 2) sum += wire::load_be16(f.data() + at + i);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

TEST(congestion_marker, literal_thresholds) {
  rig r(1);
  marking_config c;
  c.on = true;
  c.kmin_bytes = 1000;
  c.kmax_bytes = 2000;
  c.pmax_percent = 0;
  congestion_marker m(c, 1);
  for (const std::uint8_t ecn : {std::uint8_t{1}, std::uint8_t{2}}) {
    payload::frame_ptr f = udp4(r, 1, ecn);
    EXPECT_FALSE(m.look_at(*f, 2000));
    EXPECT_TRUE(m.look_at(*f, 2001));
    EXPECT_EQ(f->data()[15], 3);
    EXPECT_EQ(header_sum(*f, 14), 0xffff);
    EXPECT_EQ(wire::ethernet_fcs(f->data(), f->length), f->fcs);
    EXPECT_FALSE(m.look_at(*f, 2001)) << "it is marked";
  }
  payload::frame_ptr plain = udp4(r, 1, 0);
  EXPECT_FALSE(m.look_at(*plain, 5000)) << "it cannot be marked";
  payload::frame_ptr tagged = udp4(r, 1, 0x6a, 0x6005);
  EXPECT_TRUE(m.look_at(*tagged, 5000));
  EXPECT_EQ(tagged->data()[19], 0x6b);
  EXPECT_EQ(header_sum(*tagged, 18), 0xffff);
  payload::frame_ptr wrong = udp4(r, 1, 2);
  wrong->fcs ^= 4;
  wrong->data()[24] ^= 0x10;  // the checksum of the header
  EXPECT_TRUE(m.look_at(*wrong, 5000));
  EXPECT_NE(wire::ethernet_fcs(wrong->data(), wrong->length), wrong->fcs) << "what was wrong stays wrong";
  EXPECT_NE(header_sum(*wrong, 14), 0xffff);
  EXPECT_FALSE(m.look_at(*r.frame(1, 2, 100), 5000)) << "no IP";
}

TEST(congestion_marker, ipv6_traffic_class) {
  rig r(1);
  marking_config c;
  c.on = true;
  congestion_marker m(c, 1);
  payload::frame_ptr f = r.frame(1, 2, 200);
  wire::store_be16(f->data() + 12, 0x86dd);
  wire::store_be32(f->data() + 14, 0x6aa12345);  // DSCP 42, ECT(0), flow label 0x12345
  f->fcs = wire::ethernet_fcs(f->data(), f->length);
  EXPECT_TRUE(m.look_at(*f, 1'000'000));
  EXPECT_EQ(wire::load_be32(f->data() + 14), 0x6ab12345u);
  EXPECT_EQ(wire::ethernet_fcs(f->data(), f->length), f->fcs);
}

/// Of queues as long as a buffer may be.
TEST(congestion_marker, probability_in_long_queues) {
  rig r(1);
  marking_config c;
  c.on = true;
  c.kmin_bytes = 1'000'000;
  c.kmax_bytes = 1'001'000'000;
  c.pmax_percent = 100;
  congestion_marker m(c, 1);
  constexpr unsigned frames = 4000;
  for (const unsigned percent : {3u, 5u, 25u, 50u, 90u}) {
    unsigned marked = 0;
    for (unsigned i = 0; i < frames; ++i) {
      payload::frame_ptr f = udp4(r, 1, 2);
      if (m.look_at(*f, c.kmin_bytes + percent * 10'000'000)) ++marked;
    }
    EXPECT_NEAR(marked, frames * (percent / 100.0), 140) << percent;  // 4.4 standard deviations of a half
  }
}

TEST(congestion_marker, probability_rises_to_pmax) {
  rig r(1);
  marking_config c;
  c.on = true;
  c.kmin_bytes = 10'000;
  c.kmax_bytes = 110'000;
  c.pmax_percent = 20;
  const auto marked_of = [&](std::uint32_t bytes) {
    congestion_marker m(c, 7);
    unsigned marked = 0;
    payload::frame_ptr f = udp4(r, 1, 2);
    for (unsigned i = 0; i < 20'000; ++i) {
      f->data()[15] = 2;
      if (m.look_at(*f, bytes)) ++marked;
    }
    return marked;
  };
  EXPECT_EQ(marked_of(10'000), 0u);
  EXPECT_NEAR(marked_of(60'000), 2000, 4 * 43);   // 10 %: a standard deviation is 42.4
  EXPECT_NEAR(marked_of(110'000), 4000, 4 * 57);  // 20 %
  EXPECT_EQ(marked_of(110'001), 20'000u);
}

vlan_port access(std::uint16_t vlan) {
  vlan_port p;
  p.is = vlan_port::kind::access;
  p.vlan = vlan;
  return p;
}
vlan_port trunk(std::initializer_list<std::uint16_t> allowed, std::uint16_t native = 0) {
  vlan_port p;
  p.is = vlan_port::kind::trunk;
  p.vlan = native;
  for (const std::uint16_t v : allowed) p.allowed.set(v);
  return p;
}

TEST(vlan_rules, what_comes_in) {
  rig r(1);
  const auto untagged = r.frame(1, 2, 100), seven = r.frame(1, 2, 100, 0x6007), priority = r.frame(1, 2, 100, 0x6000);
  EXPECT_EQ(vlan_of({}, *seven), 0);
  EXPECT_EQ(vlan_of(access(7), *untagged), 7);
  EXPECT_EQ(vlan_of(access(7), *priority), 7);
  EXPECT_EQ(vlan_of(access(7), *seven), 7);
  EXPECT_EQ(vlan_of(access(8), *seven), std::nullopt);
  EXPECT_EQ(vlan_of(trunk({7}), *seven), 7);
  EXPECT_EQ(vlan_of(trunk({8}), *seven), std::nullopt);
  EXPECT_EQ(vlan_of(trunk({8}), *untagged), std::nullopt);
  EXPECT_EQ(vlan_of(trunk({8}, 5), *untagged), 5);
  EXPECT_EQ(vlan_of(trunk({8}, 5), *priority), 5);
}

TEST(vlan_rules, what_goes_out) {
  rig r(1);
  payload::frame_ptr f = r.frame(1, 2, 100);
  const std::vector<std::uint8_t> before(f->data(), f->data() + 100);
  set_tag(trunk({7}), *f, 7, 3);
  ASSERT_EQ(f->length, 104u);
  EXPECT_EQ(wire::load_be32(f->data() + 12), 0x81006007u);
  EXPECT_EQ(wire::ethernet_fcs(f->data(), f->length), f->fcs);
  set_tag(access(7), *f, 7, 0);
  EXPECT_EQ(std::vector<std::uint8_t>(f->data(), f->data() + f->length), before);
  EXPECT_EQ(wire::ethernet_fcs(f->data(), f->length), f->fcs);
  payload::frame_ptr priority = r.frame(1, 2, 100, 0xa000);
  set_tag(trunk({7}), *priority, 7, 0);
  EXPECT_EQ(wire::load_be32(priority->data() + 12), 0x8100a007u) << "its own PCP";
  payload::frame_ptr native = r.frame(1, 2, 100);
  set_tag(trunk({7}, 7), *native, 7, 0);
  EXPECT_EQ(native->length, 100u);
  payload::frame_ptr shortest = r.frame(1, 2, 60, 0x6007);
  set_tag(access(7), *shortest, 7, 0);
  EXPECT_EQ(shortest->length, 60u);
  EXPECT_EQ(wire::load_be16(shortest->data() + 12), 0x88b5);
  EXPECT_EQ(wire::ethernet_fcs(shortest->data(), 60), shortest->fcs);
  payload::frame_ptr front = r.frame(1, 2, 100);  // no room before it
  std::memmove(front->buffer.data(), front->data(), 100);
  front->begin = 0;
  front->fcs ^= 1;
  set_tag(trunk({7}), *front, 7, 2);
  EXPECT_EQ(wire::load_be32(front->data() + 12), 0x81004007u);
  EXPECT_EQ(front->data()[103], before[99]);
  EXPECT_NE(wire::ethernet_fcs(front->data(), 104), front->fcs) << "what was wrong stays wrong";
}

TEST(shared_buffer, xon_exactly_at_the_gap) {
  const buffer_config c = small();
  shared_buffer b(c, two, "switch.buffer");
  for (unsigned i = 0; i < 13; ++i) ASSERT_EQ(b.admit(0, 1, 3, 1000), verdict::stored);
  EXPECT_EQ(b.above(0), 0x08);
  b.release(0, 1, 3, 1000);
  b.release(0, 1, 3, 1092);
  EXPECT_EQ(b.shared_used(), 9908u);
  EXPECT_EQ(b.above(0), 0x08);
  b.release(0, 1, 3, 1);
  EXPECT_EQ(b.above(0), 0u);
}

TEST(shared_buffer, lossy_queue_exactly_at_its_threshold) {
  const buffer_config c = small();
  shared_buffer b(c, two, "switch.buffer");
  EXPECT_EQ(b.admit(0, 1, 0, 27'769), verdict::queue_full);
  EXPECT_EQ(b.admit(0, 1, 0, 27'768), verdict::stored);
}

TEST(output_queues, who_becomes_empty_loses_the_rest) {
  weights_config c;
  for (unsigned p = 0; p < priorities; ++p) static_cast<sim::parameter<std::uint8_t>&>(c.of[p]) = 1;
  c.quantum_bytes = 1000;
  output_queues q(switch_scheduling::weighted, c);
  const auto add = [&](unsigned p, std::uint32_t bytes) {
    output_queues::entry e;
    e.bytes = bytes;
    q.push(p, std::move(e));
  };
  add(1, 100);
  for (int i = 0; i < 10; ++i) add(2, 500);
  std::vector<unsigned> got;
  for (int i = 0; i < 7; ++i) {
    const unsigned p = q.pick(q.waiting());
    q.pop(p);
    got.push_back(p);
    if (i == 0)
      for (int k = 0; k < 10; ++k) add(1, 500);
  }
  EXPECT_EQ(got, (std::vector<unsigned>{1, 2, 2, 1, 1, 2, 2}));
}

TEST(vlan_rules, shortest_frame_that_may_lose_its_tag) {
  rig r(1);
  payload::frame_ptr f = r.frame(1, 2, 64, 0x6007);
  ASSERT_EQ(f->length, 64u);
  set_tag(access(7), *f, 7, 0);
  EXPECT_EQ(f->length, 60u);
}

}  // namespace
}  // namespace rnic::fabric::test
