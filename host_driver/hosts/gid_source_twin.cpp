// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/gid_source_twin.h"

#include <algorithm>

#include "model/gid/gid_cr.h"
#include "model/sim/check.h"
#include "model/wire/bytes.h"

namespace rnic::hosts {

namespace cr = gid::cr;
using pins = rtl::gid_source_pins;

/// Register vf_numbers, by the functions that have windows; while rows of before are among them, as after reset.
std::uint32_t gid_source_reference::numbers() const {
  std::uint32_t first_alone = 0, first = 0, alone = 0, last = 0;
  for (unsigned i = gid::physical_window; i < gid::table_size; ++i) {
    const std::uint32_t f = told_[i];
    if (f == last) continue;
    if (f < last) return cr::vf_numbers_reset;
    if (first == 0) {
      first = f;
    } else if (f != last + 1) {  // behind the functions that have the port alone
      if (first_alone != 0) return cr::vf_numbers_reset;
      alone = last - first + 1;
      first_alone = first;
      first = f;
    }
    last = f;
  }
  if (last == 0) return cr::vf_numbers_reset;
  return alone << cr::vf_alone_shift | first_alone << cr::vf_first_alone_shift | first << cr::vf_first_shift;
}

pins::outputs gid_source_reference::clock(const pins::inputs& in) {
  if (in.reset) {
    table_.device_reset();
    source_.reset();
    told_ = {};
    return {};
  }
  const pins::outputs out = source_.step(in.look_up);
  const pins::row_write& w = in.write;
  if (!w.valid) return out;
  const std::uint8_t* data = w.data.data();
  switch (w.where) {
    case pins::table::gid:
      for (unsigned i = 0; i < 4; ++i)
        table_.cr_write(cr::gid_word(w.index, i), wire::load_be32(data + std::size_t{4} * i));
      table_.cr_write(cr::gid_word(w.index, 4), (w.row_valid ? cr::gid_valid : 0) | static_cast<std::uint32_t>(w.type)
                                                                                        << cr::gid_type_shift);
      told_[w.index] = w.function;
      table_.cr_write(cr::vf_numbers, numbers());
      table_.cr_write(cr::num_vfs, w.num_vfs);
      break;
    case pins::table::mac:
      table_.cr_write(cr::mac_word(w.index, 0), (w.row_valid ? cr::mac_valid : 0) | wire::load_be16(data));
      table_.cr_write(cr::mac_word(w.index, 1), wire::load_be32(data + 2));
      break;
    case pins::table::vid:
      table_.cr_write(cr::vlan_word(w.index), (w.row_valid ? cr::vlan_valid : 0) | unsigned{data[1]} << 8 | data[0]);
      break;
  }
  return out;
}

void gid_source_rtl::reset() {
  engine_->clock({{}, {}, true});
  gids_ = macs_ = vids_ = {};
}

void gid_source_rtl::write(rows& written, const row& now) {
  row& w = written[now.index];
  if (w == now) return;
  w = now;
  engine_->clock({{}, w, false});
}

void gid_source_rtl::write_what_changed() {
  for (unsigned i = 0; i < gid::table_size; ++i) {
    const auto index = static_cast<std::uint8_t>(i);
    const gid::entry& e = entries_[i];
    write(gids_, {true, pins::table::gid, index, e.valid, e.id, e.type, e.function, entries_.num_vfs()});
    row mac{true, pins::table::mac, index, entries_.mac_valid(i)};
    std::copy_n(entries_.mac(i).begin(), sizeof(wire::mac_address), mac.data.begin());
    write(macs_, mac);
    const auto vid = entries_.vlan(i);
    row tag{true, pins::table::vid, index, vid.has_value()};
    tag.data[0] = static_cast<std::uint8_t>(vid.value_or(0));
    tag.data[1] = static_cast<std::uint8_t>(vid.value_or(0) >> 8);
    write(vids_, tag);
  }
}

gid::source gid_source_rtl::look_up(const gid::source_request& request) {
  write_what_changed();
  pins::inputs in;
  in.look_up = {true, request};
  for (unsigned cycle = 0; cycle < cycles(); ++cycle) {
    const pins::outputs out = engine_->clock(in);
    RNIC_ASSERT(!out.result_valid && (out.ready || !in.look_up.valid), "gid_source: RTL out of its cycles");
    in.look_up.valid = false;
  }
  const pins::outputs out = engine_->clock(in);
  RNIC_ASSERT(out.result_valid, "gid_source: RTL without an answer");
  return out.found;
}

}  // namespace rnic::hosts
