// SPDX-License-Identifier: Apache-2.0
// Links a look-up that gives a wrong bit of the MAC into a program in the place of
// rtl/gid_source/gid_source_verilated.cpp.
#include <memory>

#include "testbenches/cosim/gid_source/planted_source.h"

namespace rnic::rtl {

twin_ptr<gid_source_pins> make_gid_source_rtl(std::uint32_t seed) {
  return std::make_unique<cosim::planted_source>(cosim::source_bug::wrong_mac, seed);
}

}  // namespace rnic::rtl
