// SPDX-License-Identifier: Apache-2.0
// Memory protection table entry as decoded on chip, and the check of an access against it.
#pragma once

#include <cstdint>

#include "model/icm/translation_if.h"

namespace rnic::icm {

/// Table index (before it is taken modulo the table's size) and the tag of a memory key (adapter data plane A.11.1).
constexpr std::uint32_t key_to_index(std::uint32_t key) { return key >> 8 | key << 24; }

/// Fields of the published 64-byte big-endian entry (adapter data plane A.11.2, control plane 6.5).
struct mpt_entry {
  std::uint32_t flags = 0;
  std::uint32_t qpn = 0;
  std::uint32_t key = 0;  ///< rotated: index with the tag in 31:24
  std::uint32_t pd_flags = 0;
  std::uint64_t start = 0, length = 0;
  std::uint32_t lkey = 0;  ///< window: key of the region below it
  std::uint64_t mtt_address = 0;
  std::uint32_t log_page = 0;

  bool region() const { return (flags & 1u << 8) != 0; }
  bool physical() const { return (flags & 1u << 9) != 0; }
};

mpt_entry decode_mpt(const std::uint8_t* bytes);

/// Checks `request` (of kind key) against the entry at the index of `key`. `through_window`: the entry is the region
/// below a window that has already been checked, so that rights do not matter any more.
translate_status check_mpt(const mpt_entry& entry, const translate_request& request, std::uint32_t key,
                           bool through_window);

}  // namespace rnic::icm
