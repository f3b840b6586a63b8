// SPDX-License-Identifier: Apache-2.0
// The tables of address translation as the engine of keys uses them.
#pragma once

#include <cstdint>

#include "model/icm/key_tables.h"
#include "model/icm/translation_fetches.h"
#include "model/icm/translation_tables.h"

namespace rnic::icm {

/// No time and no state of its own: an entry that is changed, and translations that are forgotten, are so in the tables
/// and in what is being fetched.
class key_access : public key_tables_if {
 public:
  key_access(translation_tables& tables, translation_fetches& fetches) : tables_(tables), fetches_(fetches) {}

  std::uint32_t slot_of(std::uint32_t key) const override { return tables_.slot_of(key); }
  const mpt_entry* cached(std::uint32_t slot) override { return tables_.mpt(slot); }
  bool may_read() override { return tables_.mpt_reads().try_access(translation_tables::by_key_engine); }
  bool may_replace() override { return tables_.mpt_writes().claim(translation_tables::by_keys); }
  void replace(std::uint32_t slot, const mpt_entry& entry, bool changed) override {
    tables_.replace(slot, entry);
    if (changed) fetches_.drop(true, slot, slot);
  }
  void forget_mtts(std::uint64_t mtt_address, std::uint64_t entries) override {
    const std::uint64_t first = tables_.line_of(mtt_address >> 3);
    const std::uint64_t last = tables_.line_of((mtt_address >> 3) + entries - 1);
    tables_.erase_mtts(first, last);
    fetches_.drop(false, first, last);
  }
  bool mpt_address(std::uint32_t slot, std::uint64_t& bus) const override {
    return tables_.fetch_address(true, slot, bus);
  }
  bool mtt_address(std::uint64_t mtt_address, std::uint64_t& bus) const override {
    return tables_.mtt_address(mtt_address, bus);
  }

 private:
  translation_tables& tables_;
  translation_fetches& fetches_;
};

}  // namespace rnic::icm
