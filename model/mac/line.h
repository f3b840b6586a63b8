// SPDX-License-Identifier: Apache-2.0
// The line as the transmitter sees it: when it is free, and a frame's way onto it.
#pragma once

#include <cstdint>
#include <utility>

#include "model/mac/port_config.h"
#include "model/mac/port_state.h"
#include "model/mac/turnaround.h"
#include "model/payload/frame.h"
#include "model/payload/frame_port.h"
#include "model/sim/clocked_block.h"

namespace rnic::mac {

/// Data sheet. Part of a port.
///
/// A frame occupies the line for preamble, bytes and gap at `rate_mbps`, in picoseconds with the fraction kept. The
/// first bit leaves transmit_ps() after the start. The next frame may be chosen at the last edge at which the line is
/// still busy: a MAC has a frame's worth of buffer between core clock and line clock. A frame whose last bytes are
/// still being written (frame.open) is on the line and goes away when they are there.
///
/// Goes to: the peer, with the time of the last bit; a copy to the turnaround where the own port wants one too.
///
/// Memory: one open frame.
///
/// Counters: drop_overflow, of copies that find the turnaround full.
class line {
 public:
  line(sim::clocked_block& owner, const port_config& config, payload::frame_pool& pool, turnaround& own,
       port_counters& counters);

  void attach(payload::frame_sink_if& peer) { peer_ = &peer; }
  bool attached() const { return peer_ != nullptr; }

  /// From this edge on the next frame may be chosen.
  sim::cycle_t choice_edge() const { return choice_edge_; }
  /// The next frame's preamble not before, without the transmit latency.
  sim::time_ps free_at() const { return free_; }
  /// First start at which each byte of the frame is there when the line wants it.
  sim::time_ps no_byte_late(const payload::frame& f) const;
  /// Occupies the line, and sends the frame away when all of it is known.
  void put(payload::frame_ptr frame, sim::time_ps not_before);
  /// To be called first in each tick.
  void finish_open() {
    if (open_.frame && owner_.now() >= open_.complete) send_away(std::move(open_.frame), open_.last_bit);
  }

 private:
  void send_away(payload::frame_ptr frame, sim::time_ps last_bit);

  sim::clocked_block& owner_;
  payload::frame_pool& pool_;
  turnaround& own_;
  port_counters& counters_;
  payload::frame_sink_if* peer_ = nullptr;
  const std::uint32_t rate_mbps_;
  const sim::fast_divider by_rate_;
  const unsigned datapath_bytes_;
  const sim::time_ps latency_;
  const bool never_late_;  // the datapath brings bytes at least as fast as the line wants them
  struct {
    payload::frame_ptr frame;
    sim::time_ps last_bit = 0;
    sim::cycle_t complete = 0;  // its last byte is there
  } open_;
  sim::time_ps free_ = 0;
  std::uint64_t fraction_ = 0;  // what free_ was rounded down by, in 1 / rate_mbps ps
  sim::cycle_t choice_edge_ = 0;
};

}  // namespace rnic::mac
