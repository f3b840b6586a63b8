// SPDX-License-Identifier: Apache-2.0
#include "model/transport/congestion/marked_packets.h"

#include <cstring>
#include <utility>

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

void marked_packets::announce(const std::string& name, sim::statistics& to) const {
  to.add(name + ".np_ecn_marked_roce_packets", marked_);
  to.add(name + ".np_cnp_lost", lost_);
}

bool marked_packets::may_answer(const payload::frame& f) const {
  const wire::packet& p = f.packet;
  return !f.plain && (config_.priorities >> (f.priority & 7) & 1) != 0 && p.encap != wire::encapsulation::roce_v1 &&
         p.bth.opcode != wire::opcode_cnp && !is_group(p.dgid);
}

void marked_packets::tell(std::uint32_t qpn, const wire::packet& received, std::uint8_t port, std::uint16_t gid_index,
                          std::uint32_t remote_qpn) {
  ++marked_;
  if (!out_.bound() || !out_.claim()) {
    ++lost_;
    return;
  }
  payload::frame_ptr cnp = frames_.get();
  build(*cnp, received, port, gid_index, remote_qpn);
  out_.push(congestion_notice{qpn, std::move(cnp)});
}

void marked_packets::build(payload::frame& out, const wire::packet& received, std::uint8_t port,
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

}  // namespace rnic::transport
