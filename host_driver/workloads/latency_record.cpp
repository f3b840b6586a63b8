// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/latency_record.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace rnic::workloads {

void latency_record::add(const latency_record& other) {
  samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
  sorted_ = false;
}

void latency_record::sort() const {
  if (!sorted_) std::sort(samples_.begin(), samples_.end());
  sorted_ = true;
}

double latency_record::mean_ps() const {
  const auto sum = std::accumulate(samples_.begin(), samples_.end(), std::uint64_t{0});
  return static_cast<double>(sum) / static_cast<double>(samples_.size());
}

sim::time_ps latency_record::quantile(double part) const {
  if (samples_.empty()) throw std::logic_error("latency_record: a quantile of no sample");
  sort();
  const double n = static_cast<double>(samples_.size());
  const double rank =
      std::ceil(part * n - 1e-9 * n);  // 0.999 of 1000 samples is the 999th, whatever 0.999 is in binary
  const auto index = static_cast<std::size_t>(std::clamp(rank, 1.0, n)) - 1;
  return samples_[index];
}

}  // namespace rnic::workloads
