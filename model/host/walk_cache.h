// SPDX-License-Identifier: Apache-2.0
// Entries of the upper levels of the IOMMU's tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/sim/types.h"

namespace rnic::host {

/// Fully associative, the entry used longest ago leaves. An entry is there from the end of the access that read it on.
class walk_cache {
 public:
  explicit walk_cache(unsigned entries) : entries_(entries) {}

  /// Whether the entry `of` of a table of `level` is there at edge `now`; it has been used then.
  bool use(unsigned level, std::uint64_t of, sim::cycle_t now) {
    entry* const e = find(level, of);
    if (e == nullptr || e->filled > now) return false;
    e->used = now;
    return true;
  }
  /// It will have been read at edge `at`.
  void fill(unsigned level, std::uint64_t of, sim::cycle_t at) {
    if (find(level, of) != nullptr) return;  // another walk reads it
    const auto older = [](const entry& a, const entry& b) { return a.used < b.used; };
    *std::min_element(entries_.begin(), entries_.end(), older) = {of, at, at, level};
  }

 private:
  struct entry {
    std::uint64_t of = 0;
    sim::cycle_t filled = 0, used = 0;
    unsigned level = 0;  // 0: none
  };
  entry* find(unsigned level, std::uint64_t of) {
    const auto same = [=](const entry& e) { return e.level == level && e.of == of; };
    const auto found = std::find_if(entries_.begin(), entries_.end(), same);
    return found == entries_.end() ? nullptr : &*found;
  }
  std::vector<entry> entries_;
};

}  // namespace rnic::host
