// SPDX-License-Identifier: Apache-2.0
// What hardly ever happens.
#pragma once

namespace rnic::sim {

/// `condition`, which hardly ever holds: the code for it lies apart from that for the usual case, and costs no line of
/// the instruction cache there. A message goes through more code than that cache holds, so it counts what lies between.
[[gnu::always_inline]] constexpr bool seldom(bool condition) { return __builtin_expect(condition, false); }

}  // namespace rnic::sim
