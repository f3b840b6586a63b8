// SPDX-License-Identifier: Apache-2.0
// Congestion notification messages, byte for byte as scapy builds them from the standard's layout
// (testbenches/system/congestion/cnm_frames.py prints these), and bad ones.
#include "model/wire/cnm.h"

#include <gtest/gtest.h>

#include <random>

#include "testbenches/unit/wire/oracle.h"

namespace rnic::wire::test {
namespace {

const std::string msdu =
    "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"
    "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f";
const std::string addresses = "020000000001020000008001";
const std::string pdu = "003f0200000080010603fc08013860000200000000090040" + msdu;
const std::string untagged = addresses + "22e7" + pdu;
const std::string tagged = addresses + "8100c00222e7000100000000000000000005fffae00002000000000900028915";
const std::string with_flow = addresses + "8100c00222e9123422e7" + pdu;

cnm first() {
  cnm m;
  m.dmac = {2, 0, 0, 0, 0, 1};
  m.smac = {2, 0, 0, 0, 0x80, 1};
  m.feedback = 63;
  m.cpid = 0x0200000080010603;
  m.q_offset = -1016;
  m.q_delta = 312;
  m.priority = 3;
  m.sampled_dmac = {2, 0, 0, 0, 0, 9};
  m.msdu_bytes = 64;
  for (unsigned i = 0; i < 64; ++i) m.msdu[i] = static_cast<std::uint8_t>(0x40 + i);
  return m;
}

bytes built(const cnm& m) {
  bytes b(cnm_most_bytes, 0xee);
  b.resize(encode_cnm(m, b.data()));
  return b;
}

TEST(wire_cnm, is_what_scapy_builds) {
  EXPECT_EQ(built(first()), from_hex(untagged));
  cnm m = first();
  m.vlan_tci = 6 << 13 | 2;
  m.flow = 0x1234;
  EXPECT_EQ(built(m), from_hex(with_flow));
  EXPECT_EQ(built(m).size(), cnm_most_bytes);
  cnm other;
  other.dmac = m.dmac;
  other.smac = m.smac;
  other.vlan_tci = m.vlan_tci;
  other.feedback = 1;
  other.q_offset = 5;
  other.q_delta = -6;
  other.priority = 7;
  other.sampled_dmac = m.sampled_dmac;
  other.msdu_bytes = 2;
  other.msdu[0] = 0x89, other.msdu[1] = 0x15;
  EXPECT_EQ(built(other), from_hex(tagged));
}

TEST(wire_cnm, is_read_as_scapy_has_written_it) {
  bytes b = from_hex(with_flow);
  cnm m;
  ASSERT_EQ(decode_cnm(b.data(), b.size(), m), cnm_kind::message);
  EXPECT_EQ(m.dmac, first().dmac);
  EXPECT_EQ(m.smac, first().smac);
  EXPECT_EQ(m.vlan_tci.value_or(0), 0xc002);
  EXPECT_EQ(m.flow.value_or(0), 0x1234);
  EXPECT_EQ(m.feedback, 63);
  EXPECT_EQ(m.cpid, 0x0200000080010603u);
  EXPECT_EQ(m.q_offset, -1016);
  EXPECT_EQ(m.q_delta, 312);
  EXPECT_EQ(m.priority, 3);
  EXPECT_EQ(m.sampled_dmac, first().sampled_dmac);
  EXPECT_EQ(m.msdu_bytes, 64);
  EXPECT_EQ(m.msdu, first().msdu);
  b = from_hex(tagged);
  ASSERT_EQ(decode_cnm(b.data(), b.size(), m), cnm_kind::message);
  EXPECT_FALSE(m.flow);
  EXPECT_EQ(m.priority, 7);
  EXPECT_EQ(m.q_delta, -6);
  EXPECT_EQ(m.msdu_bytes, 2);
  b.resize(60);  // padded
  ASSERT_EQ(decode_cnm(b.data(), b.size(), m), cnm_kind::message);
  EXPECT_EQ(m.msdu_bytes, 2);
}

TEST(wire_cnm, what_is_reserved_does_not_count) {
  bytes b = from_hex(untagged);
  b[14] |= 0x0f, b[15] |= 0xc0;  // ReservedV
  b[29] = 0xff, b[28] |= 0x1f;   // below the priority
  cnm m;
  ASSERT_EQ(decode_cnm(b.data(), b.size(), m), cnm_kind::message);
  EXPECT_EQ(built(m), from_hex(untagged));
}

TEST(wire_cnm, other_versions_short_ones_and_other_frames) {
  cnm m = first();
  m.cpid = 77;
  bytes b = from_hex(untagged);
  for (std::size_t n = 0; n < b.size(); ++n) {
    const cnm_kind expected = n < 14 ? cnm_kind::none : cnm_kind::malformed;
    EXPECT_EQ(decode_cnm(b.data(), n, m), expected) << n;
  }
  b[14] = 0x10;
  EXPECT_EQ(decode_cnm(b.data(), b.size(), m), cnm_kind::unsupported);
  b[14] = 0;
  b[37] = 65;  // more than there may be
  b.resize(200);
  EXPECT_EQ(decode_cnm(b.data(), b.size(), m), cnm_kind::malformed);
  b[37] = 64;
  EXPECT_TRUE(is_cnm(b.data(), b.size()));
  EXPECT_EQ(m.cpid, 77u) << "nothing has been written";
  b[13] = 0xe8;
  EXPECT_FALSE(is_cnm(b.data(), b.size()));
  EXPECT_EQ(decode_cnm(b.data(), b.size(), m), cnm_kind::none);
}

/// No bytes at all make it read beyond the end (sanitizers see that), and what is read is written back as it was.
TEST(wire_cnm, any_bytes) {
  std::mt19937_64 random(3);
  unsigned messages = 0;
  for (unsigned i = 0; i < 200'000; ++i) {
    bytes b = from_hex(i % 3 == 0 ? untagged : i % 3 == 1 ? tagged : with_flow);
    b.resize(random() % (b.size() + 20));
    for (std::uint64_t n = random() % 3; n != 0 && !b.empty(); --n)
      b[random() % b.size()] = static_cast<std::uint8_t>(random());
    cnm m;
    if (decode_cnm(b.data(), b.size(), m) != cnm_kind::message) continue;
    ++messages;
    cnm again;
    const bytes copy = built(m);
    ASSERT_EQ(decode_cnm(copy.data(), copy.size(), again), cnm_kind::message);
    ASSERT_EQ(built(again), copy);
  }
  EXPECT_GT(messages, 10'000u);
}

}  // namespace
}  // namespace rnic::wire::test
