// SPDX-License-Identifier: Apache-2.0
// Links a match whose encoder has a wrong bit into a program in the place of rtl/gid/gid_match_verilated.cpp.
#include <memory>

#include "testbenches/cosim/gid/planted_match.h"

namespace rnic::rtl {

twin_ptr<gid_match_pins> make_gid_match_rtl(std::uint32_t seed) {
  return std::make_unique<cosim::planted_match>(cosim::match_bug::wrong_index, seed);
}

}  // namespace rnic::rtl
