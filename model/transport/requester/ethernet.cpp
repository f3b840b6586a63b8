// SPDX-License-Identifier: Apache-2.0
// Ethernet queue pairs: whole frames from the WQE, with tags, checksums and segmentation (adapter data plane A.8.1).
#include <algorithm>
#include <cstring>

#include "model/transport/requester/requester.h"
#include "model/wire/bytes.h"
#include "model/wire/internet.h"

namespace rnic::transport {

namespace {

constexpr std::uint8_t insert_ctag = 0x40, insert_stag = 0x80;  // A.4.1: dw1, bits 15:8
constexpr std::uint8_t flag_l4_checksum = 0x20, flag_ip_checksum = 0x10, flag_no_icrc = 0x02, flag_loopback = 0x01;
constexpr std::uint32_t fcs_bytes = 4;
constexpr std::uint32_t room = payload::frame::capacity - payload::frame::payload_start;
constexpr unsigned segmentation_bytes = 4;  // MSS and length in front of the header

}  // namespace

bool parse_ethernet(const std::uint8_t* wqe, unsigned& at, send_wqe& out) {
  ethernet_send& e = out.ethernet;
  e = ethernet_send{};
  e.tci = wire::load_be16(wqe + 4);
  e.tag_type = (wqe[6] & insert_ctag) != 0 ? wire::type_ctag : (wqe[6] & insert_stag) != 0 ? wire::type_stag : 0;
  e.ip_checksum = (wqe[11] & flag_ip_checksum) != 0;
  e.l4_checksum = (wqe[11] & flag_l4_checksum) != 0;
  e.icrc = (wqe[11] & flag_no_icrc) == 0;
  e.loopback = (wqe[11] & flag_loopback) != 0;
  out.solicited = out.fence = false;
  std::copy_n(wqe + 8, 2, e.dmac.begin());
  std::copy_n(wqe + 12, 4, e.dmac.begin() + 2);
  if (!out.is_segmented()) return true;
  if (at + segmentation_bytes > out.size) return false;
  const std::uint32_t word = wire::load_be32(wqe + at);
  e.segment_bytes = static_cast<std::uint16_t>(word >> 16);
  e.header_bytes = static_cast<std::uint16_t>(word);
  e.header_at = static_cast<std::uint16_t>(at + segmentation_bytes);
  if (e.segment_bytes == 0 || e.header_bytes < wire::ethernet_header_bytes || e.header_at + e.header_bytes > out.size)
    return false;
  at = std::min<unsigned>((e.header_at + e.header_bytes + 15u) / 16 * 16, out.size);
  return true;
}

/// Frames longer than the port takes, or shorter than a header, are not sent.
std::uint8_t requester::ethernet_fault(const unit& u) const {
  const ethernet_send& e = u.wqe.ethernet;
  const std::uint32_t most = std::min<std::uint32_t>(packet_bytes(*u.ctx, u.wqe), u.wqe.length);
  const bool forced = (u.ctx->dest.flags & icm::path_flag_vlan) != 0;
  const std::uint32_t tag = e.tag_type != 0 || forced ? wire::vlan_tag_bytes : 0;
  const std::uint64_t frame = std::uint64_t{e.header_bytes} + most;
  const std::uint32_t limit = std::min<std::uint32_t>(port_mtu_[u.ctx->dest.port % ports], room);
  return frame < wire::ethernet_header_bytes || frame + tag + fcs_bytes > limit ? syndrome::local_length
                                                                                : std::uint8_t{0};
}

/// BlueFlame posting leaves index and QPN in the control segment, where VLAN tag and its bits are otherwise.
void requester::forget_leftovers(unit& u) const {
  const std::uint32_t index = wire::load_be32(u.bytes.data()) >> 8 & 0xffff;
  const std::uint32_t qpn = wire::load_be32(u.bytes.data() + 4) >> 8;
  if (qpn == (u.ctx->qpn & 0xffffff) && index == (u.current_index & 0xffff)) u.wqe.ethernet.tag_type = 0;
}

void requester::begin_ethernet(unit& u, gather_job& job, const packet_place& place) {
  const context& c = *u.ctx;
  const ethernet_send& e = u.wqe.ethernet;
  const gid::gid_table& gids = *gids_[c.dest.port % ports];
  payload::frame& f = *job.frame;
  ethernet_work& w = job.ethernet;
  w.offload = e;
  w.rules = icm::rules_of(c.dest);
  w.smac_index = c.dest.smac_index;
  w.segmented = u.wqe.is_segmented();
  w.offset = place.offset;
  w.last = place.last;
  w.udp_port = udp_port_;
  if ((c.dest.flags & icm::path_flag_vlan) != 0)
    if (const auto vid = gids.vlan(c.dest.vlan_index)) {
      w.offload.tag_type = wire::type_ctag;
      w.offload.tci = static_cast<std::uint16_t>(*vid | (c.dest.priority & 7) << 13);
    }
  w.software_tag = e.tag_type != 0;
  w.software_tci = e.tci;
  f.begin = payload::frame::payload_start;
  f.length = e.header_bytes + place.length;
  std::memcpy(f.data(), u.bytes.data() + e.header_at, e.header_bytes);
  f.source = static_cast<std::uint8_t>(egress_source::requester);
  wire::mac_address dmac;
  std::copy_n(e.dmac.begin(), dmac.size(), dmac.begin());
  const bool named = std::any_of(dmac.begin(), dmac.end(), [](std::uint8_t b) { return b != 0; });
  f.loopback = e.loopback || (named && gids.owns(dmac)) ? payload::frame::loopback_only
               : (dmac[0] & 1) != 0                     ? payload::frame::loopback_too
                                                        : payload::frame::loopback_none;
}

}  // namespace rnic::transport
