// SPDX-License-Identifier: Apache-2.0
// The sender of CNPs, for both halves of the transport.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/payload/frame.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/congestion/notification_point.h"
#include "model/transport/responder/answer_port.h"

namespace rnic::transport {

/// Data sheet (adapter data plane C.9, E.8).
///
/// Takes CNPs that requester and responder have made for marked packets, and hands those on whose interval is over.
///
/// Ports: notices of the responder and of the requester, one in all a cycle, of the two in turn, the responder first;
/// answers to answer_transmit (answer_port), one a cycle, of the two ports in turn, of which one that has none or no
/// place is passed over.
///
/// Stages, in a cycle in this order: places that answer_transmit gives back; send (engine `cnps`, a cycle); look-up of
/// the last CNP (of the queue pair, the peer or the port: notification.scope) and into the queue of its port, in the
/// cycle in which the notice is seen. From the next one on it may leave. A place that send frees is there for the
/// look-up. One that comes before notification.interval_us is over, in time of the edges since the last one was queued,
/// is dropped: that is what the interval is for. The first one of each is in time.
///
/// Memories: `notification.queue` CNPs a port, so that a port which is paused holds up no other; the time of the last
/// CNP: by queue pair (2^18 words, a read and a write a cycle; numbers modulo that share a word), of 64 peers (the
/// CNP's destination GID, of both ports; compared as a whole, and of these the oldest time, which gives its place to a
/// new peer), or by port. It is written when a CNP is queued.
///
/// Stalls: a CNP waits while answer_transmit has no place for its port and priority (`cnps` is blocked by
/// "answer_transmit"). Notices never wait: one that finds the queue full is lost and counted, early or not, without a
/// look-up, and its queue pair's next marked packet makes another.
///
/// Counters: np_cnp_sent, np_cnp_lost, np_cnp_early (dropped by the interval). Reset: CNPs that wait are gone and
/// counted nowhere, all times are forgotten (an epoch goes with each time); turns, places at answer_transmit and
/// notices in the channels stay.
class cnp_sender : public sim::clocked_block, public register_bus::reset_target_if {
 public:
  /// `places`: responder_config::answer.waiting.
  cnp_sender(std::string name, sim::clock_domain& domain, const notification_config& config, unsigned places,
             sim::statistics& stats);

  enum source : unsigned { responder, requester, sources };
  std::array<sim::fifo_in<congestion_notice>, sources> notices{sim::fifo_in<congestion_notice>(*this),
                                                               sim::fifo_in<congestion_notice>(*this)};
  answer_port answers;

  /// All queue pairs are gone.
  void device_reset() override;

 private:
  void tick() override;
  bool waits() const { return !waiting_[0].empty() || !waiting_[1].empty(); }
  bool take();
  bool queue(congestion_notice&& n);
  bool send(unsigned port);

  notification_point point_;
  std::array<sim::ring<payload::frame_ptr>, 2> waiting_;  // by port
  unsigned next_source_ = 0, next_port_ = 0;
  sim::server engine_{*this, "cnps"};
  std::uint64_t sent_ = 0, lost_ = 0, early_ = 0;
};

}  // namespace rnic::transport
