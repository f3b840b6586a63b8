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

/// Of a pause that is repeated: what is left of it when the frame that repeats it is to go, and what may pass until
/// that is on the line behind a frame that was chosen before. Where `left_ps` is less, the pause can end in between.
struct refresh_margin {
  std::uint64_t left_ps, needed_ps;

  /// `refresh_percent` of `quanta` are over; a frame of `frame_bytes`, FCS included, is chosen `choice_ps` before it is
  /// on the line.
  constexpr refresh_margin(std::uint32_t rate_mbps, std::uint16_t quanta, unsigned refresh_percent,
                           std::uint32_t frame_bytes, std::uint64_t choice_ps)
      : left_ps(bits_ps(std::uint64_t{quanta} * 512 * (100 - refresh_percent), rate_mbps) / 100),
        needed_ps(bits_ps((std::uint64_t{frame_bytes} + 20) * 8, rate_mbps) + choice_ps) {}
  constexpr bool is_enough() const { return left_ps >= needed_ps; }

 private:
  static constexpr std::uint64_t bits_ps(std::uint64_t bits, std::uint32_t rate_mbps) {
    return bits * 1'000'000 / rate_mbps;
  }
};

}  // namespace rnic::mac
