// SPDX-License-Identifier: Apache-2.0
// Commit: what a checked packet leaves behind.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/clocked_block.h"
#include "model/sim/span.h"
#include "model/transport/responder/acknowledgement.h"
#include "model/transport/responder/completion_port.h"
#include "model/transport/responder/error_state.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/held_reads.h"
#include "model/transport/responder/history_memory.h"
#include "model/transport/responder/key_withdrawal.h"
#include "model/transport/responder/payload_writes.h"
#include "model/transport/responder/slot_table.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: takes the packets between check and commit in the order of their queue pairs, not before
/// their pipeline's time, and with them writes payload, completes receives, sets answers, hands READs and atomics over,
/// ends queue pairs.
///
/// Ports: one packet goes on in a cycle: one payload write, and with its last one the completion and the answer; or one
/// READ or atomic, one answer, one failure. Of the packets whose time has come the oldest that can go on is chosen (a
/// bit a slot, by age).
/// Order: within a queue pair; a packet that has to wait (translation, a key, room for its completion) holds up the
/// packets of its queue pair and no others.
/// A request put aside, an atomic: one access to the ring of its queue pair (history_memory).
/// Stalls: translation owes an address; no room for a write, a completion, an event; an ACK that answers enough; the
/// READ generator or host memory have no place for a READ or an atomic.
class commit {
 public:
  commit(sim::clocked_block& owner, flow_table& flows, slot_table& slots, payload_writes& writes,
         completion_port& completions, key_withdrawal& keys, acknowledgement& answers, held_reads& held,
         history_memory& rings, error_state& errors, drop_counters& drops, sim::span_recorder& spans);

  /// In each tick.
  void work();
  /// Last in each tick: READs and atomics that could not go the way that was theirs are looked at in the next one when
  /// it is another one now.
  void watch();

 private:
  enum class progress : std::uint8_t { none, some, all };
  /// Of a READ or an atomic.
  enum class way : std::uint8_t { drop, give_up, hand_over, put_aside };
  struct waiting {
    std::uint16_t slot;
    way on;
  };
  progress step(std::uint16_t i);
  progress carry_out(responder_slot& s);
  progress payload(responder_slot& s);
  void write(responder_slot& s, const icm::translate_response::segment& part, bool last);
  bool read(responder_slot& s);
  bool atomic(responder_slot& s);
  bool replay(const responder_slot& s, const icm::rdma_resources& ring);
  bool refuse_atomic(responder_slot& s);
  void answer(const responder_slot& s);
  bool failure(responder_slot& s);
  void fail_translation(responder_slot& s);
  bool drop_message(const responder_slot& s);
  void complete(const responder_flow& f, const responder_slot& s);
  void complete_plain(const responder_flow& f, const responder_slot& s);
  void note(const responder_slot& s);
  bool drop_repeated(const responder_slot& s) const;
  way way_of(const responder_slot& s) const;
  read_command command_of(const responder_slot& s) const;
  bool give_up(const responder_slot& s);

  sim::clocked_block& owner_;
  flow_table& flows_;
  slot_table& slots_;
  payload_writes& writes_;
  completion_port& completions_;
  key_withdrawal& keys_;
  acknowledgement& answers_;
  held_reads& held_;
  history_memory& rings_;
  error_state& errors_;
  drop_counters& drops_;
  sim::span_recorder& spans_;
  std::uint64_t pass_ = 0;
  std::vector<waiting> waiting_;  // of this tick
};

}  // namespace rnic::transport
