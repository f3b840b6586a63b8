// SPDX-License-Identifier: Apache-2.0
// A clock: period, phase and the blocks that it ticks.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "model/sim/types.h"

namespace rnic::sim {

class clocked_block;
class timebase;

/// Period of a clock as a fraction of picoseconds: edge k is at phase_ps + floor(k * num_ps / den).
struct clock_period {
  std::uint64_t num_ps = 1000;
  std::uint64_t den = 1;
  std::uint64_t phase_ps = 0;
  static clock_period from_khz(std::uint64_t khz) { return {1'000'000'000, khz, 0}; }
};

/// Ticks blocks only at edges for which they asked; costs nothing while all of them sleep. At most 64 blocks.
class clock_domain {
 public:
  clock_domain(std::string name, timebase& base, clock_period period);
  ~clock_domain();
  clock_domain(const clock_domain&) = delete;
  clock_domain& operator=(const clock_domain&) = delete;

  const std::string& name() const { return name_; }
  timebase& base() const { return base_; }

  cycle_t now() const;
  time_ps edge_time(cycle_t k) const { return period_.phase_ps + k * period_.num_ps / period_.den; }
  /// The first edge that is not before `t`.
  cycle_t edge_at_or_after(time_ps t) const;
  /// Whole cycles that cover `duration`, rounded up.
  cycle_t cycles(time_ps duration) const { return (duration * period_.den + period_.num_ps - 1) / period_.num_ps; }

  /// Edges at which at least one block was ticked, and ticks in all.
  std::uint64_t active_edges() const { return active_edges_; }
  std::uint64_t ticks() const { return ticks_; }

 private:
  friend class clocked_block;
  friend class timebase;
  static constexpr unsigned max_blocks = 64;
  static constexpr unsigned wheel_size = 4096;

  void add(clocked_block& block);
  void remove(clocked_block& block);
  void wake_at(unsigned id, cycle_t when);
  void serve(time_ps now);  // called by the timebase at next_edge_ps_
  void find_next();

  std::string name_;
  timebase& base_;
  clock_period period_;
  std::array<clocked_block*, max_blocks> blocks_{};
  std::uint64_t all_ = 0;                            // mask of registered blocks
  std::array<std::uint64_t, wheel_size> wheel_{};      // blocks to tick, by edge modulo the size
  std::array<std::uint64_t, wheel_size / 64> used_{};  // which wheel slots are not empty, and
  std::uint64_t used_words_ = 0;                       // which words of used_ are not zero
  std::array<cycle_t, max_blocks> far_;              // earliest wake-up beyond the wheel, per block
  cycle_t far_min_ = never;
  cycle_t served_ = never;  // last edge served or passed in sleep; `never` is the edge before edge 0
  bool serving_ = false;
  cycle_t next_ = never;
  time_ps next_ps_ = ~time_ps{0};
  std::uint64_t active_edges_ = 0;
  std::uint64_t ticks_ = 0;
};

}  // namespace rnic::sim
