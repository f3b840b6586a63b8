// SPDX-License-Identifier: Apache-2.0
// Registers of the completion block that its engines read, and its counters.
#pragma once

#include <array>
#include <cstdint>

#include "model/completion/completion_cr.h"

namespace rnic::completion {

inline constexpr std::uint32_t index_mask = 0xffffff;  ///< running indices of queues have 24 bits

/// What firmware has set. Written between two edges (registers.cpp), read by the engines.
struct settings {
  std::uint32_t cqe_bytes = 32, eqe_bytes = 32;
  std::array<std::uint16_t, cr::event_types> event_map;  ///< EQ by type of event, or event_unmapped

  settings() { event_map.fill(static_cast<std::uint16_t>(cr::event_unmapped)); }
};

/// In the order of the counter registers.
struct completion_statistics {
  std::uint64_t cqe = 0, cqe_invalid = 0, cq_overflow = 0, eqe = 0, eqe_invalid = 0, eq_overflow = 0;
  std::uint64_t event_unmapped = 0, event_lost = 0, interrupts = 0, stale_arm = 0, bad_doorbell = 0, discarded = 0;
};

}  // namespace rnic::completion
