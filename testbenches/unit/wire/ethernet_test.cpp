// SPDX-License-Identifier: Apache-2.0
// Address helpers against the examples of adapter data plane A.10.4, B.6, F.1 and F.5.
#include "model/wire/ethernet.h"

#include <gtest/gtest.h>

namespace rnic::wire::test {
namespace {

TEST(wire_ethernet, mac_text) {
  EXPECT_EQ(to_string(*parse_mac("F4:52:14:01:02:03")), "f4:52:14:01:02:03");
  EXPECT_EQ(to_string(*parse_mac("f4-52-14-01-02-03")), "f4:52:14:01:02:03");
  EXPECT_FALSE(parse_mac("f4:52:14:01:02"));
  EXPECT_FALSE(parse_mac("f4:52:14:01:02:0g"));
  EXPECT_FALSE(parse_mac("f4:52:14:01:02.03"));
  EXPECT_EQ(to_u64(*parse_mac("f4:52:14:01:02:03")), 0xf45214010203u);
  EXPECT_EQ(to_string(mac_from_u64(0xf45214010203)), "f4:52:14:01:02:03");
}

TEST(wire_ethernet, gid_text) {
  EXPECT_EQ(to_string(*parse_gid("10.0.0.1")), "::ffff:10.0.0.1");
  EXPECT_EQ(*parse_gid("::ffff:10.0.0.1"), gid_from_ipv4(0x0a000001));
  EXPECT_EQ(ipv4_of(*parse_gid("10.0.0.1")), 0x0a000001u);
  EXPECT_FALSE(ipv4_of(*parse_gid("fd00::1")));
  EXPECT_FALSE(parse_gid("10.0.0"));
  EXPECT_FALSE(parse_gid(""));
}

TEST(wire_ethernet, default_gids) {
  EXPECT_EQ(to_string(default_gid(*parse_mac("f4:52:14:01:02:03"))), "fe80::f652:14ff:fe01:203");
  EXPECT_EQ(to_string(default_gid(*parse_mac("02:00:00:00:00:01"))), "fe80::ff:fe00:1");
}

TEST(wire_ethernet, multicast) {
  EXPECT_EQ(to_string(multicast_mac(*parse_gid("239.129.2.3"))), "01:00:5e:01:02:03");
  EXPECT_EQ(to_string(multicast_mac(*parse_gid("ff0e::ffff:239.1.2.3"))), "33:33:ef:01:02:03");
  EXPECT_TRUE(is_multicast(*parse_gid("239.1.2.3")));
  EXPECT_TRUE(is_multicast(*parse_gid("ff02::1")));
  EXPECT_FALSE(is_multicast(*parse_gid("10.0.0.1")));
  EXPECT_FALSE(is_multicast(*parse_gid("fe80::1")));
  EXPECT_TRUE(is_multicast(*parse_mac("ff:ff:ff:ff:ff:ff")));
}

TEST(wire_ethernet, entropy) {
  EXPECT_EQ(entropy_of_qps(0x48, 0x49), 0xc001);
  EXPECT_EQ(entropy_of_qps(0x123456, 0xabcdef), 0xf900);
  EXPECT_EQ(entropy_of_qps(0x50, 0x50), 0xc050);
  EXPECT_EQ(entropy_of_flow_label(0), 0xc000);
  EXPECT_EQ(entropy_of_flow_label(0x4000), 0xc001);
  EXPECT_EQ(entropy_of_flow_label(0x12345), 0xe341);
  EXPECT_EQ(entropy_of_flow_label(0xfffff), 0xffc0);
}

}  // namespace
}  // namespace rnic::wire::test
