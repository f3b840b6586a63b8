// SPDX-License-Identifier: Apache-2.0
// How long a receiver that is not ready asks its peer to wait (IBA 9.7.5.2.8, table 46; adapter data plane C.5).
#pragma once

#include <array>
#include <cstdint>

namespace rnic::transport {

/// By the code in an RNR NAK's syndrome, in units of 10 us.
inline constexpr std::array<std::uint32_t, 32> rnr_timer_10us = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

}  // namespace rnic::transport
