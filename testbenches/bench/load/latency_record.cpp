// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/load/latency_record.h"

#include <algorithm>
#include <boost/histogram.hpp>
#include <cmath>
#include <numeric>

namespace rnic::bench {

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
  sort();
  const double n = static_cast<double>(samples_.size());
  const double rank =
      std::ceil(part * n - 1e-9 * n);  // 0.999 of 1000 samples is the 999th, whatever 0.999 is in binary
  const auto index = static_cast<std::size_t>(std::clamp(rank, 1.0, n)) - 1;
  return samples_[index];
}

std::vector<latency_record::bin> latency_record::histogram(unsigned per_decade) const {
  std::vector<bin> bins;
  if (samples_.empty()) return bins;
  sort();
  namespace bh = boost::histogram;
  const auto decade = [](sim::time_ps t) {  // in whole numbers: a logarithm just below one would be rounded up
    unsigned n = 0;
    for (; t >= 10; t /= 10) ++n;
    return n;
  };
  const unsigned low = decade(samples_.front()), high = decade(samples_.back()) + 1;
  using axis = bh::axis::regular<double, bh::axis::transform::log>;
  auto h = bh::make_histogram(axis(per_decade * (high - low), std::pow(10.0, low), std::pow(10.0, high)));
  for (const sim::time_ps t : samples_) h(static_cast<double>(std::max<sim::time_ps>(t, 1)));
  for (const auto& cell : bh::indexed(h))
    bins.push_back({cell.bin().lower(), cell.bin().upper(), static_cast<std::uint64_t>(*cell)});
  while (bins.back().count == 0) bins.pop_back();
  bins.erase(bins.begin(), std::find_if(bins.begin(), bins.end(), [](const bin& b) { return b.count != 0; }));
  return bins;
}

}  // namespace rnic::bench
