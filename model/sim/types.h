// SPDX-License-Identifier: Apache-2.0
// The integer types of time.
#pragma once

#include <cstdint>

namespace rnic::sim {

/// Index of an edge of one clock domain. Edge 0 is at the domain's phase.
using cycle_t = std::uint64_t;

/// Simulated time in picoseconds, the kernel's resolution. Never a floating-point value (law 4).
using time_ps = std::uint64_t;

inline constexpr cycle_t never = ~cycle_t{0};
inline constexpr time_ps ps_per_ns = 1000;
inline constexpr time_ps ps_per_us = 1'000'000;
inline constexpr time_ps ps_per_s = 1'000'000'000'000;

}  // namespace rnic::sim
