// SPDX-License-Identifier: Apache-2.0
// Send work queue entries: what software wrote, checked and taken apart.
#include "model/transport/requester/send_wqe.h"

#include <algorithm>

#include "model/abi/queue_entries.h"

namespace rnic::transport {

namespace {

constexpr std::uint64_t max_message = std::uint64_t{1} << 31;
namespace layout = abi::wqe;

bool supported(wqe_opcode opcode, icm::service type) {
  if (type == icm::service::ethernet)
    return opcode == wqe_opcode::nop || opcode == wqe_opcode::send || opcode == wqe_opcode::lso;
  switch (opcode) {
    case wqe_opcode::nop:
      return true;
    case wqe_opcode::send:
    case wqe_opcode::send_imm:
      return true;
    case wqe_opcode::bind_mw:
    case wqe_opcode::fast_reg:
    case wqe_opcode::local_inval:
    case wqe_opcode::rdma_write:
    case wqe_opcode::rdma_write_imm:
      return icm::is_reliable(type) || type == icm::service::uc;
    case wqe_opcode::send_inval:
    case wqe_opcode::rdma_read:
    case wqe_opcode::atomic_cs:
    case wqe_opcode::atomic_fa:
      return icm::is_reliable(type);
    case wqe_opcode::masked_atomic_cs:
    case wqe_opcode::masked_atomic_fa:
      return type == icm::service::rc;
    default:
      return false;
  }
}

void parse_datagram(const std::uint8_t* p, datagram_address& a) {
  namespace at = layout::datagram;
  a.loopback = abi::get(p, at::loopback) != 0;
  a.gid_index = abi::get(p, at::gid_index);
  a.static_rate = abi::get(p, at::static_rate);
  a.hop_limit = abi::get(p, at::hop_limit);
  a.priority = static_cast<std::uint8_t>(abi::get(p, at::priority));
  a.traffic_class = static_cast<std::uint8_t>(abi::get(p, at::traffic_class));
  a.flow_label = abi::get(p, at::flow_label);
  std::copy_n(p + at::remote_gid, a.gid.size(), a.gid.begin());
  a.qpn = abi::get(p, at::qpn);
  a.qkey = abi::get(p, at::qkey);
  a.vlan_tci = abi::get(p, at::vlan);
  a.vlan_present = abi::get(p, at::vlan_valid) != 0 || (a.vlan_tci != 0 && a.vlan_tci != 0xffff);
  std::copy_n(p + at::dmac, a.dmac.size(), a.dmac.begin());
}

// False: the WQE ends too early.
bool parse_atomic(const std::uint8_t* wqe, unsigned& at, send_wqe& out) {
  const bool masked_swap = out.opcode == wqe_opcode::masked_atomic_cs;
  const auto bytes = static_cast<unsigned>(masked_swap ? 2 * layout::atomic::bytes : layout::atomic::bytes);
  if (at + bytes > out.size) return false;
  const std::uint8_t* const p = wqe + at;
  out.atomic = {abi::get(p, layout::atomic::swap_add), abi::get(p, layout::atomic::compare), 0, 0};
  if (masked_swap) {
    const std::uint8_t* const masks = p + layout::atomic::bytes;
    out.atomic.swap_mask = abi::get(masks, layout::atomic::swap_add);
    out.atomic.compare_mask = abi::get(masks, layout::atomic::compare);
  }
  at += bytes;
  return true;
}

// Rights of fast registration (27 to 31: local read to atomic) and binding (29 to 31) as the MPT has them, 10 to 14.
constexpr unsigned rights_shift = 17;
constexpr std::uint32_t fast_register_rights = 0x1fu << 27, bind_rights = 7u << 29;

// False: the WQE ends too early.
bool parse_key_operation(const std::uint8_t* wqe, send_wqe& out) {
  const std::uint8_t* p = wqe + layout::control::bytes;
  const std::size_t bytes = out.size - layout::control::bytes;
  icm::key_operation& k = out.keys;
  k = icm::key_operation{};
  switch (out.opcode) {
    case wqe_opcode::local_inval:
      if (bytes < layout::local_invalidate::bytes) return false;
      k.key = abi::get(p, layout::local_invalidate::key);
      return true;
    case wqe_opcode::fast_reg:
      if (bytes < layout::fast_register::bytes) return false;
      k.what = icm::key_operation::kind::fast_register;
      k.rights = (abi::get(p, layout::fast_register::flags) & fast_register_rights) >> rights_shift;
      k.key = abi::get(p, layout::fast_register::key);
      k.page_list = abi::get(p, layout::fast_register::page_list);
      k.start = abi::get(p, layout::fast_register::start);
      k.length = abi::get(p, layout::fast_register::length);
      k.log_page = static_cast<std::uint8_t>(std::min(abi::get(p, layout::fast_register::log_page), 63u));
      return true;
    default:
      if (bytes < layout::bind::bytes) return false;
      k.what = icm::key_operation::kind::bind;
      k.rights = (abi::get(p, layout::bind::flags1) & bind_rights) >> rights_shift;
      k.type_2 = (abi::get(p, layout::bind::flags2) & layout::bind::type_2) != 0;
      k.zero_based = (abi::get(p, layout::bind::flags2) & layout::bind::zero_based) != 0;
      k.key = abi::get(p, layout::bind::new_rkey);
      k.lkey = abi::get(p, layout::bind::lkey);
      k.start = abi::get(p, layout::bind::address);
      k.length = abi::get(p, layout::bind::length);
      return true;
  }
}

// Walks data and inline segments from `at` on; false: malformed.
bool parse_segments(const std::uint8_t* wqe, unsigned at, send_wqe& out) {
  std::uint64_t total = 0;
  constexpr unsigned header = layout::inline_data::header, chunk = layout::inline_data::boundary;
  while (at + header <= out.size && out.count < send_wqe::max_segments) {
    const std::uint8_t* const p = wqe + at;
    const std::uint32_t word = abi::get(p, layout::data::byte_count);
    wqe_segment& s = out.segments[out.count];
    if ((word & layout::inline_data::flag) != 0) {
      const std::uint32_t n = word & layout::inline_data::length_mask;
      if (at % chunk + header + n > chunk || at + header + n > out.size) return false;
      s = {at + header, n, 0, true};
      at += header + n;
      if (at % chunk != 0) at = (at + layout::unit - 1) / layout::unit * layout::unit;
    } else {
      if (at + layout::data::bytes > out.size) return false;
      s = {abi::get(p, layout::data::address), word, abi::get(p, layout::data::lkey), false};
      at += layout::data::bytes;
      if (word != 0) out.all_inline = false;
    }
    total += s.length;
    if (s.length != 0) ++out.count;
  }
  if (total > max_message) {
    out.error = syndrome::local_length;
    return true;
  }
  out.length = static_cast<std::uint32_t>(total);
  return true;
}

}  // namespace

bool wqe_owner(const std::uint8_t* wqe) { return abi::get(wqe, layout::control::owner) != 0; }
unsigned wqe_size(const std::uint8_t* wqe) {
  return static_cast<unsigned>(abi::get(wqe, layout::control::size) * layout::unit);
}

bool wqe_stamped(const std::uint8_t* wqe, unsigned bytes) {
  for (unsigned at = layout::inline_data::boundary; at < bytes; at += layout::inline_data::boundary)
    if (abi::load32(wqe, at) == layout::unwritten) return true;
  return false;
}

void parse_send_wqe(const std::uint8_t* wqe, icm::service type, send_wqe& out) {
  namespace control = layout::control;
  const std::uint32_t flags = abi::get(wqe, control::flags);
  out.opcode = static_cast<wqe_opcode>(abi::get(wqe, control::opcode));
  out.signalled = (flags & control::cq_update) == control::cq_update;
  out.solicited = (flags & control::solicited) != 0;
  out.fence = abi::get(wqe, control::fence) != 0;
  out.immediate = abi::get(wqe, control::immediate);
  out.srqn = flags >> 8;
  out.all_inline = true;
  out.local = false;
  out.error = 0;
  out.count = 0;
  out.length = 0;
  out.rkey = 0;
  out.remote_va = 0;
  out.size = static_cast<std::uint16_t>(wqe_size(wqe));
  if (out.size < control::bytes || !supported(out.opcode, type)) {
    out.error = syndrome::local_qp_operation;
    return;
  }
  if (out.opcode == wqe_opcode::nop || out.is_key_operation()) {
    out.local = true;
    if (out.is_key_operation() && !parse_key_operation(wqe, out)) out.error = syndrome::local_qp_operation;
    return;
  }
  unsigned at = control::bytes;
  if (type == icm::service::ethernet && !parse_ethernet(wqe, at, out)) {
    out.error = syndrome::local_qp_operation;
    return;
  }
  if (type == icm::service::ud) {
    if (at + layout::datagram::bytes > out.size) {
      out.error = syndrome::local_qp_operation;
      return;
    }
    parse_datagram(wqe + at, out.address);
    at += layout::datagram::bytes;
  }
  if (out.is_write() || out.fetches()) {
    if (at + layout::remote_address::bytes > out.size) {
      out.error = syndrome::local_qp_operation;
      return;
    }
    out.remote_va = abi::get(wqe + at, layout::remote_address::address);
    out.rkey = abi::get(wqe + at, layout::remote_address::rkey);
    at += layout::remote_address::bytes;
  }
  if (out.is_atomic() && !parse_atomic(wqe, at, out)) {
    out.error = syndrome::local_qp_operation;
    return;
  }
  if (!parse_segments(wqe, at, out) || (out.fetches() && out.length != 0 && out.segments[0].is_inline) ||
      (out.is_atomic() && out.length != atomic_bytes))
    out.error = syndrome::local_qp_operation;
}

}  // namespace rnic::transport
