// SPDX-License-Identifier: Apache-2.0
// What is compared of a frame: frames of scapy, word by word as one reads it from their bytes.
#include "model/flow/flow_key.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "testbenches/system/ethernet/frames.h"

namespace rnic::flow {
namespace {

namespace k = cr::frame_key;
using system_test::frames::bytes;
namespace frames = system_test::frames;

struct holder {
  payload::frame_pool pool;
  payload::frame_ptr frame;
  explicit holder(const bytes& from, unsigned port = 0) : frame(pool.get()) {
    frame->length = static_cast<std::uint32_t>(from.size());
    frame->port = static_cast<std::uint8_t>(port);
    std::copy(from.begin(), from.end(), frame->data());
  }
};

flow_key key_of(const bytes& frame, unsigned port = 0) { return key_of_frame(*holder(frame, port).frame); }

/// Addresses that all frames have.
constexpr std::uint32_t dmac = 0x02000000, both = 0x0b010200, smac = 0x00000a01;

TEST(FlowKey, Udp4) {
  const flow_key expected{k::ipv4 | k::udp | 0x0800, dmac, both, smac, 0, 0x0a010203, 0x0a090807, 0x0fa01388};
  EXPECT_EQ(key_of(frames::udp4), expected);
  flow_key of_port_2 = expected;
  of_port_2[0] |= k::port_2;
  EXPECT_EQ(key_of(frames::udp4, 1), of_port_2);
}

TEST(FlowKey, Tcp4WithOptions) {
  const flow_key key = key_of(frames::tcp4_options);
  EXPECT_EQ(key[k::kind], k::ipv4 | k::tcp | 0x0800);
  EXPECT_EQ(key[k::source_ip], 0x0a010203u);
  EXPECT_EQ(key[k::ports], 0x00010002u);
}

TEST(FlowKey, PortsOfIpv6) {
  const flow_key expected{k::udp | 0x86dd, dmac, both, smac, 0, 0, 0, 0x0fa11389};
  EXPECT_EQ(key_of(frames::udp6), expected);
}

TEST(FlowKey, BehindATag) {
  const flow_key plain = key_of(frames::udp4), tagged = key_of(frames::udp4_ctag), service = key_of(frames::udp4_stag);
  for (const flow_key& key : {tagged, service}) {
    EXPECT_EQ(key[k::kind], plain[k::kind] | k::tagged);
    for (const unsigned word : {k::dmac_high, k::dmac_smac, k::smac_low, k::source_ip, k::destination_ip, k::ports})
      EXPECT_EQ(key[word], plain[word]) << word;
  }
  EXPECT_EQ(tagged[k::tag] & 0xfff, 100u);
  EXPECT_EQ(key_of(frames::udp4_ctag200)[k::tag] & 0xfff, 200u);
}

TEST(FlowKey, FragmentsHaveNoPorts) {
  for (const bytes* frame : {&frames::fragment0, &frames::fragment1}) {
    const flow_key key = key_of(*frame);
    EXPECT_EQ(key[k::kind] & (k::ipv4 | k::udp | k::tcp), k::ipv4);
    EXPECT_EQ(key[k::ports], 0u);
    EXPECT_NE(key[k::source_ip], 0u);
  }
}

TEST(FlowKey, WithoutIp) {
  EXPECT_EQ(key_of(frames::arp)[k::kind], 0x0806u);
  EXPECT_EQ(key_of(frames::arp)[k::dmac_high], 0xffffffffu);
  EXPECT_EQ(key_of(frames::icmp4)[k::kind], k::ipv4 | 0x0800);
  EXPECT_EQ(key_of(frames::snap)[k::kind] & 0xffff0000, 0u);
}

/// Cut off anywhere: nothing of it is read that is not there, and what is there stays what it is.
TEST(FlowKey, CutOff) {
  for (const bytes* whole : {&frames::udp4, &frames::tcp6, &frames::udp4_ctag, &frames::arp})
    for (std::size_t length = 0; length <= whole->size(); ++length) {
      const holder h(bytes(whole->begin(), whole->begin() + static_cast<std::ptrdiff_t>(length)));
      const flow_key key = key_of_frame(*h.frame);
      EXPECT_EQ(key[k::dmac_high], length < 14 ? 0 : key_of(*whole)[k::dmac_high]) << length;
      EXPECT_LE(key_bytes(*h.frame), std::max<std::size_t>(length, 1));
    }
}

TEST(FlowKey, BytesThatMustBeThere) {
  EXPECT_EQ(key_bytes(*holder(frames::arp).frame), 14u);
  EXPECT_EQ(key_bytes(*holder(frames::udp4).frame), 14u + 20 + 4);
  EXPECT_EQ(key_bytes(*holder(frames::udp4_ctag).frame), 18u + 20 + 4);
  EXPECT_EQ(key_bytes(*holder(frames::tcp6).frame), 14u + 40 + 4);
  EXPECT_EQ(key_bytes(*holder(frames::icmp4).frame), 14u + 20);
}

TEST(FlowKey, Datagram) {
  holder h(frames::udp4, 1);
  h.frame->packet.bth.dest_qp = 0xff123456;
  for (unsigned i = 0; i < 16; ++i) h.frame->packet.dgid[i] = static_cast<std::uint8_t>(0xf0 + i);
  const flow_key expected{k::port_2 | 0x123456, 0xf0f1f2f3, 0xf4f5f6f7, 0xf8f9fafb, 0xfcfdfeff, 0, 0, 0};
  EXPECT_EQ(key_of_datagram(*h.frame), expected);
}

}  // namespace
}  // namespace rnic::flow
