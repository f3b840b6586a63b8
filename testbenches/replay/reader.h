// SPDX-License-Identifier: Apache-2.0
// What one connection's packets tell: messages, receives, memory.
#pragma once

#include <vector>

#include "testbenches/replay/peer_side.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Fills the rest of connection `index` from its frames, which are in the order of the capture, and adds what its peer
/// asked of the held host's memory to `asked`. Frames that belong to something before the capture are rejected.
void read_connection(plan& p, std::size_t index, const std::vector<std::size_t>& frames, asked_memory& asked);

}  // namespace rnic::replay
