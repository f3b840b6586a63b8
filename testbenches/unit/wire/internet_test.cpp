// SPDX-License-Identifier: Apache-2.0
// Headers, checksums and hashes of plain frames, against frames of scapy and published hashes.
#include "model/wire/internet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "testbenches/system/ethernet/frames.h"

namespace rnic::wire {
namespace {

namespace frames = system_test::frames;
using frames::bytes;

TEST(internet, sums_of_right_frames) {
  for (const bytes* f : {&frames::udp4, &frames::udp6, &frames::tcp4, &frames::tcp6, &frames::tcp4_options,
                         &frames::udp6_hop, &frames::udp4_ffff, &frames::udp4_ctag, &frames::udp4_stag, &frames::lso4_1,
                         &frames::lso6_2, &frames::rss6_1}) {
    const frame_view v = inspect(f->data(), f->size());
    ASSERT_TRUE(v.tcp || v.udp);
    if (v.ipv4) {
      EXPECT_EQ(ipv4_header_sum(f->data(), v), 0xffff);
    }
    EXPECT_EQ(l4_sum(f->data(), v), 0xffff);
    EXPECT_EQ(v.end, f->size());
  }
}

TEST(internet, every_flipped_bit_is_seen) {
  const frame_view right = inspect(frames::tcp4.data(), frames::tcp4.size());
  for (std::size_t bit = (right.l4 + 4) * 8; bit < frames::tcp4.size() * 8; ++bit) {
    if (bit / 8 == right.l4 + 12) continue;  // length of the header
    bytes f = frames::tcp4;
    f[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    const frame_view v = inspect(f.data(), f.size());
    ASSERT_TRUE(v.tcp);
    ASSERT_NE(l4_sum(f.data(), v), 0xffff) << bit;
  }
}

TEST(internet, checksums_are_written) {
  const std::pair<const bytes&, const bytes&> cases[] = {
      {frames::udp4_raw, frames::udp4},           {frames::udp6_raw, frames::udp6},
      {frames::tcp4_raw, frames::tcp4},           {frames::tcp6_raw, frames::tcp6},
      {frames::udp4_ffff_raw, frames::udp4_ffff}, {frames::tcp4_options_raw, frames::tcp4_options},
      {frames::udp6_hop_raw, frames::udp6_hop},   {frames::icmp4_raw, frames::icmp4}};
  for (const auto& [raw, wanted] : cases) {
    bytes f = raw;
    const frame_view v = inspect(f.data(), f.size());
    set_ipv4_checksum(f.data(), v);
    set_l4_checksum(f.data(), v);
    EXPECT_EQ(f, wanted);
  }
}

TEST(internet, kinds_of_frames) {
  EXPECT_TRUE(inspect(frames::fragment0.data(), frames::fragment0.size()).fragment);
  EXPECT_TRUE(inspect(frames::fragment1.data(), frames::fragment1.size()).fragment);
  EXPECT_FALSE(inspect(frames::fragment0.data(), frames::fragment0.size()).udp);
  const frame_view hop = inspect(frames::udp6_hop.data(), frames::udp6_hop.size());
  EXPECT_EQ(hop.extensions, 1);
  EXPECT_TRUE(hop.udp);
  const frame_view arp = inspect(frames::arp.data(), frames::arp.size());
  EXPECT_FALSE(arp.ipv4 || arp.ipv6 || arp.tcp || arp.udp);
  EXPECT_TRUE(inspect(frames::tcp4_options.data(), frames::tcp4_options.size()).options);
  const frame_view tag = inspect(frames::udp4_ctag.data(), frames::udp4_ctag.size());
  EXPECT_TRUE(tag.ctag && tag.ipv4);
  EXPECT_EQ(tag.tci, 5 << 13 | 100);
}

TEST(internet, tags_in_and_out) {
  std::vector<std::uint8_t> room(4);
  room.insert(room.end(), frames::udp4.begin(), frames::udp4.end());
  insert_tag(room.data() + 4, type_ctag, 5 << 13 | 100);
  EXPECT_EQ(room, frames::udp4_ctag);
  remove_tag(room.data());
  EXPECT_EQ(bytes(room.begin() + 4, room.end()), frames::udp4);
}

TEST(internet, no_frame_is_read_beyond_its_end) {
  // Under AddressSanitizer a read behind the last byte is an error; without it the views must lie inside.
  std::mt19937 random(3);
  for (unsigned i = 0; i < 200'000; ++i) {
    static const bytes* const all[] = {&frames::udp4,      &frames::tcp6,      &frames::udp6_hop,
                                       &frames::udp4_ctag, &frames::fragment0, &frames::arp};
    bytes f = *all[random() % 6];
    f.resize(random() % 2 != 0 ? f.size() : random() % (f.size() + 1));
    for (unsigned n = random() % 4; n != 0 && !f.empty(); --n)
      f[random() % std::min<std::size_t>(f.size(), 64)] = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t> exact(f.begin(), f.end());
    exact.shrink_to_fit();
    const frame_view v = inspect(exact.data(), exact.size());
    if (v.ipv4 || v.ipv6) {
      ASSERT_LE(v.end, exact.size());
    }
    if (v.tcp || v.udp) {
      ASSERT_LE(v.l4 + (v.tcp ? 20 : 8), v.end);
    }
    set_ipv4_checksum(exact.data(), v);
    set_l4_checksum(exact.data(), v);
    if (v.ipv4) {
      ASSERT_EQ(ipv4_header_sum(exact.data(), v), 0xffff);
    }
    if (v.tcp || v.udp) {
      ASSERT_EQ(l4_sum(exact.data(), v), 0xffff);
    }
    std::uint8_t flow[36];
    ASSERT_LE(flow_bytes(exact.data(), v, v.tcp || v.udp, flow), sizeof flow);
  }
}

TEST(internet, segments_of_a_message) {
  const struct {
    const bytes& header;
    const bytes* segment[3];
  } cases[] = {{frames::lso4_header, {&frames::lso4_0, &frames::lso4_1, &frames::lso4_2}},
               {frames::lso6_header, {&frames::lso6_0, &frames::lso6_1, &frames::lso6_2}}};
  for (const auto& c : cases)
    for (std::uint32_t i = 0; i < 3; ++i) {
      bytes f = c.header;
      const auto first = frames::lso_body.begin() + 1000 * static_cast<std::ptrdiff_t>(i);
      f.insert(f.end(), first, std::min(first + 1000, frames::lso_body.end()));
      EXPECT_TRUE(segment_header(f.data(), f.size(), i, 1000 * i, i == 2));
      EXPECT_EQ(f, *c.segment[i]);
    }
  bytes arp = frames::arp;
  EXPECT_FALSE(segment_header(arp.data(), arp.size(), 0, 0, true));
}

// Microsoft, "Verifying the RSS hash calculation": key, flows and results.
constexpr toeplitz_key published{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                                 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                                 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

TEST(internet, published_toeplitz_hashes) {
  const struct {
    const bytes& frame;
    std::uint32_t addresses, ports;
  } cases[] = {{frames::rss4_0, 0x323e8fc2, 0x51ccc178}, {frames::rss4_1, 0xd718262a, 0xc626b0ea},
               {frames::rss4_2, 0xd2d0a5de, 0x5c2b394a}, {frames::rss4_3, 0x82989176, 0xafc7327f},
               {frames::rss4_4, 0x5d1809c5, 0x10e828a2}, {frames::rss6_0, 0x2cc18cd5, 0x40207d3d},
               {frames::rss6_1, 0x0f0c461c, 0xdde51bbf}, {frames::rss6_2, 0x4b61e985, 0x02d1feef}};
  for (const auto& c : cases) {
    const frame_view v = inspect(c.frame.data(), c.frame.size());
    std::uint8_t flow[36];
    EXPECT_EQ(toeplitz(published, flow, flow_bytes(c.frame.data(), v, false, flow)), c.addresses);
    EXPECT_EQ(toeplitz(published, flow, flow_bytes(c.frame.data(), v, true, flow)), c.ports);
  }
}

}  // namespace
}  // namespace rnic::wire
