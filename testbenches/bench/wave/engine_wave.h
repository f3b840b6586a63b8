// SPDX-License-Identifier: Apache-2.0
// An engine and a pipeline as signals.
#pragma once

#include <cstdint>
#include <vector>

#include "model/sim/pipeline.h"
#include "model/sim/server.h"
#include "testbenches/bench/wave/channel_wave.h"
#include "testbenches/bench/wave/wave_file.h"

namespace rnic::bench {

/// An engine, which has one lane: several lanes of a block are several engines.
///
///   start     an operation begins in this cycle
///   interval  of that operation, and until the next one: cycles from its start to the first one in which another may
///             start; 0: that is known at its end (of memory, say), when busy falls
///   busy      an operation is under way
///   blocked   none is, work waits, and something else keeps it from starting
///
/// The engine tells of all this itself while it is watched: operations can queue up behind each other, so that counters
/// would not say in which cycle each one starts.
class engine_wave final : private sim::server_watcher_if {
 public:
  engine_wave(wave_file& to, sim::server& of);
  ~engine_wave() override { end(); }
  engine_wave(const engine_wave&) = delete;
  engine_wave& operator=(const engine_wave&) = delete;
  void clock_by(clock_wave& clock) { clock_ = &clock; }
  const sim::server& of() const { return engine_; }
  /// From now on it is watched, until end().
  void begin();
  void end() { engine_.watch(nullptr); }

 private:
  void started(sim::cycle_t from, sim::cycle_t interval) override;
  void ended(sim::cycle_t at) override { set(at, busy_, 0); }
  void blocked(sim::cycle_t from) override { set(from, blocked_, 1); }
  void unblocked(sim::cycle_t at) override { set(at, blocked_, 0); }
  void set(sim::cycle_t at, wave_file::signal s, std::uint64_t value) {
    clock_->changes().set(clock_->show(at), s, value);
  }

  sim::server& engine_;
  clock_wave* clock_ = nullptr;
  wave_file::signal start_, interval_, busy_, blocked_;
};

/// A pipeline that does not stall.
///
///   start           something enters in this cycle
///   interval        1: something may in each one; a constant, as the next two
///   cycles          from its first register to behind its last
///   <stage>.cycles  of one stage
///   <stage>.items   how much is in that stage, of what has entered since the waveform began
class pipeline_wave {
 public:
  pipeline_wave(wave_file& to, const sim::pipeline& of);
  void clock_by(clock_wave& clock) { clock_ = &clock; }
  const sim::pipeline& of() const { return pipeline_; }
  void begin() { entered_ = pipeline_.entered(); }
  /// An edge of the clock has been served.
  void look();

 private:
  struct stage {
    sim::cycle_t cycles = 0;
    wave_file::signal items = 0;
  };
  const sim::pipeline& pipeline_;
  clock_wave* clock_ = nullptr;
  wave_file::signal start_;
  std::vector<stage> stages_;
  std::uint64_t entered_ = 0;
};

}  // namespace rnic::bench
