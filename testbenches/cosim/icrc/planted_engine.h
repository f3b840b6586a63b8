// SPDX-License-Identifier: Apache-2.0
// The engine of icrc_planted.sv with one of its bugs.
#pragma once

#include <Vicrc_planted.h>

#include <cstdint>

#include "rtl/harness/verilated_block.h"
#include "rtl/icrc/icrc_pins.h"

namespace rnic::cosim {

enum class bug : std::uint8_t { none, wrong_byte_masked, wrong_crc_for_13_bytes, ready_too_late };

class planted_engine final : public rtl::verilated_block<Vicrc_planted, rtl::icrc_pins> {
 public:
  explicit planted_engine(bug b, std::uint32_t seed = 1) : verilated_block(seed) {
    top().bug_i = static_cast<std::uint8_t>(b);
    reset();
  }
};

}  // namespace rnic::cosim
