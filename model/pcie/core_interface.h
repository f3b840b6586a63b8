// SPDX-License-Identifier: Apache-2.0
// The interface over which packets reach the PCIe core.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/payload/tlp.h"
#include "model/sim/beats.h"
#include "model/sim/check.h"
#include "model/sim/clocked_block.h"
#include "model/sim/parameter.h"
#include "model/sim/server.h"

namespace rnic::pcie {

/// The PCIe core: link and what makes packets of requests. Its widths and cycles are those of its clock.
struct core_config {
  /// Its clock, 1 MHz at least; 0: it has the adapter's, and there is no crossing.
  sim::parameter<std::uint32_t> khz{0, {0, 10'000'000, "kHz", "design: 0, the PCIe core has the adapter's clock"}};
  /// Of its interface, a beat a cycle; a request without data is one beat. The adapter puts the width of its datapath
  /// in the place of 0.
  sim::parameter<std::uint32_t> interface_bytes{0, {0, 512, "bytes", "design: 0, as wide as adapter.datapath_bytes"}};
  /// Of the interface, before each request of either kind; this adapter has none.
  sim::parameter<unsigned> request_setup_cycles{
      0, {0, sim::many, "cycles of core_khz", "design: none; measuring cards have one"}};
  /// Through which the pointers of the crossing and the credits go.
  sim::parameter<unsigned> synchroniser_stages{2,
                                               {2, 8, "flip-flops", "Cummings 2002: two; of the crossing to core_khz"}};
  /// Slots of the crossing in each direction.
  sim::parameter<unsigned> crossing_packets{16, {1, 1024, "packets", "design: of the crossing to core_khz"}};

  void list(sim::fields& are) {
    are("core_khz", khz);
    are("interface_bytes", interface_bytes);
    are("request_setup_cycles", request_setup_cycles);
    are("synchroniser_stages", synchroniser_stages);
    are("crossing_packets", crossing_packets);
  }
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
