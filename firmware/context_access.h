// SPDX-License-Identifier: Apache-2.0
// Hardware contexts in ICM as structures.
#pragma once

#include <type_traits>

#include "firmware/firmware.h"

namespace rnic::firmware {

template <class Context>
bool firmware::load_context(icm::table t, std::uint32_t index, Context& c) {
  static_assert(std::is_trivially_copyable_v<Context>);
  return chip_.hw().icm_read(entry(t, index), &c, sizeof c);
}

template <class Context>
bool firmware::store_context(icm::table t, std::uint32_t index, const Context& c) {
  static_assert(std::is_trivially_copyable_v<Context>);
  return chip_.hw().icm_write(entry(t, index), &c, sizeof c);
}

}  // namespace rnic::firmware
