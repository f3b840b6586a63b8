// SPDX-License-Identifier: Apache-2.0
// The bytes of the messages that neighbours.h speaks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "host_driver/gid_rules.h"

namespace rnic::host_driver::messages {

inline constexpr std::uint16_t type_ipv4 = 0x0800, type_arp = 0x0806, type_vlan = 0x8100, type_ipv6 = 0x86dd;
inline constexpr std::uint8_t protocol_icmp = 1, protocol_icmp6 = 58;
inline constexpr std::uint8_t icmp_echo_reply = 0, icmp_echo_request = 8;
inline constexpr std::uint8_t icmp6_echo_request = 128, icmp6_echo_reply = 129, icmp6_solicitation = 135,
                              icmp6_advertisement = 136;
inline constexpr std::size_t arp_bytes = 28, ipv4_bytes = 20, ipv6_bytes = 40, neighbour_bytes = 24;

/// The IPv6 address that stands there.
inline gid_bytes gid_at(const std::uint8_t* p) {
  gid_bytes g;
  std::copy_n(p, g.size(), g.begin());
  return g;
}

/// RFC 1071. `sum` carries over from what came before, which had an even length.
std::uint32_t ones_sum(const std::uint8_t* data, std::size_t length, std::uint32_t sum = 0);
std::uint16_t ones_complement(std::uint32_t sum);
/// Checksum of an ICMPv6 message with its pseudo header (RFC 4443 2.3); 0 for one that has a right checksum in it.
std::uint16_t icmp6_checksum(const gid_bytes& from, const gid_bytes& to, const std::uint8_t* icmp, std::size_t length);

/// 33:33:ff and the solicited-node address (RFC 4291 2.7.1).
gid_bytes solicited_node(const gid_bytes& target);

enum class arp_operation : std::uint16_t { request = 1, reply = 2 };
struct arp {
  arp_operation operation = arp_operation::request;
  mac_address sender_mac{}, target_mac{};
  gid_bytes sender{}, target{};  ///< ::ffff:a.b.c.d
};
/// Nothing for what is not ARP of IPv4 over Ethernet, or neither request nor reply.
std::optional<arp> parse_arp(const std::uint8_t* data, std::size_t length);
std::vector<std::uint8_t> build_arp(const arp& a);

/// Neighbour solicitation or advertisement (RFC 4861 4.3, 4.4) with a link-layer address option.
std::vector<std::uint8_t> build_neighbour(std::uint8_t type, std::uint32_t flags, const gid_bytes& target,
                                          const mac_address& own);
/// The link-layer address option `wanted` (1 source, 2 target) behind the fixed part. `ok` is false when the options
/// are malformed, in which case the message is to be dropped (RFC 4861 4.6).
std::optional<mac_address> neighbour_option(const std::uint8_t* icmp, std::size_t length, std::uint8_t wanted,
                                            bool* ok);

}  // namespace rnic::host_driver::messages
