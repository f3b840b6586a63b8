// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "rtl/gid_source/gid_source_pins.h"

namespace rnic::rtl {

std::uint64_t gid_source_pins::digest(const gid::source& s) {
  if (s.why != gid::refusal::none) return static_cast<std::uint64_t>(s.why);
  constexpr std::uint64_t prime = 0x100000001b3;  // FNV-1a
  std::uint64_t d = 0xcbf29ce484222325;
  const auto mix = [&d](std::uint64_t v) { d = (d ^ v) * prime; };
  mix(s.type == gid::roce_type::v2);
  mix(s.own_destination);
  mix(s.vlan_valid);
  mix(s.vlan);
  for (const std::uint8_t b : s.id) mix(b);
  for (const std::uint8_t b : s.mac) mix(b);
  return d;
}

void gid_source_pins::tracker::note(const inputs& i, const outputs& o) {
  if (i.reset) return open_.clear();
  if (o.result_valid && !open_.empty()) {
    open_.pop_front();
    ++done_;
  }
  if (i.look_up.valid && o.ready) open_.push_back(i.look_up.request);
}

std::string gid_source_pins::tracker::text() const {
  if (open_.empty()) return "no look-up is under way";
  const gid::source_request& r = open_.front();
  std::ostringstream text;
  text << "look-up " << done_ + 1 << ", ";
  if (r.checked)
    text << "RoCE "
         << (r.any_version                  ? "of the entry"
             : r.type == gid::roce_type::v2 ? "v2"
                                            : "v1")
         << ", entry " << unsigned{r.index} << ", function " << r.function;
  else
    text << "headers of software";
  text << ", MAC " << unsigned{r.mac_index};
  if (r.tagged) text << ", VID " << unsigned{r.vlan_index};
  return text.str();
}

}  // namespace rnic::rtl
