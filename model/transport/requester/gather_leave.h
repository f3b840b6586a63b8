// SPDX-License-Identifier: Apache-2.0
// How packets leave gather: in order, with their source, down the transmit pipeline.
#pragma once

#include <cstdint>

#include "model/gid/source_reader.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/pipeline.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/gather_job.h"
#include "model/transport/requester/gather_queue.h"
#include "model/transport/traffic_counters.h"

namespace rnic::transport {

/// Data sheet. Part of gather.
///
/// Stages: leave, one packet a cycle in the order in which they were started, when all of its payload is there; then
/// the look-up of its source (gid::gid_source_if) and the transmit pipeline (requester_config::transmit), for an
/// Ethernet QP with `ethernet_offload_cycles` more: the registers of the channels of frames and of what has left.
///
/// Memories: a read port of each port's GID, MAC and VLAN tables (gid::source_reader). What they hold in the cycle in
/// which a packet leaves is in its headers, or whether it may leave at all.
///
/// Stalls: until all of the oldest packet is there; while a channel behind is full; in a cycle in which the tables'
/// only read port is the answers'; from a packet that failed until the verdict. The engine `leave` is blocked by
/// "payload", "requester", "icrc insert" or "gid table".
///
/// Span marks: "gather", and the stages of the pipeline.
///
/// Counters: packets, failed, withdrawn, ethernet_frames.
class gather_leave {
 public:
  static constexpr unsigned gid_ports = 2;  ///< of the adapter, with tables each

  /// Ports of the block.
  struct ports {
    sim::fifo_in<gather_verdict>& verdicts;
    sim::fifo_out<payload::frame_ptr>& frames;
    sim::fifo_out<gather_left>& left;
    sim::fifo_out<gather_event>& events;
  };

  gather_leave(sim::clocked_block& owner, const ports& to, gather_queue& queue, const requester_config& cfg,
               const gid::source_access& sources, sim::span_recorder& spans, gather_counters& counters,
               sim::statistics& stats);

  // To be called in each tick.
  void work();
  void count_into(traffic_table& t) { traffic_ = &t; }
  void note_hold_ups() { leave_.waits_for(held_up_by()); }

 private:
  bool stands(gather_slot& s);
  bool look_up_source(gather_slot& s);
  bool finish_ethernet(gather_slot& s, const gid::source& found);
  void enter_pipeline(gather_slot& s);
  bool tell(const gather_slot& s, gather_event::kind what);
  void drop();
  const char* held_up_by() const;

  sim::clocked_block& owner_;
  const ports to_;
  gather_queue& queue_;
  const std::uint8_t ect_priorities_;
  gid::source_reader sources_;
  sim::span_recorder& spans_;
  sim::pipeline pipeline_, plain_pipeline_;  // of packets, of an Ethernet QP's frames
  bool judging_ = false;                     // the oldest has failed
  sim::server leave_;
  gather_counters& counters_;
  traffic_table* traffic_ = nullptr;
};

}  // namespace rnic::transport
