// SPDX-License-Identifier: Apache-2.0
// The engine that writes entries of completion queues.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/completion/buffer_pages.h"
#include "model/completion/completion_config.h"
#include "model/completion/completion_if.h"
#include "model/completion/consumer_reads.h"
#include "model/completion/cq_arming.h"
#include "model/completion/dma_queue.h"
#include "model/completion/halted_queues.h"
#include "model/completion/settings.h"
#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"

namespace rnic::completion {

/// What leads from and to the engine: ports of the block, and what it shares with the block's other parts.
struct cq_engine_ports {
  std::vector<sim::fifo_in<cqe_request>>& requests;
  std::array<sim::fifo_out<lost_completion>, 2>& lost;  ///< QPs of lost completions; may be unbound
  icm::context_cache<icm::cq_context>& cqs;
  buffer_pages& pages;
  dma_queue& dma;
  sim::ring<event_request>& events;
  const halted_queues& halts;
  cq_arming& arming;
};

/// Data sheet. Part of the completion block.
///
/// Takes requests of the sources in turn, the one behind that which was served last first, one in `cqe_cycles`, what is
/// discarded, invalid or lost among them, as soon as context and page of the CQ are there; the write leaves
/// `cqe_latency_cycles` later. A request that waits holds up its own source only. Of a CQ that is full the doorbell
/// record is read first (consumer_reads); one that is full still, or broken, goes into an error state with an event,
/// and QPs are told of what they have lost there.
///
/// Memories: contexts of CQs (a look-up a request, by consumer_reads and cq_arming in the same access), pages.
///
/// Stalls, as the server `cqe_engine` counts them: dma (no room for a write), events (none for an event), command (the
/// CQ is halted), contexts, consumer index, pages, requester or responder (no room to tell them of a loss).
///
/// Span marks: what a CQE has waited for, by the same names.
///
/// Counters: cqe, cqe_invalid, cq_overflow, discarded.
class cq_engine {
 public:
  cq_engine(sim::clocked_block& owner, const completion_config& config, const settings& set,
            completion_statistics& stats, const cq_engine_ports& ports, unsigned sources);

  /// To be called in each tick of the owner.
  void serve();
  consumer_reads& records() { return records_; }

 private:
  struct reason {
    const char* whom = nullptr;
    sim::wait why = sim::wait::none;
  };
  static constexpr reason told{"requester or responder", sim::wait::arbitration};
  /// The request in front of a source.
  struct head {
    bool seen = false;                ///< its context was found before
    const char* waits_for = nullptr;  ///< at the last try; nullptr: it has not waited
    sim::wait why = sim::wait::none;
  };
  bool try_request(unsigned source);
  void note(unsigned source, const head& before);
  bool has_room(icm::cq_context& cq, bool& wait);
  void fail(icm::cq_context& cq, std::uint8_t status, std::uint8_t syndrome);
  bool can_lose() const;
  void lose(const cqe_request& r);
  void write(icm::cq_context& cq, const cqe_request& r, std::uint64_t address);
  static void encode(const cqe_request& r, std::uint8_t owner, std::uint8_t* to);

  sim::clocked_block& owner_;
  const unsigned cycles_, latency_cycles_;
  const settings& set_;
  completion_statistics& stats_;
  cq_engine_ports to_;
  sim::server engine_;
  unsigned last_source_ = 0;
  std::vector<head> heads_;  // by source
  consumer_reads records_;
  reason waits_for_;  // why try_request() said no
};

}  // namespace rnic::completion
