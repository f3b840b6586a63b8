// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/lanes.h"

#include <algorithm>

namespace rnic::bench {

bool lanes::put(row& r, sim::time_ps begin, sim::time_ps end) {
  if (begin < r.from) return false;
  if (r.taken.empty() || r.taken.back().end <= begin) {
    r.taken.push_back({begin, end});
  } else {
    const auto behind = std::partition_point(r.taken.begin() + static_cast<std::ptrdiff_t>(r.first), r.taken.end(),
                                             [begin](const slice& s) { return s.end <= begin; });
    if (behind != r.taken.end() && behind->begin < end) return false;
    r.taken.insert(behind, {begin, end});
  }
  if (r.taken.size() - r.first > remembered) r.from = r.taken[r.first++].end;
  if (r.first == remembered) {
    r.taken.erase(r.taken.begin(), r.taken.begin() + remembered);
    r.first = 0;
  }
  return true;
}

std::size_t lanes::place(sim::time_ps begin, sim::time_ps end) {
  std::size_t i = 0;
  while (i < ends_.size() && ends_[i] > begin) ++i;
  for (std::size_t gap = 0; i == ends_.size() && gap < ends_.size(); ++gap)
    if (put(rows_[gap], begin, end)) return gap;
  if (i == ends_.size()) {
    if (i == most) return most;
    rows_.emplace_back();
    ends_.push_back(0);
  }
  put(rows_[i], begin, end);
  ends_[i] = end;
  return i;
}

}  // namespace rnic::bench
