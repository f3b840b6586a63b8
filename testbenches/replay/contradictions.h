// SPDX-License-Identifier: Apache-2.0
// READs that found other bytes than the capture's WRITEs had left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// A packet of a peer that changed memory of the held host, at some moment of [from, to]: frames of the capture.
struct memory_change {
  std::size_t from = 0, to = no_frame;  ///< its arrival; the first answer that acknowledges it
  int connection = -1;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::size_t content = no_frame;  ///< the frame whose payload it wrote; no_frame: something unknown
  bool ends_key = false;           ///< it has no range: the key ends, and may come back for other memory
};

/// Marks in `p` the answers of READs that differ from what WRITEs under the same key had left, where no WRITE was under
/// way at that time. The replay gives memory what the answer has, so nothing else would show it: the real host changed
/// its memory itself, or answered wrongly.
void find_contradictions(plan& p, std::vector<memory_change> changes);

}  // namespace rnic::replay
