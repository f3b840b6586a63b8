// SPDX-License-Identifier: Apache-2.0
// Admission: which packet is checked next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/marked_packets.h"
#include "model/transport/read_engine/read_engine_port.h"
#include "model/transport/responder/ethernet_check.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/place_lookup.h"
#include "model/transport/responder/receive_descriptors.h"
#include "model/transport/responder/request_check.h"
#include "model/transport/responder/slot_table.h"
#include "model/transport/responder/types.h"
#include "model/transport/traffic_counters.h"

namespace rnic::transport {

/// Part of the responder: takes packets of three streams (requests, copies for groups, plain frames) in turn, gives
/// their queue pairs a place on chip, and has them checked, those that waited first; one operation of the engine
/// `check` each.
///
/// Intervals: as responder_config says by kind of packet, at least its beats and `beat_overhead_cycles`; a packet that
/// is dropped at the door or begins to wait: 1. A packet into buffers is moved while their list is followed
/// (`receive_cycles` beside `receive_header_cycles`); one into the receive WQE itself has no list: its beats come
/// behind the header's cycles, as far as they are fewer. A READ or an atomic takes a grant of the READ engine as well,
/// for which admission asks when it sees one: in front of the requests or among the packets that wait, while `check` is
/// busy too. Ports: one look a cycle: an access to the context of the packet's queue pair (flow_table), and with it the
/// packet is checked, or a reading of its receive queue is begun or taken over; a plain frame makes one to the queue
/// pair that spreads before it. Among the queue pairs with packets that wait the longest one that has something to do
/// is chosen in the cycle. That is a priority encoder over `flows` places in the order of their waiting; its inputs are
/// a bit each, without a look at a context: the fill buffer has its context (a comparator at each of them), the reading
/// that it waits for has come (a comparator at each line of receives), its packet is no READ or atomic or these have a
/// grant and a translation; and for all a slot and a port. Stalls: a packet waits for its queue pair's context, in one
/// of `context_wait_frames` places, and lets those of others pass; where there is no place for it, or none on chip for
/// its queue pair, its stream waits and the others go on. All wait for a free slot; READs and atomics for a grant of
/// the READ engine and for translation. Engine: check; blocked by what the queue pair that has waited for longest
/// needs: "slots", "contexts", "receive descriptors", "read engine", "translation", "ports" of a memory; "queue pairs":
/// there is no place for another one. Counters: packets, check_busy_cycles; drop.no_qp, drop.halted.
class admission {
 public:
  struct streams {
    sim::fifo_in<payload::frame_ptr>&requests, &copies, &plain;
  };
  admission(sim::clocked_block& owner, const responder_config& cfg, const responder_registers& registers,
            const streams& in, flow_table& flows, const slot_table& slots, const place_lookup& places,
            const receive_descriptors& receives, request_check& requests, ethernet_check& plain, marked_packets& marked,
            read_engine_port& read_engine, drop_counters& drops, sim::span_recorder& spans);
  void announce(sim::statistics& to, const std::string& name) const;

  /// Queue pairs have packets that wait.
  bool waits() const { return !waiting_.empty(); }
  /// In each tick, last of all: what was freed in it is used. It does nothing where no packet comes and none waits.
  void work();
  /// Counts frames that are of their queue pair.
  void count_into(traffic_table& t) { traffic_ = &t; }

 private:
  bool take_waiting();
  bool comes() const;
  void choose();
  const char* held_up_by() const;
  bool read_waits();
  bool take_request();
  bool take_copy();
  bool take_plain();
  bool take_in_turn();
  bool admit(payload::frame_ptr& frame, std::uint32_t qpn);
  void wait(responder_flow& f, payload::frame_ptr frame);
  verdict run(responder_flow& f, payload::frame_ptr& frame);
  void tell_marked(const responder_flow& f);
  void leave_context(const responder_flow& f, sim::span_id span);
  unsigned interval_of(const icm::responder_context& ctx, const payload::frame& frame, bool read) const;
  void start(responder_flow& f);
  std::uint32_t destination(const payload::frame& f) const;

  sim::clocked_block& owner_;
  const responder_config& config_;
  const responder_registers& registers_;
  const streams in_;
  flow_table& flows_;
  const slot_table& slots_;
  const place_lookup& places_;
  const receive_descriptors& receives_;
  request_check& requests_;
  ethernet_check& plain_;
  marked_packets& marked_;
  read_engine_port& read_engine_;
  drop_counters& drops_;
  sim::span_recorder& spans_;
  std::vector<std::uint16_t> waiting_;  // queue pairs with frames that wait, longest first
  unsigned turn_ = 0;                   // of requests, copies and plain frames, when several wait
  bool spread_ = false;                 // the plain frame in front has its final QP
  bool began_to_wait_ = false;          // in this tick: a packet,
  bool taken_ = false;                  // the request that was in front,
  bool looked_ = false;                 // at a context, and the packet goes on waiting
  struct {
    wire::packet packet;
    std::uint8_t port = 0;
    std::uint16_t gid_index = 0;
  } kept_;  // of a marked packet under check: what a CNP needs of it
  traffic_table* traffic_ = nullptr;
  sim::server check_;
  unsigned cost_ = 1;  // cycles of the packet just checked
  struct {
    std::uint64_t packets = 0, check_cycles = 0;
  } counts_;
};

}  // namespace rnic::transport
