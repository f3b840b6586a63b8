// SPDX-License-Identifier: Apache-2.0
// The invariant CRC (IBA volume 1, section 7.8.1; annex A17 for RoCE v2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/wire/packet.h"

namespace rnic::wire {

/// ICRC of a packet whose layout fields are filled (decode or build); the word to be stored little-endian at
/// icrc_offset. Uses ISA-L.
std::uint32_t icrc(const std::uint8_t* frame, const packet& p);

/// The same from the place of the L3 header alone: `l3` points to GRH/IPv4/IPv6, `length` is from there to before the
/// ICRC. For blocks that stream bytes.
std::uint32_t icrc(encapsulation encap, const std::uint8_t* l3, std::size_t length);

/// CRC-32 of IEEE 802.3 over a frame without FCS, as the word to be sent little-endian.
std::uint32_t ethernet_fcs(const std::uint8_t* frame, std::size_t length);

}  // namespace rnic::wire
