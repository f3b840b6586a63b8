// SPDX-License-Identifier: Apache-2.0
// The differences of a replay, written to the frames of its capture.
#pragma once

#include <string>
#include <vector>

#include "testbenches/replay/compare.h"
#include "testbenches/replay/plan.h"
#include "testbenches/replay/run.h"
#include "tlm/pcapng_writer.h"

namespace rnic::replay {

/// Directions of the cable.
constexpr unsigned from_adapter = 0, to_adapter = 1;

/// A comment on every frame that differs: what was expected, what came, and why. A frame that did not come is told on
/// its question, or else on the last frame that its connection was given before. What belongs to no frame is in
/// `about`, one line each. `questions`: captured_questions().
struct comments {
  tlm::frame_comments of_frames;
  std::string about;
};
comments comment_on(const plan& p, const comparison& c, const replay_result& run,
                    const std::vector<std::size_t>& questions);

}  // namespace rnic::replay
