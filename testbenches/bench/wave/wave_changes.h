// SPDX-License-Identifier: Apache-2.0
// Changes of signals that are known before their time, or a little after that of others.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "model/sim/types.h"
#include "testbenches/bench/wave/wave_file.h"

namespace rnic::bench {

/// Puts values of signals in order of time and writes those that differ. Of several values of a signal at the same time
/// the one that was told last counts.
class wave_changes {
 public:
  /// Times of the file count from `origin`; written are those from `from` to before `until`, and at `from` what was
  /// then.
  wave_changes(wave_file& to, sim::time_ps origin, sim::time_ps from, sim::time_ps until);

  void set(sim::time_ps at, wave_file::signal s, std::uint64_t value) { put({at, ++told_, s, false, value}); }
  /// To what the signal is then.
  void add(sim::time_ps at, wave_file::signal s, std::uint64_t difference) { put({at, ++told_, s, true, difference}); }
  /// Nothing is told any more that is earlier.
  void write_before(sim::time_ps time);
  /// All that there is.
  void finish();

 private:
  struct change {
    sim::time_ps at = 0;
    std::uint64_t told = 0;
    wave_file::signal of = 0;
    bool adds = false;
    std::uint64_t value = 0;
    bool operator<(const change& c) const {  // for a heap whose first is the earliest
      return at != c.at ? at > c.at : told > c.told;
    }
  };
  struct state {
    std::uint64_t value = 0, written = 0;
    bool touched = false;
  };
  void put(const change& c) {
    if (c.at < until_) waiting_.push(c);
  }
  void write_at(sim::time_ps at);
  void begin_window();

  wave_file& to_;
  sim::time_ps origin_, from_, until_;
  std::priority_queue<change> waiting_;
  std::uint64_t told_ = 0;
  std::vector<state> states_;               // by signal
  std::vector<wave_file::signal> touched_;  // at one time
  bool in_window_ = false;
};

}  // namespace rnic::bench
