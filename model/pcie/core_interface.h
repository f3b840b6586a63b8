// SPDX-License-Identifier: Apache-2.0
// The interface over which packets reach the PCIe core.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/payload/tlp.h"
#include "model/sim/beats.h"
#include "model/sim/check.h"
#include "model/sim/clocked_block.h"
#include "model/sim/server.h"

namespace rnic::pcie {

/// The PCIe core: link and what makes packets of requests. Its widths and cycles are those of its clock.
struct core_config {
  std::uint32_t khz = 0;  ///< its clock; 0: it has the adapter's, and there is no crossing
  /// Of its interface, a beat a cycle; a request without data is one beat. The adapter puts the width of its datapath
  /// in the place of 0.
  std::uint32_t interface_bytes = 0;
  unsigned request_setup_cycles = 0;  ///< of the interface, before each request of either kind; this adapter has none
  /// Flip-flops through which the pointers of the crossing and the credits go (Cummings, SNUG 2002: two).
  unsigned synchroniser_stages = 2;
  unsigned crossing_packets = 16;  ///< slots of the crossing in each direction
};

/// A packet on its way to the core.
struct outgoing {
  payload::tlp_ptr packet;
  std::uint32_t bytes = 0;  ///< that pass the interface
  bool first = false;       ///< of a request, which is set up
};

/// One packet after the other, beat by beat, a beat a cycle of the owner's clock.
class core_interface {
 public:
  core_interface(sim::clocked_block& owner, const core_config& c)
      : owner_(owner), bytes_(c.interface_bytes), setup_(c.request_setup_cycles), server_(owner, "interface") {
    if (bytes_ == 0) throw sim::config_error(owner.name() + ".interface_bytes: must be at least 1");
  }

  sim::cycle_t beats(std::uint32_t bytes) const { return std::max<sim::cycle_t>(1, sim::beats_of(bytes, bytes_)); }
  /// Occupies it behind what occupies it already, for a packet of so many bytes; `now_ps`: of the owner. Returns when
  /// its first beat passes.
  sim::time_ps occupy(std::uint32_t bytes, bool first, sim::time_ps now_ps) {
    const sim::cycle_t setup = first ? setup_ : 0, cycles = beats(bytes);
    const sim::time_ps free = server_.is_free() ? now_ps : free_ps_;
    server_.append(setup + cycles);
    const sim::clock_domain& clock = owner_.domain();
    free_ps_ = clock.edge_time(server_.free_at());
    return setup == 0 ? free : clock.edge_time(server_.free_at() - cycles);
  }
  /// occupy() of a request's further packet at edge `at`, which must not be after free_at().
  sim::time_ps occupy_at(sim::cycle_t at, std::uint32_t bytes) {
    const sim::time_ps free = free_ps_;
    server_.append_at(at, beats(bytes));
    free_ps_ = owner_.domain().edge_time(server_.free_at());
    return free;
  }
  /// When what occupies it now has passed.
  sim::time_ps free_ps() const { return free_ps_; }
  sim::cycle_t free_at() const { return server_.free_at(); }
  sim::server& engine() { return server_; }

 private:
  sim::clocked_block& owner_;
  std::uint32_t bytes_;
  unsigned setup_;
  sim::server server_;
  sim::time_ps free_ps_ = 0;
};

}  // namespace rnic::pcie
