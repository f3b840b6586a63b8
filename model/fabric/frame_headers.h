// SPDX-License-Identifier: Apache-2.0
// What a switch reads of a frame's headers.
#pragma once

#include <cstdint>
#include <optional>

#include "model/payload/frame.h"
#include "model/wire/bytes.h"
#include "model/wire/packet.h"

namespace rnic::fabric {

inline constexpr std::uint32_t type_at = 12, tag_bytes = 4;
inline constexpr unsigned pcp_shift = 13;  ///< in the tag control field

/// The tag control field of a VLAN tag, where there is one.
inline std::optional<std::uint16_t> tag_of(const payload::frame& f) {
  const bool tagged = f.length >= type_at + 2 + tag_bytes &&
                      wire::load_be16(f.data() + type_at) == static_cast<std::uint16_t>(wire::ether_type::vlan);
  if (!tagged) return std::nullopt;
  return wire::load_be16(f.data() + type_at + 2);
}

/// Where the IP header is, and behind it that of UDP.
struct ip_place {
  unsigned version = 0;   ///< 4, 6; 0: none that is whole
  std::uint32_t at = 0;   ///< offset in the frame
  std::uint32_t udp = 0;  ///< offset of the UDP header, 0: none, or not in the first fragment
};
inline ip_place find_ip(const payload::frame& f) {
  const std::uint8_t* d = f.data();
  const std::uint32_t type = type_at + (tag_of(f) ? tag_bytes : 0), at = type + 2;
  if (f.length < at) return {};
  constexpr std::uint8_t udp = 17;
  const std::uint16_t ether_type = wire::load_be16(d + type);
  if (ether_type == static_cast<std::uint16_t>(wire::ether_type::ipv4) && f.length >= at + 20 && d[at] >> 4 == 4) {
    const std::uint32_t header = (d[at] & 0xfu) * 4;
    const bool first = (wire::load_be16(d + at + 6) & 0x1fff) == 0;
    const bool has = d[at + 9] == udp && first && header >= 20 && f.length >= at + header + 8;
    return {4, at, has ? at + header : 0};
  }
  if (ether_type == static_cast<std::uint16_t>(wire::ether_type::ipv6) && f.length >= at + 40 && d[at] >> 4 == 6) {
    const bool has = d[at + 6] == udp && f.length >= at + 48;
    return {6, at, has ? at + 40 : 0};
  }
  return {};
}

/// DSCP and ECN of an IP packet; `ip.version` must not be 0.
inline std::uint8_t traffic_class_of(const payload::frame& f, const ip_place& ip) {
  const std::uint8_t* h = f.data() + ip.at;
  return ip.version == 4 ? h[1] : static_cast<std::uint8_t>(h[0] << 4 | h[1] >> 4);
}

}  // namespace rnic::fabric
