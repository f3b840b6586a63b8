// SPDX-License-Identifier: Apache-2.0
// Latencies of many messages: exact quantiles, and a histogram.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/types.h"

namespace rnic::bench {

class latency_record {
 public:
  void add(sim::time_ps t) {
    samples_.push_back(t);
    sorted_ = false;
  }
  /// Those of another record as well.
  void add(const latency_record& other);

  std::size_t count() const { return samples_.size(); }
  bool empty() const { return samples_.empty(); }
  // Of at least one sample:
  double mean_ps() const;
  /// The smallest sample that `part` (0 to 1) of all samples do not exceed: 0 is the minimum, 1 the maximum.
  sim::time_ps quantile(double part) const;

  struct bin {
    double from_ps = 0, to_ps = 0;
    std::uint64_t count = 0;
  };
  /// Bins of equal width on a logarithmic axis, `per_decade` of them, from a power of ten up; without those at both
  /// ends that are empty. A sample of 0 is in the first one.
  std::vector<bin> histogram(unsigned per_decade = 20) const;

 private:
  void sort() const;

  mutable std::vector<sim::time_ps> samples_;
  mutable bool sorted_ = false;
};

}  // namespace rnic::bench
