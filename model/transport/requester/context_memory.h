// SPDX-License-Identifier: Apache-2.0
// The memory of the contexts of queue pairs that send.
#pragma once

#include <cstdint>
#include <string>

#include "model/icm/context_cache.h"
#include "model/icm/contexts.h"
#include "model/sim/memory_ports.h"
#include "model/sim/statistics.h"

namespace rnic::transport {

/// The contexts on chip (icm::context_cache), and the ports through which the engines of the requester get at them:
/// each access reads a context, and may change it in the same cycle. Who looks for a context (ask) compares tags, which
/// costs no port; who goes on with it takes one (access). Fills and write-backs of the cache have a port of their own.
///
/// A processing unit has the context of its queue pair in front of it from its first access until its report, which is
/// the second one; the transmit engine makes an access for each packet, completions one for each queue pair that they
/// look at, the others one for each thing that they do. Priority is the order in which the requester ticks them; who
/// was refused comes first a cycle later (sim::memory_ports).
class context_memory : public icm::context_cache<icm::requester_context> {
 public:
  enum user : unsigned { completer, timers, completions, go_back, departures, control, transmit, units };

  context_memory(sim::clocked_block& owner, const icm::context_cache_config& config, unsigned ports,
                 const icm::icm_map& map)
      : context_cache(owner.name() + ".contexts", owner, config, map, icm::table::qpc, 0),
        ports_(owner, "context_memory", ports,
               {"completer", "timers", "completions", "go_back", "departures", "control", "transmit", "units"}) {}
  void announce(sim::statistics& to) const {
    context_cache::announce(to);
    ports_.announce(to);
  }

  /// The user would have a port in this cycle; if not, it waits, and is counted.
  bool claim(user u) { return ports_.claim(u); }
  /// The user goes on with context `number`, which ask() has found. False: all ports are taken, it waits.
  bool access(user u, std::uint32_t number) {
    if (!access_pinned(u)) return false;
    use(number);
    return true;
  }
  /// The same with one that is pinned for the user: it was looked up when it was pinned.
  bool access_pinned(user u) { return ports_.try_access(u); }
  std::uint64_t accesses(user u) const { return ports_.accesses(u); }

 private:
  sim::memory_ports ports_;
};

}  // namespace rnic::transport
