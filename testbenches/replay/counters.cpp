// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/counters.h"

#include <algorithm>
#include <utility>

namespace rnic::replay {

std::uint64_t after_atomic(const wire::packet& request, std::uint64_t found) {
  if (wire::operation_of(request.bth.opcode) == wire::operation::fetch_add) return found + request.atomic.swap_add;
  return found == request.atomic.compare ? request.atomic.swap_add : found;
}

execution_order order_of_execution(std::vector<executed_atomic> atomics) {
  std::sort(atomics.begin(), atomics.end(), [](const executed_atomic& a, const executed_atomic& b) {
    return a.to != b.to ? a.to < b.to : a.from < b.from;
  });
  std::vector<std::uint64_t> earliest(atomics.size());  // request of this one and those behind it
  std::uint64_t least = ~std::uint64_t{0};
  for (std::size_t i = atomics.size(); i-- > 0;) earliest[i] = least = std::min(least, atomics[i].from);
  execution_order order;
  std::vector<bool> done(atomics.size(), false);
  std::uint64_t there = 0;
  for (std::size_t first = 0; first < atomics.size();) {
    if (done[first]) {
      ++first;
      continue;
    }
    std::size_t next = first;
    bool fits = false;
    // What was asked for behind the answer of another comes behind it.
    for (std::size_t i = first; i < atomics.size() && earliest[i] < atomics[first].to && !fits; ++i) {
      if (done[i] || atomics[i].from >= atomics[first].to || order.atomics.empty()) continue;
      fits = atomics[i].found == there;
      if (fits) next = i;
    }
    done[next] = true;
    order.jumps.push_back(!fits);
    order.jump_count += fits ? 0 : 1;
    there = after_atomic(*atomics[next].request, atomics[next].found);
    order.atomics.push_back(atomics[next]);
  }
  return order;
}

}  // namespace rnic::replay
