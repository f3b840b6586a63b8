// SPDX-License-Identifier: Apache-2.0
// DCQCN's notification point: which marked packets are answered with a CNP, and the CNP.
#include "model/transport/congestion/notification_point.h"

#include <algorithm>
#include <cstring>

#include "model/transport/transport_if.h"

namespace rnic::transport {

namespace {

constexpr std::uint32_t reserved_bytes = 16;  // behind the BTH, all zero (adapter data plane C.9)
constexpr std::uint8_t hop_limit = 64;

bool is_group(const wire::gid& g) {
  constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return g[0] == 0xff || (std::memcmp(g.data(), mapped, sizeof mapped) == 0 && (g[12] & 0xf0) == 0xe0);
}

}  // namespace

notification_point::notification_point(const notification_config& c, unsigned log_qps)
    : config_(sim::checked(c, "congestion.notification")),
      mask_((1u << log_qps) - 1),
      by_qp_(std::max<std::size_t>(1, (std::size_t{1} << log_qps) / page)) {}

bool notification_point::answers(const wire::packet& p, std::uint8_t priority) const {
  return marked(p) && (config_.priorities >> (priority & 7) & 1) != 0 && p.encap != wire::encapsulation::roce_v1 &&
         p.bth.opcode != wire::opcode_cnp && !is_group(p.dgid);
}

notification_point::moment& notification_point::of_qp(std::uint32_t qpn) {
  auto& p = by_qp_[(qpn & mask_) / page];
  if (!p) p = std::make_unique<std::array<moment, page>>();
  return (*p)[qpn % page];
}

// Whose last CNP is longest ago gives its place to a new one.
notification_point::moment& notification_point::of_peer(const wire::gid& address) {
  peer_entry* oldest = &by_peer_[0];
  for (peer_entry& e : by_peer_) {
    if (e.last != 0 && e.address == address) return e.last;
    if (e.last < oldest->last) oldest = &e;
  }
  oldest->address = address;
  oldest->last = 0;
  return oldest->last;
}

bool notification_point::due(std::uint32_t qpn, const wire::gid& peer, unsigned port, sim::time_ps now) {
  moment& last = config_.scope == cnp_scope::qp        ? of_qp(qpn)
                 : config_.scope == cnp_scope::address ? of_peer(peer)
                                                       : by_port_[port & 1];
  if (last != 0 && now < last - 1 + config_.interval_us * sim::ps_per_us) return false;
  last = now + 1;
  return true;
}

void notification_point::build(payload::frame& out, const wire::packet& received, std::uint8_t port,
                               std::uint16_t gid_index, std::uint32_t remote_qpn) const {
  wire::packet& p = out.packet;
  p = wire::packet{};
  p.dmac = received.smac;
  p.smac = received.dmac;
  p.vlan_present = received.vlan_present;
  p.vlan_tci = static_cast<std::uint16_t>((received.vlan_tci & 0xfff) | config_.cnp_priority << 13);
  p.encap = received.encap;
  p.sgid = received.dgid;
  p.dgid = received.sgid;
  p.traffic_class = static_cast<std::uint8_t>(config_.cnp_dscp << 2 | config_.cnp_ecn);
  p.hop_limit = hop_limit;
  p.udp_source = received.udp_source;
  p.udp_dest = received.udp_dest;
  p.bth.opcode = wire::opcode_cnp;
  p.bth.becn = true;
  p.bth.dest_qp = remote_qpn & 0xffffff;
  p.payload_length = reserved_bytes;
  std::uint8_t* payload = out.buffer.data() + payload::frame::payload_start;
  std::memset(payload, 0, reserved_bytes);
  const std::uint8_t* begin = wire::build(p, payload);
  out.begin = static_cast<std::uint32_t>(begin - out.buffer.data());
  out.length = p.icrc_offset + 4;
  out.insert_icrc = true;
  out.source = static_cast<std::uint8_t>(egress_source::responder);
  out.priority = config_.cnp_priority;
  out.port = port;
  out.gid_index = gid_index;
  out.loopback = payload::frame::loopback_none;
}

void notification_point::clear() {
  for (auto& p : by_qp_)
    if (p) p->fill(0);
  by_peer_.fill({});
  by_port_.fill(0);
}

}  // namespace rnic::transport
