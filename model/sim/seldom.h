// SPDX-License-Identifier: Apache-2.0
// What hardly ever happens, and what nearly always does.
#pragma once

namespace rnic::sim {

/// `condition`, which hardly ever holds: the code for it lies apart from that for the usual case, and costs no line of
/// the instruction cache there. A message goes through more code than that cache holds, so it counts what lies between.
[[gnu::always_inline]] constexpr bool seldom(bool condition) { return __builtin_expect(condition, false); }

/// `condition`, which nearly always holds: the same, where the usual case is that a function returns at once. The
/// compiler takes an early return for the exception.
[[gnu::always_inline]] constexpr bool mostly(bool condition) { return __builtin_expect(condition, true); }

}  // namespace rnic::sim
