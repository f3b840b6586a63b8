// SPDX-License-Identifier: Apache-2.0
// How often messages took how long.
#pragma once

#include <cstdint>
#include <vector>

#include "host_driver/workloads/latency_record.h"

namespace rnic::bench {

struct latency_bin {
  double from_ps = 0, to_ps = 0;
  std::uint64_t count = 0;
};

/// Bins of equal width on a logarithmic axis, `per_decade` of them, from a power of ten up; without those at both ends
/// that are empty. A sample of 0 is in the first one.
std::vector<latency_bin> histogram_of(const workloads::latency_record& latencies, unsigned per_decade = 20);

}  // namespace rnic::bench
