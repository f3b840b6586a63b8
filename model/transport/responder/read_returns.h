// SPDX-License-Identifier: Apache-2.0
// What the READ generator reports to the responder.
#pragma once

#include "model/sim/clocked_block.h"
#include "model/transport/responder/acknowledgement.h"
#include "model/transport/responder/completion_port.h"
#include "model/transport/responder/error_state.h"
#include "model/transport/responder/flow_table.h"
#include "model/transport/responder/history_memory.h"
#include "model/transport/responder/key_withdrawal.h"
#include "model/transport/responder/read_port.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the responder: one report a cycle. A request that has ended gives its place back; the answer of an atomic
/// goes into its queue pair's ring (one access to history_memory), where a repeated request finds it; memory that
/// cannot be read ends the queue pair. Stalls: a fault waits for the event's channel and for the way to the generator,
/// an answer for a port of its ring.
class read_returns {
 public:
  read_returns(sim::clocked_block& owner, flow_table& flows, read_port& reads, history_memory& rings,
               acknowledgement& answers, key_withdrawal& keys, completion_port& completions, error_state& errors,
               drop_counters& drops);

  /// In each tick.
  void work();

 private:
  bool end(responder_flow& f, const read_report& r);
  bool fail(responder_flow& f, const read_report& r);

  sim::clocked_block& owner_;
  flow_table& flows_;
  read_port& reads_;
  history_memory& rings_;
  acknowledgement& answers_;
  key_withdrawal& keys_;
  completion_port& completions_;
  error_state& errors_;
  drop_counters& drops_;
};

}  // namespace rnic::transport
