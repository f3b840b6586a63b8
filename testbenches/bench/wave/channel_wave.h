// SPDX-License-Identifier: Apache-2.0
// A channel and a clock as signals.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/sim/channel.h"
#include "model/sim/channel_look.h"
#include "model/sim/clock_domain.h"
#include "testbenches/bench/wave/wave_changes.h"
#include "testbenches/bench/wave/wave_file.h"

namespace rnic::bench {

/// A clock domain in a waveform: `clk` and `cycle`, the number of the edge. The clock is shown in the cycles in which
/// the domain serves a block, or a signal changes; else it stands low, as a gated one.
class clock_wave {
 public:
  clock_wave(wave_file& to, sim::clock_domain& clock);
  /// The waveform begins in the cycle in which the clock is.
  void begin(wave_changes& to);

  sim::clock_domain& clock() const { return clock_; }
  wave_changes& changes() const { return *changes_; }
  /// The cycle is shown; returns when it begins.
  sim::time_ps show(sim::cycle_t cycle);
  /// `s` has this value in the cycle, and is 0 in the next one unless that is told after this.
  void pulse(sim::cycle_t cycle, wave_file::signal s, std::uint64_t value);

 private:
  sim::clock_domain& clock_;
  wave_file::signal clk_, cycle_;
  wave_changes* changes_ = nullptr;
  sim::cycle_t shown_ = sim::never;  // the last one
};

/// A channel as an RTL designer has it, its signals as they are in a cycle, from one edge to the next:
///
///   ready      the producer may push            valid      the consumer sees the item in front, whose fields follow
///   push, pop  items that enter or leave        occupancy  items in it, visible or not, at the beginning of the cycle
///   fields     of the item in front (sim::item_fields), from the cycle on in which it is valid
///   depth      items that it holds at most; width: that enter, and that leave, in a cycle at most. Both are declared
///
/// What is pushed or popped in a cycle changes the other signals at the next edge. An asynchronous FIFO has ready and
/// push by its producer's clock, and valid, pop and the fields by its consumer's.
class channel_wave final : private sim::channel_reader_if {
 public:
  /// Adds its signals and watches the channel from now on.
  channel_wave(wave_file& to, sim::channel& of);
  /// Clocks of both ends.
  void clock_by(clock_wave& producer, clock_wave& consumer);
  void begin();
  /// An edge of one of the clocks has been served.
  void look();

  const sim::channel& of() const { return channel_; }
  const sim::clocked_block* producer() const { return producer_; }
  const sim::clocked_block* consumer() const { return consumer_; }

 private:
  void ends(const sim::clocked_block* producer, const sim::clocked_block* consumer) override;
  void field(const char* group, const char* name, unsigned bits, std::uint64_t value) override;
  void count(clock_wave& by, wave_file::signal pulse, std::uint64_t items, bool enter);
  void show_ready(const sim::channel_state& s);
  void show_front(const sim::channel_state& s);

  wave_file* adding_;  // nullptr: fields are read
  sim::channel& channel_;
  const sim::clocked_block *producer_ = nullptr, *consumer_ = nullptr;
  clock_wave *push_clock_ = nullptr, *pop_clock_ = nullptr;
  wave_file::signal ready_, valid_, push_, pop_, occupancy_;
  std::vector<wave_file::signal> fields_;
  std::size_t next_field_ = 0;
  sim::time_ps field_time_ = 0;
  sim::channel_state known_;
};

}  // namespace rnic::bench
