// SPDX-License-Identifier: Apache-2.0
#include "model/flow/flow_key.h"

#include <algorithm>

#include "model/wire/bytes.h"
#include "model/wire/internet.h"

namespace rnic::flow {

namespace {

constexpr std::uint32_t ports_bytes = 4, ipv4_addresses_end = 20;
constexpr std::uint32_t second = 1;  // frame::port of port 2

}  // namespace

flow_key key_of_frame(const payload::frame& f) {
  namespace k = cr::frame_key;
  flow_key key{};
  if (f.port == second) key[k::kind] |= k::port_2;
  if (f.length < wire::ethernet_header_bytes) return key;
  const std::uint8_t* d = f.data();
  const wire::frame_view v = wire::inspect(d, f.length);
  key[k::dmac_high] = wire::load_be32(d);
  key[k::dmac_smac] = wire::load_be32(d + 4);
  key[k::smac_low] = wire::load_be32(d + 8);
  const bool tagged = v.ctag || v.stag;
  const std::uint32_t type_at = 12 + (tagged ? wire::vlan_tag_bytes : 0);
  if (f.length >= type_at + 2) key[k::kind] |= wire::load_be16(d + type_at);
  if (tagged) {
    key[k::kind] |= k::tagged;
    key[k::tag] = v.tci;
  }
  if (v.ipv4) {
    key[k::kind] |= k::ipv4;
    key[k::source_ip] = wire::load_be32(d + v.l3 + 12);
    key[k::destination_ip] = wire::load_be32(d + v.l3 + 16);
  }
  if ((v.tcp || v.udp) && !v.fragment) {
    key[k::kind] |= v.tcp ? k::tcp : k::udp;
    key[k::ports] = wire::load_be32(d + v.l4);
  }
  return key;
}

std::uint32_t key_bytes(const payload::frame& f) {
  const wire::frame_view v = wire::inspect(f.data(), f.length);
  std::uint32_t bytes = wire::ethernet_header_bytes + (v.ctag || v.stag ? wire::vlan_tag_bytes : 0);
  if (v.ipv4) bytes = v.l3 + ipv4_addresses_end;
  if (v.tcp || v.udp) bytes = v.l4 + ports_bytes;
  return std::clamp(f.length, 1u, bytes);
}

flow_key key_of_datagram(const payload::frame& f) {
  namespace k = cr::datagram_key;
  flow_key key{};
  key[k::kind] = (f.packet.bth.dest_qp & cr::member_qpn) | (f.port == second ? cr::frame_key::port_2 : 0);
  for (unsigned i = 0; i < 4; ++i) key[k::dgid + i] = wire::load_be32(f.packet.dgid.data() + 4 * i);
  return key;
}

}  // namespace rnic::flow
