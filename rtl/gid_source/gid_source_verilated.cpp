// SPDX-License-Identifier: Apache-2.0
// Nothing but the verilated look-up of sources, so that a test program can link another one in its place.
#include <Vgid_source.h>

#include "rtl/gid_source/gid_source_pins.h"
#include "rtl/harness/verilated_block.h"

namespace rnic::rtl {

twin_ptr<gid_source_pins> make_gid_source_rtl(std::uint32_t seed) {
  return std::make_unique<verilated_block<Vgid_source, gid_source_pins>>(seed);
}

}  // namespace rnic::rtl
