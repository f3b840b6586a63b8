// SPDX-License-Identifier: Apache-2.0
// The frames of a capture file, each judged: RoCE that can be replayed, or a reason why not.
#pragma once

#include <string>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Fills the plan's frames, in the order of the file, and what is said of them as a whole. Every frame becomes an
/// Ethernet frame with at most one tag; `notes` counts what had to be done for that. Frames without `roce` are counted
/// as rejected. Throws usage_error when the file is no capture or holds no frame.
void read_frames(const std::string& capture, const reading_options& options, plan& out);

}  // namespace rnic::replay
