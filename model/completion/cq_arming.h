// SPDX-License-Identifier: Apache-2.0
// Arming of completion queues and the events that come of it.
#pragma once

#include "model/completion/completion_if.h"
#include "model/completion/halted_queues.h"
#include "model/completion/moderation.h"
#include "model/completion/queue_memory.h"
#include "model/completion/settings.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"

namespace rnic::completion {

/// Data sheet. Part of the completion block.
///
/// Software arms a CQ by a doorbell and gets one event, for the next completion or the next solicited one; what is
/// there already beyond the index of the doorbell counts. The event goes out at once, or, of a CQ with a period, when
/// the moderation table lets it. All within the tick of what leads to it: a doorbell, a CQE or the end of a period.
///
/// State: none of its own; the fields of the CQ's context (armed as what, sequence numbers, producer index last told)
/// and the CQ's period in the moderation table.
///
/// Stalls: a doorbell waits for the CQ's context, the end of a period also for room among the events and for firmware
/// that has halted the CQ. Events always find room: who leads to one has asked for it.
///
/// Counters: stale_arm, bad_doorbell.
class cq_arming {
 public:
  cq_arming(sim::clocked_block& owner, icm::context_cache<icm::cq_context>& cqs, const halted_queues& halts,
            moderation& periods, sim::ring<event_request>& events, completion_statistics& stats)
      : owner_(owner),
        cqs_(cqs),
        memory_(owner, "cq_memory"),
        halts_(halts),
        periods_(periods),
        events_(events),
        stats_(stats) {}

  /// The doorbell. False: the context has to be waited for.
  bool arm(const queue_doorbell& d);
  /// An entry has been added, and the context changed for it.
  void added(icm::cq_context& cq, bool solicited) {
    // An event that is being delayed counts all completions, also when only a solicited one could start it.
    if (cq.arm == 2 || (cq.arm == 1 && (solicited || periods_.runs(false, cq.cqn)))) condition_met(cq);
  }
  /// Ports of the contexts' memory.
  queue_memory& memory() { return memory_; }
  /// What waited for it goes out. False: cannot now; who is waited for wakes the block.
  bool end_period(const moderation::period& p);

 private:
  void condition_met(icm::cq_context& cq);
  void fire(icm::cq_context& cq);

  sim::clocked_block& owner_;
  icm::context_cache<icm::cq_context>& cqs_;
  queue_memory memory_;  // of the contexts, whose entries the CQ engine adds
  const halted_queues& halts_;
  moderation& periods_;
  sim::ring<event_request>& events_;
  completion_statistics& stats_;
};

}  // namespace rnic::completion
