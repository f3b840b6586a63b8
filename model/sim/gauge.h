// SPDX-License-Identifier: Apache-2.0
// Quantities that go up and down, for those who look on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/sim/seldom.h"
#include "model/sim/types.h"

namespace rnic::sim {

class gauge_watcher_if {
 public:
  virtual ~gauge_watcher_if() = default;
  /// `gauge`: number that it was given to watch. Times of one gauge are in order.
  virtual void changed(std::size_t gauge, std::uint64_t value, time_ps at) = 0;
};

/// A block announces its gauges (sim::statistics), and tells of them at the end of a tick, if one is watched: of the
/// block's gauges all are or none. Nobody else sees a difference.
class gauge {
 public:
  void watch(gauge_watcher_if& by, std::size_t number) {
    by_ = &by;
    number_ = number;
    by.changed(number, value_, 0);
  }
  bool watched() const { return seldom(by_ != nullptr); }
  /// Of one that is watched.
  void tell(std::uint64_t value, time_ps at) {
    if (value == value_) return;
    value_ = value;
    by_->changed(number_, value, at);
  }

 private:
  gauge_watcher_if* by_ = nullptr;
  std::size_t number_ = 0;
  std::uint64_t value_ = 0;
};

}  // namespace rnic::sim
