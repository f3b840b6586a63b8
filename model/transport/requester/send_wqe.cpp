// SPDX-License-Identifier: Apache-2.0
// Send work queue entries: what software wrote, checked and taken apart.
#include "model/transport/requester/send_wqe.h"

#include <algorithm>

#include "model/abi/queues.h"
#include "model/wire/bytes.h"

namespace rnic::transport {

namespace {

using wire::load_be16;
using wire::load_be32;
using wire::load_be64;

constexpr std::uint64_t max_message = std::uint64_t{1} << 31;
constexpr unsigned control_bytes = 16, remote_bytes = 16, datagram_bytes = 48, atomic_segment_bytes = 16;

bool supported(wqe_opcode opcode, icm::service type) {
  if (type == icm::service::ethernet)
    return opcode == wqe_opcode::nop || opcode == wqe_opcode::send || opcode == wqe_opcode::large_send;
  switch (opcode) {
    case wqe_opcode::nop:
      return true;
    case wqe_opcode::send:
    case wqe_opcode::send_immediate:
      return true;
    case wqe_opcode::bind_window:
    case wqe_opcode::fast_register:
    case wqe_opcode::local_invalidate:
    case wqe_opcode::rdma_write:
    case wqe_opcode::rdma_write_immediate:
      return icm::is_reliable(type) || type == icm::service::uc;
    case wqe_opcode::send_invalidate:
    case wqe_opcode::rdma_read:
    case wqe_opcode::compare_swap:
    case wqe_opcode::fetch_add:
      return icm::is_reliable(type);
    case wqe_opcode::masked_compare_swap:
    case wqe_opcode::masked_fetch_add:
      return type == icm::service::rc;
    default:
      return false;
  }
}

void parse_datagram(const std::uint8_t* p, datagram_address& a) {
  const std::uint32_t port_pd = load_be32(p);
  a.loopback = (port_pd >> 31) != 0;
  a.gid_index = p[9];
  a.static_rate = p[10];
  a.hop_limit = p[11];
  const std::uint32_t word = load_be32(p + 12);
  a.priority = static_cast<std::uint8_t>(word >> 29);
  a.traffic_class = static_cast<std::uint8_t>(word >> 20);
  a.flow_label = word & 0xfffff;
  std::copy_n(p + 16, 16, a.gid.begin());
  a.qpn = load_be32(p + 32) & 0xffffff;
  a.qkey = load_be32(p + 36);
  a.vlan_tci = load_be16(p + 40);
  a.vlan_present = (port_pd >> 29 & 1) != 0 || (a.vlan_tci != 0 && a.vlan_tci != 0xffff);
  std::copy_n(p + 42, 6, a.dmac.begin());
}

// False: the WQE ends too early.
bool parse_atomic(const std::uint8_t* wqe, unsigned& at, send_wqe& out) {
  const bool masked_swap = out.opcode == wqe_opcode::masked_compare_swap;
  const unsigned bytes = masked_swap ? 2 * atomic_segment_bytes : atomic_segment_bytes;
  if (at + bytes > out.size) return false;
  out.atomic = {load_be64(wqe + at), load_be64(wqe + at + 8), 0, 0};
  if (masked_swap) {
    out.atomic.swap_mask = load_be64(wqe + at + 16);
    out.atomic.compare_mask = load_be64(wqe + at + 24);
  }
  at += bytes;
  return true;
}

// Rights of fast registration (27 to 31: local read to atomic) and binding (29 to 31) as the MPT has them, 10 to 14.
constexpr unsigned rights_shift = 17;
constexpr std::uint32_t fast_register_rights = 0x1fu << 27, bind_rights = 7u << 29;

// False: the WQE ends too early.
bool parse_key_operation(const std::uint8_t* wqe, send_wqe& out) {
  const std::uint8_t* p = wqe + control_bytes;
  const unsigned bytes = out.size - control_bytes;
  icm::key_operation& k = out.keys;
  k = icm::key_operation{};
  switch (out.opcode) {
    case wqe_opcode::local_invalidate:
      if (bytes < abi::wqe::local_invalidate::bytes) return false;
      k.key = abi::get(p, abi::wqe::local_invalidate::key);
      return true;
    case wqe_opcode::fast_register:
      if (bytes < abi::wqe::fast_register::bytes) return false;
      k.what = icm::key_operation::kind::fast_register;
      k.rights = (abi::get(p, abi::wqe::fast_register::flags) & fast_register_rights) >> rights_shift;
      k.key = abi::get(p, abi::wqe::fast_register::key);
      k.page_list = abi::get(p, abi::wqe::fast_register::page_list);
      k.start = abi::get(p, abi::wqe::fast_register::start);
      k.length = abi::get(p, abi::wqe::fast_register::length);
      k.log_page = static_cast<std::uint8_t>(std::min(abi::get(p, abi::wqe::fast_register::log_page), 63u));
      return true;
    default:
      if (bytes < abi::wqe::bind::bytes) return false;
      k.what = icm::key_operation::kind::bind;
      k.rights = (abi::get(p, abi::wqe::bind::flags1) & bind_rights) >> rights_shift;
      k.type_2 = (abi::get(p, abi::wqe::bind::flags2) & abi::wqe::bind::type_2) != 0;
      k.zero_based = (abi::get(p, abi::wqe::bind::flags2) & abi::wqe::bind::zero_based) != 0;
      k.key = abi::get(p, abi::wqe::bind::new_rkey);
      k.lkey = abi::get(p, abi::wqe::bind::lkey);
      k.start = abi::get(p, abi::wqe::bind::address);
      k.length = abi::get(p, abi::wqe::bind::length);
      return true;
  }
}

// Walks data and inline segments from `at` on; false: malformed.
bool parse_segments(const std::uint8_t* wqe, unsigned at, send_wqe& out) {
  std::uint64_t total = 0;
  while (at + 4 <= out.size && out.count < send_wqe::max_segments) {
    const std::uint32_t word = load_be32(wqe + at);
    wqe_segment& s = out.segments[out.count];
    if ((word >> 31) != 0) {
      const std::uint32_t n = word & 0x3ff;
      if (at % wqe_chunk_bytes + 4 + n > wqe_chunk_bytes || at + 4 + n > out.size) return false;
      s = {at + 4, n, 0, true};
      at += 4 + n;
      if (at % wqe_chunk_bytes != 0) at = (at + 15) / 16 * 16;
    } else {
      if (at + 16 > out.size) return false;
      s = {load_be64(wqe + at + 8), word, load_be32(wqe + at + 4), false};
      at += 16;
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

bool wqe_owner(const std::uint8_t* wqe) { return (wqe[0] & 0x80) != 0; }
unsigned wqe_size(const std::uint8_t* wqe) { return (wqe[7] & 0x3fu) * 16; }

bool wqe_stamped(const std::uint8_t* wqe, unsigned bytes) {
  for (unsigned at = wqe_chunk_bytes; at < bytes; at += wqe_chunk_bytes)
    if (load_be32(wqe + at) == 0xffffffff) return true;
  return false;
}

void parse_send_wqe(const std::uint8_t* wqe, icm::service type, send_wqe& out) {
  out.opcode = static_cast<wqe_opcode>(wqe[3] & 0x1f);
  out.signalled = (wqe[11] & 0x0c) == 0x0c;
  out.solicited = (wqe[11] & 0x02) != 0;
  out.fence = (wqe[7] & 0x40) != 0;
  out.immediate = load_be32(wqe + 12);
  out.srqn = load_be32(wqe + 8) >> 8;
  out.all_inline = true;
  out.local = false;
  out.error = 0;
  out.count = 0;
  out.length = 0;
  out.rkey = 0;
  out.remote_va = 0;
  out.size = static_cast<std::uint16_t>(wqe_size(wqe));
  if (out.size < control_bytes || !supported(out.opcode, type)) {
    out.error = syndrome::local_qp_operation;
    return;
  }
  if (out.opcode == wqe_opcode::nop || out.is_key_operation()) {
    out.local = true;
    if (out.is_key_operation() && !parse_key_operation(wqe, out)) out.error = syndrome::local_qp_operation;
    return;
  }
  unsigned at = control_bytes;
  if (type == icm::service::ethernet && !parse_ethernet(wqe, at, out)) {
    out.error = syndrome::local_qp_operation;
    return;
  }
  if (type == icm::service::ud) {
    if (at + datagram_bytes > out.size) {
      out.error = syndrome::local_qp_operation;
      return;
    }
    parse_datagram(wqe + at, out.address);
    at += datagram_bytes;
  }
  if (out.is_write() || out.fetches()) {
    if (at + remote_bytes > out.size) {
      out.error = syndrome::local_qp_operation;
      return;
    }
    out.remote_va = load_be64(wqe + at);
    out.rkey = load_be32(wqe + at + 8);
    at += remote_bytes;
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
