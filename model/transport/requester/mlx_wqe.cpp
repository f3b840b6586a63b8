// SPDX-License-Identifier: Apache-2.0
// Work queue entries of special queue pairs: management datagrams whose headers software has written itself.
#include "model/transport/requester/mlx_wqe.h"

#include <algorithm>

#include "model/transport/transport_cr.h"
#include "model/transport/transport_if.h"
#include "model/wire/bytes.h"

namespace rnic::transport {

namespace {

namespace control = abi::wqe::control;
constexpr std::uint32_t icrc_given = control::ip_checksum;  // of a special QP

bool in_block(const icm::requester_context& ctx, std::uint32_t special_base) {
  return special_base != 0 && ctx.qpn - special_base < cr::special_qps;
}

/// Bytes at the start of the message that the WQE itself brings.
std::uint32_t inline_prefix(const send_wqe& wqe) {
  std::uint32_t bytes = 0;
  for (unsigned i = 0; i < wqe.count && wqe.segments[i].is_inline; ++i) bytes += wqe.segments[i].length;
  return bytes;
}

}  // namespace

bool is_special(const icm::requester_context& ctx, std::uint32_t special_base) {
  return ctx.type == icm::service::mlx &&
         (in_block(ctx, special_base) || (ctx.dest.flags & icm::path_flag_roce_v2) != 0);
}

bool is_subnet_management(const icm::requester_context& ctx, std::uint32_t special_base) {
  return in_block(ctx, special_base) && ctx.qpn - special_base < 2;
}

void parse_mlx_wqe(const std::uint8_t* wqe, send_wqe& out) {
  parse_send_wqe(wqe, icm::service::uc, out);  // control, then data and inline segments: as a SEND without address
  if (out.size < control::bytes) return;
  const std::uint32_t flags = abi::get(wqe, control::flags);
  out.solicited = false;
  out.keep_icrc = (flags & icrc_given) != 0;
  out.address = datagram_address{};
  out.address.loopback = (flags & control::force_loopback) != 0;
  out.address.priority = wqe[4] >> 5;
  if (out.opcode == wqe_opcode::nop) return;
  if (out.opcode != wqe_opcode::send) out.error = syndrome::local_qp_operation;
  if (out.error == 0 && out.length > longest_special_frame) out.error = syndrome::local_length;
}

bool open_special_frame(payload::frame& f, const icm::requester_context& ctx, const send_wqe& wqe,
                        std::uint16_t udp_port) {
  f.begin = payload::frame::payload_start;
  f.length = wqe.length;
  f.packet = wire::packet{};
  if (wire::decode(f.data(), f.length, f.packet, udp_port) != wire::decode_error::none) return false;
  const bool v2 = (ctx.dest.flags & icm::path_flag_roce_v2) != 0;
  if (v2 != (f.packet.encap != wire::encapsulation::roce_v1) || f.packet.icrc_offset + 4 != f.length ||
      f.packet.payload_offset > inline_prefix(wqe))
    return false;
  f.gid_index = ctx.dest.gid_index;
  f.loopback = wqe.address.loopback ? payload::frame::loopback_only : payload::frame::loopback_none;
  f.insert_icrc = !wqe.keep_icrc;
  f.source = static_cast<std::uint8_t>(transport::egress_source::requester);
  return true;
}

gid::source_request source_of_special(const payload::frame& f) {
  gid::source_request r;
  r.dmac = f.packet.dmac;
  return r;
}

}  // namespace rnic::transport
