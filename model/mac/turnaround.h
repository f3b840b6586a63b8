// SPDX-License-Identifier: Apache-2.0
// The way of frames for the own port: they turn around in front of the line.
#pragma once

#include <cstdint>

#include "model/mac/credit_returns.h"
#include "model/mac/egress.h"
#include "model/mac/port_state.h"
#include "model/mac/receive.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/seldom.h"
#include "model/sim/server.h"

namespace rnic::mac {

/// Data sheet. Part of a port.
///
/// Stages: into the queue of its priority, one frame a cycle; choose, one frame a cycle in turn among the priorities
/// whose ingress buffer is not above XOFF and would not be with the frame, or is empty (its room is kept from then on:
/// the headroom is for frames of the line); turn, a beat of `datapath_bytes` a cycle (server `turn`), no beat before it
/// is there; `turn_cycles` behind its last beat a frame is at the receiver's check, a cycle later one of a single beat
/// that is there when the frame starts. What comes from there on is the same as for frames of the line, but that these
/// have no FCS. When a frame starts, its source gets a credit. While the link is down a frame a cycle is dropped.
///
/// The line, its pauses and the shares of its classes are nothing to these frames.
///
/// Memories: eight queues (egress), one a priority, of 4 * `egress_frames` places: for frames of two sources, by their
/// credits, and for as many copies of frames for the line; one frame in and one out a cycle; the frame in turn. A copy
/// that finds its queue full is dropped (drop_overflow of the port).
///
/// Stalls: the buffer is above XOFF, or would be; the last beats of the frame in turn; there is no room for a credit.
///
/// Span marks: "loopback queue" (arbitration when it waited), and "loopback" at the receiver's check.
///
/// Counters: looped, drop_tx_link_down.
class turnaround {
 public:
  turnaround(sim::clocked_block& owner, const port_common& common, const credit_returns& credits, receive_side& to);

  bool full(unsigned priority) const { return queues_.full(priority); }
  void push(payload::frame_ptr frame);
  /// A copy of a frame that goes to the line as well, whose credit goes back there. False: there is no room.
  bool push_copy(payload::frame_ptr copy);

  /// To be called in each tick before the receive direction: the frame in turn may be complete.
  void finish() {
    if (sim::seldom(bool{turning_.frame}) && owner_.now() >= turning_.complete) hand_on();
  }
  bool is_empty() const { return queues_.waiting() == 0; }
  /// To be called behind the transmit direction; true when a queue got shorter.
  bool work(bool link_up) { return sim::seldom(queues_.waiting() != 0) && serve(link_up); }
  /// Whether a frame waits for an ingress buffer to fall to XON.
  bool waits_for_buffer() const { return held_ != 0; }

 private:
  // Seldom: the way of frames for the line stays short where these are not inlined.
  [[gnu::noinline, gnu::cold]] void hand_on();
  [[gnu::noinline, gnu::cold]] bool serve(bool link_up);
  std::uint8_t below_xoff() const;
  [[gnu::cold]] void start(unsigned priority);
  [[gnu::cold]] void drop(std::uint8_t ready);

  sim::clocked_block& owner_;
  port_common common_;
  const credit_returns& credits_;
  receive_side& to_;
  egress queues_;
  struct {
    payload::frame_ptr frame;
    sim::cycle_t complete = 0;  // its last beat has turned
  } turning_;
  sim::server turn_;
  std::uint8_t held_ = 0;  // priorities whose frames wait for a buffer
};

}  // namespace rnic::mac
