// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/lanes.h"

#include <algorithm>

namespace rnic::bench {

bool lanes::put(row& r, sim::time_ps begin, sim::time_ps end) {
  if (begin < r.from) return false;
  if (r.taken.empty() || r.taken.back().end <= begin) {
    r.taken.push_back({begin, end});
  } else {
    const auto behind =
        std::partition_point(r.taken.begin(), r.taken.end(), [begin](const slice& s) { return s.end <= begin; });
    if (behind != r.taken.end() && behind->begin < end) return false;
    r.taken.insert(behind, {begin, end});
  }
  if (r.taken.size() > remembered) {
    r.from = r.taken.front().end;
    r.taken.pop_front();
  }
  return true;
}

std::size_t lanes::place(sim::time_ps begin, sim::time_ps end) {
  for (std::size_t i = 0; i < rows_.size(); ++i)
    if (put(rows_[i], begin, end)) return i;
  if (rows_.size() == most) return most;
  rows_.emplace_back();
  put(rows_.back(), begin, end);
  return rows_.size() - 1;
}

}  // namespace rnic::bench
