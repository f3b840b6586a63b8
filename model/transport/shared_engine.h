// SPDX-License-Identifier: Apache-2.0
// READs and atomics as requester and as responder take turns on one engine of the chip (calibration 5: measured rates
// of adapters that do both at once); WRITEs and SENDs do not.
#pragma once

#include <cstdint>

#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"

namespace rnic::transport {

/// One half tells the other for how long it has taken the engine.
struct engine_use {
  std::uint32_t cycles = 0;
};

/// One half's view of the engine. What the other half takes in the same cycle is added behind: both go on, and the
/// engine is late by the sum. Unbound, the half has an engine of its own.
class shared_engine {
 public:
  explicit shared_engine(sim::clocked_block& owner) : told(owner), heard(owner), engine_(owner, "read_engine") {}
  sim::fifo_out<engine_use> told;
  sim::fifo_in<engine_use> heard;

  /// At the beginning of the owner's tick.
  void work() {
    if (!heard.bound()) return;
    if (heard.can_pop()) occupy(heard.pop().cycles);
    tell();
  }
  bool is_free() const { return engine_.is_free(); }
  sim::cycle_t free_at() const { return engine_.free_at(); }
  void use(std::uint32_t cycles) {
    occupy(cycles);
    if (!told.bound()) return;
    untold_ += cycles;
    tell();
  }

 private:
  void occupy(std::uint32_t cycles) { engine_.append(cycles); }
  void tell() {
    if (untold_ == 0 || !told.claim()) return;
    told.push({untold_});
    untold_ = 0;
  }
  sim::server engine_;
  std::uint32_t untold_ = 0;
};

}  // namespace rnic::transport
