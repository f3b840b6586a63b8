// SPDX-License-Identifier: Apache-2.0
// When the messages of an open loop arrive, whatever has become of those before.
#pragma once

#include <cstdint>
#include <random>

#include "model/sim/types.h"

namespace rnic::workloads {

struct arrival_config {
  enum class process : std::uint8_t {
    poisson,        ///< gaps are exponentially distributed and independent
    deterministic,  ///< gaps are equal
    on_off          ///< gaps are equal in a burst, and there is none between two; both last exponentially long
  };
  process kind = process::poisson;
  double gap_ps = 0;             ///< on average, over bursts and silences; above 0
  double on_ps = 0, off_ps = 0;  ///< on_off: how long a burst and a silence last on average; on_ps above 0
};

/// A sequence of times that depends on its seed alone.
class arrivals {
 public:
  /// The first message comes one gap behind `begin`.
  arrivals(const arrival_config& config, sim::time_ps begin, std::uint64_t seed);
  /// The next arrival; pop() goes to the one behind it.
  sim::time_ps next() const { return next_; }
  void pop();

 private:
  double exponential(double mean);

  arrival_config config_;
  std::mt19937_64 random_;
  double at_, burst_end_ = 0;  // in picoseconds, with what whole ones leave over
  sim::time_ps next_ = 0;
};

}  // namespace rnic::workloads
