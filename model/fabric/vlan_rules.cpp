// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/vlan_rules.h"

#include <cstring>

#include "model/fabric/frame_headers.h"
#include "model/sim/check.h"
#include "model/wire/bytes.h"
#include "model/wire/icrc.h"

namespace rnic::fabric {

namespace {

constexpr std::uint16_t vid_mask = 0xfff;

void insert_tag(payload::frame& f, std::uint16_t control) {
  if (f.begin >= tag_bytes) {
    f.begin -= tag_bytes;
    std::memmove(f.data(), f.data() + tag_bytes, type_at);
  } else {
    RNIC_ASSERT(f.begin + f.length + tag_bytes <= payload::frame::capacity, "no room for a VLAN tag");
    std::memmove(f.data() + type_at + tag_bytes, f.data() + type_at, f.length - type_at);
  }
  f.length += tag_bytes;
  wire::store_be16(f.data() + type_at, static_cast<std::uint16_t>(wire::ether_type::vlan));
  wire::store_be16(f.data() + type_at + 2, control);
}

/// A frame is not shorter for it than a frame may be (IEEE 802.1Q, 6.9.1).
void remove_tag(payload::frame& f) {
  constexpr std::uint32_t shortest = 60;  // without FCS
  if (f.length - tag_bytes < shortest) {
    std::memmove(f.data() + type_at, f.data() + type_at + tag_bytes, f.length - type_at - tag_bytes);
    std::memset(f.data() + f.length - tag_bytes, 0, tag_bytes);
    return;
  }
  std::memmove(f.data() + tag_bytes, f.data(), type_at);
  f.begin += tag_bytes;
  f.length -= tag_bytes;
}

}  // namespace

std::optional<std::uint16_t> vlan_of(const vlan_port& port, const payload::frame& f) {
  if (port.is == vlan_port::kind::transparent) return std::uint16_t{0};
  const auto tag = tag_of(f);
  const auto vid = static_cast<std::uint16_t>(tag.value_or(0) & vid_mask);
  if (vid == 0)
    return port.vlan != 0 ? std::optional(port.vlan) : std::nullopt;  // untagged, or tagged for its priority
  return is_member(port, vid) ? std::optional(vid) : std::nullopt;
}

std::uint16_t vlan_behind(std::uint16_t vlan, const payload::frame& f) {
  return vlan != 0 ? vlan : static_cast<std::uint16_t>(tag_of(f).value_or(0) & vid_mask);
}

bool is_member(const vlan_port& port, std::uint16_t vlan) {
  switch (port.is) {
    case vlan_port::kind::transparent:
      break;
    case vlan_port::kind::access:
      return vlan == port.vlan;
    case vlan_port::kind::trunk:
      return vlan != 0 && (vlan == port.vlan || port.allowed[vlan]);
  }
  return true;
}

void set_tag(const vlan_port& port, payload::frame& f, std::uint16_t vlan, unsigned priority) {
  if (port.is == vlan_port::kind::transparent) return;
  const auto tag = tag_of(f);
  const bool tagged = vlan != port.vlan;  // an access port's own VLAN, or a trunk's native one
  const auto control = static_cast<std::uint16_t>(tag ? (*tag & ~vid_mask) | vlan : priority << pcp_shift | vlan);
  if (tagged ? tag == control : !tag) return;
  const bool right = wire::ethernet_fcs(f.data(), f.length) == f.fcs;
  if (!tagged)
    remove_tag(f);
  else if (tag)
    wire::store_be16(f.data() + type_at + 2, control);
  else
    insert_tag(f, control);
  f.fcs = wire::ethernet_fcs(f.data(), f.length) ^ (right ? 0u : 1u);
}

}  // namespace rnic::fabric
