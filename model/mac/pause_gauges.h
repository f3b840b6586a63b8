// SPDX-License-Identifier: Apache-2.0
// The pauses of a port, for those who look on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "model/mac/flow_control.h"
#include "model/sim/gauge.h"
#include "model/sim/statistics.h"

namespace rnic::mac {

/// 0 or 1 by priority: whether the peer has stopped it here, and whether the peer was told to stop it.
class pause_gauges {
 public:
  void announce(const std::string& port, sim::statistics& to) {
    for (unsigned p = 0; p < 8; ++p) {
      to.add(port + " paused priority " + std::to_string(p), stopped_[p]);
      to.add(port + " peer paused priority " + std::to_string(p), stops_[p]);
    }
  }
  bool watched() const { return stopped_[0].watched(); }
  /// To be called when it may be different. A pause that has run out since ended at its own time.
  void look(const flow_control& flow, sim::time_ps now) {
    const std::uint8_t paused = flow.paused(now), told = flow.told();
    for (unsigned changes = paused ^ paused_; changes != 0; changes &= changes - 1) {
      const auto p = static_cast<unsigned>(__builtin_ctz(changes));
      const bool on = (paused >> p & 1) != 0;
      stopped_[p].tell(on, on ? now : std::min(now, std::max(flow.paused_until(p), since_[p])));
      since_[p] = now;
    }
    for (unsigned changes = told ^ told_; changes != 0; changes &= changes - 1) {
      const auto p = static_cast<unsigned>(__builtin_ctz(changes));
      stops_[p].tell(told >> p & 1, now);
    }
    paused_ = paused;
    told_ = told;
  }

 private:
  std::array<sim::gauge, 8> stopped_, stops_;
  std::array<sim::time_ps, 8> since_{};
  std::uint8_t paused_ = 0, told_ = 0;
};

}  // namespace rnic::mac
