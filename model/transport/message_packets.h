// SPDX-License-Identifier: Apache-2.0
// Lengths of messages, in packets and bytes.
#pragma once

#include <cstdint>

namespace rnic::transport {

/// Packets, and so PSNs, of a message of `length` bytes: one for an empty one (IBA 9.7.2). `mtu` is not 0.
constexpr std::uint32_t packets_of(std::uint32_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : (length - 1) / mtu + 1;
}

/// Of an atomic operation's operand, and of its result (IBA 9.4.5).
inline constexpr std::uint32_t atomic_bytes = 8;

}  // namespace rnic::transport
