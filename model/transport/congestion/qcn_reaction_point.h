// SPDX-License-Identifier: Apache-2.0
// A reaction point of quantised congestion notification: the rate of one flow after CNMs.
#pragma once

#include <cstdint>

#include "model/sim/types.h"
#include "model/transport/congestion/qcn_group.h"

namespace rnic::transport {

/// The rate control of IEEE 802.1Q clauses 32.13 to 32.15. Has no clock: a timer that has run out is taken account of
/// when somebody asks, so a flow costs nothing while it neither sends nor is told anything. Times that are given must
/// not go back. Rates are integers in kb/s.
///
/// A CNM takes feedback / 2^gd of the current rate; what that was is the target from then on if bytes have brought an
/// increase since the CNM before. Increases come by bytes sent and by time, each with stages of its own, and move the
/// current rate half the way to the target: in fast recovery (both below the threshold) to where that is, then with the
/// target moved by R_AI, and when both have reached the threshold by R_HAI as often as stages have passed since. Behind
/// the threshold bytes and time of a stage are halves. When the current rate is the highest one, the reaction point has
/// done its work.
class qcn_reaction_point {
 public:
  /// Of a flow that was not limited. `line_kbps`: what its port can send.
  void begin(const qcn_group& g, std::uint32_t line_kbps, sim::time_ps now);
  /// A CNM with this feedback (1 to 63).
  void notified(const qcn_group& g, std::uint8_t feedback, sim::time_ps now);
  /// `bytes` of the flow start on the line.
  void sent(const qcn_group& g, std::uint32_t bytes, sim::time_ps now);
  /// All that time has brought up to `now`.
  void advance(const qcn_group& g, sim::time_ps now);

  /// As of the last call of any of these.
  std::uint32_t rate_kbps() const { return current_; }
  std::uint32_t target_kbps() const { return target_; }
  /// The flow has its highest rate again, since ended_at().
  bool ended() const { return ended_; }
  sim::time_ps ended_at() const { return ended_at_; }

 private:
  static constexpr sim::time_ps never = ~sim::time_ps{0};
  void increase(const qcn_group& g, sim::time_ps at);
  sim::time_ps period(const qcn_group& g) const;
  std::uint64_t stage_bytes(const qcn_group& g) const;

  bool ended_ = true;
  std::uint32_t byte_stage_ = 0, time_stage_ = 0;
  std::uint32_t current_ = 0, target_ = 0, max_ = 0;
  std::uint64_t bytes_left_ = 0;        // of the byte counter's stage
  sim::time_ps next_increase_ = never;  // by time
  sim::time_ps ended_at_ = 0;
};

}  // namespace rnic::transport
