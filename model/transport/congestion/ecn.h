// SPDX-License-Identifier: Apache-2.0
// The ECN field of a traffic class (RFC 3168, section 5).
#pragma once

#include <cstdint>

namespace rnic::transport {

inline constexpr std::uint8_t ecn_mask = 3, ecn_ect0 = 2, ecn_congested = 3;

/// A switch on the way was congested.
constexpr bool ecn_marked(std::uint8_t traffic_class) { return (traffic_class & ecn_mask) == ecn_congested; }
/// The same class of a packet that switches may mark.
constexpr std::uint8_t ecn_capable(std::uint8_t traffic_class) {
  return static_cast<std::uint8_t>((traffic_class & ~ecn_mask) | ecn_ect0);
}

}  // namespace rnic::transport
