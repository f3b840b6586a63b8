// SPDX-License-Identifier: Apache-2.0
// Rules that make GIDs, link-layer addresses, path MTUs and UDP source ports (adapter data plane F, A.10.4, B.6).
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>

namespace rnic::host_driver {

using mac_address = std::array<std::uint8_t, 6>;
using gid_bytes = std::array<std::uint8_t, 16>;

inline gid_bytes to_bytes(const ibv_gid& g) {
  gid_bytes b{};
  for (unsigned i = 0; i < 16; ++i) b[i] = g.raw[i];
  return b;
}

/// fe80::/64 with the modified EUI-64 of a MAC (F.1).
gid_bytes default_gid(const mac_address& mac);
/// ::ffff:a.b.c.d; `address` in host order.
gid_bytes ipv4_gid(std::uint32_t address);
bool is_ipv4(const gid_bytes& gid);
bool is_multicast(const gid_bytes& gid);
/// The destination MAC that follows from the GID alone: multicast mapping (B.6) or a link-local address made of a MAC.
std::optional<mac_address> implied_mac(const gid_bytes& gid);

/// The link-local address by which RoCE v1 was addressed before GIDs were made of IP addresses: that of the MAC, with
/// the VLAN ID of the remote interface in the place of ff:fe (distribution's manual, "RoCEv1 (Layer2) Compatibility";
/// rdma/ib_addr.h:rdma_get_vlan_id). Without `vlan`: default_gid(). `vlan`: 1 to 4095.
gid_bytes compatibility_gid(const mac_address& mac, std::optional<std::uint16_t> vlan = std::nullopt);

/// How a path MTU follows from a netdev MTU. Both rules: the largest power of two that fits.
enum class mtu_rule : std::uint8_t {
  headers,   ///< 256 to 4096 beside the headers of a RoCE packet (F.3; rdma/ib_addr.h:iboe_get_mtu)
  below_mtu  ///< 256 to 2048, less than the netdev MTU (distribution's manual, "Installing and Loading the Driver")
};
/// 0 when there is not even room for 256.
ibv_mtu path_mtu(unsigned netdev_mtu, mtu_rule rule = mtu_rule::headers);

/// UDP source port of a connected QP (A.10.4; net/qp.c:mlx4_qp_roce_entropy).
std::uint16_t roce_entropy(std::uint32_t local_qpn, std::uint32_t remote_qpn);

}  // namespace rnic::host_driver
