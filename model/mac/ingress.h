// SPDX-License-Identifier: Apache-2.0
// Ingress buffers of a port, one for each priority.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/payload/frame.h"
#include "model/payload/frame_stream.h"
#include "model/sim/arbiter.h"
#include "model/sim/ring.h"
#include "model/sim/types.h"

namespace rnic::mac {

/// Frame check sequence (IEEE 802.3, 3.2.9): behind a frame on the line and in the ingress buffer, not in `length`.
inline constexpr std::uint32_t fcs_bytes = 4;

/// Eight buffers of equal size with hysteresis. A part of the port: times are given to it, none before the one before.
///
/// A frame has its room from its check on, FCS included, until its bytes have left: not when it is handed on, but when
/// somebody behind takes it, a beat of the datapath a cycle. A beat that leaves at an edge is room at the next one.
/// What waits in channels behind the buffer is so in its count.
class ingress {
 public:
  /// Who takes frames, in streams of their own that may run at once: a channel of departures each.
  static constexpr unsigned takers = 3;

  /// `width`: bytes that leave in a cycle.
  ingress(std::uint32_t bytes, std::uint32_t xoff, std::uint32_t xon, unsigned width);

  /// Takes a frame of `size` bytes (FCS included) of frame->priority; false when the buffer has no room for it.
  bool admit(payload::frame_ptr frame, std::uint32_t size, sim::cycle_t now);
  /// Whether one of `size` bytes more leaves the buffer at XOFF or below, which it need not when it is the only one. As
  /// of now.
  bool stays_below_xoff(unsigned priority, std::uint32_t size, sim::cycle_t now) {
    settle(now);
    const std::uint32_t bytes = buffers_[priority & 7u].bytes;
    return (above_ >> (priority & 7u) & 1) == 0 && (bytes == 0 || bytes + size <= xoff_);
  }
  /// A looped frame of `size` bytes is on its way to the buffer of `priority`, and has its room from now on: what still
  /// comes from the line behind XOFF finds the headroom as it is. Returns what is kept, for unkeep(): 0 without room.
  std::uint32_t keep(unsigned priority, std::uint32_t size, sim::cycle_t now);
  /// It has come, and is admitted next, or was dropped.
  void unkeep(unsigned priority, std::uint32_t kept, bool dropped);
  bool empty() const { return waiting_ == 0; }
  /// Next frame, round robin over the priorities. Not to be called when empty. It keeps its room until depart().
  payload::frame_ptr take();
  /// A taker lets a frame go, whose FCS nobody wants. What the same one let go before has left.
  void depart(unsigned taker, const payload::departure& d);
  /// What has left by `now` is room.
  void settle(sim::cycle_t now);
  /// Priorities above XOFF that have not fallen to XON since; both as of the last settle().
  std::uint8_t above() const { return above_; }
  std::uint32_t occupancy(unsigned priority) const { return buffers_[priority].bytes; }
  std::uint32_t max_occupancy(unsigned priority) const { return buffers_[priority].max_bytes; }
  /// First edge at which one of those above may have fallen to XON by what leaves now; never when that is not enough.
  sim::cycle_t falls_at() const;

 private:
  struct leaving {
    payload::departure what;
    std::uint32_t gone = 0;  // of what.bytes
  };
  void occupy(unsigned priority, std::uint32_t bytes);
  void release(unsigned priority, std::uint32_t bytes);
  struct buffer {
    sim::ring<payload::frame_ptr> frames;
    std::uint32_t bytes = 0;
    std::uint32_t max_bytes = 0;
  };
  std::uint32_t bytes_, xoff_, xon_;
  unsigned width_;
  std::array<leaving, takers> leaving_{};
  sim::cycle_t settled_at_ = 0;
  std::vector<buffer> buffers_;  // by priority
  std::uint8_t waiting_ = 0;
  std::uint8_t above_ = 0;
  sim::round_robin turn_;
};

}  // namespace rnic::mac
