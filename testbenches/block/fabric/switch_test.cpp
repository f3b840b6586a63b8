// SPDX-License-Identifier: Apache-2.0
// A switch: learning, cut-through, queues and PAUSE.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "testbenches/block/fabric/switch_rig.h"

namespace rnic::fabric::test {
namespace {

TEST(network_switch, learns_and_floods) {
  rig r(4);
  r.send(0, 2, 100, 1'000'000);  // nobody knows host 2
  r.run(2'000'000);
  EXPECT_EQ(r.middle->count().flooded, 1u);
  EXPECT_TRUE(r.plugs[0].got.empty());
  for (unsigned i = 1; i < 4; ++i) {
    ASSERT_EQ(r.plugs[i].got.size(), 1u);
    EXPECT_EQ(r.plugs[i].got[0].first->length, 100u);
    EXPECT_EQ(r.plugs[i].got[0].first->data()[99], 100);
  }
  r.send(2, 0, 64, 3'000'000);
  r.send(0, 2, 65, 3'500'000);
  r.send(0, 0, 66, 4'000'000);  // to itself
  r.run(5'000'000);
  EXPECT_EQ(r.middle->count().flooded, 1u);
  EXPECT_EQ(r.plugs[0].got.size(), 1u);
  EXPECT_EQ(r.plugs[1].got.size(), 1u);
  EXPECT_EQ(r.plugs[2].got.size(), 2u);
  EXPECT_EQ(r.plugs[3].got.size(), 1u);
}

TEST(network_switch, a_frame_alone_is_late_by_the_hop) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  r.send(0, 1, 60, start + 1'000'123);
  r.send(0, 1, 9000, start + 9'000'123);
  r.run(start + 20'000'000);
  ASSERT_EQ(r.plugs[1].got.size(), 2u);
  EXPECT_EQ(r.plugs[1].got[0].second, start + 1'000'123 + hop);
  EXPECT_EQ(r.plugs[1].got[1].second, start + 9'000'123 + hop);
  EXPECT_TRUE(r.plugs[2].got.empty());
}

TEST(network_switch, an_input_gives_one_frame_at_an_edge) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  const std::uint64_t before = r.middle->count().frames;
  for (const unsigned to : {1u, 2u}) r.send(0, to, 60, start + 1'000'000);
  r.run(start + 1'000'500);
  EXPECT_EQ(r.middle->count().frames, before + 1);
  r.run(start + 1'001'500);
  EXPECT_EQ(r.middle->count().frames, before + 2);
  r.run(start + 2'000'000);
  for (unsigned i : {1u, 2u}) {
    ASSERT_EQ(r.plugs[i].got.size(), 1u);
    EXPECT_EQ(r.plugs[i].got[0].second, start + 1'000'000 + hop) << "cut through all the same";
  }
}

TEST(network_switch, two_senders_share_a_line) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps(), frame = (1000 + overhead) * byte_ps;
  constexpr unsigned frames = 20;
  for (unsigned i = 1; i <= frames; ++i)
    for (unsigned from : {0u, 1u}) r.send(from, 2, 1000, start + i * (frame + gap * byte_ps));
  r.run(start + 40'000'000);
  const auto& got = r.plugs[2].got;
  ASSERT_EQ(got.size(), 2 * frames);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].second, start + hop + (frame + gap * byte_ps) * (i + 1)) << i;
  unsigned first = 0;
  for (std::size_t i = 0; i < got.size(); ++i) first += got[i].first->data()[11] == 0 ? 1 : 0;
  EXPECT_EQ(first, frames);
  EXPECT_EQ(r.counted("port0.tx_pause") + r.counted("port1.tx_pause"), 0u);
}

