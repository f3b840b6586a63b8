// SPDX-License-Identifier: Apache-2.0
// One packet of each kind: every opcode x encapsulation x VLAN x pad, all fields distinct.
#pragma once

#include <functional>

#include "model/wire/ethernet.h"
#include "model/wire/packet.h"

namespace rnic::wire::test {

/// Headers for one combination. The payload has `payload` bytes if the opcode may carry any.
inline packet make_packet(std::uint8_t opcode, encapsulation encap, bool vlan, std::uint32_t payload) {
  packet p;
  const opcode_traits& t = traits(opcode);
  p.dmac = {0x02, 0, 0, 0, 0, 0x02};
  p.smac = {0x02, 0, 0, 0, 0, 0x01};
  p.vlan_present = vlan;
  p.vlan_tci = vlan ? 0x6064 : 0;
  p.encap = encap;
  const bool ipv4 = encap == encapsulation::roce_v2_ipv4;
  p.sgid = ipv4 ? gid_from_ipv4(0x0a000001) : *parse_gid("fe80::ff:fe00:1");
  p.dgid = ipv4 ? gid_from_ipv4(0x0a000002) : *parse_gid("fe80::ff:fe00:2");
  p.traffic_class = 0x6a;
  p.flow_label = ipv4 ? 0 : 0x12345;
  p.hop_limit = 63;
  p.ipv4_id = static_cast<std::uint16_t>(0x4000 + opcode);
  p.udp_source = entropy_of_qps(0x48, opcode);
  p.bth.opcode = opcode;
  p.bth.solicited = (opcode & 1) != 0;
  p.bth.migration = (opcode & 2) != 0;
  p.bth.ack_request = t.last && t.request;
  p.bth.becn = opcode == opcode_cnp;
  p.bth.dest_qp = 0x123400u + opcode;
  p.bth.psn = psn_t(0xabc000u + opcode);
  p.reth = {0x00007f0011223344, 0x00012a55, 0x00010203};
  p.deth = {0x80010000, 0, 0x654321};
  p.aeth = {0x1f, 0x00fedc};
  p.atomic = {0x00007f0055667788, 0x00012a56,         0x1122334455667788,
              0x99aabbccddeeff00, 0x5566778899aabbcc, 0xddeeff0011223344};
  p.atomic_original = 0x0123456789abcdef;
  p.immediate = 0xdeadbeef;
  p.invalidate_rkey = 0xcafef00d;
  p.rdeth = 0x00abcdef;
  p.xrceth = 0x00fedcba;
  p.payload_length = opcode == opcode_cnp ? 16 : t.payload ? payload : 0;
  return p;
}

/// Calls `f(headers)` for all combinations that differ: payloads of 8..11 bytes give each pad.
inline void for_every_packet(const std::function<void(const packet&)>& f) {
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    const opcode_traits& t = traits(static_cast<std::uint8_t>(opcode));
    if (!t.known) continue;
    for (const auto encap : {encapsulation::roce_v1, encapsulation::roce_v2_ipv4, encapsulation::roce_v2_ipv6})
      for (const bool vlan : {false, true})
        for (std::uint32_t pad = 0; pad < (t.payload && opcode != opcode_cnp ? 4u : 1u); ++pad)
          f(make_packet(static_cast<std::uint8_t>(opcode), encap, vlan, 8 + pad));
  }
}

}  // namespace rnic::wire::test
