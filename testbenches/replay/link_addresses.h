// SPDX-License-Identifier: Apache-2.0
// MAC addresses for frames that were captured without them.
#pragma once

#include <cstdint>
#include <vector>

#include "testbenches/replay/plan.h"
#include "tlm/capture.h"

namespace rnic::replay {

/// What the file says of a frame beside its bytes.
struct frame_origin {
  std::uint32_t interface = 0;
  tlm::frame_way way = tlm::frame_way::unknown;
  bool no_source = false, no_destination = false;
  bool read = true;  ///< its link type is
};

/// Fills the MAC addresses that RoCE frames lack, by their GIDs: the address with which another frame shows a GID, that
/// of the capturing host for what came to it, that of the group for a multicast GID, and otherwise a locally
/// administered one made from the GID. Counted in the plan's notes. `origins`: one for each frame.
void give_link_addresses(plan& p, const std::vector<frame_origin>& origins);

}  // namespace rnic::replay
