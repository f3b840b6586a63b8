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

/// Path MTU that a netdev MTU leaves (F.3); 0 when below 256.
ibv_mtu path_mtu(unsigned netdev_mtu);

/// UDP source port of a connected QP (A.10.4; net/qp.c:mlx4_qp_roce_entropy).
std::uint16_t roce_entropy(std::uint32_t local_qpn, std::uint32_t remote_qpn);

}  // namespace rnic::host_driver
