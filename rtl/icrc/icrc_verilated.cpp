// SPDX-License-Identifier: Apache-2.0
// Nothing but the verilated engine, so that a test program can link another one in its place.
#include <Vicrc_engine_16.h>
#include <Vicrc_engine_64.h>

#include "rtl/harness/verilated_block.h"
#include "rtl/icrc/icrc_rtl.h"

namespace rnic::rtl {

twin_ptr<icrc_pins> make_icrc_rtl(unsigned beat_bytes, std::uint32_t seed) {
  if (beat_bytes == 16) return std::make_unique<verilated_block<Vicrc_engine_16, icrc_pins>>(seed);
  if (beat_bytes == 64) return std::make_unique<verilated_block<Vicrc_engine_64, icrc_pins>>(seed);
  return nullptr;
}

}  // namespace rnic::rtl
