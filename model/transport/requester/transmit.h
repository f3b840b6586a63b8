// SPDX-License-Identifier: Apache-2.0
// Transmit engine: packets from WQEs.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/transport/read_engine/read_engine_port.h"
#include "model/transport/requester/config.h"
#include "model/transport/requester/context_memory.h"
#include "model/transport/requester/departures.h"
#include "model/transport/requester/egress_credits.h"
#include "model/transport/requester/gather.h"
#include "model/transport/requester/message_table.h"
#include "model/transport/requester/pacing.h"
#include "model/transport/requester/packet.h"
#include "model/transport/requester/send_unit.h"
#include "model/transport/requester/settings.h"
#include "model/transport/requester/timer_port.h"

namespace rnic::transport {

/// Data sheet.
///
/// Ports: packets to gather, one a cycle; pieces of their scatter/gather lists, of which the engine gives one in each
/// cycle of its interval. The units' registers (unit_table).
///
/// Stages: choose, in turn among the units that have a WQE to send (cycle 0); open, with the first packet of a WQE: an
/// entry of the message table, and of the scatter lists for a READ; headers from context or WQE; PSN and place of the
/// next packet, timer. All in the cycle in which the packet starts; then the engine is busy for the packet's interval
/// (`gather_cycles`, `inline_cycles`, ..., requester_config). A READ or an atomic takes a grant of the READ engine, for
/// which the engine asks as soon as a unit has one of them, whether it may start or not: so the grant is there in the
/// cycle in which the unit is in its turn, if the READ engine was free.
///
/// Stalls, in the order in which they are looked at: gather takes no packet or has no room for its pieces; the queue
/// pair's time has not come; no egress credit; no grant of the READ engine; no port of the context memory; with a
/// message's first packet: fence or limit of READs, no room for a message or READ, end-to-end credits, no port to
/// append to the message table, whose entry it has from then on; window of PSNs. For its time, for a credit and for
/// what its message or window lacks the queue pair gives its unit to another, which is counted (standstill.h); for a
/// port or a grant it does not. What holds the unit up that has its turn is what the engine is blocked by.
class transmit {
 public:
  using context = icm::requester_context;
  struct port_set {
    sim::fifo_out<gather_job>& packets;
    sim::fifo_out<gather_piece>& pieces;
    read_engine_port& read_engine;
  };
  transmit(sim::clocked_block& owner, const requester_config& config, const requester_settings& settings,
           payload::frame_pool& frames, sim::span_recorder& spans, port_set ports, qp_table& qps,
           context_memory& contexts, message_table& messages, unit_table& units, timer_port& timers,
           egress_credits& credits, pacing& pace, departures& leaving, std::uint64_t& next_packet)
      : owner_(owner),
        config_(config),
        settings_(settings),
        frames_(frames),
        spans_(spans),
        ports_(ports),
        qps_(qps),
        contexts_(contexts),
        messages_(messages),
        units_(units),
        timers_(timers),
        credits_(credits),
        pacing_(pace),
        departures_(leaving),
        next_packet_(next_packet),
        engine_(owner, "send_engine") {}
  void announce(sim::statistics& to) const;

  /// Starts one packet, if one can.
  void work();

 private:
  void choose();
  void note_hold_up();
  bool start(send_unit& u);
  bool blocked(send_unit& u, unsigned priority);
  bool open_message(send_unit& u);
  bool give_up(send_unit& u, standstill why);
  bool window_open(const context& c, std::uint32_t packets) const;
  bool may_use_receive(const context& c, const send_wqe& wqe) const;
  packet_place place_of_next(const context& c, const send_wqe& wqe, std::uint32_t packets) const;
  void describe(const send_unit& u, const packet_place& place, gather_job& job);
  void mark(send_unit& u, const packet_place& place, sim::span_id span, bool waited);
  void build(send_unit& u, gather_job& job, const packet_place& place, unsigned priority);
  void hand_pieces(send_unit& u, gather_job& job, std::uint32_t at, std::uint32_t end);
  unsigned interval_of(send_unit& u, const packet_place& place);
  void after_packet(send_unit& u, std::uint32_t length, std::uint32_t packets);

  sim::clocked_block& owner_;
  const requester_config& config_;
  const requester_settings& settings_;
  payload::frame_pool& frames_;
  sim::span_recorder& spans_;
  port_set ports_;
  qp_table& qps_;
  context_memory& contexts_;
  message_table& messages_;
  unit_table& units_;
  timer_port& timers_;
  egress_credits& credits_;
  pacing& pacing_;
  departures& departures_;
  std::uint64_t& next_packet_;
  sim::server engine_;
  unsigned last_sent_ = 0;  // unit of the last packet: the next one has its turn
  std::uint64_t packets_ = 0, receive_waits_ = 0, miss_cycles_ = 0;
};

}  // namespace rnic::transport
