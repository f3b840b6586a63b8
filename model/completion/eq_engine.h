// SPDX-License-Identifier: Apache-2.0
// The engine that writes entries of event queues.
#pragma once

#include <cstdint>
#include <vector>

#include "model/completion/buffer_pages.h"
#include "model/completion/completion_config.h"
#include "model/completion/completion_if.h"
#include "model/completion/dma_queue.h"
#include "model/completion/halted_queues.h"
#include "model/completion/interrupts.h"
#include "model/completion/queue_memory.h"
#include "model/completion/settings.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"

namespace rnic::completion {

/// What leads from and to the engine: ports of the block, and what it shares with the block's other parts.
struct eq_engine_ports {
  std::vector<sim::fifo_in<event_request>>& requests;
  sim::ring<event_request>& events;           ///< raised inside the block
  sim::ring<event_request>& firmware_events;  ///< raised through the registers
  icm::context_cache<icm::eq_context>& eqs;
  buffer_pages& pages;
  dma_queue& dma;
  const halted_queues& halts;
  interrupts& raised;
};

/// Data sheet. Part of the completion block.
///
/// Takes events of the sources in turn (raised inside the block, by firmware, by each channel), the one behind that
/// which was served last first, one in `event_cycles`, what is discarded or invalid among them, as soon as context and
/// page of the EQ are there; the write leaves `event_latency_cycles` later. An event goes to the EQ that it names or to
/// which its type is mapped. One that waits holds up its own source only. Doorbells of EQs (consumer index, arming)
/// have the doorbell engine's turn.
///
/// Memories: contexts of EQs (a look-up an event or doorbell), pages.
///
/// Stalls, as the server `event_engine` counts them: dma (no room for a write), interrupts (none for an interrupt),
/// contexts or pages (a halted EQ as well).
///
/// Counters: eqe, eqe_invalid, eq_overflow, event_unmapped, discarded; bad_doorbell.
class eq_engine {
 public:
  eq_engine(sim::clocked_block& owner, const completion_config& config, const settings& set,
            completion_statistics& stats, const eq_engine_ports& ports, unsigned sources);

  /// To be called in each tick of the owner.
  void serve();
  /// The doorbell. False: the context has to be waited for.
  bool update(const queue_doorbell& d);
  /// The queues of events inside the block are empty by a reset.
  void forget_inner() { seen_[0] = seen_[1] = 0; }
  /// What waited for it goes out. False: cannot now; who is waited for wakes the block.
  bool end_period(const moderation::period& p);

 private:
  bool try_event(event_request& e, bool& seen);
  void write(icm::eq_context& eq, const event_request& e, std::uint64_t address);

  sim::clocked_block& owner_;
  const unsigned cycles_, latency_cycles_;
  const settings& set_;
  completion_statistics& stats_;
  eq_engine_ports to_;
  sim::server engine_;
  queue_memory memory_;
  unsigned last_source_ = 0;
  std::vector<std::uint8_t> seen_;  // by source, internal and firmware's first: the head's context was found before
};

}  // namespace rnic::completion
