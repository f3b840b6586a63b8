// SPDX-License-Identifier: Apache-2.0
// Numbers of the standard that the reference knows by itself.
#pragma once

#include <cstdint>

#include "model/abi/queue_entries.h"

namespace rnic::transport::random_test {

/// AETH syndromes (IBA 9.7.5.2.5 and 9.7.5.2.8): what is no ACK has bits 6:5 set so.
inline constexpr std::uint8_t kind_of_syndrome = 0x60, kind_ack = 0x00, kind_rnr = 0x20, nak_sequence = 0x60,
                              nak_invalid = 0x61, nak_access = 0x62, nak_operational = 0x63;
inline constexpr std::uint32_t longest = 1u << 31;  // message, IBA 9.7.7.1.2
inline constexpr std::uint32_t grh_bytes = 40;

constexpr std::uint8_t code(abi::cqe::error e) { return static_cast<std::uint8_t>(e); }

}  // namespace rnic::transport::random_test
