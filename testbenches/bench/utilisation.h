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
  static constexpr unsigned resources = 8;
  std::array<std::uint64_t, resources> busy_ps{};
  sim::time_ps at = 0;
};

utilisation measure_utilisation(two_nodes& system);

/// Name of the resource that limited a run: the busiest one when it was in use for at least 92 % of the time, otherwise
/// what is left: the service of a queue pair (`messages_per_qp` at the adapter's pace) or the window.
std::string limited_by(two_nodes& system, const utilisation& before, const utilisation& after, double messages_per_qp,
                       bool reads);

}  // namespace rnic::bench
