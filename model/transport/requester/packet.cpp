// SPDX-License-Identifier: Apache-2.0
// Headers of request packets.
#include "model/transport/requester/packet.h"

#include <algorithm>

#include "model/transport/congestion/ecn.h"
#include "model/transport/transport_if.h"
#include "model/transport/udp_source.h"

namespace rnic::transport {

namespace {

using wire::operation;

constexpr std::uint32_t controlled_qkey = 0x80000000;
constexpr std::uint32_t icrc_bytes = 4;

operation operation_for(const send_wqe& wqe, const packet_place& at) {
  switch (wqe.opcode) {
    case wqe_opcode::rdma_read:
      return operation::read_request;
    case wqe_opcode::atomic_cs:
    case wqe_opcode::masked_atomic_cs:
      return operation::compare_swap;
    case wqe_opcode::atomic_fa:
    case wqe_opcode::masked_atomic_fa:
      return operation::fetch_add;
    default:
      break;
  }
  if (!at.last) {
    if (wqe.is_write()) return at.first ? operation::write_first : operation::write_middle;
    return at.first ? operation::send_first : operation::send_middle;
  }
  switch (wqe.opcode) {
    case wqe_opcode::rdma_write:
      return at.first ? operation::write_only : operation::write_last;
    case wqe_opcode::rdma_write_imm:
      return at.first ? operation::write_only_immediate : operation::write_last_immediate;
    case wqe_opcode::send_imm:
      return at.first ? operation::send_only_immediate : operation::send_last_immediate;
    case wqe_opcode::send_inval:
      return at.first ? operation::send_only_invalidate : operation::send_last_invalidate;
    default:
      return at.first ? operation::send_only : operation::send_last;
  }
}

wire::transport transport_for(icm::service type, const send_wqe& wqe) {
  if (wqe.is_masked_atomic()) return wire::transport::manufacturer;
  switch (type) {
    case icm::service::uc:
      return wire::transport::uc;
    case icm::service::ud:
      return wire::transport::ud;
    case icm::service::xrc:
      return wire::transport::xrc;
    default:
      return wire::transport::rc;
  }
}

void address_connected(payload::frame& f, const icm::path& path) {
  wire::packet& p = f.packet;
  std::copy_n(path.dmac, 6, p.dmac.begin());
  std::copy_n(path.remote_gid, 16, p.dgid.begin());
  p.traffic_class = path.traffic_class;
  p.flow_label = path.flow_label & 0xfffff;
  p.hop_limit = path.hop_limit;
  p.udp_source = udp_source_of(path);
  p.vlan_present = (path.flags & icm::path_flag_vlan) != 0;
  p.vlan_tci = static_cast<std::uint16_t>((path.priority & 7) << 13);
  f.gid_index = path.gid_index;
  f.priority = path.priority & 7;
  const bool forced = (path.flags & icm::path_flag_loopback) != 0;
  f.loopback = forced ? payload::frame::loopback_only : payload::frame::loopback_none;
}

/// Place of the address handle's entry in the port's table: its own number, or, where the context says so, one of a
/// virtual function's window (adapter control plane 8.6; net/resource_tracker.c: update_gid).
std::uint8_t source_index(const icm::requester_context& ctx, const datagram_address& a) {
  const std::uint8_t base = ctx.dest.gid_index;
  if ((base & icm::path_gid_is_base) == 0) return a.gid_index;
  return static_cast<std::uint8_t>((base + a.gid_index) & (gid::table_size - 1));
}

/// A special queue pair of a function (adapter control plane 6.7: fl 0x80): its datagrams stay in the port.
bool is_inside(const icm::requester_context& ctx) { return (ctx.dest.flags & icm::path_flag_loopback) != 0; }

void address_datagram(payload::frame& f, const icm::requester_context& ctx, const datagram_address& a) {
  wire::packet& p = f.packet;
  const bool inside = is_inside(ctx);
  p.dmac = inside ? wire::mac_address{} : a.dmac;
  p.dgid = inside ? wire::gid{} : a.gid;  // the sender's own, once that is known
  p.traffic_class = a.traffic_class;
  p.flow_label = a.flow_label;
  p.hop_limit = a.hop_limit;
  p.udp_source = udp_source_of(ctx.dest);
  // A VLAN of the context's takes the place of the address handle's (adapter control plane 8.5: VST).
  const bool forced = (ctx.dest.flags & icm::path_flag_vlan) != 0;
  p.vlan_present = forced || a.vlan_present;
  p.vlan_tci = forced ? static_cast<std::uint16_t>((ctx.dest.priority & 7) << 13) : a.vlan_tci;
  f.gid_index = source_index(ctx, a);
  f.priority = p.vlan_present ? static_cast<std::uint8_t>(p.vlan_tci >> 13) : a.priority;
  f.inside = inside;
  // Frames to a group come back and go out as well (adapter data plane B.5).
  f.loopback = a.loopback || inside   ? payload::frame::loopback_only
               : (p.dmac[0] & 1) != 0 ? payload::frame::loopback_too
                                      : payload::frame::loopback_none;
}

wire::encapsulation encapsulation(bool v2, const wire::gid& dgid) {
  if (!v2) return wire::encapsulation::roce_v1;
  return gid::is_mapped_ipv4(dgid.data()) ? wire::encapsulation::roce_v2_ipv4 : wire::encapsulation::roce_v2_ipv6;
}

}  // namespace

gid::source_request source_of(const icm::requester_context& ctx, const send_wqe& wqe) {
  gid::source_request r;
  r.checked = true;
  r.mac_index = ctx.dest.smac_index;
  r.function = ctx.function;
  if (ctx.type == icm::service::ud) {
    r.any_version = true;
    r.ipv4 = !is_inside(ctx) && gid::is_mapped_ipv4(wqe.address.gid.data());
    r.index = source_index(ctx, wqe.address);
    r.dmac = wqe.address.dmac;
    r.tagged = (ctx.dest.flags & icm::path_flag_vlan) != 0;
    r.vlan_index = ctx.dest.vlan_index;
    return r;
  }
  r.type = (ctx.dest.flags & icm::path_flag_roce_v2) != 0 ? gid::roce_type::v2 : gid::roce_type::v1;
  r.ipv4 = gid::is_mapped_ipv4(ctx.dest.remote_gid);
  r.index = ctx.dest.gid_index;
  r.tagged = (ctx.dest.flags & icm::path_flag_vlan) != 0;
  r.vlan_index = ctx.dest.vlan_index;
  std::copy_n(ctx.dest.dmac, 6, r.dmac.begin());
  return r;
}

void begin_request(payload::frame& f, const icm::requester_context& ctx, const send_wqe& wqe, const packet_place& place,
                   std::uint16_t udp_port) {
  wire::packet& p = f.packet;
  const bool datagram = ctx.type == icm::service::ud;
  if (datagram)
    address_datagram(f, ctx, wqe.address);
  else
    address_connected(f, ctx.dest);
  p.encap = encapsulation(datagram || (ctx.dest.flags & icm::path_flag_roce_v2) != 0, p.dgid);
  p.udp_dest = udp_port;
  p.udp_checksum = 0;
  p.ipv4_id = 0;
  p.ipv4_fragment = 0x4000;

  p.bth = wire::bth{};
  p.bth.opcode = wire::make_opcode(transport_for(ctx.type, wqe), operation_for(wqe, place));
  p.bth.solicited = place.last && wqe.solicited && !wqe.fetches() && wqe.opcode != wqe_opcode::rdma_write;
  p.bth.migration = true;  // RoCE has one path, and its state is "migrated" (firmware::asks_for_migration)
  p.bth.dest_qp = datagram ? wqe.address.qpn : ctx.remote_qpn & 0xffffff;
  p.bth.ack_request = place.ack_request;
  p.bth.psn = place.psn;
  p.reth.va = wqe.remote_va + (wqe.is_read() ? place.offset : 0);
  p.reth.rkey = wqe.rkey;
  p.reth.length = wqe.is_read() ? place.length : wqe.length;
  if (wqe.is_atomic())
    p.atomic = {wqe.remote_va,          wqe.rkey, wqe.atomic.swap_add, wqe.atomic.compare, wqe.atomic.swap_mask,
                wqe.atomic.compare_mask};
  p.immediate = wqe.immediate;
  p.invalidate_rkey = wqe.immediate;
  p.xrceth = wqe.srqn;
  if (datagram)
    p.deth = {(wqe.address.qkey & controlled_qkey) != 0 ? ctx.qkey : wqe.address.qkey, 0, ctx.qpn & 0xffffff};
  p.payload_length = wqe.fetches() ? 0 : place.length;

  f.length = static_cast<std::uint32_t>(wire::header_length(p)) + ((p.payload_length + 3) & ~3u) + icrc_bytes;
  f.port = ctx.dest.port;
  f.insert_icrc = true;
  f.source = static_cast<std::uint8_t>(transport::egress_source::requester);
}

void finish_request(payload::frame& f, const gid::source_request& asked, const gid::source& found,
                    std::uint8_t ect_priorities) {
  wire::packet& p = f.packet;
  const bool v2 = found.type == gid::roce_type::v2;
  p.sgid = found.id;
  p.smac = found.mac;
  if (asked.any_version && f.loopback == payload::frame::loopback_only && p.dgid == wire::gid{}) {
    p.dgid = found.id;
    p.dmac = found.mac;
  }
  if (asked.tagged) p.vlan_present = found.vlan_valid;
  p.vlan_tci |= found.vlan;
  p.encap = encapsulation(v2, p.dgid);
  if (v2 && (ect_priorities >> (f.priority & 7) & 1) != 0) p.traffic_class = ecn_capable(p.traffic_class);
  const std::uint8_t* begin = wire::build(p, f.buffer.data() + payload::frame::payload_start);
  f.begin = static_cast<std::uint32_t>(begin - f.buffer.data());
  f.length = p.icrc_offset + icrc_bytes;
}

}  // namespace rnic::transport
