// SPDX-License-Identifier: Apache-2.0
// The one place where clock domains meet the SystemC kernel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "model/sim/types.h"

namespace rnic::sim {

class clock_domain;

/// Serves the edges of all clock domains of a simulation with a single SystemC method: one kernel activation per
/// instant at which some domain has an edge with work. Measured against one event per block and one method per
/// domain, this is the cheapest of the exact ways (testbenches/perf).
class timebase {
 public:
  struct options {
    bool always_tick = false;  ///< tick every block at every edge: for the test that sleeping is invisible
    std::uint64_t shuffle_seed =
        0;  ///< not 0: another order of blocks inside an edge, for the test that order is nothing
  };

  timebase() : timebase(options{}) {}
  explicit timebase(const options& opts);
  ~timebase();
  timebase(const timebase&) = delete;
  timebase& operator=(const timebase&) = delete;

  /// Present simulated time.
  time_ps now_ps() const;
  const options& opts() const { return options_; }
  /// Activations of the kernel's method since the start: the cost that does not depend on the machine.
  std::uint64_t kernel_activations() const { return activations_; }

 private:
  friend class clock_domain;
  class process;
  void add(clock_domain& domain);
  void remove(clock_domain& domain);
  void request(time_ps when);  // some domain now has an edge with work at `when`
  void schedule(time_ps when);
  void serve();
  unsigned pick_id(std::uint64_t taken);

  options options_;
  std::mt19937_64 rng_;
  std::vector<clock_domain*> domains_;
  std::vector<time_ps> next_edges_;  // of the domains, in their order: searched at each instant
  std::unique_ptr<process> process_;
  time_ps now_ = 0;
  // Notifications under way, the earliest last. A notification is never taken back: the kernel would keep its record
  // until its time comes, and a timer of a second would leave a million of them. One that finds no work is harmless.
  static constexpr unsigned max_scheduled = 16;
  std::array<time_ps, max_scheduled> scheduled_{};
  unsigned scheduled_count_ = 0;
  bool serving_ = false;
  std::uint64_t activations_ = 0;
};

}  // namespace rnic::sim
