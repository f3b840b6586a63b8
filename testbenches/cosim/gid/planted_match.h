// SPDX-License-Identifier: Apache-2.0
// The GID match of gid_planted.sv with one of its bugs.
#pragma once

#include <Vgid_planted.h>

#include <cstdint>

#include "rtl/gid/gid_match_pins.h"
#include "rtl/harness/verilated_block.h"

namespace rnic::cosim {

enum class match_bug : std::uint8_t { none, short_compare, any_version, wrong_index };

class planted_match final : public rtl::verilated_block<Vgid_planted, rtl::gid_match_pins> {
 public:
  explicit planted_match(match_bug b, std::uint32_t seed = 1) : verilated_block(seed) {
    top().bug_i = static_cast<std::uint8_t>(b);
    reset();
  }
};

}  // namespace rnic::cosim
