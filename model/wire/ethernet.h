// SPDX-License-Identifier: Apache-2.0
// Addresses: text, multicast mapping, default GIDs; the UDP source port that carries entropy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/wire/packet.h"

namespace rnic::wire {

/// "02:00:00:00:00:01"; parsing takes ':' or '-' between two-digit bytes, nullopt for anything else.
std::string to_string(const mac_address& mac);
std::optional<mac_address> parse_mac(std::string_view text);

/// As an IPv6 address (RFC 5952; IPv4-mapped GIDs as ::ffff:a.b.c.d). Parsing takes IPv6 text or a dotted IPv4
/// address, which becomes ::ffff:a.b.c.d.
std::string to_string(const gid& id);
std::optional<gid> parse_gid(std::string_view text);

/// MAC address as the low 48 bits of a word, the first byte on the wire highest (as in adapter data plane B.1).
mac_address mac_from_u64(std::uint64_t v);
std::uint64_t to_u64(const mac_address& mac);

/// ::ffff:a.b.c.d of an address in host order.
gid gid_from_ipv4(std::uint32_t address);
/// The IPv4 address in host order when the GID is ::ffff:0:0/96.
std::optional<std::uint32_t> ipv4_of(const gid& id);
/// fe80::/64 with the modified EUI-64 of the MAC (adapter data plane F.1).
gid default_gid(const mac_address& mac);

/// Group bit of the address (broadcast included).
constexpr bool is_multicast(const mac_address& mac) { return (mac[0] & 1) != 0; }
/// ff00::/8, or an IPv4-mapped address of 224.0.0.0/4.
bool is_multicast(const gid& id);
/// Destination MAC of a multicast GID (adapter data plane B.6): 01:00:5e and 23 bits for IPv4-mapped groups, 33:33 and
/// 32 bits for the others.
mac_address multicast_mac(const gid& id);

/// UDP source port as the adapter's driver derives it from the QP numbers (adapter data plane A.10.4): 0xC000..0xFFFF.
std::uint16_t entropy_of_qps(std::uint32_t dest_qpn, std::uint32_t src_qpn);
/// UDP source port from a 20-bit flow label (adapter data plane F.5).
constexpr std::uint16_t entropy_of_flow_label(std::uint32_t flow_label) {
  return static_cast<std::uint16_t>(((flow_label & 0x3fff) ^ ((flow_label & 0xfffff) >> 14)) | 0xc000);
}

}  // namespace rnic::wire
