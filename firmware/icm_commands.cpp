// SPDX-License-Identifier: Apache-2.0
// Memory that the host lends to the device: firmware area, ICM and its auxiliary area (adapter control plane 4.3, 4.4,
// 5).
#include "firmware/firmware.h"

namespace rnic::firmware {

namespace entry_layout = abi::map_entry;
using icm::table;

namespace {

constexpr std::uint64_t page = 4096;
constexpr unsigned log_max_chunk_pages = 18;  // 1 GiB

}  // namespace

abi::status firmware::check_map_entry(std::size_t index, bool icm, std::uint64_t& address, std::uint64_t& bus,
                                      std::uint32_t& pages) const {
  const std::size_t at = index * entry_layout::bytes;
  address = in(entry_layout::icm_address, at);
  const std::uint64_t word = in(entry_layout::bus_address, at);
  bus = word & ~(page - 1);
  const std::uint64_t log_pages = word & (page - 1);
  if (log_pages > log_max_chunk_pages) return status::bad_param;
  pages = 1u << log_pages;
  if (icm && (address % page != 0 || pages * page - 1 > ~address)) return status::bad_param;
  if (pages * page - 1 > ~bus) return status::bad_param;
  return status::ok;
}

/// MAP_FA and MAP_ICM_AUX: adds up the pages of all entries.
abi::status firmware::count_pages(command_request& r, std::uint64_t& pages) {
  if (r.modifier == 0 || r.modifier > abi::map_entry::max_count) return status::bad_param;
  if (const status s = read_mailbox(r, r.modifier * entry_layout::bytes); s != status::ok) return s;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < r.modifier; ++i) {
    std::uint64_t address, bus;
    std::uint32_t n;
    if (const status s = check_map_entry(i, false, address, bus, n); s != status::ok) return s;
    sum += n;
  }
  pages += sum;
  return status::ok;
}

abi::status firmware::map_fa(command_request& r) { return count_pages(r, firmware_area_pages_); }

/// Gives the firmware area back: nothing but MAP_FA and RUN_FW can follow. Must not fail (2.6).
abi::status firmware::unmap_fa(command_request&) {
  if (stage_ == stage_ready) drop_everything();
  firmware_area_pages_ = 0;
  stage_ = stage_off;
  return status::ok;
}

abi::status firmware::set_icm_size(command_request& r) {
  if (r.in_param == 0 || r.in_param > std::uint64_t{1} << 40) return status::bad_param;
  r.out_param = config_.aux_pages;
  stage_ = stage_sized;
  return status::ok;
}

abi::status firmware::map_icm_aux(command_request& r) { return count_pages(r, aux_pages_); }

abi::status firmware::unmap_icm_aux(command_request&) {
  aux_pages_ = 0;
  return status::ok;
}

abi::status firmware::map_icm(command_request& r) {
  if (r.modifier == 0 || r.modifier > abi::map_entry::max_count) return status::bad_param;
  if (const status s = read_mailbox(r, r.modifier * entry_layout::bytes); s != status::ok) return s;
  std::uint64_t address, bus;
  std::uint32_t pages;
  for (std::size_t i = 0; i < r.modifier; ++i)
    if (const status s = check_map_entry(i, true, address, bus, pages); s != status::ok) return s;
  for (std::size_t i = 0; i < r.modifier; ++i) {
    check_map_entry(i, true, address, bus, pages);
    chip_.map_icm(address, bus, pages);
    mapped_[address] = pages;
    if (stage_ != stage_ready) continue;  // INIT_HCA clears what is mapped before it
    if (!clear_contexts(address, pages * page)) return status::icm_error;
  }
  return status::ok;
}

/// The driver names 64 pages whatever was mapped (5.2). Must not fail.
abi::status firmware::unmap_icm(command_request& r) {
  const std::uint64_t from = r.in_param & ~(page - 1);
  const std::uint64_t bytes = r.modifier * page;
  chip_.unmap_icm(from, r.modifier);
  chip_.drop_translations();
  const bool to_the_end = bytes != 0 && bytes - 1 >= ~from;
  mapped_.erase(mapped_.lower_bound(from), to_the_end ? mapped_.end() : mapped_.lower_bound(from + bytes));
  return status::ok;
}

}  // namespace rnic::firmware
