// SPDX-License-Identifier: Apache-2.0
// Which resource is busy all the time?
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/sim/types.h"

namespace rnic::bench {

class two_nodes;

/// Time that each shared resource has been in use since the start of the run, in picoseconds.
struct utilisation {
  static constexpr unsigned resources = 12;
  std::array<std::uint64_t, resources> busy_ps{};
  std::array<std::uint64_t, 2> units_ps{};  ///< processing units of both adapters, summed over the units
  sim::time_ps at = 0;
};

utilisation measure_utilisation(two_nodes& system);

/// Name of the resource that limited a run in which each sender used `qps` queue pairs: the busiest one when it was in
/// use for at least 92 % of the time; otherwise, when the processing units that so many queue pairs can occupy were,
/// the service of a queue pair; otherwise the window.
std::string limited_by(two_nodes& system, const utilisation& before, const utilisation& after, unsigned qps);

}  // namespace rnic::bench
