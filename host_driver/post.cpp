// SPDX-License-Identifier: Apache-2.0
// Posting work requests, exactly as libmlx4 does (libmlx4 qp.c:mlx4_post_send, mlx4_post_recv; adapter data plane A.1 -
// A.4).
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "model/abi/bar_layout.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

namespace {

namespace wqe = abi::wqe;
constexpr std::size_t chunk = wqe::inline_data::boundary;
constexpr std::uint32_t zero_length = wqe::inline_data::flag;  // a byte count of 0 would mean 2^31
constexpr std::uint8_t no_opcode = 0xff;
constexpr unsigned masked_log_stride = 7;  // 80 bytes; only the kernel makes room for it in every queue

/// WQE opcodes by ibv_wr_opcode; requests that the device or this shim does not take have none.
constexpr std::array<std::uint8_t, 7> opcodes{
    static_cast<std::uint8_t>(wqe::opcode::rdma_write), static_cast<std::uint8_t>(wqe::opcode::rdma_write_imm),
    static_cast<std::uint8_t>(wqe::opcode::send),       static_cast<std::uint8_t>(wqe::opcode::send_imm),
    static_cast<std::uint8_t>(wqe::opcode::rdma_read),  static_cast<std::uint8_t>(wqe::opcode::atomic_cs),
    static_cast<std::uint8_t>(wqe::opcode::atomic_fa)};

bool is_driver(const ibv_send_wr& wr, driver_opcode what) {
  return wr.opcode == IBV_WR_DRIVER1 && static_cast<const driver_wr&>(wr).operation == what;
}

std::uint8_t opcode_of(const ibv_send_wr& wr, ibv_qp_type type) {
  if (type == IBV_QPT_RAW_PACKET)
    return wr.opcode == IBV_WR_SEND  ? static_cast<std::uint8_t>(wqe::opcode::send)
           : wr.opcode == IBV_WR_TSO ? static_cast<std::uint8_t>(wqe::opcode::lso)
                                     : no_opcode;
  std::uint8_t code = no_opcode;
  if (wr.opcode < opcodes.size()) code = opcodes[wr.opcode];
  if (wr.opcode == IBV_WR_SEND_WITH_INV) code = static_cast<std::uint8_t>(wqe::opcode::send_inval);
  if (wr.opcode == IBV_WR_LOCAL_INV) code = static_cast<std::uint8_t>(wqe::opcode::local_inval);
  if (wr.opcode == IBV_WR_BIND_MW) code = static_cast<std::uint8_t>(wqe::opcode::bind_mw);
  if (is_driver(wr, driver_opcode::fast_register)) code = static_cast<std::uint8_t>(wqe::opcode::fast_reg);
  if (is_driver(wr, driver_opcode::masked_compare_swap))
    code = static_cast<std::uint8_t>(wqe::opcode::masked_atomic_cs);
  if (is_driver(wr, driver_opcode::masked_fetch_add)) code = static_cast<std::uint8_t>(wqe::opcode::masked_atomic_fa);
  if (type == IBV_QPT_XRC_RECV) code = no_opcode;
  if (type == IBV_QPT_UD && wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) code = no_opcode;
  return code;
}

std::uint8_t* put_remote_address(std::uint8_t* at, std::uint64_t address, std::uint32_t rkey) {
  abi::store64(at, 0, address);
  abi::store32(at, 8, rkey);
  abi::store32(at, 12, 0);
  return at + wqe::remote_address::bytes;
}

std::uint8_t* put_atomic(std::uint8_t* at, const ibv_send_wr& wr) {
  const bool compare_swap = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  abi::store64(at, 0, compare_swap ? wr.wr.atomic.swap : wr.wr.atomic.compare_add);
  abi::store64(at, 8, compare_swap ? wr.wr.atomic.compare_add : 0);
  return at + wqe::atomic::bytes;
}

/// set_masked_atomic_seg, and set_atomic_seg's case of a masked fetch and add.
std::uint8_t* put_masked_atomic(std::uint8_t* at, const masked_atomic_wr& wr) {
  if (wr.operation == driver_opcode::masked_fetch_add) {
    abi::store64(at, 0, wr.wr.atomic.compare_add);
    abi::store64(at, 8, wr.compare_add_mask);
    return at + wqe::atomic::bytes;
  }
  abi::store64(at, 0, wr.wr.atomic.swap);
  abi::store64(at, 8, wr.wr.atomic.compare_add);
  abi::store64(at, 16, wr.swap_mask);
  abi::store64(at, 24, wr.compare_add_mask);
  return at + 2 * wqe::atomic::bytes;
}

std::uint8_t* put_datagram(std::uint8_t* at, const ibv_send_wr& wr) {
  const auto& ah = *static_cast<const address_handle*>(wr.wr.ud.ah);
  std::memcpy(at, ah.av, sizeof ah.av);
  abi::store32(at, 0x20, wr.wr.ud.remote_qpn);
  abi::store32(at, 0x24, wr.wr.ud.remote_qkey);
  abi::store16(at, 0x28, ah.vlan);
  std::memcpy(at + wqe::datagram::dmac, ah.mac.data(), ah.mac.size());
  return at + wqe::datagram::bytes;
}

/// libmlx4 qp.c:set_bind_seg. A window is taken off its region by a length of 0, for which no region is needed.
std::uint8_t* put_bind(std::uint8_t* at, const ibv_send_wr& wr) {
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  const auto has = [&](int right, std::uint32_t bit) {
    return (info.mw_access_flags & static_cast<unsigned>(right)) != 0 ? bit : 0u;
  };
  abi::set(at, wqe::bind::flags1,
           has(IBV_ACCESS_REMOTE_ATOMIC, wqe::bind::atomic) | has(IBV_ACCESS_REMOTE_WRITE, wqe::bind::remote_write) |
               has(IBV_ACCESS_REMOTE_READ, wqe::bind::remote_read));
  abi::set(at, wqe::bind::flags2,
           (wr.bind_mw.mw->type == IBV_MW_TYPE_2 ? wqe::bind::type_2 : 0) |
               has(IBV_ACCESS_ZERO_BASED, wqe::bind::zero_based));
  abi::set(at, wqe::bind::new_rkey, wr.bind_mw.rkey);
  abi::set(at, wqe::bind::lkey, info.mr != nullptr ? info.mr->lkey : 0);
  abi::set(at, wqe::bind::address, std::uint64_t{info.addr});
  abi::set(at, wqe::bind::length, std::uint64_t{info.length});
  return at + wqe::bind::bytes;
}

/// ib/qp.c:set_reg_seg and convert_access.
std::uint8_t* put_fast_register(std::uint8_t* at, const fast_register_wr& wr) {
  namespace f = wqe::fast_register;
  const auto has = [&](int right, std::uint32_t bits) { return (wr.access & right) != 0 ? bits : 0u; };
  std::memset(at, 0, f::bytes);
  abi::set(at, f::flags,
           has(IBV_ACCESS_REMOTE_ATOMIC, f::atomic) | has(IBV_ACCESS_REMOTE_WRITE, f::remote_write) |
               has(IBV_ACCESS_REMOTE_READ, f::remote_read) | has(IBV_ACCESS_LOCAL_WRITE, f::local_write) |
               f::local_read);
  abi::set(at, f::key, wr.key);
  abi::set(at, f::page_list, wr.region->page_list.bus_address);
  abi::set(at, f::start, wr.region->iova);
  abi::set(at, f::length, std::uint64_t{wr.region->length});
  abi::set(at, f::log_page, wr.region->log_page);
  return at + f::bytes;
}

/// The top bit of a segment's length means something else (inline data, no data), as in libmlx4.
bool too_long(const ibv_sge* list, int count) {
  return std::any_of(list, list + std::max(count, 0), [](const ibv_sge& s) { return s.length >> 31 != 0; });
}

void put_data(std::uint8_t* at, const ibv_sge& sge, std::uint32_t byte_count) {
  abi::store32(at, 4, sge.lkey);
  abi::store64(at, 8, sge.addr);
  abi::store32(at, 0, byte_count);
}

/// Headers that every packet of a segmented message begins with (ib/qp.c:build_lso_seg).
std::uint8_t* put_large_send(std::uint8_t* at, const ibv_send_wr& wr) {
  namespace f = wqe::large_send;
  std::memset(at, 0, (f::header + wr.tso.hdr_sz + wqe::unit - 1) / wqe::unit * wqe::unit);
  abi::set(at, f::segment, wr.tso.mss);
  abi::set(at, f::length, wr.tso.hdr_sz);
  std::memcpy(at + f::header, wr.tso.hdr, wr.tso.hdr_sz);
  return at + (f::header + wr.tso.hdr_sz + wqe::unit - 1) / wqe::unit * wqe::unit;
}

/// Segments between control and data. *forced_inline: the request counts as inline for BlueFlame.
std::uint8_t* put_operation(std::uint8_t* at, const ibv_send_wr& wr, ibv_qp_type type, std::uint32_t* forced_inline) {
  if (type == IBV_QPT_UD) return put_datagram(at, wr);
  if (type == IBV_QPT_RAW_PACKET) return wr.opcode == IBV_WR_TSO ? put_large_send(at, wr) : at;
  if (is_driver(wr, driver_opcode::fast_register))
    return put_fast_register(at, static_cast<const fast_register_wr&>(wr));
  if (wr.opcode == IBV_WR_DRIVER1)
    return put_masked_atomic(put_remote_address(at, wr.wr.atomic.remote_addr, wr.wr.atomic.rkey),
                             static_cast<const masked_atomic_wr&>(wr));
  switch (wr.opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return put_atomic(put_remote_address(at, wr.wr.atomic.remote_addr, wr.wr.atomic.rkey), wr);
    case IBV_WR_RDMA_READ:
      *forced_inline = 1;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      if (wr.num_sge == 0) *forced_inline = 1;
      return put_remote_address(at, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
    case IBV_WR_LOCAL_INV:
      std::memset(at, 0, wqe::local_invalidate::bytes);
      abi::set(at, wqe::local_invalidate::key, wr.invalidate_rkey);
      return at + wqe::local_invalidate::bytes;
    case IBV_WR_BIND_MW:
      return put_bind(at, wr);
    default:
      return at;
  }
}

/// Copies payload into the request, segment by segment, none of them across a 64-byte line.
class inline_writer {
 public:
  explicit inline_writer(std::uint8_t* at)
      : header_(at), at_(at + wqe::inline_data::header), offset_(reinterpret_cast<std::uintptr_t>(at_) & (chunk - 1)) {}

  void append(const std::uint8_t* from, std::size_t length) {
    while (length >= chunk - offset_) {
      const std::size_t fits = chunk - offset_;
      std::memcpy(at_, from, fits);
      length -= fits;
      from += fits;
      at_ += fits;
      in_segment_ += fits;
      close_segment();
      header_ = at_;
      at_ += wqe::inline_data::header;
      offset_ = wqe::inline_data::header;
    }
    if (length == 0) return;
    std::memcpy(at_, from, length);
    at_ += length;
    in_segment_ += length;
    offset_ += length;
  }
  /// Bytes of headers written.
  std::size_t finish() {
    if (in_segment_ != 0) close_segment();
    return segments_ * wqe::inline_data::header;
  }

 private:
  void close_segment() {
    abi::store32(header_, 0, wqe::inline_data::flag | static_cast<std::uint32_t>(in_segment_));
    in_segment_ = 0;
    ++segments_;
  }
  std::uint8_t* header_;
  std::uint8_t* at_;
  std::size_t offset_;
  std::size_t in_segment_ = 0, segments_ = 0;
};

}  // namespace

/// Marks the later 64-byte chunks of a request that is not posted yet as unwritten, over what it was last time.
void device::stamp_send_entry(queue_pair& qp, std::uint32_t index) {
  std::uint8_t* entry = qp.send_entry(index);
  const std::size_t bytes = (entry[7] & 0x3fu) * wqe::unit;
  for (std::size_t at = chunk; at < bytes; at += chunk) abi::store32(entry, at, wqe::unwritten);
}

/// With config::ud_gid_type: whether a datagram's address is of the version of all datagram queue pairs.
bool device::has_datagram_version(const ibv_send_wr& wr) const {
  using version = config::datagram_version;
  if (cfg_.ud_gid_type == version::by_address || wr.wr.ud.ah == nullptr) return true;
  const bool v2 = static_cast<const address_handle*>(wr.wr.ud.ah)->type == IBV_GID_TYPE_ROCE_V2;
  return v2 == (cfg_.ud_gid_type == version::v2);
}

int device::post_send(ibv_qp* pair, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  auto& qp = *static_cast<queue_pair*>(pair);
  if (qp.sends_mads()) return post_mads(qp, wr, bad_wr);
  const std::uint64_t called = spans_ != nullptr ? bus_.now_ps() : 0;
  bus_.spend_ps(cfg_.post_send_ns * 1000);
  const ibv_send_wr* const first = wr;
  std::uint32_t index = qp.sq.head;
  std::uint32_t posted = 0;
  std::uint32_t inlined = 0;
  std::uint32_t tag = 0;
  std::size_t size = 0;
  std::uint8_t* entry = nullptr;
  int error = 0;
  for (; wr != nullptr; wr = wr->next, ++posted) {
    const std::uint8_t opcode = opcode_of(*wr, qp.qp_type);
    if (qp.sq.overflows(posted) || wr->num_sge < 0 || static_cast<std::uint32_t>(wr->num_sge) > qp.sq.max_sge)
      error = -ENOMEM;
    if (error == 0 && wr->opcode == IBV_WR_TSO && qp.qp_type == IBV_QPT_RAW_PACKET &&
        wqe::control::bytes + wqe::large_send::header + wr->tso.hdr_sz + wqe::unit +
                static_cast<std::size_t>(wr->num_sge) * wqe::data::bytes >
            std::size_t{1} << qp.sq.log_stride)
      error = -ENOMEM;
    if (opcode == no_opcode || (qp.qp_type == IBV_QPT_UD && error == 0 && !has_datagram_version(*wr)) ||
        (error == 0 && too_long(wr->sg_list, wr->num_sge)) ||
        (is_driver(*wr, driver_opcode::masked_compare_swap) && qp.sq.log_stride < masked_log_stride))
      error = -EINVAL;
    if (error != 0) {
      *bad_wr = wr;
      break;
    }
    entry = qp.send_entry(index);
    qp.sq.wr_ids[index & (qp.sq.count - 1)] = wr->wr_id;
    std::uint32_t flags = qp.signal_bits | ((wr->send_flags & IBV_SEND_SIGNALED) != 0 ? wqe::control::cq_update : 0) |
                          ((wr->send_flags & IBV_SEND_SOLICITED) != 0 ? wqe::control::solicited : 0);
    if (qp.qp_type == IBV_QPT_XRC_SEND) flags |= wr->qp_type.xrc.remote_srqn << 8;
    std::uint32_t immediate = 0;
    if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
      immediate = __builtin_bswap32(wr->imm_data);
    if (wr->opcode == IBV_WR_SEND_WITH_INV) immediate = wr->invalidate_rkey;
    if (wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_BIND_MW || is_driver(*wr, driver_opcode::fast_register))
      flags |= wqe::control::strong_order;
    tag = 0;
    if (qp.qp_type == IBV_QPT_RAW_PACKET) put_raw_control(*wr, &flags, &immediate, &tag);
    std::uint8_t* at = put_operation(entry + wqe::control::bytes, *wr, qp.qp_type, &inlined);
    std::size_t bytes = static_cast<std::size_t>(at - entry);
    if ((wr->send_flags & IBV_SEND_INLINE) != 0 && wr->num_sge != 0) {
      inline_writer writer(at);
      inlined = 0;
      for (int i = 0; i < wr->num_sge; ++i) {
        const ibv_sge& sge = wr->sg_list[i];
        if (sge.length > qp.max_inline - std::min(inlined, qp.max_inline)) {
          error = -ENOMEM;
          break;
        }
        inlined += sge.length;
        writer.append(static_cast<const std::uint8_t*>(inline_source(sge.addr, sge.length)), sge.length);
      }
      if (error != 0) {
        inlined = 0;
        *bad_wr = wr;
        break;
      }
      bytes += inlined + writer.finish();
    } else {
      for (int i = wr->num_sge - 1; i >= 0; --i) {
        const ibv_sge& sge = wr->sg_list[i];
        put_data(at + static_cast<std::size_t>(i) * wqe::data::bytes, sge, sge.length != 0 ? sge.length : zero_length);
      }
      bytes += static_cast<std::size_t>(wr->num_sge) * wqe::data::bytes;
    }
    size = (bytes + wqe::unit - 1) / wqe::unit;
    abi::store32(entry, 8, flags);
    abi::store32(entry, 12, immediate);
    const bool fence = (wr->send_flags & IBV_SEND_FENCE) != 0;
    abi::store32(entry, 4, static_cast<std::uint32_t>(size) | (fence ? wqe::control::fence_bit : 0u) | tag);
    // The word with the owner bit comes last: from here on the device may take the request.
    const std::uint32_t header = wr->opcode == IBV_WR_TSO ? wqe::control::long_header : 0;
    abi::store32(entry, 0, opcode | header | ((index & qp.sq.count) != 0 ? wqe::control::owner_bit : 0));
    if (wr->next != nullptr) stamp_send_entry(qp, index + qp.spare_wqes);
    ++index;
  }
  if (posted == 0) return error;

  using rule = config::blue_flame_rule;
  const bool wanted = blue_flame_ == rule::all || (blue_flame_ == rule::with_inline_data && inlined != 0);
  const bool blue_flame = wanted && posted == 1 && tag == 0 && size > 1 && size * wqe::unit <= bf_bytes_;
  if (spans_ != nullptr) bus_.set_span(spans_->span_for(qp, {first, qp.sq.head, posted, called}));
  if (blue_flame) {
    abi::store32(entry, 0, abi::load32(entry) | (qp.sq.head & 0xffff) << 8);
    abi::store32(entry, 4, abi::load32(entry, 4) | abi::uar::send_doorbell_value(qp.qp_num));
    ++qp.sq.head;
    const std::size_t bytes = (size * wqe::unit + chunk - 1) / chunk * chunk;
    const std::uint64_t half = bf_offset_ + bf_half_;
    bf_half_ ^= bf_bytes_;
    bus_.mmio_write_combined(2, half, entry, bytes);
  } else {
    qp.sq.head += posted;
    bus_.mmio_write32(2, uar_offset_ + abi::uar::send_doorbell, abi::uar::send_doorbell_value(qp.qp_num));
  }
  if (spans_ != nullptr) bus_.set_span(0);
  stamp_send_entry(qp, index + qp.spare_wqes - 1);
  return error;
}

int device::post_recv(ibv_qp* pair, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  auto& qp = *static_cast<queue_pair*>(pair);
  bus_.spend_ps(cfg_.post_recv_ns * 1000);
  if (qp.rq.count == 0) {
    *bad_wr = wr;
    return -EINVAL;
  }
  std::uint32_t posted = 0;
  const std::uint32_t own = qp.role == paravirtual_role::proxy ? 1 : 0;  // segments of the driver's
  int error = 0;
  for (; wr != nullptr; wr = wr->next, ++posted) {
    if (qp.rq.head - qp.rq.tail + posted >= qp.rq.max_post || wr->num_sge < 0 ||
        static_cast<std::uint32_t>(wr->num_sge) + own > qp.rq.max_sge) {
      *bad_wr = wr;
      error = -ENOMEM;
      break;
    }
    if (too_long(wr->sg_list, wr->num_sge)) {
      *bad_wr = wr;
      error = -EINVAL;
      break;
    }
    const std::uint32_t index = qp.rq.head + posted;
    std::uint8_t* segment = qp.receive_entry(index);
    if (own != 0) {
      put_tunnel_segment(qp, index, segment);
      segment += wqe::data::bytes;
    }
    for (int i = 0; i < wr->num_sge; ++i, segment += wqe::data::bytes)
      put_data(segment, wr->sg_list[i], wr->sg_list[i].length);
    if (static_cast<std::uint32_t>(wr->num_sge) + own < qp.rq.max_sge) {
      abi::store32(segment, 0, 0);
      abi::store32(segment, 4, wqe::data::invalid_lkey);
      abi::store64(segment, 8, 0);
    }
    qp.rq.wr_ids[index & (qp.rq.count - 1)] = wr->wr_id;
  }
  if (posted != 0) {
    qp.rq.head += posted;
    abi::store32(qp.record.pointer, 0, qp.rq.head & 0xffff);
  }
  return error;
}

}  // namespace rnic::host_driver
