// SPDX-License-Identifier: Apache-2.0
// Special queue pairs of functions: QP1 of a virtual function is a proxy, whose datagrams a tunnel of the physical
// function's driver takes and brings (adapter control plane 4.17, 8.7; ib/mlx4_ib.h, net/qp.c: mlx4_init_qp_table).
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/abi/endian.h"

namespace rnic::abi::paravirtual {

/// Behind the eight special queue pairs of CONF_SPECIAL_QP: eight proxies of each possible function, then as many
/// tunnels. As of the special ones, two are QP0 of ports 1 and 2, two are QP1, four are not used.
inline constexpr std::uint32_t special_qps = 8, each = 8, most_functions = 128, qp1 = 2;
inline constexpr std::uint32_t numbers = 2 * each * most_functions;
constexpr std::uint32_t proxy_base(std::uint32_t special_base) { return special_base + special_qps; }
constexpr std::uint32_t tunnel_base(std::uint32_t special_base) {
  return proxy_base(special_base) + each * most_functions;
}
/// QP1 of a function's port (1, 2).
constexpr std::uint32_t proxy(std::uint32_t special_base, unsigned function, unsigned port) {
  return proxy_base(special_base) + each * function + qp1 + port - 1;
}
constexpr std::uint32_t tunnel(std::uint32_t special_base, unsigned function, unsigned port) {
  return tunnel_base(special_base) + each * function + qp1 + port - 1;
}

/// Q_Keys of proxies and tunnels, which no other queue pair may have: a proxy and its tunnel have the same one, by
/// their place in the block (net/main.c: mlx4_get_parav_qkey; MLX4_RESERVED_QKEY_BASE).
inline constexpr std::uint32_t reserved_qkeys = 0xffff0000;
constexpr bool is_reserved_qkey(std::uint32_t qkey) { return (qkey & reserved_qkeys) == reserved_qkeys; }
constexpr std::uint32_t qkey(unsigned function, unsigned port) {
  return reserved_qkeys + each * function + qp1 + port - 1;
}
/// In a work request: the Q_Key of the queue pair that sends (IB_QP_SET_QKEY).
inline constexpr std::uint32_t own_qkey = 1u << 31;

/// QUERY_FUNC_CAP of a port: the function's numbers (net/fw.c: QUERY_FUNC_CAP_QP0_TUNNEL and following).
inline constexpr auto qp0_tunnel = u32(0x10), qp0_proxy = u32(0x14), qp1_tunnel = u32(0x18), qp1_proxy = u32(0x1c);

/// What a proxy puts in front of a datagram (struct mlx4_ib_tunnel_header): the address vector of the datagram segment,
/// whose GID index is the function's, and where the datagram goes.
namespace to_tunnel {
inline constexpr std::size_t bytes = 56, address_vector = 32, destination_mac = 42;
inline constexpr auto remote_qpn = bits32(32, 23, 0), qkey = u32(36);
inline constexpr auto vlan = u16(40), pkey_index = u16(48);
inline constexpr std::uint16_t untagged = 0xffff;
}  // namespace to_tunnel

/// What a tunnel puts in front of a datagram and the 40 bytes of its network header (struct mlx4_rcv_tunnel_hdr).
namespace to_proxy {
inline constexpr std::size_t bytes = 16;
inline constexpr auto source_qpn = bits32(0, 23, 0);
inline constexpr auto network_header = bits8(4, 7, 7);
inline constexpr auto pkey_index = u16(6), vlan = u16(8);
inline constexpr std::size_t mac_end = 10, mac_begin = 12;  ///< bytes 4 and 5 of the sender's MAC; bytes 0 to 3
}  // namespace to_proxy

}  // namespace rnic::abi::paravirtual
