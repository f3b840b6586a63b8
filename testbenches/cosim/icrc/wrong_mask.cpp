// SPDX-License-Identifier: Apache-2.0
// Links an engine with a wrong mask into a program in the place of rtl/icrc/icrc_verilated.cpp.
#include <memory>

#include "rtl/icrc/icrc_rtl.h"
#include "testbenches/cosim/icrc/planted_engine.h"

namespace rnic::rtl {

twin_ptr<icrc_pins> make_icrc_rtl(unsigned beat_bytes, std::uint32_t seed) {
  if (beat_bytes != 16) return nullptr;
  return std::make_unique<cosim::planted_engine>(cosim::bug::wrong_byte_masked, seed);
}

}  // namespace rnic::rtl
