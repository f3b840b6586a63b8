// SPDX-License-Identifier: Apache-2.0
// Ingress buffers of a port, one for each priority.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/payload/frame.h"
#include "model/sim/arbiter.h"

namespace rnic::mac {

/// Bytes that may still arrive after a buffer has crossed XOFF: (301 + 2.16 * metres) * Gb/s + 2.72 * longest frame, as
/// the driver of the same family computes it (adapter data plane E.5), rounded up.
constexpr std::uint32_t pfc_headroom_bytes(std::uint32_t rate_mbps, std::uint32_t metres, std::uint32_t frame_bytes) {
  const std::uint64_t by_rate = (std::uint64_t{30'100} + std::uint64_t{216} * metres) * rate_mbps;  // 1e-5 bytes
  const std::uint64_t by_frame = std::uint64_t{272'000} * frame_bytes;
  return static_cast<std::uint32_t>((by_rate + by_frame + 99'999) / 100'000);
}

/// Eight buffers of equal size with hysteresis. A part of the port: it has no time of its own.
class ingress {
 public:
  ingress(std::uint32_t bytes, std::uint32_t xoff, std::uint32_t xon);

  /// Takes a frame of `size` bytes (FCS included) of frame->priority; false when the buffer has no room for it.
  bool admit(payload::frame_ptr frame, std::uint32_t size);
  bool empty() const { return waiting_ == 0; }
  /// Next frame, round robin over the priorities. Not to be called when empty.
  payload::frame_ptr take();
  /// Priorities above XOFF that have not fallen to XON since.
  std::uint8_t above() const { return above_; }
  std::uint32_t occupancy(unsigned priority) const { return buffers_[priority].bytes; }
  std::uint32_t max_occupancy(unsigned priority) const { return buffers_[priority].max_bytes; }

 private:
  struct slot {
    payload::frame_ptr frame;
    std::uint32_t size = 0;
  };
  struct buffer {
    std::vector<slot> slots;
    std::size_t head = 0;
    std::size_t count = 0;
    std::uint32_t bytes = 0;
    std::uint32_t max_bytes = 0;
  };
  std::uint32_t bytes_, xoff_, xon_;
  std::array<buffer, 8> buffers_;
  std::uint8_t waiting_ = 0;
  std::uint8_t above_ = 0;
  sim::round_robin turn_;
};

}  // namespace rnic::mac
