// SPDX-License-Identifier: Apache-2.0
// Ethernet queue pairs: whole frames from the WQE, with tags, checksums and segmentation (adapter data plane A.8.1).
#include "model/transport/requester/ethernet_send.h"

#include <algorithm>
#include <cstring>

#include "model/abi/queue_entries.h"
#include "model/transport/requester/rules.h"
#include "model/transport/transport_if.h"
#include "model/wire/bytes.h"
#include "model/wire/internet.h"

namespace rnic::transport {

namespace {

namespace control = abi::wqe::control;
namespace large_send = abi::wqe::large_send;
constexpr std::uint32_t no_icrc = control::solicited;  // of an Ethernet QP (adapter data plane A.4.1)
constexpr std::uint32_t fcs_bytes = 4;
constexpr std::uint32_t room = payload::frame::capacity - payload::frame::payload_start;

}  // namespace

bool parse_ethernet(const std::uint8_t* wqe, unsigned& at, send_wqe& out) {
  ethernet_send& e = out.ethernet;
  e = ethernet_send{};
  const std::uint32_t flags = abi::get(wqe, control::flags);
  e.tci = abi::get(wqe, control::vlan_tag);
  const std::uint32_t tag = abi::get(wqe, abi::u32(control::vlan_tag.offset));
  e.tag_type = (tag & control::insert_ctag) != 0   ? wire::type_ctag
               : (tag & control::insert_stag) != 0 ? wire::type_stag
                                                   : 0;
  e.ip_checksum = (flags & control::ip_checksum) != 0;
  e.l4_checksum = (flags & control::tcp_udp_checksum) != 0;
  e.icrc = (flags & no_icrc) == 0;
  e.loopback = (flags & control::force_loopback) != 0;
  out.solicited = out.fence = false;
  std::copy_n(wqe + 8, 2, e.dmac.begin());
  std::copy_n(wqe + 12, 4, e.dmac.begin() + 2);
  if (!out.is_segmented()) return true;
  if (at + large_send::header > out.size) return false;
  e.segment_bytes = abi::get(wqe + at, large_send::segment);
  e.header_bytes = abi::get(wqe + at, large_send::length);
  e.header_at = static_cast<std::uint16_t>(at + large_send::header);
  if (e.segment_bytes == 0 || e.header_bytes < wire::ethernet_header_bytes || e.header_at + e.header_bytes > out.size)
    return false;
  at = std::min<unsigned>((e.header_at + e.header_bytes + 15u) / 16 * 16, out.size);
  return true;
}

std::uint8_t ethernet_fault(const send_unit& u, std::uint32_t port_mtu) {
  const ethernet_send& e = u.wqe.ethernet;
  const std::uint32_t most = std::min<std::uint32_t>(packet_bytes(*u.ctx, u.wqe), u.wqe.length);
  const bool forced = (u.ctx->dest.flags & icm::path_flag_vlan) != 0;
  const std::uint32_t tag = e.tag_type != 0 || forced ? wire::vlan_tag_bytes : 0;
  const std::uint64_t frame = std::uint64_t{e.header_bytes} + most;
  const std::uint32_t limit = std::min<std::uint32_t>(port_mtu, room);
  return frame < wire::ethernet_header_bytes || frame + tag + fcs_bytes > limit ? syndrome::local_length
                                                                                : std::uint8_t{0};
}

void forget_leftovers(send_unit& u) {
  const std::uint32_t index = abi::get(u.bytes.data(), control::index);
  const std::uint32_t qpn = abi::get(u.bytes.data(), control::qpn);
  if (qpn == (u.ctx->qpn & 0xffffff) && index == (u.at_wqe.index & 0xffff)) u.wqe.ethernet.tag_type = 0;
}

void begin_ethernet(const send_unit& u, gather_job& job, const packet_place& place, std::uint16_t udp_port) {
  const icm::requester_context& c = *u.ctx;
  const ethernet_send& e = u.wqe.ethernet;
  payload::frame& f = *job.frame;
  ethernet_work& w = job.ethernet;
  w.offload = e;
  w.rules = icm::rules_of(c.dest);
  w.segmented = u.wqe.is_segmented();
  w.offset = place.offset;
  w.last = place.last;
  w.udp_port = udp_port;
  w.own_priority = c.dest.priority & 7;
  w.software_tag = e.tag_type != 0;
  w.software_tci = e.tci;
  f.begin = payload::frame::payload_start;
  f.length = e.header_bytes + place.length;
  std::memcpy(f.data(), u.bytes.data() + e.header_at, e.header_bytes);
  f.source = static_cast<std::uint8_t>(egress_source::requester);
  gid::source_request& r = job.source;
  r.mac_index = c.dest.smac_index;
  r.tagged = (c.dest.flags & icm::path_flag_vlan) != 0;
  r.vlan_index = c.dest.vlan_index;
  std::copy_n(e.dmac.begin(), r.dmac.size(), r.dmac.begin());
  f.loopback = e.loopback             ? payload::frame::loopback_only
               : (r.dmac[0] & 1) != 0 ? payload::frame::loopback_too
                                      : payload::frame::loopback_none;
}

}  // namespace rnic::transport
