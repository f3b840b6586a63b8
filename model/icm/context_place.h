// SPDX-License-Identifier: Apache-2.0
// Where contexts lie in ICM.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "model/icm/context_tags.h"
#include "model/icm/icm_map.h"

namespace rnic::icm {

/// Contexts of `bytes` bytes, at `offset` in the entries of a table; where these are shorter, what they have of them,
/// if that is `shortest` or more. Numbers are taken modulo the size of the table (adapter control plane 5.7).
class context_place {
 public:
  context_place(const icm_map& map, table which, std::uint32_t offset, std::uint32_t bytes, std::uint32_t shortest)
      : map_(map), layout_(map.layout(which)), which_(which), offset_(offset), bytes_(bytes), shortest_(shortest) {}

  std::uint32_t key_of(std::uint32_t number) const { return number & ((std::uint32_t{1} << layout_.log_entries) - 1); }
  /// Bus address of the context of `key`, or none: the table is not set up, or the page not mapped.
  std::optional<std::uint64_t> address(std::uint32_t key) const {
    if (offset_ + shortest_ > layout_.entry_bytes) return std::nullopt;
    const std::uint64_t icm = map_.entry(which_, key & ~context_tags::second_key) + offset_;
    if ((icm & 0xfff) + bytes() > 0x1000) return std::nullopt;
    return map_.translate(icm);
  }
  /// Of a context that has an address.
  std::uint32_t bytes() const { return std::min(bytes_, layout_.entry_bytes - offset_); }

 private:
  const icm_map& map_;
  const table_layout& layout_;
  table which_;
  std::uint32_t offset_, bytes_, shortest_;
};

}  // namespace rnic::icm
