// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/same_packet.h"

#include <algorithm>

namespace rnic::replay {

bool same_packet(const captured_frame& a, const captured_frame& b) {
  const wire::packet &p = a.packet, &q = b.packet;
  if (p.sgid != q.sgid || p.dgid != q.dgid || p.encap != q.encap || p.ipv4_id != q.ipv4_id) return false;
  if (p.udp_source != q.udp_source || p.icrc_offset - p.bth_offset != q.icrc_offset - q.bth_offset) return false;
  // A frame that the capture cut is compared as far as both are there.
  const auto known = [](const captured_frame& f) {
    const std::size_t end = std::min<std::size_t>(f.bytes.size(), f.packet.icrc_offset + 4);
    return end > f.packet.bth_offset ? end - f.packet.bth_offset : 0;
  };
  const auto bytes = static_cast<std::ptrdiff_t>(std::min(known(a), known(b)));
  const auto from =
      a.bytes.begin() + std::min<std::ptrdiff_t>(p.bth_offset, static_cast<std::ptrdiff_t>(a.bytes.size()));
  const auto other =
      b.bytes.begin() + std::min<std::ptrdiff_t>(q.bth_offset, static_cast<std::ptrdiff_t>(b.bytes.size()));
  return std::equal(from, from + bytes, other);
}

std::uint64_t packet_hash(const captured_frame& f) {
  const wire::packet& p = f.packet;
  std::uint64_t h = p.icrc;
  for (const std::uint64_t part :
       {std::uint64_t{p.bth.dest_qp}, std::uint64_t{p.bth.psn.value()}, std::uint64_t{p.bth.opcode},
        std::uint64_t{p.ipv4_id}, std::uint64_t{p.udp_source}, std::uint64_t{p.icrc_offset} - p.bth_offset})
    h = (h ^ part) * 0x9e37'79b9'7f4a'7c15;
  for (std::size_t i = 0; i < p.sgid.size(); ++i)
    h = (h ^ (std::uint64_t{p.sgid[i]} << 8 | p.dgid[i])) * 0x9e37'79b9'7f4a'7c15;
  return h;
}

}  // namespace rnic::replay
