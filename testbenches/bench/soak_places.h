// SPDX-License-Identifier: Apache-2.0
// How the parts of a soak lay out memory and name requests.
#pragma once

#include <cstdint>

#include "model/sim/types.h"

namespace rnic::bench {

inline constexpr std::uint32_t guard = 32;      ///< bytes on each side of a message
inline constexpr std::uint32_t most_skew = 16;  ///< messages begin at any alignment
inline constexpr unsigned most_sges = 3;
inline constexpr std::uint64_t receive_id = std::uint64_t{1} << 63;  ///< of a wr_id; flow in 62:40, message in 39:0
inline constexpr unsigned flow_shift = 40;
inline constexpr sim::time_ps look_interval = 1000 * sim::ps_per_us;  ///< for hangs

}  // namespace rnic::bench
