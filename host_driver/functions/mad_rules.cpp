// SPDX-License-Identifier: Apache-2.0
#include "host_driver/functions/mad_rules.h"

#include <algorithm>

#include "host_driver/cm/messages.h"
#include "model/abi/endian.h"

namespace rnic::host_driver::mad_rules {

namespace {

constexpr auto base_version = abi::u8(0), management_class = abi::u8(1), class_version = abi::u8(2),
               method_field = abi::u8(3);
constexpr auto attribute_field = abi::u16(16);
constexpr std::uint8_t version_1 = 1, class_cm = 7, class_version_2 = 2, method_send = 3;
/// Local GIDs of paths (IBA volume 1, 12.6.5 and 12.6.12).
constexpr std::size_t req_primary = 80, req_alternate = 124, lap_alternate = 48;
constexpr std::uint8_t next_header_ib = 0x1b;

gid_bytes gid_at(const std::uint8_t* from) {
  gid_bytes g{};
  std::copy_n(from, g.size(), g.begin());
  return g;
}

gid_bytes mapped_ipv4_at(const std::uint8_t* from) {
  gid_bytes g{};
  g[10] = g[11] = 0xff;
  std::copy_n(from, 4, g.begin() + 12);
  return g;
}

}  // namespace

const char* to_string(fault f) {
  static constexpr std::array<const char*, faults> names{
      "none",      "length", "source", "inactive", "version",       "management",  "method",
      "attribute", "header", "gid",    "vlan",     "connection_id", "destination", "room"};
  return names[static_cast<std::size_t>(f)];
}

fault fault_of(const std::uint8_t* m) {
  if (abi::get(m, base_version) != version_1) return fault::version;
  if (abi::get(m, management_class) != class_cm) return fault::management;
  if (abi::get(m, class_version) != class_version_2) return fault::version;
  if (abi::get(m, method_field) != method_send) return fault::method;
  const std::uint16_t attribute = abi::get(m, attribute_field);
  const bool known = attribute >= static_cast<std::uint16_t>(cm::message::req) &&
                     attribute <= static_cast<std::uint16_t>(cm::message::apr);
  return known ? fault::none : fault::attribute;
}

std::array<gid_bytes, 2> own_paths(const std::uint8_t* m) {
  const auto kind = static_cast<cm::message>(abi::get(m, attribute_field));
  if (kind == cm::message::req) return {gid_at(m + req_primary), gid_at(m + req_alternate)};
  if (kind == cm::message::lap) return {gid_at(m + lap_alternate), gid_bytes{}};
  return {};
}

network_ends ends_of(const std::uint8_t* area) {
  constexpr std::size_t ipv4_source = 32, ipv4_destination = 36, ipv6_source = 8, ipv6_destination = 24;
  if (area[0] >> 4 != 6) return {mapped_ipv4_at(area + ipv4_source), mapped_ipv4_at(area + ipv4_destination), true};
  return {gid_at(area + ipv6_source), gid_at(area + ipv6_destination), area[6] != next_header_ib};
}

}  // namespace rnic::host_driver::mad_rules
