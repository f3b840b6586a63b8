// SPDX-License-Identifier: Apache-2.0
// Parameters of the completion block.
#pragma once

#include "model/icm/context_cache.h"
#include "model/sim/parameter.h"

namespace rnic::completion {

struct completion_config {
  /// From one CQE to the next.
  sim::parameter<unsigned> cqe_cycles{4, {1, sim::many, "cycles", "design: not below the message rate's limit"}};
  /// From a request to its write being handed to DMA, on a hit.
  sim::parameter<unsigned> cqe_latency_cycles{8, {1, sim::many, "cycles", "design"}};
  sim::parameter<unsigned> event_cycles{4, {1, sim::many, "cycles", "design"}};  ///< from one EQE to the next
  /// From an event to its write being handed to DMA, on a hit.
  sim::parameter<unsigned> event_latency_cycles{8, {1, sim::many, "cycles", "design"}};
  /// From one CQ or EQ doorbell to the next.
  sim::parameter<unsigned> doorbell_cycles{2, {1, sim::many, "cycles", "design"}};
  /// Events raised inside the block that wait for their EQ.
  sim::parameter<unsigned> event_depth{64, {1, 4096, "events", "design"}};
  sim::parameter<unsigned> write_depth{32, {1, 4096, "writes", "design"}};  ///< writes decided but not handed to DMA
  /// CQs and EQs with a moderated event under way; one more fires at once.
  sim::parameter<unsigned> moderated_depth{64, {1, 4096, "CQs", "design"}};
  /// Buffer pages remembered, one a queue; a power of two.
  sim::parameter<unsigned> page_entries{256, {1, sim::many, "pages", "design: one a queue"}};
  icm::context_cache_config cq_cache{256, 4, 16, 0, 8, "design: as the QP contexts'"};
  icm::context_cache_config eq_cache{32, 4, 4, 0, 4, "design"};

  void list(sim::fields& are) {
    are("cqe_cycles", cqe_cycles);
    are("cqe_latency_cycles", cqe_latency_cycles);
    are("event_cycles", event_cycles);
    are("event_latency_cycles", event_latency_cycles);
    are("doorbell_cycles", doorbell_cycles);
    are("event_depth", event_depth);
    are("write_depth", write_depth);
    are("moderated_depth", moderated_depth);
    are("page_entries", page_entries);
    are("cq_cache", cq_cache);
    are("eq_cache", eq_cache);
  }
};

}  // namespace rnic::completion
