// SPDX-License-Identifier: Apache-2.0
// Counters by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
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
  /// Before counters are read, `settle` brings those up to date that are added to when something ends: a wait that
  /// lasts.
  void settle_by(std::function<void()> settle) { settles_.push_back(std::move(settle)); }
  const std::vector<std::pair<std::string, const std::uint64_t*>>& all() const {
    settle();
    return counters_;
  }
  /// `name`: the block's and, behind a space, what it is: "a.adapter.port1 egress frames". One in bytes ends with that,
  /// and that of a pause has the word paused.
  void add(std::string name, gauge& g) { gauges_.emplace_back(std::move(name), &g); }
  const std::vector<std::pair<std::string, gauge*>>& gauges() const { return gauges_; }
  /// Counters and gauges of a block that is not in use any more go, and their names are free.
  void forget(const std::string& block) {
    const auto erase = [](auto& from, const std::string& prefix) {
      from.erase(std::remove_if(from.begin(), from.end(),
                                [&](const auto& c) { return c.first.compare(0, prefix.size(), prefix) == 0; }),
                 from.end());
    };
    erase(counters_, block + ".");
    erase(gauges_, block + " ");
  }
  /// Value of a counter, or 0 when there is none of that name.
  std::uint64_t value(const std::string& name) const {
    settle();
    for (const auto& [n, c] : counters_)
      if (n == name) return *c;
    return 0;
  }
  /// Those of a block and its parts, by its full name: "a.adapter.requester" has "a.adapter.requester.packets".
  std::vector<std::pair<std::string, const std::uint64_t*>> of(const std::string& block) const {
    settle();
    std::vector<std::pair<std::string, const std::uint64_t*>> found;
    for (const auto& counter : counters_)
      if (counter.first.compare(0, block.size() + 1, block + ".") == 0) found.push_back(counter);
    return found;
  }

 private:
  void settle() const {
    for (const auto& s : settles_) s();
  }

  std::vector<std::pair<std::string, const std::uint64_t*>> counters_;
  std::vector<std::function<void()>> settles_;
  std::vector<std::pair<std::string, gauge*>> gauges_;
};

}  // namespace rnic::sim
