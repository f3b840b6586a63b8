// SPDX-License-Identifier: Apache-2.0
// Simulated time in step with the time of the machine.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "model/sim/timebase.h"

namespace rnic::serve {

inline constexpr sim::time_ps for_ever = ~sim::time_ps{0};  ///< as a limit of time: none

/// Runs simulation and sockets in turns, in one thread of the operating system: the simulation up to the present
/// moment, then sleep until a socket has something or the next event of the simulation is due. Simulated time is never
/// ahead of real time. Where the machine is too slow it falls behind, goes on as fast as it can, and says by how much;
/// time by which it is behind for too long is lost, as if the machine had stood still: to simulate it in haste would
/// let every timer expire before the peer's answers are heard. Sockets have a share of each turn, whatever comes in.
class real_time {
 public:
  /// Being behind by more than this counts as lagging: a thousand times what a sleep comes late on an idle machine.
  static constexpr sim::time_ps tolerated_ps = sim::ps_per_us * 1000;

  static constexpr sim::time_ps most_behind_ps = sim::ps_per_us * 10'000;  ///< less than a time-out of the tools

  static constexpr std::chrono::milliseconds socket_share{1};  ///< about what a turn of a busy simulation takes

  struct lag {
    std::uint64_t max_us = 0;      ///< by how much the simulation was ever behind
    std::uint64_t lagging_us = 0;  ///< real time during which it was behind by more than tolerated_ps
  };

  real_time(sim::timebase& base, boost::asio::io_context& io);

  /// From this moment on the clocks go together. Until then the simulation runs as fast as it can.
  void start_clock();
  /// Simulated time of this moment; the present of the simulation before start_clock().
  sim::time_ps present() const;
  /// To be called from a handler that is about to have an effect at once: where nothing is due in the simulation, it
  /// becomes this moment's. Else the effect would have the time at which the simulation came to rest.
  void catch_up();
  /// To be called from a handler or a process: run() returns after this turn.
  void stop() { stopped_ = true; }
  /// Until stop(). What a process throws into the kernel comes out here.
  void run();
  const lag& behind() const { return lag_; }
  /// Calls it whenever time is lost, with the microseconds.
  void when_lost(std::function<void(std::uint64_t us)> tell) { tell_lost_ = std::move(tell); }
  std::uint64_t lost_us() const { return lost_ / sim::ps_per_us; }
  /// Real time since start_clock(), in microseconds.
  std::uint64_t elapsed_us() const;
  /// Simulated time since then.
  std::uint64_t simulated_us() const { return paced_ ? (base_.now_ps() - origin_) / sim::ps_per_us : 0; }

 private:
  using clock = std::chrono::steady_clock;
  void turn();
  void serve_sockets();
  void lose_time();
  void advance(sim::time_ps to);
  void sleep_until(sim::time_ps next);

  sim::timebase& base_;
  boost::asio::io_context& io_;
  boost::asio::steady_timer timer_;
  clock::time_point armed_for_{};
  bool armed_ = false;
  bool paced_ = false;
  bool stopped_ = false;
  clock::time_point real_origin_{};
  sim::time_ps origin_ = 0;
  sim::time_ps lost_ = 0;
  clock::time_point last_turn_{};
  bool was_lagging_ = false;
  lag lag_;
  std::function<void(std::uint64_t us)> tell_lost_;
};

}  // namespace rnic::serve
