// SPDX-License-Identifier: Apache-2.0
// Memory protection table entry as decoded on chip, and the check of an access against it.
#pragma once

#include <cstdint>

#include "model/abi/contexts.h"
#include "model/icm/key_operation_if.h"
#include "model/icm/translation_if.h"

namespace rnic::icm {

/// Table index (before it is taken modulo the table's size) and the tag of a memory key (adapter data plane A.11.1).
using abi::key_to_index;

/// Fields of the published 64-byte big-endian entry (adapter data plane A.11.2, control plane 6.5).
struct mpt_entry {
  std::uint32_t flags = 0;
  std::uint32_t qpn = 0;
  std::uint32_t key = 0;  ///< rotated: index with the tag in 31:24
  std::uint32_t pd_flags = 0;
  std::uint64_t start = 0, length = 0;
  std::uint32_t lkey = 0;     ///< window: key of the region below it
  std::uint32_t windows = 0;  ///< region: how many are bound to it
  std::uint8_t mtt_rep = 0;
  std::uint64_t mtt_address = 0;
  std::uint32_t mtt_count = 0;  ///< fast registration: room for as many pages
  std::uint32_t log_page = 0;
  std::uint32_t first_byte_offset = 0;

  /// flags 31:28
  static constexpr std::uint32_t status_hardware = abi::mpt::owner_hardware, status_free = abi::mpt::owner_free,
                                 status_software = abi::mpt::owner_software;
  std::uint32_t status() const { return flags >> 28; }
  bool region() const { return (flags & abi::mpt::flag_region) != 0; }
  bool physical() const { return (flags & abi::mpt::flag_physical) != 0; }
  bool allows_windows() const { return (flags & abi::mpt::flag_bind) != 0; }
  // Approximation: where the published layout keeps that a window is zero based is not known; it is bit 16.
  bool zero_based() const { return !region() && (flags & 1u << 16) != 0; }
  bool allows_invalidate() const { return (pd_flags & abi::mpt::pd_en_inv) == abi::mpt::pd_en_inv; }
  bool fast_register() const { return region() && (pd_flags & abi::mpt::pd_fast_reg) != 0; }
  /// A window of type 2 belongs to one queue pair while it is bound.
  bool type_2() const { return !region() && (qpn & 1u << 7) != 0; }
  bool same_index(std::uint32_t of_key) const { return ((key ^ key_to_index(of_key)) & 0xffffff) == 0; }
  bool same_domain(std::uint32_t pd) const { return ((pd_flags ^ pd) & 0xffffff) == 0; }
};

inline constexpr std::uint32_t mpt_bytes = abi::mpt::bytes;
mpt_entry decode_mpt(const std::uint8_t* bytes);
/// All mpt_bytes of the entry; reserved ones are zero.
void encode_mpt(const mpt_entry& entry, std::uint8_t* bytes);

/// Checks `request` (of kind key) against the entry at the index of `key`. `through_window`: the entry is the region
/// below a window that has already been checked, so that rights do not matter any more.
translate_status check_mpt(const mpt_entry& entry, const translate_request& request, std::uint32_t key,
                           bool through_window);

/// Whether an operation may go on: of an invalidation, a fast registration or a binding by the entry of its key, of a
/// binding also by the entry of its region.
key_status check_target(const mpt_entry& entry, const key_operation& operation);
key_status check_bound_region(const mpt_entry& region, const key_operation& operation);
/// The entry afterwards.
mpt_entry after(const mpt_entry& entry, const key_operation& operation);
/// Pages that a fast registration needs.
std::uint64_t pages_of(const key_operation& operation);

}  // namespace rnic::icm
