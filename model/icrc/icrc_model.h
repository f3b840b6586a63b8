// SPDX-License-Identifier: Apache-2.0
// The ICRC engine as C++, equal to rtl/icrc/icrc_engine.sv in every cycle.
#pragma once

#include "model/icrc/icrc_if.h"

namespace rnic::icrc {

class icrc_model final : public icrc_engine_if {
 public:
  /// step() is for beats of a power of two up to widest_beat, process() for any.
  explicit icrc_model(unsigned beat_bytes) : beat_bytes_(beat_bytes) {}
  unsigned beat_bytes() const override { return beat_bytes_; }
  bool at_once() const override { return true; }
  icrc_outputs outputs() const override { return {!s_.masked_valid || !blocked(), s_.result_valid, s_.result}; }
  icrc_outputs step(const icrc_beat& in, bool result_ready) override;
  void reset() override { s_ = state{}; }
  result process(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length) override;

 private:
  /// CRC of the eight bytes of ones that stand for a local route header, as ISA-L passes it on (complemented).
  static constexpr std::uint32_t seed = ~0xdebb20e3U;

  struct state {
    bool masked_valid = false;  // stage 1: a beat with its variant fields set to ones
    icrc_beat masked;
    unsigned offset = 0;       // of the packet's next beat; stays where no variant field is any more
    std::uint32_t crc = seed;  // stage 2
    bool done = false;
    bool result_valid = false;  // stage 3
    std::uint32_t result = 0;
  };
  bool blocked() const { return s_.done && s_.result_valid; }
  void take(const icrc_beat& in);

  unsigned beat_bytes_;
  state s_;
};

}  // namespace rnic::icrc
