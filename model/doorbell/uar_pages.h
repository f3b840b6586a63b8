// SPDX-License-Identifier: Apache-2.0
// What the parts of the doorbell decoder share: the layout of BAR2, and counters.
#pragma once

#include <cstdint>

namespace rnic::doorbell {

/// What firmware has set. Written between two edges.
struct uar_pages {
  std::uint32_t page_shift = 12;
  std::uint32_t log_uars = 0;
  bool blueflame_on = false;
  std::uint32_t first_virtual_eq = 0, eqs_of_virtual = 0;
  bool closed = true;  ///< no pages were given out since the reset
};

struct doorbell_counters {
  std::uint64_t sends = 0, blueflames = 0, arms = 0, eq_updates = 0, bad_offset = 0, bad_length = 0;
  std::uint64_t bf_partial = 0, bf_disabled = 0, bf_bad = 0;
};

}  // namespace rnic::doorbell
