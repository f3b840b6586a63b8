// SPDX-License-Identifier: Apache-2.0
// Both directions of a port's flow control: what the peer forbids us, and what we have told the peer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "model/sim/statistics.h"
#include "model/sim/types.h"
#include "model/wire/pause.h"

namespace rnic::mac {

/// Pause state of a port. A part of the port: times are given to it.
class flow_control {
 public:
  struct counters {  ///< of one priority, in the order of the flow-control mailbox
    std::uint64_t rx_frames = 0, rx_duration_ps = 0, rx_transitions = 0;
    std::uint64_t tx_frames = 0, tx_duration_ps = 0, tx_transitions = 0;
  };

  explicit flow_control(std::uint32_t rate_mbps) : rate_mbps_(rate_mbps) {}

  // Settings (SET_PORT general).
  bool send_pause = false;
  bool obey_pause = false;
  std::uint8_t send_pfc = 0;
  std::uint8_t obey_pfc = 0;

  /// A pause frame was received. PAUSE stops all priorities, PFC those it names; time 0 lets them go on.
  void receive(const wire::pause_frame& p, sim::time_ps now);
  /// Priorities that may not send at `now`.
  std::uint8_t paused(sim::time_ps now) const { return now >= latest_until_ ? std::uint8_t{0} : paused_ones(now); }
  sim::time_ps paused_until(unsigned priority) const { return until_[priority]; }

  /// Priorities that the peer would have to stop, given those whose ingress buffer is above XOFF.
  std::uint8_t wanted(std::uint8_t above) const;
  /// Whether the peer has to be told something now: a change, or a pause that is about to run out.
  bool must_tell(std::uint8_t above, sim::time_ps now) const {
    return (send_pfc != 0 || send_pause) && news(above, now);
  }
  /// The peer will not be told anything as things are: pauses are not sent, and none is to be refreshed.
  bool is_silent() const { return send_pfc == 0 && !send_pause && refresh_at_ == ~sim::time_ps{0}; }
  /// Those that it was told to stop, and has not been told to go on.
  std::uint8_t told() const { return told_; }
  /// Time of the next refresh, or no time when nothing is paused.
  sim::time_ps refresh_at() const { return refresh_at_; }
  /// The frame to be sent, which must be sent at `now`; remembers what the peer knows then.
  wire::pause_frame tell(std::uint8_t above, sim::time_ps now, std::uint16_t quanta, unsigned refresh_percent);

  /// Link went down: nobody is paused any more.
  void reset(sim::time_ps now);
  const counters& of(unsigned priority) const { return counters_[priority]; }
  /// Durations are those up to `now` from then on, also of pauses that last.
  void settle(sim::time_ps now);
  void clear_counters(sim::time_ps now);
  /// Counters of each priority as "<prefix>.prio<n>.<counter>"; `now` gives the time of who reads them.
  void announce(const std::string& prefix, sim::statistics& to, std::function<sim::time_ps()> now);

 private:
  sim::time_ps quanta_time(std::uint64_t quanta) const {
    return quanta * wire::bits_per_quantum * sim::ps_per_us / rate_mbps_;
  }
  std::uint8_t paused_ones(sim::time_ps now) const;
  bool news(std::uint8_t above, sim::time_ps now) const;
  void hold(unsigned priority, std::uint16_t quanta, sim::time_ps now);
  void remember(std::uint8_t want, sim::time_ps now);

  std::uint32_t rate_mbps_;
  std::array<sim::time_ps, 8> until_{}, counted_{};  // a pause ends; its duration is counted up to here
  sim::time_ps latest_until_ = 0;
  std::uint8_t told_ = 0;
  std::array<sim::time_ps, 8> told_since_{};
  sim::time_ps refresh_at_ = ~sim::time_ps{0};
  std::array<counters, 8> counters_{};
};

}  // namespace rnic::mac
