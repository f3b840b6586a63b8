// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/same_packet.h"

#include <algorithm>

namespace rnic::replay {

bool same_packet(const captured_frame& a, const captured_frame& b) {
  const wire::packet &p = a.packet, &q = b.packet;
  if (p.sgid != q.sgid || p.dgid != q.dgid || p.encap != q.encap || p.ipv4_id != q.ipv4_id) return false;
  if (p.udp_source != q.udp_source || p.icrc_offset - p.bth_offset != q.icrc_offset - q.bth_offset) return false;
  return std::equal(a.bytes.begin() + p.bth_offset, a.bytes.begin() + p.icrc_offset + 4,
                    b.bytes.begin() + q.bth_offset);
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
