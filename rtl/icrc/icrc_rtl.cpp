// SPDX-License-Identifier: Apache-2.0
#include "rtl/icrc/icrc_rtl.h"

#include <Vicrc_engine.h>

#include "rtl/icrc/icrc_rtl_core.h"

namespace rnic::rtl {

std::unique_ptr<icrc_rtl_if> make_icrc_rtl(std::uint32_t seed) {
  return std::make_unique<icrc_rtl_core<Vicrc_engine>>(seed);
}

}  // namespace rnic::rtl
