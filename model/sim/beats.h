// SPDX-License-Identifier: Apache-2.0
// Bytes as beats of a datapath.
#pragma once

#include <cstdint>

#include "model/sim/seldom.h"

namespace rnic::sim {

/// n / by. The widths and units of hardware are powers of two, for which there is no division; others may be set.
constexpr std::uint64_t whole(std::uint64_t n, std::uint64_t by) {
  return seldom((by & (by - 1)) != 0) ? n / by : n >> __builtin_ctzll(by);
}

/// Beats, or other units of `width` bytes, that `bytes` take: 0 for none.
constexpr std::uint64_t beats_of(std::uint64_t bytes, std::uint64_t width) { return whole(bytes + width - 1, width); }

}  // namespace rnic::sim
