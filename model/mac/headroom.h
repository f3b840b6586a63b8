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

/// The most that can still arrive behind a frame that was too much, that one among it: what the line brings while a
/// frame leaves that has begun before the pause, then the pause, while `ps` pass (the cable there and back, what both
/// ends take), and the frame that the peer has begun when it obeys. Of frames of `frame_bytes`, FCS included; rounded
/// up.
constexpr std::uint32_t most_after_stop(std::uint32_t rate_mbps, std::uint32_t frame_bytes, std::uint64_t ps) {
  constexpr std::uint64_t line_bytes = 20, pause_bytes = 64 + line_bytes;  // preamble and gap
  constexpr std::uint64_t mbps_ps_per_byte = 8'000'000;
  return static_cast<std::uint32_t>(3 * (frame_bytes + line_bytes) + pause_bytes +
                                    (ps * rate_mbps + mbps_ps_per_byte - 1) / mbps_ps_per_byte);
}

}  // namespace rnic::mac
