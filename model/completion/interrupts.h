// SPDX-License-Identifier: Apache-2.0
// Interrupts of event queues.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/completion/moderation.h"
#include "model/completion/settings.h"
#include "model/icm/contexts.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"

namespace rnic::completion {

/// Data sheet. Part of the completion block.
///
/// An armed EQ that gets an entry raises its interrupt, at once or, with a period, when the moderation table lets it.
/// Interrupts are sent in the order in which they were decided, one a cycle, each after all EQEs that were decided
/// before it have entered the posted queue.
///
/// Memory: a queue of `depth` interrupts, `write_depth` and `event_depth` together (completion_config), written by EQ
/// engine, doorbells and moderation.
///
/// Stalls: while the queue is full none of the three goes on; it waits for the writes of EQEs and for the channel.
///
/// Counters: interrupts.
class interrupts {
 public:
  static constexpr std::uint8_t state_armed = 9, state_fired = 10;  ///< of an EQ's context, as published

  interrupts(sim::clocked_block& owner, sim::fifo_out<pcie::msix_request>& out, std::size_t depth, moderation& periods,
             completion_statistics& stats)
      : owner_(owner), out_(out), periods_(periods), stats_(stats), waiting_(depth) {}

  bool full() const { return waiting_.full(); }
  /// The armed EQ has an entry that software has not seen.
  void due(icm::eq_context& eq);
  void raise(icm::eq_context& eq);
  void entry_decided() { ++decided_; }
  void entry_written() { ++written_; }

  /// To be called in each tick of the owner, behind those who raise.
  void send() {
    if (!waiting_.empty() && waiting_.front().after <= written_) send_front();
  }

 private:
  struct interrupt {
    pcie::msix_request request;
    std::uint64_t after = 0;  // number of EQEs that must have been written
  };
  void send_front();

  sim::clocked_block& owner_;
  sim::fifo_out<pcie::msix_request>& out_;
  moderation& periods_;
  completion_statistics& stats_;
  sim::ring<interrupt> waiting_;
  std::uint64_t decided_ = 0, written_ = 0;  // EQEs
};

}  // namespace rnic::completion
