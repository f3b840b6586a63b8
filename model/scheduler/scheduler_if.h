// SPDX-License-Identifier: Apache-2.0
// Between doorbells, the scheduler of send queues and the requester.
#pragma once

#include <array>
#include <cstdint>

#include "model/payload/pool.h"
#include "model/scheduler/scheduler_cr.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"

namespace rnic::scheduler {

/// A work queue entry that came through a BlueFlame buffer.
struct blueflame_wqe;
using blueflame_ptr = payload::handle<blueflame_wqe>;
struct blueflame_wqe {
  std::array<std::uint8_t, 256> bytes;
  std::uint32_t length = 0;  ///< multiple of 64
  std::uint16_t index = 0;   ///< WQE index from the control segment
  blueflame_ptr behind;      ///< the next one of the queue pair, while they wait
  void recycle() { length = 0; }
};

/// doorbell -> scheduler: QP has new send work.
struct send_doorbell {
  std::uint32_t qpn = 0;
  std::uint32_t uar = 0;     ///< uar_of() where it was rung
  blueflame_ptr descriptor;  ///< set for BlueFlame
  sim::span_id span = 0;
};

/// scheduler -> requester: this QP may work. A QP has at most one grant at a time.
struct grant {
  std::uint32_t qpn = 0;
  std::uint32_t uar = 0;  ///< the owner's, or no_owner; a context of another page is of a later owner of the number
  blueflame_ptr descriptor;
  sim::span_id span = 0;
  bool doorbell = false;  ///< a doorbell arrived since the last grant: look for new WQEs
  bool more = false;      ///< one of them without a descriptor that is kept: there are WQEs to be read
};

/// requester -> scheduler, once for each grant, and unasked when a stalled QP can go on.
struct report {
  enum class kind : std::uint8_t {
    more,     ///< end of its turn, more to send: schedule again
    idle,     ///< nothing to send until the next doorbell
    stalled,  ///< waits (window, READ limit, RNR timer, egress credit): the requester will send `resume`
    resume    ///< a stalled or idle QP has work again (acknowledgement, timer, retransmission)
  };
  std::uint32_t qpn = 0;
  kind what = kind::idle;
  std::uint8_t priority = 0;  ///< of the QP, for the next scheduling decision
};

}  // namespace rnic::scheduler
