// SPDX-License-Identifier: Apache-2.0
#include "model/icm/icm_registers.h"

#include "model/icm/icm_cr.h"

namespace rnic::icm {

namespace {
/// The mapping RAM covers 2^22 pages; a command for more is a mistake of firmware and does nothing.
constexpr std::uint32_t max_pages = 1u << 22;

std::uint64_t with_high(std::uint64_t old, std::uint32_t value) {
  return std::uint64_t{value} << 32 | (old & 0xffffffff);
}
std::uint64_t with_low(std::uint64_t old, std::uint32_t value) { return (old & ~std::uint64_t{0xffffffff}) | value; }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
}  // namespace

std::uint32_t icm_registers::cr_read(std::uint32_t offset) {
  const bool selected = table_ < static_cast<std::uint32_t>(table::count);
  const table_layout layout = selected ? map_.layout(static_cast<table>(table_)) : table_layout{};
  switch (offset) {
    case cr::map_icm_hi:
      return high(icm_address_);
    case cr::map_icm_lo:
      return low(icm_address_);
    case cr::map_bus_hi:
      return high(bus_address_);
    case cr::map_bus_lo:
      return low(bus_address_);
    case cr::map_pages:
      return pages_;
    case cr::map_command:
      return low(map_.pages());
    case cr::table_select:
      return table_;
    case cr::table_base_hi:
      return high(layout.base);
    case cr::table_base_lo:
      return low(layout.base);
    case cr::table_entry_bytes:
      return layout.entry_bytes;
    case cr::table_log_entries:
      return layout.log_entries;
    case cr::tpt_index:
      return mpt_index_;
    case cr::tpt_mtt_hi:
      return high(mtt_address_);
    case cr::tpt_mtt_lo:
      return low(mtt_address_);
    case cr::tpt_count:
      return mtt_count_;
    case cr::tpt_status:
      return tpt_->busy() ? 1 : 0;
    case cr::count_mpt_hits:
      return low(tpt_->counters().mpt_hits);
    case cr::count_mpt_misses:
      return low(tpt_->counters().mpt_misses);
    case cr::count_mtt_hits:
      return low(tpt_->counters().mtt_hits);
    case cr::count_mtt_misses:
      return low(tpt_->counters().mtt_misses);
    case cr::count_refused:
      return low(tpt_->counters().refused);
    default:
      return 0;
  }
}

void icm_registers::cr_write(std::uint32_t offset, std::uint32_t value) {
  switch (offset) {
    case cr::map_icm_hi:
      icm_address_ = with_high(icm_address_, value);
      break;
    case cr::map_icm_lo:
      icm_address_ = with_low(icm_address_, value);
      break;
    case cr::map_bus_hi:
      bus_address_ = with_high(bus_address_, value);
      break;
    case cr::map_bus_lo:
      bus_address_ = with_low(bus_address_, value);
      break;
    case cr::map_pages:
      pages_ = value;
      break;
    case cr::map_command:
      map_command(value);
      break;
    case cr::table_select:
      table_ = value;
      break;
    case cr::tpt_index:
      mpt_index_ = value;
      break;
    case cr::tpt_mtt_hi:
      mtt_address_ = with_high(mtt_address_, value);
      break;
    case cr::tpt_mtt_lo:
      mtt_address_ = with_low(mtt_address_, value);
      break;
    case cr::tpt_count:
      mtt_count_ = value;
      break;
    case cr::tpt_command:
      tpt_command(value);
      break;
    case cr::reset:
      if (value == 1) reset();
      break;
    default:
      write_table(offset, value);
  }
}

void icm_registers::write_table(std::uint32_t offset, std::uint32_t value) {
  if (table_ >= static_cast<std::uint32_t>(table::count)) return;
  table_layout& layout = map_.layout(static_cast<table>(table_));
  if (offset == cr::table_base_hi) layout.base = with_high(layout.base, value);
  if (offset == cr::table_base_lo) layout.base = with_low(layout.base, value);
  if (offset == cr::table_entry_bytes) layout.entry_bytes = value;
  if (offset == cr::table_log_entries) layout.log_entries = value & 31;
}

void icm_registers::map_command(std::uint32_t command) {
  const std::uint64_t first = icm_address_ & ~std::uint64_t{0xfff};
  const std::uint64_t bytes = std::uint64_t{pages_} << 12;
  if (command == cr::map_command_map && pages_ <= max_pages) map_.map(first, bus_address_, bytes);
  if (command == cr::map_command_unmap) map_.unmap(first, bytes);
  if (command == cr::map_command_clear) map_.clear();
}

void icm_registers::tpt_command(std::uint32_t command) {
  if (command == cr::tpt_command_drop_mpt) tpt_->drop_mpt(mpt_index_);
  if (command == cr::tpt_command_drop_mtt_range) tpt_->drop_mtt(mtt_address_, mtt_count_);
  if (command == cr::tpt_command_drop_all) tpt_->drop_all();
  if (command == cr::tpt_command_release_window) tpt_->release_window(mpt_index_);
  if (command == cr::tpt_command_revoke_key) tpt_->revoke_key(mpt_index_);
}

void icm_registers::reset() {
  map_.clear();
  for (unsigned t = 0; t < static_cast<unsigned>(table::count); ++t)
    map_.layout(static_cast<table>(t)) = table_layout{};
  tpt_->drop_all();
  icm_address_ = bus_address_ = mtt_address_ = 0;
  pages_ = table_ = mpt_index_ = mtt_count_ = 0;
}

}  // namespace rnic::icm
