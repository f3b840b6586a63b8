// SPDX-License-Identifier: Apache-2.0
// How the checks write what they have found of a packet into its slot.
#pragma once

#include <cstdint>

#include "model/payload/frame.h"
#include "model/sim/clocked_block.h"
#include "model/sim/pipeline.h"
#include "model/sim/span.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/place_lookup.h"
#include "model/transport/responder/receive_descriptors.h"
#include "model/transport/responder/slot_table.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// What becomes of a packet under check: it is done with (executed, answered or dropped), or has to wait.
enum class verdict : std::uint8_t { done, wait };

/// Part of the responder, of its checks: a packet gets its slot, the places of its payload, its answer or its error.
/// Stages: those of responder_config::receive, from the check of a packet to its commit; their registers are the slots.
class packet_intake {
 public:
  packet_intake(sim::clocked_block& owner, const responder_config& cfg, slot_table& slots, place_lookup& places,
                receive_descriptors& receives, drop_counters& drops, sim::span_recorder& spans);

  /// A slot for the packet, whose frame it takes, in the state that its queue pair is in.
  responder_slot& begin(responder_flow& f, payload::frame_ptr& frame, responder_slot::action what);
  /// The packet is answered and nothing else.
  verdict answer(responder_flow& f, payload::frame_ptr& frame, std::uint8_t syndrome, std::uint32_t psn);
  /// It ends its queue pair; of UC, its message only.
  verdict refuse(responder_flow& f, payload::frame_ptr& frame, const responder_error& error);
  /// A packet of a message: what its queue pair expects then.
  void finish(responder_flow& f, responder_slot& s, const wire::opcode_traits& t);
  /// A READ or an atomic: what its queue pair expects then, `packets` of answers later.
  void finish_fetch(responder_flow& f, responder_slot& s, std::uint32_t packets);
  /// The end of a packet that is a message: its bytes into the receive `entry` (its buffers or, `in_wqe`, itself), a
  /// completion.
  verdict receive_whole(responder_flow& f, responder_slot& s, const receive_descriptors::entry& entry,
                        std::uint8_t cqe_opcode, std::uint32_t bytes, bool in_wqe);
  /// The payload goes into the receive WQE itself,
  void put_in_wqe(responder_slot& s, const icm::responder_context& ctx, std::uint32_t length);
  /// or into its buffers, `offset` bytes behind their beginning. False: they do not take it.
  bool scatter(responder_slot& s, const receive_descriptors::entry& entry, std::uint32_t offset, std::uint32_t length,
               responder_error& error);

 private:
  sim::clocked_block& owner_;
  slot_table& slots_;
  place_lookup& places_;
  receive_descriptors& receives_;
  drop_counters& drops_;
  sim::span_recorder& spans_;
  sim::pipeline pipeline_;
};

}  // namespace rnic::transport
