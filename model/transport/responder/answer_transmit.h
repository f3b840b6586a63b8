// SPDX-License-Identifier: Apache-2.0
// Answer transmit: headers of answers, egress credits, and the pipeline between the responder and the ICRC.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/gid/source_reader.h"
#include "model/payload/frame.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/pipeline.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/port_map.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/types.h"
#include "model/transport/traffic_counters.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports, each of one item a cycle: answers in, from the READ engine (READ responses, acknowledgements of atomics),
/// from the acknowledgements (ACK, NAK) and from the notification point (CNP); to each of the three the places that
/// are free again; egress credits, by port; frames out.
///
/// Stages: accept, from each input into its waiting places (cycle 0); leave, one answer a cycle (0 for one that finds
/// nobody in front of it); then the look-up of its source (gid::gid_source_if), path, headers and hand-over
/// (responder_config::answer), whose registers are the channel of frames. Initiation interval: 1.
///
/// In a cycle: credits, and those of look-ups that are over; accept; leave. A credit that is seen in n may be used in
/// n, and so may an answer. There are `egress_frames` credits a port and priority at first, and `answer.waiting` places
/// a user, port and priority; a place is told to be free in the cycle in which its answer leaves.
///
/// Headers, of the path of the answer: DMAC, remote GID, VLAN (PCP: priority) and, of v2, the UDP source port
/// (udp_source_of) and ECT(0) in the traffic class where the priority reacts to CNPs
/// (adapter.congestion.reaction.priorities); SMAC, GID and VID are the source's, the UDP port is the register's; IPv4
/// has no identification and is not to be fragmented. A CNP has its headers (`complete`): its look-up asks for nothing
/// but whether its DMAC is one of the port's own. What finds it so, or whose path says so, is for the loop back.
///
/// Order: the answers of a port and priority, and so those of a queue pair, leave in the order in which they were
/// handed over; of one cycle first the READ engine's, then the acknowledgement, then the CNP. An ACK is handed over
/// when the last READ response before it was, in that cycle at the earliest, so it cannot overtake it.
/// Arbiter `by_priority`: of the ports and priorities that have both an answer and a credit one in turn.
///
/// Memories: of each input `answer.waiting` places a port and priority (one write, one read port); beside them, of each
/// port and priority, from which input its answers came (2 bits each, registers: up to three are written in a cycle,
/// one is read). A read port of each port's GID, MAC and VLAN tables (gid::source_reader).
///
/// Stalls: an answer, while its port and priority has no credit, waits for its turn, the channel of frames is full, or
/// in a cycle in which its tables' only read port is the requests'.
/// Accept never does: users hand over what they know a place for (answer_port). So an answer that waits for a credit
/// stands before none of another priority, in here as well as in the channels. Two places a user cover the two cycles
/// from an answer's leaving to the next one that knows of it.
///
/// Answers wait by the port of their path, which is a virtual one; credits are those of the ports that there are, and
/// which port it is shows when an answer leaves (register port_map). So one that waits for a place in the queue of a
/// port goes by the other one from the cycle behind a change of the map on.
///
/// An answer whose source is no entry of the GID table that the queue pair's function may send with (any more) ends
/// here when its look-up is over, is counted, and its credit is there for another one. What was handed over leaves,
/// also when its queue pair is halted meanwhile or the adapter reset: by then the port is down and drops it.
///
/// Counters: answers by input; `sourceless`; `credit_wait_cycles`, in which a port and priority had an answer and no
/// credit, summed over all of these, added when the credit comes. Engine: entry, a cycle an answer; blocked by "gid
/// table" in cycles in which the channel of frames has room and nothing but the turn is missing.
class answer_transmit : public sim::clocked_block,
                        public register_bus::cr_target_if,
                        public register_bus::reset_target_if {
 public:
  static constexpr unsigned ports = 2, priorities = 8;

  answer_transmit(std::string name, sim::clock_domain& domain, const responder_config& cfg,
                  const gid::source_access& sources, const std::uint16_t& roce_v2_port, sim::span_recorder& spans,
                  sim::statistics& stats);

  /// Far end of an answer_port.
  struct user {
    explicit user(sim::clocked_block& owner) : job(owner), room(owner) {}
    sim::fifo_in<answer_job> job;
    sim::fifo_out<answer_room> room;
  };
  static constexpr unsigned users = 3;
  std::array<user, users> from{user(*this), user(*this), user(*this)};  ///< READ engine, acknowledgements, CNPs
  sim::fifo_out<payload::frame_ptr> tx_out{*this};
  std::array<sim::fifo_in<egress_credit>, ports> credit_in;  ///< by port

  /// Depth of a channel of places that can never be full.
  static unsigned room_depth(const responder_config& cfg) { return ports * priorities * cfg.answer.waiting; }
  /// Registers: transport_cr.h, offsets from cr_base::transport + answer_offset.
  std::uint32_t cr_read(std::uint32_t offset) override { return offset == cr::port_map ? map_.value() : 0; }
  void cr_write(std::uint32_t offset, std::uint32_t value) override;
  /// The registers are as after power-up.
  void device_reset() override { cr_write(cr::port_map, cr::port_map_identity); }
  /// Counts what leaves, but for CNPs.
  void count_into(traffic_table& t) { traffic_ = &t; }

 private:
  struct waiting {
    answer_job job;
    sim::cycle_t accepted = 0;
  };
  /// What waits for a port and priority.
  struct line {
    explicit line(unsigned each);
    std::array<sim::ring<waiting>, users> places;
    sim::ring<std::uint8_t> order;            // index in places
    sim::cycle_t starved_at = 0, fed_at = 0;  // it got no credit from here on; the credit that ended that came
  };

  void tick() override;
  void take_credits();
  void take_refused();
  void give_credit(unsigned queue);
  unsigned queue_of(unsigned line) const;
  std::uint64_t credited() const;
  bool is_starved(unsigned port) const;
  void end_starving(unsigned l, sim::cycle_t at);
  void accept();
  void leave();
  std::uint64_t able() const;
  void note_wait(const line& l, const waiting& w);
  void write_headers(answer_job& j, const gid::source& from_here) const;
  void address(const icm::path& path, const gid::source& from_here, payload::frame& f) const;
  void starve(unsigned l, sim::cycle_t from_cycle);

  gid::source_reader sources_;
  sim::pipeline pipeline_;
  const std::uint8_t ect_priorities_;
  const std::uint16_t& roce_v2_port_;
  sim::span_recorder& spans_;
  port_map map_;
  std::vector<line> lines_;    // by virtual port and priority
  std::uint64_t waiting_ = 0;  // lines that hold an answer
  std::uint64_t starved_ = 0;  // that hold one, and whose queue has no credit
  std::array<std::uint16_t, std::size_t{ports} * priorities> credits_{};  // by port and priority: queues of the ports
  std::uint64_t in_credit_ = 0;                                           // queues that have one
  struct refused_answer {
    sim::cycle_t known_at = 0;
    unsigned queue = 0;
  };
  sim::ring<refused_answer> refused_;  // look-ups under way of answers that have no source
  sim::round_robin by_priority_;
  sim::server entry_{*this, "entry"};  // of the pipeline

  std::array<std::uint64_t, users> accepted_{};
  std::uint64_t sourceless_ = 0, credit_wait_cycles_ = 0;
  traffic_table* traffic_ = nullptr;
};

}  // namespace rnic::transport
