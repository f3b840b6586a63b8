// SPDX-License-Identifier: Apache-2.0
// Changes to the bytes of a frame on its way.
#pragma once

#include <cstdint>

#include "model/fabric/fault_plan.h"
#include "model/payload/frame.h"

namespace rnic::fabric {

/// Sets the ECN field of a RoCE v2 packet to CE, as a switch does (congestion_marker.h). False for RoCE v1, which has
/// none. `p`: the decoded frame.
bool mark_congestion(payload::frame& f, const wire::packet& p);

/// Where bits are in a frame: counted from the most significant bit of DMAC's first byte.
struct bit_range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;  ///< 0: the frame has no such thing
};
/// `p`: the decoded frame, nullptr when it is not RoCE.
bit_range find_part(const payload::frame& f, const wire::packet* p, frame_part part);
bit_range find_field(const wire::packet& p, header_field field);

void flip_bit(payload::frame& f, std::uint32_t bit);
/// Writes the low `range.count` bits of `value`, most significant first. True when that changed anything.
bool set_bits(payload::frame& f, bit_range range, std::uint64_t value);

/// Computes ICRC (only of RoCE, by the layout of `p`, which is that before the damage) and FCS again.
void make_icrc_right(payload::frame& f, const wire::packet& p);
void make_fcs_right(payload::frame& f);

}  // namespace rnic::fabric
