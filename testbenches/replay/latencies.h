// SPDX-License-Identifier: Apache-2.0
// How long the real host took to answer, beside the adapter.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "testbenches/replay/compare.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// One answer that both gave: from the question to it.
struct answer_times {
  std::size_t frame = 0;  ///< index in the capture
  sim::time_ps captured = 0, obtained = 0;
};
/// Answers of one kind, in order of the capture.
struct answer_kind {
  std::string name;  ///< e.g. "RC Acknowledge", "RC Acknowledge (NAK)"
  std::vector<answer_times> times;
};
/// Only answers that were matched with a captured one of the same opcode, and whose questions both are known.
/// `questions`: captured_questions().
std::vector<answer_kind> compare_latencies(const plan& p, const comparison& c,
                                           const std::vector<std::size_t>& questions);

}  // namespace rnic::replay