TEST(network_switch, a_paused_output_waits) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  r.pause(2, 100, start + 1'000'000, 1);  // with a wrong FCS: nothing
  r.send(0, 2, 500, start + 2'000'000);
  r.run(start + 3'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 1u);
  constexpr sim::time_ps quantum = 512 * byte_ps / 8;
  r.pause(2, 1000, start + 4'000'000);
  r.send(0, 2, 500, start + 5'000'000);
  r.send(0, 1, 500, start + 6'000'000);  // another output goes on
  r.run(start + 7'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 1u);
  EXPECT_EQ(r.plugs[1].got.size(), 1u);
  r.run(start + 30'000'000);
  ASSERT_EQ(r.plugs[2].got.size(), 2u);
  constexpr sim::time_ps chosen_to_last_bit = hop / 2 + (500 + overhead) * byte_ps;
  EXPECT_EQ(r.plugs[2].got[1].second, start + 4'000'000 + 1000 * quantum + chosen_to_last_bit);
  // Time 0 ends a pause early.
  r.pause(2, 0xffff, start + 31'000'000);
  r.send(0, 2, 500, start + 32'000'000);
  r.pause(2, 0, start + 34'000'000);
  r.run(start + 36'000'000);
  ASSERT_EQ(r.plugs[2].got.size(), 3u);
  EXPECT_EQ(r.plugs[2].got[2].second, start + 34'000'000 + chosen_to_last_bit);
}

switch_config stored() {
  switch_config c;
  c.forwarding = forwarding_mode::store_and_forward;
  return c;
}

TEST(network_switch, store_and_forward_sends_what_is_whole) {
  rig r(3, stored());
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  r.send(0, 1, 1000, start + 1'000'000);
  payload::frame_ptr wrong = r.frame(0, 1, 500);
  wrong->fcs ^= 1;
  r.deliver(0, std::move(wrong), start + 3'000'000);
  r.run(start + 5'000'000);
  ASSERT_EQ(r.plugs[1].got.size(), 1u);
  EXPECT_EQ(r.plugs[1].got[0].second, start + 1'000'000 + hop + (1000 + overhead) * byte_ps);
  EXPECT_EQ(r.counted("port0.drop_fcs"), 1u);
}

TEST(network_switch, cut_through_passes_a_wrong_fcs) {
  rig r(3);
  r.teach();
  payload::frame_ptr wrong = r.frame(0, 1, 500);
  wrong->fcs ^= 1;
  r.deliver(0, std::move(wrong), r.base.now_ps() + 3'000'000);
  r.run(r.base.now_ps() + 5'000'000);
  EXPECT_EQ(r.plugs[1].got.size(), 1u);
}

TEST(network_switch, lines_of_different_rates) {
  switch_config c;
  c.ports = {{40'000, 3, {}}, {10'000, 3, {}}, {100'000, 3, {}}};
  rig r(3, c);
  r.teach();
  const sim::time_ps start = r.base.now_ps(), bytes = 1000 + overhead;
  r.send(0, 1, 1000, start + 1'000'000);
  r.send(0, 2, 1000, start + 3'000'000);
  r.run(start + 10'000'000);
  ASSERT_EQ(r.plugs[1].got.size(), 1u);
  EXPECT_EQ(r.plugs[1].got[0].second, start + 1'000'000 + hop + bytes * (800 - 200))
      << "begun when the first bit was in";
  EXPECT_EQ(r.plugs[1].got[0].first->stamp, start + 1'000'000 + hop - bytes * 200);
  ASSERT_EQ(r.plugs[2].got.size(), 1u);
  EXPECT_EQ(r.plugs[2].got[0].second, start + 3'000'000 + hop) << "no byte of it may be late";
  EXPECT_EQ(r.plugs[2].got[0].first->stamp, start + 3'000'000 + hop - bytes * 80);
}

TEST(network_switch, given_addresses_and_no_floods) {
  switch_config c;
  c.floods = false;
  rig r(3, c);
  r.middle->route(0, {2, 0, 0, 0, 0, 2}, {2});
  r.send(0, 2, 100, 1'000'000);
  r.send(0, 77, 100, 2'000'000);
  r.run(5'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 1u);
  EXPECT_EQ(r.counted("port0.drop_unknown"), 1u);
  EXPECT_TRUE(r.plugs[1].got.empty());
}

/// LLDP and its like are for the next bridge; the addresses behind theirs are those of any group.
TEST(network_switch, keeps_what_is_for_bridges) {
  rig r(3);
  const std::array<std::uint8_t, 5> block{0x01, 0x80, 0xc2, 0, 0};
  for (const std::uint8_t last : {std::uint8_t{0x00}, std::uint8_t{0x0e}, std::uint8_t{0x0f}, std::uint8_t{0x10}}) {
    payload::frame_ptr f = r.frame(0, 99, 100);
    std::copy(block.begin(), block.end(), f->data());
    f->data()[5] = last;
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    r.deliver(0, std::move(f), 1'000'000 + last * 100'000);
  }
  r.run(10'000'000);
  EXPECT_EQ(r.plugs[1].got.size(), 1u);
  EXPECT_EQ(r.plugs[2].got.size(), 1u);
  EXPECT_EQ(r.counted("flooded"), 1u);
}

/// Hosts 0 and 1 on access ports of VLANs 5 and 6, a trunk of both at port 2, of 6 alone at port 3.
TEST(network_switch, vlans_keep_apart) {
  switch_config c;
  c.ports.assign(4, {rate, 3, {}});
  for (const unsigned i : {0u, 1u}) {
    c.ports[i].vlan.is = vlan_port::kind::access;
    c.ports[i].vlan.vlan = static_cast<std::uint16_t>(5 + i);
  }
  for (const unsigned i : {2u, 3u}) c.ports[i].vlan.is = vlan_port::kind::trunk;
  c.ports[2].vlan.allowed.set(5).set(6);
  c.ports[3].vlan.allowed.set(6);
  rig r(4, c);
  r.send(0, 50, 100, 1'000'000);  // unknown, of VLAN 5
  r.run(2'000'000);
  EXPECT_TRUE(r.plugs[1].got.empty());
  EXPECT_TRUE(r.plugs[3].got.empty());
  ASSERT_EQ(r.plugs[2].got.size(), 1u);
  EXPECT_EQ(wire::load_be32(r.plugs[2].got[0].first->data() + 12), 0x81000005u);
  r.send(2, 0, 104, 3'000'000, 0x6005);  // an answer to host 0
  r.send(2, 0, 104, 4'000'000, 0x6006);  // from VLAN 6: not there, so to all of 6
  r.send(2, 0, 104, 5'000'000, 0x6007);  // a VLAN that the trunk has not
  r.send(2, 0, 100, 6'000'000);          // no native VLAN
  r.run(8'000'000);
  ASSERT_EQ(r.plugs[0].got.size(), 1u);
  EXPECT_EQ(r.plugs[0].got[0].first->length, 100u);
  EXPECT_EQ(r.plugs[1].got.size(), 1u);
  EXPECT_EQ(r.plugs[3].got.size(), 1u);
  EXPECT_EQ(r.counted("port2.drop_vlan"), 2u);
}

TEST(network_switch, priority_by_dscp) {
  switch_config c;
  c.priority = priority_by::dscp;
  c.scheduling = switch_scheduling::strict;
  rig r(2, c);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  r.pause(1, 0xffff, start + 1'000'000);
  for (unsigned i = 0; i < 3; ++i) {
    payload::frame_ptr f = r.frame(0, 1, 100);
    wire::store_be16(f->data() + 12, 0x0800);
    f->data()[14] = 0x45;
    f->data()[15] = static_cast<std::uint8_t>((8 * i) << 2);  // class selector i
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    r.deliver(0, std::move(f), start + 2'000'000 + i * 100'000);
  }
  r.pause(1, 0, start + 4'000'000);
  r.run(start + 8'000'000);
  ASSERT_EQ(r.plugs[1].got.size(), 3u);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(r.plugs[1].got[i].first->data()[15], (8 * (2 - i)) << 2);
}

/// A frame any part of which is on a cable that is pulled out is lost, and so is what is for that port meanwhile.
TEST(network_switch, a_pulled_cable_takes_and_gives_nothing) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps(), out = start + 2'000'000, in = start + 5'000'000;
  const sim::time_ps long_frame = (1000 + overhead) * byte_ps;
  r.send(1, 0, 1000, out);  // its last bit is in when the cable goes
  r.middle->port(1).carrier(false, out);
  r.send(1, 0, 1000, out + long_frame / 2);
  r.send(0, 1, 100, out + 1'000'000);
  r.send(0, 2, 100, out + 1'200'000);
  r.run(in - 1'000);
  EXPECT_EQ(r.plugs[0].got.size(), 1u);
  EXPECT_EQ(r.plugs[1].got.size(), 0u);
  EXPECT_EQ(r.plugs[2].got.size(), 1u);
  EXPECT_EQ(r.counted("port1.drop_no_line"), 2u);
  r.middle->port(1).carrier(true, in);
  r.send(1, 0, 1000, in + long_frame / 2);  // begun before it was back
  r.send(1, 0, 1000, in + 2 * long_frame);
  r.send(0, 1, 100, in + 1'000'000);
  r.run(in + 3'000'000);
  EXPECT_EQ(r.plugs[0].got.size(), 2u);
  EXPECT_EQ(r.plugs[1].got.size(), 1u);
  EXPECT_EQ(r.counted("port1.drop_no_line"), 3u);
}

/// What leaves has its room until its last bit has left.
TEST(network_switch, room_until_the_last_bit_has_left) {
  rig r(2);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  r.send(0, 1, 1000, start + 1'000'000);
  r.run(start + 1'000'000 + hop - 2'000);
  EXPECT_EQ(r.middle->buffer().shared_used(), 1004u);
  EXPECT_EQ(r.middle->buffer().queued(1, 0), 1004u);
  r.run(start + 1'000'000 + hop + 2'000);
  EXPECT_EQ(r.middle->buffer().shared_used(), 0u);
}

/// What a shared buffer of `bytes` lets through of inputs that all send at once to the last port, frame by frame:
/// frames that arrived, by sender.
std::vector<unsigned> arrived(unsigned senders, unsigned rounds, std::uint32_t bytes) {
  switch_config c;
  c.buffer.bytes = bytes;
  rig r(senders + 1, c);
  r.teach();
  const sim::time_ps start = r.base.now_ps() + 1'000'000, each = (1000 + overhead + gap) * byte_ps;
  for (unsigned i = 0; i < rounds; ++i)
    for (unsigned s = 0; s < senders; ++s) r.send(s, senders, 1000, start + i * each);
  r.run(start + rounds * each * senders + 10'000'000);
  std::vector<unsigned> of(senders, 0);
  for (const auto& got : r.plugs[senders].got) ++of.at(got.first->data()[11]);
  return of;
}

/// Inputs whose frames come at the same instants have equal shares of a buffer that has no room for all.
class full_buffer : public testing::TestWithParam<unsigned> {};
TEST_P(full_buffer, equal_inputs_have_equal_shares) {
  const unsigned senders = GetParam();
  const std::vector<unsigned> of = arrived(senders, 600, 1u << 16);
  const auto [least, most] = std::minmax_element(of.begin(), of.end());
  EXPECT_LT(*least, 600u) << "nothing was lost";
  EXPECT_GE(*least, 550u / senders);
  EXPECT_LE(*most - *least, 10u);
}
INSTANTIATE_TEST_SUITE_P(network_switch, full_buffer, testing::Values(2u, 3u, 5u));

/// What goes to another output at the same instants takes no turn there.
TEST(network_switch, turns_are_those_of_an_output) {
  switch_config c;
  c.buffer.bytes = 1u << 16;
  rig r(5, c);  // 0 and 1 send to 4, 2 to 3
  r.teach();
  const sim::time_ps start = r.base.now_ps() + 1'000'000, each = (1000 + overhead + gap) * byte_ps;
  for (unsigned i = 0; i < 600; ++i) {
    r.send(0, 4, 1000, start + i * each);
    r.send(1, 4, 1000, start + i * each);
    r.send(2, 3, 1000, start + i * each);
  }
  r.run(start + 1300 * each);
  unsigned of[2] = {};
  for (const auto& got : r.plugs[4].got) ++of[got.first->data()[11]];
  EXPECT_LT(of[0] + of[1], 1100u) << "nothing was lost";
  EXPECT_NEAR(of[0], of[1], 10);
  EXPECT_EQ(r.plugs[3].got.size(), 600u);
}

/// Every frame that comes in, and every one that the switch makes of it, has left, was dropped for a reason, or ended
/// here: with lost cables, floods, VLANs, damage, frames for bridges, MAC control and a buffer that is too small.
class conservation : public testing::TestWithParam<unsigned> {};
TEST_P(conservation, frames_are_accounted_for) {
  std::mt19937 random(GetParam());
  const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
  constexpr unsigned ports = 6;
  switch_config c;
  c.buffer.bytes = 1u << 16;
  c.forwarding = below(2) == 0 ? forwarding_mode::cut_through : forwarding_mode::store_and_forward;
  c.floods = below(4) != 0;
  c.ports.assign(ports, {rate, 3, {}});
  for (unsigned p = 0; p < ports; ++p) {
    if (below(2) == 0) continue;
    c.ports[p].vlan.is = vlan_port::kind::access;
    c.ports[p].vlan.vlan = static_cast<std::uint16_t>(1 + below(2));
  }
  rig r(ports, c);
  sim::time_ps now = r.base.now_ps() + 1'000'000;
  std::uint64_t sent = 0, pauses = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    const unsigned in = below(ports);
    if (below(100) == 0) r.middle->port(in).carrier(below(2) == 0, now);
    if (below(50) == 0) {
      const bool damaged = below(2) == 0;
      r.pause(in, static_cast<std::uint16_t>(below(200)), now, damaged ? 1 : 0);
      ++(damaged ? sent : pauses);
    } else {
      payload::frame_ptr f =
          r.frame(in, below(ports + 1), 60 + below(1400), below(3) == 0 ? static_cast<int>(below(4)) : -1);
      constexpr std::uint8_t bridges[] = {0x01, 0x80, 0xc2, 0, 0};
      if (below(20) == 0) std::memcpy(f->data(), bridges, sizeof bridges);
      if (below(20) == 0) f->data()[0] = 0x03;  // a group
      if (below(20) == 0) wire::store_be16(f->data() + 12, 0x8808), wire::store_be16(f->data() + 14, 0x7777);
      f->fcs = wire::ethernet_fcs(f->data(), f->length) ^ (below(20) == 0 ? 1u : 0u);
      r.deliver(in, std::move(f), now);
      ++sent;
    }
    now += below(4) == 0 ? 0 : below(200'000);
    if (below(3) != 0) continue;
    r.run(now);
    now += 2'000;
  }
  for (unsigned p = 0; p < ports; ++p) r.middle->port(p).carrier(true, now);
  r.run(now + 1'000'000'000);
  std::uint64_t in = r.counted("copies"), out = 0, ended = 0, dropped = 0, delivered = 0, obeyed = 0;
  for (unsigned p = 0; p < ports; ++p) {
    const std::string port = "port" + std::to_string(p) + ".";
    in += r.counted(port + "rx_frames") + r.counted(port + "qcn_cnms");
    out += r.counted(port + "tx_frames");
    ended += r.counted(port + "ended");
    obeyed += r.counted(port + "rx_pause");
    for (const char* why : {"queue", "headroom", "vlan", "unknown", "fcs", "no_line"})
      dropped += r.counted(port + "drop_" + why);
    for (const auto& got : r.plugs[p].got) delivered += got.first->control ? 0 : 1;
  }
  EXPECT_EQ(r.counted("frames") + obeyed, sent + pauses) << "each that came is one of the two";
  EXPECT_EQ(in, out + ended + dropped);
  EXPECT_EQ(out, delivered);
  for (const std::uint64_t n : {ended, dropped, out}) EXPECT_GT(n, 20u);
}
INSTANTIATE_TEST_SUITE_P(network_switch, conservation, testing::Range(1u, 13u));

}  // namespace
}  // namespace rnic::fabric::test
