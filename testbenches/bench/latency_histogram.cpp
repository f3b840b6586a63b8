// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/latency_histogram.h"

#include <algorithm>
#include <boost/histogram.hpp>
#include <cmath>

namespace rnic::bench {

std::vector<latency_bin> histogram_of(const workloads::latency_record& latencies, unsigned per_decade) {
  std::vector<latency_bin> bins;
  if (latencies.empty()) return bins;
  const std::vector<sim::time_ps>& samples = latencies.samples();
  namespace bh = boost::histogram;
  const auto decade = [](sim::time_ps t) {  // in whole numbers: a logarithm just below one would be rounded up
    unsigned n = 0;
    for (; t >= 10; t /= 10) ++n;
    return n;
  };
  const unsigned low = decade(samples.front()), high = decade(samples.back()) + 1;
  using axis = bh::axis::regular<double, bh::axis::transform::log>;
  auto h = bh::make_histogram(axis(per_decade * (high - low), std::pow(10.0, low), std::pow(10.0, high)));
  for (const sim::time_ps t : samples) h(static_cast<double>(std::max<sim::time_ps>(t, 1)));
  for (const auto& cell : bh::indexed(h))
    bins.push_back({cell.bin().lower(), cell.bin().upper(), static_cast<std::uint64_t>(*cell)});
  while (bins.back().count == 0) bins.pop_back();
  bins.erase(bins.begin(), std::find_if(bins.begin(), bins.end(), [](const latency_bin& b) { return b.count != 0; }));
  return bins;
}

}  // namespace rnic::bench
