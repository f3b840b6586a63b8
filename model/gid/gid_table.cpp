// SPDX-License-Identifier: Apache-2.0
// GID, MAC and VLAN tables of one port, and the windows of the functions.
#include "model/gid/gid_table.h"

#include <algorithm>

#include "model/gid/gid_cr.h"
#include "model/wire/bytes.h"

namespace rnic::gid {
namespace {

unsigned lowest(std::uint64_t bits) { return static_cast<unsigned>(__builtin_ctzll(bits)); }
void set_bit(std::array<std::uint64_t, table_size / 64>& mask, unsigned i, bool on) {
  const std::uint64_t bit = std::uint64_t{1} << (i % 64);
  mask[i / 64] = on ? mask[i / 64] | bit : mask[i / 64] & ~bit;
}

}  // namespace

window window_of(unsigned function, unsigned num_vfs) {
  if (function == 0) return {0, physical_window};
  if (function > num_vfs) return {};
  constexpr unsigned divided = table_size - physical_window;
  const unsigned each = divided / num_vfs;
  const unsigned larger = divided % num_vfs;  // so many first functions have one entry more
  const unsigned i = function - 1;
  return {physical_window + each * i + std::min(i, larger), each + (i < larger ? 1 : 0)};
}

std::optional<unsigned> gid_table::match(const wire::gid& dgid, roce_type type) const {
  for (unsigned word = 0; word < gid_mask_.size(); ++word)
    for (std::uint64_t left = gid_mask_[word]; left != 0; left &= left - 1) {
      const unsigned i = word * 64 + lowest(left);
      if (entries_[i].type == type && entries_[i].id == dgid) return i;
    }
  return std::nullopt;
}

unsigned gid_table::probes(const wire::gid& dgid, roce_type type, std::optional<unsigned> found) const {
  const unsigned bucket = bucket_of(dgid, type), last = found.value_or(table_size - 1);
  unsigned read = 0;
  for (unsigned i = 0; i <= last; ++i)
    if (entries_[i].valid && bucket_of(entries_[i].id, entries_[i].type) == bucket) ++read;
  return std::max(read, 1u);
}

bool gid_table::accepts(const wire::mac_address& dmac) const {
  if ((dmac[0] & 1) != 0) return true;  // multicast, of which broadcast is one
  for (unsigned word = 0; word < mac_mask_.size(); ++word)
    for (std::uint64_t left = mac_mask_[word]; left != 0; left &= left - 1)
      if (macs_[word * 64 + lowest(left)] == dmac) return true;
  return false;
}

std::optional<std::uint16_t> gid_table::vlan(unsigned index) const {
  const std::uint32_t v = vlans_[index % table_size];
  if ((v & cr::vlan_valid) == 0) return std::nullopt;
  return static_cast<std::uint16_t>(v & cr::vlan_mask);
}

void gid_table::device_reset() {
  entries_.fill({});
  macs_.fill({});
  mac_valid_.fill(false);
  gid_mask_.fill(0);
  mac_mask_.fill(0);
  vlans_.fill(0);
  roce_v2_ = true;
  both_tables_ = false;
  vf_numbers_ = cr::vf_numbers_reset;
  set_num_vfs(0);
}

/// `window`: 1 to num_vfs.
std::uint16_t gid_table::function_of(unsigned window) const {
  const auto part = [this](unsigned shift) { return vf_numbers_ >> shift & cr::vf_number_mask; };
  const unsigned alone = part(cr::vf_alone_shift), place = window - 1;
  return static_cast<std::uint16_t>(place < alone ? part(cr::vf_first_alone_shift) + place
                                                  : part(cr::vf_first_shift) + place - alone);
}

void gid_table::set_num_vfs(unsigned n) {
  num_vfs_ = std::min(n, 126u);
  for (unsigned f = 0; f <= num_vfs_; ++f) {
    const window w = window_of(f, num_vfs_);
    const std::uint16_t owner = f == 0 ? std::uint16_t{0} : function_of(f);
    for (unsigned i = w.first; i < w.first + w.count; ++i) entries_[i].function = owner;
  }
  if (num_vfs_ == 0)
    for (entry& e : entries_) e.function = 0;
}

std::uint32_t gid_table::cr_read(std::uint32_t offset) {
  if (offset < cr::gid_table + table_size * cr::gid_stride) {
    const entry& e = entries_[offset / cr::gid_stride];
    const std::uint32_t at = offset % cr::gid_stride;
    if (at < cr::gid_attributes) return wire::load_be32(e.id.data() + (at & ~3u));
    if (at != cr::gid_attributes) return 0;
    return (e.valid ? cr::gid_valid : 0) | (e.vlan_valid ? cr::gid_vlan_valid : 0) |
           static_cast<std::uint32_t>(e.type) << cr::gid_type_shift | e.vlan;
  }
  if (offset >= cr::mac_table && offset < cr::mac_table + table_size * cr::mac_stride) {
    const unsigned i = (offset - cr::mac_table) / cr::mac_stride;
    if (offset % cr::mac_stride == 4) return wire::load_be32(macs_[i].data() + 2);
    return (mac_valid_[i] ? cr::mac_valid : 0) | std::uint32_t{macs_[i][0]} << 8 | macs_[i][1];
  }
  if (offset >= cr::vlan_table && offset < cr::vlan_table + table_size * 4)
    return vlans_[(offset - cr::vlan_table) / 4];
  if (offset == cr::num_vfs) return num_vfs_;
  if (offset == cr::vf_numbers) return vf_numbers_;
  if (offset == cr::both_tables) return both_tables_ ? 1 : 0;
  if (offset == cr::roce_v2) return roce_v2_ ? 1 : 0;
  return 0;
}

void gid_table::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset < cr::gid_table + table_size * cr::gid_stride) {
    entry& e = entries_[offset / cr::gid_stride];
    const std::uint32_t at = offset % cr::gid_stride;
    if (at < cr::gid_attributes) {
      wire::store_be32(e.id.data() + (at & ~3u), value);
    } else if (at == cr::gid_attributes) {
      e.valid = (value & cr::gid_valid) != 0;
      set_bit(gid_mask_, offset / cr::gid_stride, e.valid);
      e.vlan_valid = (value & cr::gid_vlan_valid) != 0;
      e.type = (value & cr::gid_type_mask) >> cr::gid_type_shift == 2 ? roce_type::v2 : roce_type::v1;
      e.vlan = static_cast<std::uint16_t>(value & cr::gid_vlan_mask);
    }
  } else if (offset >= cr::mac_table && offset < cr::mac_table + table_size * cr::mac_stride) {
    const unsigned i = (offset - cr::mac_table) / cr::mac_stride;
    if (offset % cr::mac_stride == 4) {
      wire::store_be32(macs_[i].data() + 2, value);
    } else {
      mac_valid_[i] = (value & cr::mac_valid) != 0;
      set_bit(mac_mask_, i, mac_valid_[i]);
      macs_[i][0] = static_cast<std::uint8_t>(value >> 8);
      macs_[i][1] = static_cast<std::uint8_t>(value);
    }
  } else if (offset >= cr::vlan_table && offset < cr::vlan_table + table_size * 4) {
    vlans_[(offset - cr::vlan_table) / 4] = value & (cr::vlan_valid | cr::vlan_mask);
  } else if (offset == cr::num_vfs) {
    set_num_vfs(value);
  } else if (offset == cr::vf_numbers) {
    vf_numbers_ = value & (cr::vf_number_mask << cr::vf_alone_shift | cr::vf_number_mask << cr::vf_first_alone_shift |
                           cr::vf_number_mask << cr::vf_first_shift);
    set_num_vfs(num_vfs_);
  } else if (offset == cr::both_tables) {
    both_tables_ = (value & 1) != 0;
  } else if (offset == cr::roce_v2) {
    roce_v2_ = (value & 1) != 0;
  }
}

}  // namespace rnic::gid
