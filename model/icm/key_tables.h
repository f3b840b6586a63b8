// SPDX-License-Identifier: Apache-2.0
// The protection table and the translations, as their owner shows them to the engine of keys.
#pragma once

#include <cstdint>

#include "model/icm/mpt.h"

namespace rnic::icm {

class key_tables_if {
 public:
  virtual ~key_tables_if() = default;
  virtual std::uint32_t slot_of(std::uint32_t key) const = 0;
  virtual const mpt_entry* cached(std::uint32_t slot) = 0;
  /// Whether an entry on chip is read in this cycle: it takes a read port. Refused, the owner is ticked in the next.
  virtual bool may_read() = 0;
  /// Whether replace() is possible in this cycle: it takes a write port. Refused, the owner is ticked in the next.
  virtual bool may_replace() = 0;
  /// `entry` is what the table holds from now on; fetches of it under way are not used. `changed` is false when it was
  /// only read.
  virtual void replace(std::uint32_t slot, const mpt_entry& entry, bool changed) = 0;
  virtual void forget_mtts(std::uint64_t mtt_address, std::uint64_t entries) = 0;
  /// False: not mapped.
  virtual bool mpt_address(std::uint32_t slot, std::uint64_t& bus) const = 0;
  virtual bool mtt_address(std::uint64_t mtt_address, std::uint64_t& bus) const = 0;
};

}  // namespace rnic::icm
