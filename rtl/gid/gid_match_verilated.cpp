// SPDX-License-Identifier: Apache-2.0
// Nothing but the verilated GID match, so that a test program can link another one in its place.
#include <Vgid_match.h>

#include "rtl/gid/gid_match_pins.h"
#include "rtl/harness/verilated_block.h"

namespace rnic::rtl {

twin_ptr<gid_match_pins> make_gid_match_rtl(std::uint32_t seed) {
  return std::make_unique<verilated_block<Vgid_match, gid_match_pins>>(seed);
}

}  // namespace rnic::rtl
