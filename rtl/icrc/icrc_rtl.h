// SPDX-License-Identifier: Apache-2.0
// rtl/icrc/icrc_engine.sv behind the interface of its model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "model/icrc/icrc_if.h"
#include "rtl/icrc/icrc_pins.h"

namespace rnic::rtl {

/// The engine of rtl/icrc/icrc_engine.sv with beats of 16 or 64 bytes, after reset; nullptr for other beats, of which
/// none is verilated. `seed` sets the values that registers have before it.
twin_ptr<icrc_pins> make_icrc_rtl(unsigned beat_bytes, std::uint32_t seed = 1);

/// A drop-in for icrc_model: the RTL, or lockstep of both (rtl/harness/lockstep.h).
class icrc_rtl final : public icrc::icrc_engine_if {
 public:
  icrc_rtl(twin_ptr<icrc_pins> engine, unsigned beat_bytes) : engine_(std::move(engine)), beat_bytes_(beat_bytes) {}
  unsigned beat_bytes() const override { return beat_bytes_; }
  icrc::icrc_outputs outputs() const override { return engine_->sample(); }
  icrc::icrc_outputs step(const icrc::icrc_beat& in, bool result_ready) override {
    return engine_->clock({in, result_ready, false});
  }
  void reset() override { engine_->clock({{}, false, true}); }
  result process(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length) override;

 private:
  twin_ptr<icrc_pins> engine_;
  unsigned beat_bytes_;
};

}  // namespace rnic::rtl
