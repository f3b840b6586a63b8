// SPDX-License-Identifier: Apache-2.0
// The IOMMU of the root complex: translations cached (IOTLB), missing ones walked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/host/device_traffic_if.h"
#include "model/host/host_memory.h"
#include "model/host/iommu_config.h"
#include "model/host/memory_timing.h"
#include "model/host/walk_cache.h"
#include "model/payload/tlp.h"
#include "model/sim/clocked_block.h"
#include "model/sim/server.h"
#include "model/sim/statistics.h"
#include "model/sim/timed_inbox.h"

namespace rnic::host {

/// What is behind the IOMMU.
class translated_traffic_if {
 public:
  virtual ~translated_traffic_if() = default;
  struct passage {
    sim::time_ps arrival = 0;  ///< at the root complex
    sim::time_ps at = 0;       ///< has its translation, later than the present edge
    bool missed = false;       ///< waited for a walk
    bool refused = false;      ///< the function has no such page
  };
  /// Packets come in the order in which they arrived.
  virtual void translated(payload::tlp_ptr packet, const passage& p) = 0;
};

/// Between link and memory (root_complex), in the order in which packets arrive, one a cycle; clocked as the root
/// complex is.
///
/// | stage   | cycles                                     | what it is                                              |
/// |---------|--------------------------------------------|---------------------------------------------------------|
/// | arrival | next edge                                  | queue of what has arrived; the link's credits bound it   |
/// | lookup  | lookup_cycles                              | IOTLB: `entries` in sets of `ways`, one look a cycle    |
/// | walk    | accesses x (access_ps + extra of `tables`) | on one of `walkers`, the first that is free             |
///
/// A look finds the page of the request, by function (low byte of the requester ID: each has a domain of its own) and
/// number. A page that a walk is under way for is waited for (merged). A walk reads an entry of each level of the
/// table below what the walk cache holds, one after the other; its translation takes the place of the one used longest
/// ago in its set when the walk begins. Where walks are under way for all ways of a set, the lookup waits, and all
/// that is behind it. Behind a miss others go on: reads pass it; a posted write that misses has its own walk at once,
/// but memory takes writes in their order (memory_timing), so it holds up the writes behind it, and the reads behind
/// those. Room in the root complex is given back when a request is done, so the device runs out of credits then.
/// Messages, interrupts (writes below msi_end) and completions are not translated and keep their place in the order.
///
/// Addresses are not changed. A page is mapped for the function that it was allocated for (host_memory, from which
/// driver and programs have each buffer that they give to a device), from allocation to release, which takes it out of
/// the IOTLB at the next edge. Anything else is refused: an unsupported request, or a write that is thrown away, and a
/// fault counted. A refusal is not cached: each costs a walk.
///
/// Approximation: pages of 2 MiB and 1 GiB are cached and walked for as such, but mapped as their parts of 4 KiB are.
/// Approximation: tables take no room in host memory and no turns at it; entries of the tables of devices are held.
class iommu : public sim::clocked_block, public device_traffic_if, private mapping_listener {
 public:
  /// Throws sim::config_error, naming the parameter, where `ways` does not divide `entries` or the table has too few
  /// levels for `memory`. Told of releases until it is gone; `memory` must outlive it.
  iommu(const std::string& name, sim::clock_domain& domain, const iommu_config& c, host_memory& memory,
        memory_timing& timing, translated_traffic_if& to, sim::statistics& stats);
  ~iommu() override;

  /// Any packet of the device, which is here at `arrival`; arrivals do not decrease.
  void request(payload::tlp_ptr packet, sim::time_ps arrival) override { arrived_.push(std::move(packet), arrival); }
  /// Packets that wait for their lookup.
  std::size_t waiting() const { return arrived_.size(); }

  struct counters {
    std::uint64_t hits = 0;           ///< the translation was there
    std::uint64_t misses = 0;         ///< it was not: merged, or a walk
    std::uint64_t merged = 0;         ///< a walk for it was under way
    std::uint64_t walks = 0;          ///< begun
    std::uint64_t accesses = 0;       ///< of tables
    std::uint64_t faults = 0;         ///< requests refused
    std::uint64_t invalidations = 0;  ///< translations that were taken out
    std::uint64_t stalls = 0;         ///< lookups that waited for a way
  };
  const counters& counts() const { return counts_; }

 private:
  struct translation {
    std::uint64_t page = 0;   // and function, see tag_of
    sim::cycle_t filled = 0;  // edge from which on it is there
    sim::cycle_t used = 0;    // edge of the last look
    bool valid = false;
  };
  struct found {
    sim::cycle_t at = 0;  // edge at which the translation is there
    bool missed = false;
  };

  /// A buffer that is no device's from an edge on.
  struct release {
    std::uint64_t address = 0, bytes = 0;
    sim::cycle_t from = 0;
  };

  void tick() override;
  void take_out();
  void unmapped(std::uint64_t address, std::uint64_t bytes) override;
  bool is_translated(const payload::tlp& t) const;
  bool is_mapped(const payload::tlp& t) const;
  void announce(sim::statistics& stats);
  std::uint64_t tag_of(const payload::tlp& t) const;
  translation* set_of(std::uint64_t tag);
  translation* look(std::uint64_t tag);
  translation* victim(std::uint64_t tag);
  sim::cycle_t walk(const payload::tlp& t);
  void pass(const found& f, bool refused);

  iommu_config config_;
  unsigned page_shift_;
  unsigned leaf_level_;
  std::uint64_t sets_;
  host_memory& memory_;
  memory_timing& timing_;
  translated_traffic_if& to_;
  sim::timed_inbox<payload::tlp_ptr> arrived_;
  sim::server lookup_;
  std::vector<std::unique_ptr<sim::server>> walkers_;
  std::vector<translation> cached_;  // by set
  walk_cache upper_;
  std::vector<release> releases_;   // in their order, those of the present cycle
  sim::cycle_t stalled_until_ = 0;  // the lookup waits for a way
  counters counts_;
};

}  // namespace rnic::host
