// SPDX-License-Identifier: Apache-2.0
// The transmit direction of a port: queues, the choice among them, credits, pause frames.
#pragma once

#include <cstdint>

#include "model/mac/credit_returns.h"
#include "model/mac/egress.h"
#include "model/mac/line.h"
#include "model/mac/port_state.h"
#include "model/mac/receive.h"
#include "model/mac/turnaround.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"

namespace rnic::mac {

/// Data sheet. Part of a port.
///
/// Stages: accept, one frame a cycle into the queue of its priority (cycle 0); choose, one frame a cycle among the
/// priorities that are neither paused nor held at the highest rate of their class, when the line may be given its next
/// frame; pause frames go before all else. Frames for the own port go to the turnaround instead, as many a cycle. In a
/// cycle in which a queue got shorter a frame that found it full is accepted. When a frame starts, its source gets a
/// credit. While the link is down a frame a cycle is dropped.
///
/// Memories: eight queues (egress), one a priority, of `egress_frames` places for each of two sources; one frame in and
/// one out a cycle.
///
/// Stalls: the queue of the frame in front is full; the line is busy; a priority is paused or held; there is no room
/// for a credit.
///
/// Span marks: "egress queue" (waited: pause, rate_limit, bytes of its own, or arbitration), "mac tx", "pcs tx", "pma
/// tx".
///
/// Counters: tx_frames, tx_bytes, tx_pause, blocked_by_pause, drop_tx_link_down.
class transmit_side {
 public:
  transmit_side(sim::clocked_block& owner, const port_common& common, sim::fifo_in<payload::frame_ptr>& in,
                const credit_returns& credits, const receive_side& receive, turnaround& own, line& on);

  /// To be called in each tick, behind the receive direction.
  void work(bool link_up) {
    const bool took = accept();
    if (has_nothing_to_do(link_up)) return;
    const bool sent = transmit(link_up), turned = own_.work(link_up);
    if ((sent || turned) && !took && accept()) owner_.wake_next();
    if (sim::seldom(!has_nothing_to_do(link_up))) ask_for_wake(link_up);
  }
  egress& queues() { return egress_; }
  const egress& queues() const { return egress_; }

 private:
  bool accept();
  /// What is often so, and quickly asked: most ticks of a port are about what it receives.
  bool has_nothing_to_do(bool link_up) const {
    return link_up && egress_.waiting() == 0 && to_.flow.is_silent() && own_.is_empty();
  }
  bool transmit(bool link_up);
  void transmit_pause();
  void transmit_frame(unsigned priority);
  sim::wait why_waited(unsigned priority, sim::time_ps since, sim::time_ps not_before) const;
  void note_path(sim::span_id span, sim::time_ps start);
  void drop_for_link_down(std::uint8_t ready);
  void ask_for_wake(bool link_up);

  sim::clocked_block& owner_;
  port_common to_;
  sim::fifo_in<payload::frame_ptr>& in_;
  const credit_returns& credits_;
  const receive_side& receive_;
  turnaround& own_;
  line& line_;
  egress egress_;
};

}  // namespace rnic::mac
