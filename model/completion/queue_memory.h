// SPDX-License-Identifier: Apache-2.0
// The ports of the memory of the contexts of completion or event queues.
#pragma once

#include <string>

#include "model/sim/clocked_block.h"
#include "model/sim/memory_ports.h"

namespace rnic::completion {

/// Part of the completion block: who gets at the contexts on chip (icm::context_cache), by a port of its own each, one
/// access a cycle. An access reads a context, and may write it in the same cycle.
class queue_memory : public sim::memory_ports {
 public:
  enum user : unsigned { entries, doorbells, periods };
  queue_memory(sim::clocked_block& owner, const std::string& leaf)
      : memory_ports(owner, leaf, sim::port_each{}, {"entries", "doorbells", "periods"}) {}
};

}  // namespace rnic::completion
