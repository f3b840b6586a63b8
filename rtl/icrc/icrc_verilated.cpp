// SPDX-License-Identifier: Apache-2.0
// Nothing but the verilated engine, so that a test program can link another one in its place.
#include <Vicrc_engine.h>

#include "rtl/harness/verilated_block.h"
#include "rtl/icrc/icrc_rtl.h"

namespace rnic::rtl {

twin_ptr<icrc_pins> make_icrc_rtl(std::uint32_t seed) {
  return std::make_unique<verilated_block<Vicrc_engine, icrc_pins>>(seed);
}

}  // namespace rnic::rtl
