// SPDX-License-Identifier: Apache-2.0
// What still comes after a peer was told to stop: the same at both ends of a cable.
#pragma once

#include <cstdint>

namespace rnic::mac {

/// Bytes that may still arrive after a buffer has crossed XOFF: (301 + 2.16 * metres) * Gb/s + 2.72 * longest frame, as
/// the driver of the same family computes it (adapter data plane E.5), rounded up.
constexpr std::uint32_t pfc_headroom_bytes(std::uint32_t rate_mbps, std::uint32_t metres, std::uint32_t frame_bytes) {
  const std::uint64_t by_rate = (std::uint64_t{30'100} + std::uint64_t{216} * metres) * rate_mbps;  // 1e-5 bytes
  const std::uint64_t by_frame = std::uint64_t{272'000} * frame_bytes;
  return static_cast<std::uint32_t>((by_rate + by_frame + 99'999) / 100'000);
}

}  // namespace rnic::mac
