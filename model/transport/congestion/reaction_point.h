// SPDX-License-Identifier: Apache-2.0
// DCQCN's reaction point: the rate of one flow after CNPs.
#pragma once

#include <cstdint>

#include "model/sim/types.h"
#include "model/transport/congestion/config.h"

namespace rnic::transport {

/// The algorithm of Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM'15), with the parameters
/// that adapters publish (adapter data plane E.8). Has no clock: timers that have run out are taken account of, in
/// their order, when somebody asks, so a flow costs nothing while it neither sends nor is told anything. Times that are
/// given must not go back.
///
/// Rates are integers in kb/s, alpha is a fraction of 2^30.
class reaction_point {
 public:
  static constexpr std::uint32_t alpha_one = 1u << 30;

  /// A CNP for the flow has arrived. `line_kbps`: what an unlimited flow sends at.
  void notified(const reaction_config& c, std::uint32_t line_kbps, sim::time_ps now);
  /// `bytes` of the flow start on the line.
  void sent(const reaction_config& c, std::uint32_t bytes, sim::time_ps now);
  /// Rate at `now`.
  std::uint32_t rate_kbps(const reaction_config& c, sim::time_ps now) {
    advance(c, now);
    return current_;
  }
  /// Whether there ever was a CNP; else there is no limit.
  bool active() const { return active_; }
  std::uint32_t target_kbps() const { return target_; }
  std::uint32_t alpha() const { return alpha_; }

 private:
  static constexpr sim::time_ps none = ~sim::time_ps{0};
  void advance(const reaction_config& c, sim::time_ps now);
  void rest_until(const reaction_config& c, sim::time_ps end);
  void decay(const reaction_config& c, sim::time_ps now);
  void begin(const reaction_config& c, std::uint32_t line_kbps, sim::time_ps now);
  void reduce(const reaction_config& c, sim::time_ps at);
  void restart(const reaction_config& c, sim::time_ps at);
  void increase(const reaction_config& c);

  bool active_ = false;
  bool by_bytes_ = false, by_timer_ = false;  // increased so since the last reduction
  std::uint16_t time_stage_ = 0, byte_stage_ = 0;
  std::uint32_t current_ = 0, target_ = 0, max_ = 0;
  std::uint32_t alpha_ = 0;
  std::uint64_t bytes_left_ = 0;  // until the next increase by volume
  sim::time_ps next_increase_ = 0, next_decay_ = 0;
  sim::time_ps reduced_ = 0;       // time of the last reduction
  sim::time_ps reduce_at_ = none;  // end of its period, at which a CNP acts
};

}  // namespace rnic::transport
