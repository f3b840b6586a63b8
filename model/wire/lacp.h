// SPDX-License-Identifier: Apache-2.0
// Slow protocols of link aggregation (IEEE 802.1AX-2014): data units of LACP (6.4.2) and of the marker protocol
// (6.5.3), values to bytes and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/wire/packet.h"

namespace rnic::wire {

/// Destination of both protocols: no bridge forwards it (IEEE 802.3 annex 57A.3).
inline constexpr mac_address slow_protocols_address{0x01, 0x80, 0xc2, 0x00, 0x00, 0x02};
inline constexpr std::uint16_t slow_protocols_ethertype = 0x8809;
/// Of each unit behind the EtherType: a frame of 124 bytes without FCS.
inline constexpr std::size_t slow_protocol_bytes = 110;

/// Bits of Actor_State and Partner_State (6.4.2.3).
namespace lacp_state {
inline constexpr std::uint8_t activity = 1u << 0;  ///< active LACP; passive: it speaks when it is spoken to
inline constexpr std::uint8_t timeout = 1u << 1;   ///< short: the sender wants to hear each second
inline constexpr std::uint8_t aggregation = 1u << 2;
inline constexpr std::uint8_t synchronization = 1u << 3;
inline constexpr std::uint8_t collecting = 1u << 4;
inline constexpr std::uint8_t distributing = 1u << 5;
inline constexpr std::uint8_t defaulted = 1u << 6;  ///< the sender goes by what its administrator says of the partner
inline constexpr std::uint8_t expired = 1u << 7;
}  // namespace lacp_state

/// What a unit says of one end of a link.
struct lacp_end {
  std::uint16_t system_priority = 0;  ///< the lower number goes first, as that of the port
  mac_address system{};
  std::uint16_t key = 0;  ///< ports of a system with the same key can be aggregated
  std::uint16_t port_priority = 0, port = 0;
  std::uint8_t state = 0;  ///< lacp_state
};

struct lacp_unit {
  lacp_end actor, partner;
  std::uint16_t collector_max_delay = 0;  ///< tens of microseconds
};

/// Marker, or its response, which repeats what the marker has said.
struct marker_unit {
  bool response = false;
  std::uint16_t port = 0;
  mac_address system{};
  std::uint32_t transaction = 0;
};

/// What stands behind the EtherType of slow protocols.
enum class slow_protocol : std::uint8_t {
  lacp,
  marker,
  unknown,  ///< subtype of another protocol (OAM, ESMC ...)
  illegal   ///< no legal subtype (802.3 table 57A-3), cut short, or not made as its protocol says
};

/// Reads a unit; `lacp` or `marker` is filled when it is one. Units of higher versions are read as those of version 1
/// (6.4.2.3 c); reserved bytes and what follows are not looked at.
slow_protocol decode_slow_protocol(const std::uint8_t* body, std::size_t length, lacp_unit& lacp, marker_unit& marker);

/// What stands behind the EtherType: slow_protocol_bytes, version 1.
std::vector<std::uint8_t> encode_lacp(const lacp_unit& unit);
std::vector<std::uint8_t> encode_marker(const marker_unit& unit);

}  // namespace rnic::wire
