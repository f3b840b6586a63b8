// SPDX-License-Identifier: Apache-2.0
// Frames of Ethernet queue pairs, when all of their bytes are there (adapter data plane A.8.1).
#include <algorithm>

#include "model/transport/requester/gather_leave.h"
#include "model/wire/bytes.h"
#include "model/wire/internet.h"

namespace rnic::transport {

namespace {

constexpr unsigned block_shift = 4;  // ethernet_rules::vlan_control: what may not be sent
enum : unsigned { kind_untagged = 1, kind_priority_tagged = 2, kind_tagged = 4 };

/// Kind of a frame as vlan_control counts them.
unsigned kind_of(bool tagged, std::uint16_t tci) {
  return !tagged ? kind_untagged : (tci & 0xfff) == 0 ? kind_priority_tagged : kind_tagged;
}

}  // namespace

/// False: it may not leave, and has not been changed.
bool gather_leave::finish_ethernet(gather_slot& s, const gid::source& found) {
  payload::frame& f = *s.job.frame;
  const ethernet_work& w = s.job.ethernet;
  const ethernet_send& e = w.offload;
  if ((w.rules.flags & icm::ethernet_rule_own_source) != 0) {
    if (!std::equal(found.mac.begin(), found.mac.end(), f.data() + 6)) return false;
  }
  const std::uint16_t type = wire::load_be16(f.data() + 12);
  const bool in_frame = (type == wire::type_ctag || type == wire::type_stag) && f.length >= 16;
  const std::uint16_t tci = w.software_tag ? w.software_tci : in_frame ? wire::load_be16(f.data() + 14) : 0;
  const unsigned kind = kind_of(w.software_tag || in_frame, tci);
  if ((w.rules.vlan_control >> block_shift & kind) != 0) return false;

  if (w.segmented) {
    wire::segment_header(f.data(), f.length, w.offset / e.segment_bytes, w.offset, w.last);
  } else if (e.ip_checksum || e.l4_checksum) {
    const wire::frame_view v = wire::inspect(f.data(), f.length);
    if (e.ip_checksum) wire::set_ipv4_checksum(f.data(), v);
    if (e.l4_checksum) wire::set_l4_checksum(f.data(), v);
  }
  const std::uint16_t tag_type = found.vlan_valid ? wire::type_ctag : e.tag_type;
  if (tag_type != 0) {
    const auto own_tci = static_cast<std::uint16_t>(found.vlan | w.own_priority << 13);
    wire::insert_tag(f.data(), tag_type, found.vlan_valid ? own_tci : e.tci);
    f.begin -= wire::vlan_tag_bytes;
    f.length += wire::vlan_tag_bytes;
  }
  if (e.icrc && wire::decode(f.data(), f.length, f.packet, w.udp_port) == wire::decode_error::none)
    f.insert_icrc = true;
  ++counters_.ethernet_frames;
  return true;
}

}  // namespace rnic::transport
