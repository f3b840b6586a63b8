// SPDX-License-Identifier: Apache-2.0
// End-to-end flow control: how many receives a responder says it has (IBA 9.7.7.2; codes: adapter data plane C.5).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace rnic::transport {

inline constexpr std::uint8_t credits_unlimited = 0x1f;  ///< code of a responder that does not count
inline constexpr std::array<std::uint16_t, 31> credit_counts = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

/// The code of the largest count that is not above `receives`.
inline std::uint8_t credit_code(std::uint16_t receives) {
  const auto above = std::upper_bound(credit_counts.begin(), credit_counts.end(), receives);
  return static_cast<std::uint8_t>(above - credit_counts.begin() - 1);
}

}  // namespace rnic::transport
