// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/gid_twin.h"

#include "model/gid/gid_cr.h"
#include "model/sim/check.h"
#include "model/wire/bytes.h"

namespace rnic::hosts {

rtl::gid_match_pins::outputs gid_match_reference::clock(const rtl::gid_match_pins::inputs& in) {
  if (in.reset) {
    table_.device_reset();
    match_.reset();
    return {};
  }
  const rtl::gid_match_pins::outputs out = match_.step(in.look_up);
  const rtl::gid_match_pins::entry_write& w = in.write;
  if (!w.valid) return out;
  for (unsigned i = 0; i < 4; ++i)
    table_.cr_write(gid::cr::gid_word(w.index, i), wire::load_be32(w.id.data() + std::size_t{4} * i));
  table_.cr_write(gid::cr::gid_word(w.index, 4), (w.entry_valid ? gid::cr::gid_valid : 0) |
                                                     static_cast<std::uint32_t>(w.type) << gid::cr::gid_type_shift);
  return out;
}

void gid_match_rtl::reset() {
  engine_->clock({{}, {}, true});
  written_ = {};
}

void gid_match_rtl::write_what_changed() {
  for (unsigned i = 0; i < gid::table_size; ++i) {
    const gid::entry& e = entries_[i];
    rtl::gid_match_pins::entry_write& w = written_[i];
    if (w.entry_valid == e.valid && w.type == e.type && w.id == e.id) continue;
    w = {true, static_cast<std::uint8_t>(i), e.id, e.type, e.valid};
    engine_->clock({{}, w, false});
  }
}

gid::gid_match_if::result gid_match_rtl::look_up(const wire::gid& dgid, gid::roce_type type) {
  constexpr unsigned longest = 16;  // cycles of a match that answers at all
  write_what_changed();
  rtl::gid_match_pins::inputs in;
  in.look_up = {true, dgid, type};
  result r;
  for (unsigned cycle = 0; cycle <= longest; ++cycle) {
    const rtl::gid_match_pins::outputs out = engine_->clock(in);
    if (out.result_valid) {
      r.cycles = cycle;
      if (out.hit) r.index = out.index;
      return r;
    }
    if (out.ready) {
      if (r.interval == 0 && !in.look_up.valid) r.interval = cycle;
      in.look_up.valid = false;
    }
  }
  RNIC_ASSERT(false, "gid_match: RTL without an answer");
  return r;
}

}  // namespace rnic::hosts
