// SPDX-License-Identifier: Apache-2.0
// What the frames of one connection tell: its messages, sequence numbers, receives and memory.
#pragma once

#include <cstddef>
#include <vector>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Fills the rest of connection `index` of the plan from its frames (indices in the capture, in order), and the plan's
/// regions and memory contents. Frames that belong to something that began before the capture leave the connection and
/// are counted. Packets of the held host that the capture lacks are stood in for by zeros, so that what follows keeps
/// its PSN.
void read_connection(plan& p, std::size_t index, const std::vector<std::size_t>& frames);

}  // namespace rnic::replay
