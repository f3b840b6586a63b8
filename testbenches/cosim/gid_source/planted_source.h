// SPDX-License-Identifier: Apache-2.0
// The look-up of sources of gid_source_planted.sv with one of its bugs.
#pragma once

#include <Vgid_source_planted.h>

#include <cstdint>

#include "rtl/gid_source/gid_source_pins.h"
#include "rtl/harness/verilated_block.h"

namespace rnic::cosim {

enum class source_bug : std::uint8_t { none, any_version, any_function, wrong_mac, never_own, any_vid };

class planted_source final : public rtl::verilated_block<Vgid_source_planted, rtl::gid_source_pins> {
 public:
  explicit planted_source(source_bug b, std::uint32_t seed = 1) : verilated_block(seed) {
    top().bug_i = static_cast<std::uint8_t>(b);
    reset();
  }
};

}  // namespace rnic::cosim
