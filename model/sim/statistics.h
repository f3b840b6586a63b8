// SPDX-License-Identifier: Apache-2.0
// Counters by name.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/gauge.h"

namespace rnic::sim {

/// Register of counters: blocks own plain integers and announce them here once; readers see all by name, in the
/// order of announcement.
class statistics {
 public:
  void add(std::string name, const std::uint64_t& counter) { counters_.emplace_back(std::move(name), &counter); }
  const std::vector<std::pair<std::string, const std::uint64_t*>>& all() const { return counters_; }
  /// `name`: the block's and, behind a space, what it is: "a.adapter.port1 egress frames". One in bytes ends with that,
  /// and that of a pause has the word paused.
  void add(std::string name, gauge& g) { gauges_.emplace_back(std::move(name), &g); }
  const std::vector<std::pair<std::string, gauge*>>& gauges() const { return gauges_; }
  /// Value of a counter, or 0 when there is none of that name.
  std::uint64_t value(const std::string& name) const {
    for (const auto& [n, c] : counters_)
      if (n == name) return *c;
    return 0;
  }
  /// Those of a block and its parts, by its full name: "a.adapter.requester" has "a.adapter.requester.packets".
  std::vector<std::pair<std::string, const std::uint64_t*>> of(const std::string& block) const {
    std::vector<std::pair<std::string, const std::uint64_t*>> found;
    for (const auto& counter : counters_)
      if (counter.first.compare(0, block.size() + 1, block + ".") == 0) found.push_back(counter);
    return found;
  }

 private:
  std::vector<std::pair<std::string, const std::uint64_t*>> counters_;
  std::vector<std::pair<std::string, gauge*>> gauges_;
};

}  // namespace rnic::sim
