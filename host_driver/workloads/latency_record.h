// SPDX-License-Identifier: Apache-2.0
// Latencies of many messages, with exact quantiles.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/types.h"

namespace rnic::workloads {

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
  // Of at least one sample; else NaN, and std::logic_error:
  double mean_ps() const;
  /// The smallest sample that `part` (0 to 1) of all samples do not exceed: 0 is the minimum, 1 the maximum.
  sim::time_ps quantile(double part) const;

  /// In rising order.
  const std::vector<sim::time_ps>& samples() const {
    sort();
    return samples_;
  }

 private:
  void sort() const;

  mutable std::vector<sim::time_ps> samples_;
  mutable bool sorted_ = false;
};

}  // namespace rnic::workloads
