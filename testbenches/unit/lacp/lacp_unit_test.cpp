// SPDX-License-Identifier: Apache-2.0
// Data units of LACP and of the marker protocol against those that scapy has built, and what is illegal.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/wire/lacp.h"

namespace rnic::wire {
namespace {

using bytes = std::vector<std::uint8_t>;

bytes from_hex(const std::string& text) {
  bytes b;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    b.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  b.resize(slow_protocol_bytes);  // what follows is zero in all of them
  return b;
}

/// scapy.contrib.lacp: SlowProtocol() / LACP() with the values below.
const bytes lacp_of_scapy =
    from_hex("010101141234020000000001432100ff00023f0000000214fffe020000000002001100030102c500000003100009");
/// SlowProtocol(subtype=2) / MarkerProtocol(requester_port=2, ...).
const bytes marker_of_scapy = from_hex("020101100002020000000007deadbeef");
const bytes response_of_scapy = from_hex("020102100002020000000007deadbeef");

lacp_unit unit_of_scapy() {
  lacp_unit u;
  u.actor = {0x1234, {2, 0, 0, 0, 0, 1}, 0x4321, 255, 2, 0x3f};
  u.partner = {0xfffe, {2, 0, 0, 0, 0, 2}, 17, 3, 0x102, 0xc5};
  u.collector_max_delay = 9;
  return u;
}

void expect_same(const lacp_end& a, const lacp_end& b) {
  EXPECT_EQ(a.system_priority, b.system_priority);
  EXPECT_EQ(a.system, b.system);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.port_priority, b.port_priority);
  EXPECT_EQ(a.port, b.port);
  EXPECT_EQ(a.state, b.state);
}

struct outcome {
  slow_protocol what;
  lacp_unit lacp;
  marker_unit marker;
};
outcome decode(const bytes& b) {
  outcome o;
  o.what = decode_slow_protocol(b.data(), b.size(), o.lacp, o.marker);
  return o;
}

TEST(LacpUnit, IsWhatScapyBuilds) { EXPECT_EQ(encode_lacp(unit_of_scapy()), lacp_of_scapy); }

TEST(LacpUnit, IsReadAsScapyHasWrittenIt) {
  const outcome o = decode(lacp_of_scapy);
  ASSERT_EQ(o.what, slow_protocol::lacp);
  expect_same(o.lacp.actor, unit_of_scapy().actor);
  expect_same(o.lacp.partner, unit_of_scapy().partner);
  EXPECT_EQ(o.lacp.collector_max_delay, 9);
}

TEST(LacpUnit, MarkersAndTheirResponses) {
  const marker_unit m{false, 2, {2, 0, 0, 0, 0, 7}, 0xdeadbeef};
  EXPECT_EQ(encode_marker(m), marker_of_scapy);
  marker_unit r = m;
  r.response = true;
  EXPECT_EQ(encode_marker(r), response_of_scapy);
  const outcome o = decode(response_of_scapy);
  ASSERT_EQ(o.what, slow_protocol::marker);
  EXPECT_TRUE(o.marker.response);
  EXPECT_EQ(o.marker.port, 2);
  EXPECT_EQ(o.marker.system, m.system);
  EXPECT_EQ(o.marker.transaction, 0xdeadbeefu);
  EXPECT_FALSE(decode(marker_of_scapy).marker.response);
}

/// A version to come has more behind what version 1 has.
TEST(LacpUnit, HigherVersionsAreReadAsVersionOne) {
  bytes b = lacp_of_scapy;
  b[1] = 2;
  b[58] = 4;  // port algorithm TLV
  b[59] = 6;
  b.resize(140, 0xaa);
  const outcome o = decode(b);
  ASSERT_EQ(o.what, slow_protocol::lacp);
  expect_same(o.lacp.actor, unit_of_scapy().actor);
}

TEST(LacpUnit, WhatIsIllegal) {
  for (std::size_t length = 0; length < slow_protocol_bytes; ++length)
    for (const bytes& whole : {lacp_of_scapy, marker_of_scapy})
      EXPECT_EQ(decode(bytes(whole.begin(), whole.begin() + static_cast<long>(length))).what, slow_protocol::illegal)
          << length;
  // version, type and length of each TLV
  for (const std::size_t at : {1u, 2u, 3u, 22u, 23u, 42u, 43u}) {
    bytes b = lacp_of_scapy;
    b[at] = 0;
    EXPECT_EQ(decode(b).what, slow_protocol::illegal) << at;
    b[at] = static_cast<std::uint8_t>(lacp_of_scapy[at] + 1);
    EXPECT_EQ(decode(b).what, at == 1 ? slow_protocol::lacp : slow_protocol::illegal) << at;
  }
  for (const std::size_t at : {1u, 2u, 3u}) {
    bytes b = marker_of_scapy;
    b[at] = 0;
    EXPECT_EQ(decode(b).what, slow_protocol::illegal) << at;
  }
  bytes b = lacp_of_scapy;
  for (const unsigned subtype : {0u, 11u, 255u}) {
    b[0] = static_cast<std::uint8_t>(subtype);
    EXPECT_EQ(decode(b).what, slow_protocol::illegal) << subtype;
  }
  for (unsigned subtype = 3; subtype <= 10; ++subtype) {
    b[0] = static_cast<std::uint8_t>(subtype);
    EXPECT_EQ(decode(b).what, slow_protocol::unknown) << subtype;
  }
}

/// Nothing that comes in is written again otherwise than it came, as far as it is looked at.
TEST(LacpUnit, AnythingIsReadOrRefused) {
  std::mt19937 random(1);
  unsigned lacp = 0, refused = 0;
  for (unsigned i = 0; i < 20'000; ++i) {
    bytes b = random() % 2 == 0 ? lacp_of_scapy : marker_of_scapy;
    for (unsigned changes = random() % 4; changes > 0; --changes)
      b[random() % 56] = static_cast<std::uint8_t>(random());
    if (random() % 8 == 0) b.resize(random() % b.size());
    const outcome o = decode(b);
    if (o.what == slow_protocol::lacp) {
      ++lacp;
      expect_same(decode(encode_lacp(o.lacp)).lacp.actor, o.lacp.actor);
    } else if (o.what == slow_protocol::illegal) {
      ++refused;
    }
  }
  EXPECT_GT(lacp, 1000u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace rnic::wire
