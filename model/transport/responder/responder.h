// SPDX-License-Identifier: Apache-2.0
// The half of the offload engine that executes the peer's requests.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/completion/completion_if.h"
#include "model/gid/gid_table.h"
#include "model/icm/context_cache.h"
#include "model/icm/key_operation_if.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/statistics.h"
#include "model/transport/congestion/marked_packets.h"
#include "model/transport/congestion/notice.h"
#include "model/transport/read_engine/read_engine_port.h"
#include "model/transport/responder/acknowledgement.h"
#include "model/transport/responder/admission.h"
#include "model/transport/responder/answer_port.h"
#include "model/transport/responder/commit.h"
#include "model/transport/responder/completion_port.h"
#include "model/transport/responder/control.h"
#include "model/transport/responder/error_state.h"
#include "model/transport/responder/ethernet_check.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/held_reads.h"
#include "model/transport/responder/history_memory.h"
#include "model/transport/responder/key_withdrawal.h"
#include "model/transport/responder/packet_intake.h"
#include "model/transport/responder/parked_answers.h"
#include "model/transport/responder/payload_writes.h"
#include "model/transport/responder/place_lookup.h"
#include "model/transport/responder/read_backlog.h"
#include "model/transport/responder/read_port.h"
#include "model/transport/responder/read_returns.h"
#include "model/transport/responder/receive_descriptors.h"
#include "model/transport/responder/receive_memory.h"
#include "model/transport/responder/receive_port.h"
#include "model/transport/responder/request_check.h"
#include "model/transport/responder/shared_memories.h"
#include "model/transport/responder/slot_table.h"
#include "model/transport/responder/types.h"
#include "model/transport/transport_if.h"

namespace rnic::transport {

/// Requests of peers, for RC, UC, UD and XRC, and plain frames for Ethernet QPs: checks (adapter data plane A.9, C.7),
/// receive WQEs, payload into host memory, completions, answers, READ responses.
///
/// A packet passes these stages: check against the QP context, in order of arrival within its QP, one packet per
/// initiation interval; translation of where its payload goes; commit in order within its QP, not before the
/// pipeline's time: payload writes, completion, answer. A QP that waits (context, receive WQE, translation) does not
/// hold up others. A completion is handed on when the payload writes before it are on their way (notify).
///
/// Here are the ports, the memories that several parts use, and the order in which the parts work within a cycle: the
/// end of the pipeline first. What each does, with which ports and stalls, is in its own header. Those memories of
/// which neighbours have a port are `shared`.
///
/// Registers: transport_cr.h, offsets from cr_base::transport + responder_offset.
class responder : public sim::clocked_block, public register_bus::cr_target_if, public register_bus::reset_target_if {
 public:
  responder(std::string name, sim::clock_domain& domain, const responder_config& config, const icm::icm_map& map,
            const std::array<const gid::gid_table*, 2>& gids, responder_memories& shared, payload::frame_pool& frames,
            sim::span_recorder& spans, sim::statistics& stats);

  sim::fifo_in<payload::frame_ptr> rx_in;        ///< requests, ICRC checked
  sim::fifo_in<payload::frame_ptr> ethernet_in;  ///< plain frames, steered to a QP. May stay unbound
  sim::fifo_in<payload::frame_ptr> copies_in;    ///< datagrams to groups, for a member each. May stay unbound
  pcie::dma_port dma_write;                      ///< payload
  icm::translate_port translate;                 ///< where payload goes
  read_engine_port read_engine{*this};
  icm::key_port keys;  ///< SEND with invalidate. May stay unbound where nobody sends it
  sim::fifo_out<completion::cqe_request> cqe_out;
  sim::fifo_out<completion::event_request> event_out;
  sim::fifo_out<qp_error> error_out;                  ///< to the requester: this QP is in the error state
  sim::fifo_in<qp_error> error_in;                    ///< from the requester
  sim::fifo_in<completion::lost_completion> lost_in;  ///< May stay unbound
  sim::fifo_out<congestion_notice> cnp_out;           ///< to the sender of CNPs. May stay unbound
  answer_port acknowledgements;                       ///< to answer_transmit
  read_port reads;                                    ///< to the READ generator
  receive_port fetches;                               ///< to receive fetch
  icm::context_cache<icm::responder_context>& contexts() { return contexts_; }
  icm::context_cache<icm::rdma_resources>& histories() { return histories_; }
  icm::context_cache<icm::srq_context>& srqs() { return receives_.contexts().on_chip(); }

  std::uint32_t cr_read(std::uint32_t offset) override { return control_.read(offset); }
  void cr_write(std::uint32_t offset, std::uint32_t value) override { control_.write(offset, value); }
  /// Begins to discard all QPs; transport_cr.h `reset` tells when that is done.
  void device_reset() override { control_.reset(); }
  /// Counts requests and plain frames that are of their queue pair.
  void count_into(traffic_table& t) { admission_.count_into(t); }

 private:
  /// Bits of filled_: which input holds something. The others are not looked at.
  enum input : unsigned {
    of_translations,
    of_descriptors,
    of_keys,
    of_errors,
    of_lost,
    of_reports,
    of_room,
    of_written,
    of_requests,
    of_copies,
    of_plain
  };
  void show_inputs();
  bool holds(unsigned of) const { return (filled_ >> of & 1) != 0; }
  void tick() override;
  void take_fetched();
  void announce(sim::statistics& stats);

  const responder_config config_;
  std::uint64_t filled_ = 0;
  responder_registers registers_;
  drop_counters drops_;
  icm::context_cache<icm::responder_context> contexts_;
  icm::context_cache<icm::rdma_resources> histories_;
  history_memory rings_;
  slot_table slots_;
  read_backlog backlog_;
  flow_table flows_;
  payload_writes writes_;
  completion_port completions_;
  receive_descriptors receives_;
  place_lookup places_;
  marked_packets marked_;
  acknowledgement answers_;
  parked_answers parked_;
  key_withdrawal withdrawal_;
  held_reads held_;
  error_state errors_;
  read_returns returns_;
  commit commit_;
  packet_intake intake_;
  request_check requests_;
  ethernet_check plain_;
  admission admission_;
  responder_control control_;
};

}  // namespace rnic::transport
