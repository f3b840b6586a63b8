// SPDX-License-Identifier: Apache-2.0
// GIDs made of MAC addresses, and path MTUs, by the examples of the product documents and of the kernel.
#include "host_driver/gid_rules.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>

namespace rnic::host_driver {
namespace {

std::string text_of(const gid_bytes& g) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, g.data(), text, sizeof text);
}

/// The distribution's manual: `ifconfig eth2` shows the MAC, `vconfig add eth2 7` the VLAN, and `ibv_rc_pingpong -g 1`
/// on both hosts the GIDs. The other host's MAC follows from its GID.
TEST(CompatibilityGid, IsTheOneThatThePingpongOfTheManualShows) {
  EXPECT_EQ(text_of(compatibility_gid({0x00, 0x02, 0xc9, 0x08, 0xe8, 0x11}, 7)), "fe80::202:c900:708:e811");
  EXPECT_EQ(text_of(compatibility_gid({0x00, 0x02, 0xc9, 0x08, 0xe7, 0x99}, 7)), "fe80::202:c900:708:e799");
}

/// Bytes 11 and 12 of the manual's table: "VLAN ID high byte (4 MS bits)", "VLAN ID low byte", or ff and fe.
TEST(CompatibilityGid, HasTheVlanOrTheMiddleOfAnEui64) {
  const mac_address mac{0xf4, 0x52, 0x14, 0x01, 0x02, 0x03};
  const gid_bytes tagged = compatibility_gid(mac, 0xfff);
  EXPECT_EQ(tagged, (gid_bytes{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0xf6, 0x52, 0x14, 0x0f, 0xff, 0x01, 0x02, 0x03}));
  EXPECT_EQ(compatibility_gid(mac), default_gid(mac));
  EXPECT_EQ(text_of(compatibility_gid(mac)), "fe80::f652:14ff:fe01:203");
}

/// Both kinds name the MAC of the host that has them (rdma/ib_addr.h: rdma_get_ll_mac).
TEST(CompatibilityGid, NamesItsMac) {
  const mac_address mac{0x00, 0x02, 0xc9, 0x08, 0xe8, 0x11};
  for (const int vlan : {1, 7, 0x7ff, 4094})
    EXPECT_EQ(implied_mac(compatibility_gid(mac, static_cast<std::uint16_t>(vlan))), mac);
}

/// The manual: an interface MTU of 1560 leaves 1K; 2K at maximum; "the largest power of 2 that is still lower".
TEST(PathMtu, OfTheManualIsBelowTheInterfaces) {
  const auto bytes = [](unsigned mtu) { return 128u << path_mtu(mtu, mtu_rule::below_mtu); };
  EXPECT_EQ(bytes(1560), 1024u);
  EXPECT_EQ(bytes(1500), 1024u);
  EXPECT_EQ(bytes(257), 256u);
  EXPECT_EQ(bytes(1024), 512u);
  EXPECT_EQ(bytes(1025), 1024u);
  EXPECT_EQ(bytes(2048), 1024u);
  EXPECT_EQ(bytes(2049), 2048u);
  EXPECT_EQ(bytes(4200), 2048u);
  EXPECT_EQ(bytes(9000), 2048u);
  EXPECT_EQ(path_mtu(256, mtu_rule::below_mtu), 0);
}

/// rdma/ib_addr.h:iboe_get_mtu takes 96 bytes of headers off, and enumerates 256 to 4096.
TEST(PathMtu, OfTheKernelLeavesRoomForHeaders) {
  EXPECT_EQ(path_mtu(1500), IBV_MTU_1024);
  EXPECT_EQ(path_mtu(2143), IBV_MTU_1024);
  EXPECT_EQ(path_mtu(2144), IBV_MTU_2048);
  EXPECT_EQ(path_mtu(4191), IBV_MTU_2048);
  EXPECT_EQ(path_mtu(4192), IBV_MTU_4096);
  EXPECT_EQ(path_mtu(9000), IBV_MTU_4096);
  EXPECT_EQ(path_mtu(351), 0);
}

}  // namespace
}  // namespace rnic::host_driver
