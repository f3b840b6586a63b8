// SPDX-License-Identifier: Apache-2.0
// Rules that make GIDs, link-layer addresses, path MTUs and UDP source ports.
#include "host_driver/gid_rules.h"

#include <algorithm>

namespace rnic::host_driver {

gid_bytes default_gid(const mac_address& mac) {
  gid_bytes g{};
  g[0] = 0xfe;
  g[1] = 0x80;
  g[8] = mac[0] ^ 2;
  g[9] = mac[1];
  g[10] = mac[2];
  g[11] = 0xff;
  g[12] = 0xfe;
  std::copy(mac.begin() + 3, mac.end(), g.begin() + 13);
  return g;
}

gid_bytes compatibility_gid(const mac_address& mac, std::optional<std::uint16_t> vlan) {
  gid_bytes g = default_gid(mac);
  if (!vlan) return g;
  g[11] = static_cast<std::uint8_t>(*vlan >> 8);
  g[12] = static_cast<std::uint8_t>(*vlan);
  return g;
}

gid_bytes ipv4_gid(std::uint32_t address) {
  gid_bytes g{};
  g[10] = g[11] = 0xff;
  for (unsigned i = 0; i < 4; ++i) g[12 + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
  return g;
}

bool is_ipv4(const gid_bytes& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t b) { return b == 0; }) && gid[10] == 0xff &&
         gid[11] == 0xff;
}

bool is_multicast(const gid_bytes& gid) { return gid[0] == 0xff || (is_ipv4(gid) && (gid[12] & 0xf0) == 0xe0); }

std::optional<mac_address> implied_mac(const gid_bytes& gid) {
  if (is_multicast(gid)) {
    if (is_ipv4(gid)) return mac_address{0x01, 0x00, 0x5e, static_cast<std::uint8_t>(gid[13] & 0x7f), gid[14], gid[15]};
    return mac_address{0x33, 0x33, gid[12], gid[13], gid[14], gid[15]};
  }
  if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80) {
    return mac_address{static_cast<std::uint8_t>(gid[8] ^ 2), gid[9], gid[10], gid[13], gid[14], gid[15]};
  }
  return std::nullopt;
}

ibv_mtu path_mtu(unsigned netdev_mtu, mtu_rule rule) {
  const bool small = rule == mtu_rule::below_mtu;
  const unsigned taken = small ? 1 : 96;  // GRH 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28, ICRC 4
  const unsigned room = netdev_mtu < taken ? 0 : netdev_mtu - taken;
  for (int code = small ? IBV_MTU_2048 : IBV_MTU_4096; code >= IBV_MTU_256; --code) {
    if (room >= (128u << code)) return static_cast<ibv_mtu>(code);
  }
  return static_cast<ibv_mtu>(0);
}

std::uint16_t roce_entropy(std::uint32_t local_qpn, std::uint32_t remote_qpn) {
  const auto fold = [](std::uint32_t q) { return ((q & 0xff) ^ (q >> 16 & 0xff)) | (q & 0xff00); };
  const std::uint32_t mixed = local_qpn == remote_qpn ? fold(local_qpn) : fold(remote_qpn) ^ fold(local_qpn);
  return static_cast<std::uint16_t>(0xc000 | mixed);
}

}  // namespace rnic::host_driver
