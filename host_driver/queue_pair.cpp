// SPDX-License-Identifier: Apache-2.0
// Queue pairs: creation with libmlx4's ring geometry, destruction, query; address handles.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

namespace {

constexpr std::uint32_t prefetch_bytes = 2048;  // what the device may read beyond the last posted request
constexpr std::size_t inline_chunk = abi::wqe::inline_data::boundary;
constexpr std::size_t bind_bytes = abi::wqe::bind::bytes;
// Special queue pairs: 86 bytes of headers in two inline segments, and one for the ICRC (ib/qp.c send_wqe_overhead).
constexpr std::size_t special_overhead = 96 + 16;

std::size_t align_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Chunks that inline data may need: no segment crosses a 64-byte line (libmlx4 num_inline_segs).
std::size_t inline_segments(std::size_t data, ibv_qp_type type) {
  const std::size_t before =
      abi::wqe::control::bytes + (type == IBV_QPT_UD ? abi::wqe::datagram::bytes : abi::wqe::remote_address::bytes);
  const std::size_t room = inline_chunk - abi::wqe::inline_data::header;
  return (data + before % inline_chunk + room - 1) / room;
}

/// Bytes of a send request with these capabilities (libmlx4 mlx4_calc_sq_wqe_size).
std::size_t send_entry_bytes(const ibv_qp_cap& cap, ibv_qp_type type) {
  const std::size_t inline_bytes =
      align_up(cap.max_inline_data + inline_segments(cap.max_inline_data, type) * abi::wqe::inline_data::header,
               abi::wqe::data::bytes);
  std::size_t size = std::max<std::size_t>(inline_bytes, cap.max_send_sge * abi::wqe::data::bytes);
  if (type == IBV_QPT_UD) size += abi::wqe::datagram::bytes;
  if (type == IBV_QPT_DRIVER) size += special_overhead;
  const bool reliable = type == IBV_QPT_RC || is_xrc(type);
  if (type == IBV_QPT_UC || reliable) size += abi::wqe::remote_address::bytes;
  if (reliable) {
    size = std::max(size, abi::wqe::atomic::bytes + abi::wqe::remote_address::bytes + abi::wqe::data::bytes);
  }
  return std::max(size, bind_bytes) + abi::wqe::control::bytes;
}

ibv_qp_state state_of(std::uint32_t code) {
  constexpr ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                     IBV_QPS_SQE,   IBV_QPS_SQD,  IBV_QPS_ERR, IBV_QPS_SQD};
  return code < 8 ? states[code] : IBV_QPS_UNKNOWN;
}

}  // namespace

/// Decides entry sizes and counts, and writes what came of it back into attr.cap (libmlx4 verbs.c, qp.c).
int device::size_queues(queue_pair& qp, ibv_qp_init_attr& attr, std::uint32_t* inline_receive) const {
  ibv_qp_cap& cap = attr.cap;
  const std::uint32_t max_wr = caps_.max_qp_wqes - 33;
  if (cap.max_send_wr > max_wr || cap.max_recv_wr > max_wr || cap.max_send_sge > caps_.max_sq_sge ||
      cap.max_recv_sge > caps_.max_rq_sge || cap.max_inline_data > 1024) {
    return -EINVAL;
  }
  const std::size_t wanted = send_entry_bytes(cap, attr.qp_type);
  if (wanted > abi::wqe::max_bytes) return -EINVAL;
  qp.sq.log_stride = std::max(6u, log2_up(wanted));
  qp.spare_wqes = (prefetch_bytes >> qp.sq.log_stride) + 1;
  qp.sq.count = 1u << log2_up(std::max(1u, cap.max_send_wr) + qp.spare_wqes);
  std::size_t room = (std::size_t{1} << qp.sq.log_stride) - abi::wqe::control::bytes;
  room = std::min(room, abi::wqe::max_bytes - abi::wqe::control::bytes);  // the size field has six bits
  room -= attr.qp_type == IBV_QPT_UD ? abi::wqe::datagram::bytes : abi::wqe::remote_address::bytes;
  qp.sq.max_sge = static_cast<std::uint32_t>(room / abi::wqe::data::bytes);
  if (attr.qp_type == IBV_QPT_DRIVER) {
    room = 0;
    qp.sq.max_sge = std::max(1u, cap.max_send_sge);
  }
  qp.sq.max_post = std::min(max_wr, qp.sq.count - qp.spare_wqes);
  const std::size_t inline_headers = abi::wqe::inline_data::header * (align_up(room, inline_chunk) / inline_chunk);
  qp.max_inline = static_cast<std::uint32_t>(room - inline_headers);
  qp.sq.wr_ids.assign(qp.sq.count, 0);
  cap.max_send_wr = qp.sq.max_post;
  cap.max_send_sge = std::min(caps_.max_sq_sge, qp.sq.max_sge);
  cap.max_inline_data = qp.max_inline;

  if (inline_receive != nullptr &&
      (*inline_receive > caps_.max_rq_sge * abi::wqe::data::bytes || qp.shared != nullptr || is_xrc(attr.qp_type)))
    return -EINVAL;
  qp.inline_receive = inline_receive != nullptr;
  qp.rq.log_stride = 4;
  if (qp.shared != nullptr || is_xrc(attr.qp_type)) {
    cap.max_recv_wr = cap.max_recv_sge = 0;
  } else {
    qp.rq.count = qp.rq.max_post = 1u << log2_up(std::max(1u, cap.max_recv_wr));
    const std::uint32_t data = inline_receive != nullptr ? *inline_receive : 0;
    qp.rq.log_stride = log2_up(std::max(abi::wqe::data::bytes * std::max(1u, cap.max_recv_sge), std::size_t{data}));
    if (inline_receive != nullptr) *inline_receive = 1u << qp.rq.log_stride;
    qp.rq.max_sge = 1u << (qp.rq.log_stride - 4);
    qp.rq.wr_ids.assign(qp.rq.count, 0);
    cap.max_recv_wr = qp.rq.count;
    cap.max_recv_sge = std::min(caps_.max_rq_sge, qp.rq.max_sge);
  }
  const std::size_t send_bytes = std::size_t{qp.sq.count} << qp.sq.log_stride;
  const std::size_t receive_bytes = std::size_t{qp.rq.count} << qp.rq.log_stride;
  const bool receive_first = qp.rq.log_stride > qp.sq.log_stride;
  qp.rq.offset = receive_first ? 0 : send_bytes;
  qp.sq.offset = receive_first ? receive_bytes : 0;
  qp.caps = cap;
  return 0;
}

/// Ownership bits as before the first lap, and stamps that tell prefetched from written (libmlx4
/// mlx4_qp_init_sq_ownership).
void device::init_send_ring(queue_pair& qp) const {
  for (std::uint32_t i = 0; i < qp.sq.count; ++i) {
    std::uint8_t* entry = qp.send_entry(i);
    abi::store32(entry, 0, abi::wqe::control::owner_bit);
    abi::set(entry, abi::wqe::control::size, static_cast<std::uint8_t>((1u << (qp.sq.log_stride - 4)) & 0x3f));
    for (std::size_t at = inline_chunk; at < (std::size_t{1} << qp.sq.log_stride); at += inline_chunk)
      abi::store32(entry, at, abi::wqe::unwritten);
  }
}

queue_pair* device::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr, const std::uint32_t* wanted) {
  if (is_xrc(attr->qp_type)) {
    errno = EINVAL;
    return nullptr;
  }
  if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC && attr->qp_type != IBV_QPT_UD &&
      attr->qp_type != IBV_QPT_RAW_PACKET) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return make_qp(pd, attr, wanted);
}

queue_pair* device::make_qp(ibv_pd* pd, ibv_qp_init_attr* attr, const std::uint32_t* wanted, xrc_domain* xrc,
                            std::uint32_t* inline_receive) {
  const auto fail = [](int error) -> queue_pair* {
    errno = error;
    return nullptr;
  };
  if (!open_) return fail(ENODEV);
  if (pd == nullptr || attr->send_cq == nullptr || attr->recv_cq == nullptr) return fail(EINVAL);
  auto qp = std::make_unique<queue_pair>();
  qp->pd = pd;
  qp->domain = static_cast<protection_domain*>(pd);
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->send_queue = static_cast<completion_queue*>(attr->send_cq);
  qp->receive_queue = static_cast<completion_queue*>(attr->recv_cq);
  qp->srq = attr->srq;
  qp->shared = static_cast<shared_receive_queue*>(attr->srq);
  qp->qp_context = attr->qp_context;
  qp->qp_type = attr->qp_type;
  qp->xrc = xrc;
  qp->state = IBV_QPS_RESET;
  qp->signal_bits = attr->sq_sig_all != 0 ? abi::wqe::control::cq_update : 0;
  if (const int error = size_queues(*qp, *attr, inline_receive)) return fail(-error);

  const std::size_t bytes = align_up(
      (std::size_t{qp->sq.count} << qp->sq.log_stride) + (std::size_t{qp->rq.count} << qp->rq.log_stride), 4096);
  qp->buffer = bus_.allocate(bytes);
  qp->record = allocate_record();
  if (qp->buffer.pointer == nullptr || qp->record.pointer == nullptr) {
    give_back_queue(qp->buffer, qp->record);
    return fail(ENOMEM);
  }
  std::memset(qp->buffer.pointer, 0, bytes);
  init_send_ring(*qp);
  const auto map =
      attr->qp_type == IBV_QPT_DRIVER ? &device::map_buffer : &device::map_user_buffer;  // the kernel's own
  int error = (this->*map)(qp->buffer.bus_address, bytes, 12, qp->mtt);
  std::uint32_t qpn = 0;
  if (error == 0)
    error = wanted != nullptr && *wanted >> 24 != 0 ? -EBUSY : resources_->take(resource::qp, &qpn, wanted);
  if (error != 0) {
    free_mtt(qp->mtt);
    free_record(qp->record);
    bus_.release(qp->buffer);
    return fail(-error);
  }
  if (xrc != nullptr) {
    if (wanted == nullptr) qpn |= xrc_qpn_bit;
    ++xrc->users;
  }
  qp->qp_num = qpn;
  qp->handle = qpn;
  ++qp->domain->users;
  ++qp->send_queue->users;
  ++qp->receive_queue->users;
  if (qp->shared != nullptr) ++qp->shared->users;
  remember_qp(qpn, qp.get());
  auto& place = qps_[qpn];
  place = std::move(qp);
  return place.get();
}

queue_pair* device::find_qp(std::uint32_t qpn) const {
  const std::uint32_t slot = qpn & (num_qps_ - 1);
  const auto& group = qp_index_[slot / qps_per_group];
  queue_pair* qp = group ? (*group)[slot % qps_per_group] : nullptr;
  return qp != nullptr && qp->qp_num == qpn ? qp : nullptr;
}

/// Whether a completion of this queue pair's receives names a shared receive queue. The queue pair may be gone, or be
/// another program's: then its number tells, unless it was chosen without that bit.
bool device::receives_xrc(std::uint32_t qpn) const {
  const queue_pair* const qp = find_qp(qpn);
  return qp != nullptr ? qp->xrc != nullptr : (qpn & xrc_qpn_bit) != 0;
}

void device::remember_qp(std::uint32_t qpn, queue_pair* qp) {
  const std::uint32_t slot = qpn & (num_qps_ - 1);
  auto& group = qp_index_[slot / qps_per_group];
  if (!group) {
    group = std::make_unique<qp_group>();
    group->fill(nullptr);
  }
  (*group)[slot % qps_per_group] = qp;
}

/// The queue pair that a completion names, if its completions come to this queue: entries lie in memory that others can
/// write.
queue_pair* device::completed_qp(completion_queue& cq, std::uint32_t qpn, bool is_send) const {
  if (cq.last_qp == nullptr || cq.last_qp->qp_num != qpn) {
    queue_pair* const qp = find_qp(qpn);
    cq.last_qp = qp != nullptr && (qp->send_queue == &cq || qp->receive_queue == &cq) ? qp : nullptr;
  }
  queue_pair* const qp = cq.last_qp;
  return qp != nullptr && (is_send ? qp->send_queue : qp->receive_queue) == &cq ? qp : nullptr;
}

/// Drops completions that `gone` says yes to, and closes the gaps (libmlx4 __mlx4_cq_clean). `shared`, if any, gets the
/// entries of those that are receives back.
void device::purge_cq(completion_queue& cq, const std::function<bool(const std::uint8_t*)>& gone,
                      shared_receive_queue* shared) {
  std::uint32_t producer = cq.consumer;
  while (producer != cq.consumer + cq.entries) {
    const bool parity = (producer & cq.entries) != 0;
    if (((cq.entry(producer)[abi::cqe::owner_opcode.offset] & abi::cqe::owner_bit) != 0) != parity) break;
    ++producer;
  }
  std::uint32_t freed = 0;
  while (producer-- != cq.consumer) {
    std::uint8_t* entry = cq.entry(producer);
    if (gone(entry)) {
      if (shared != nullptr && (entry[abi::cqe::owner_opcode.offset] & abi::cqe::send_bit) == 0)
        release_srq_entry(*shared, abi::get(entry, abi::cqe::wqe_index) & (shared->count - 1));
      ++freed;
    } else if (freed != 0) {
      std::uint8_t* to = cq.entry(producer + freed);
      const std::uint8_t owner = to[abi::cqe::owner_opcode.offset] & abi::cqe::owner_bit;
      std::memcpy(to, entry, abi::cqe::bytes);
      to[abi::cqe::owner_opcode.offset] =
          static_cast<std::uint8_t>(owner | (to[abi::cqe::owner_opcode.offset] & ~abi::cqe::owner_bit));
    }
  }
  cq.consumer += freed;
  if (freed != 0) abi::store32(cq.record.pointer, 0, cq.consumer & abi::uar::cq_index_mask);
}

/// What an XRC queue pair has received is its receive queues' and stays in theirs.
void device::purge_completions(queue_pair& qp) {
  const auto mine = [&qp](const std::uint8_t* entry) { return abi::get(entry, abi::cqe::qpn) == qp.qp_num; };
  purge_cq(*qp.receive_queue, mine, qp.shared);
  if (qp.send_queue != qp.receive_queue) purge_cq(*qp.send_queue, mine, qp.shared);
  for (completion_queue* cq : {qp.receive_queue, qp.send_queue})
    if (cq->last_qp == &qp) cq->last_qp = nullptr;
}

int device::destroy_qp(ibv_qp* pair) {
  auto* qp = static_cast<queue_pair*>(pair);
  if (qp->qp_type == IBV_QPT_RAW_PACKET || by_device()) drop_flows(*qp);
  if (qp->state != IBV_QPS_RESET) {
    if (const int error = move_qp(*qp, IBV_QPS_RESET, nullptr, false)) return error;
  }
  settle_vlan(*qp, true);
  const std::uint32_t qpn = qp->qp_num;
  if (qp->role == paravirtual_role::proxy && carrier_ != nullptr) carrier_->close_tunnel(0, qp->port);
  purge_completions(*qp);
  const std::uint32_t number = qp->xrc != nullptr ? qpn & ~xrc_qpn_bit : qpn;
  remember_qp(qpn, nullptr);
  free_mtt(qp->mtt);
  free_record(qp->record);
  bus_.release(qp->buffer);
  if (qp->tunnel_headers.pointer != nullptr) bus_.release(qp->tunnel_headers);
  --qp->domain->users;
  --qp->send_queue->users;
  --qp->receive_queue->users;
  if (qp->shared != nullptr) --qp->shared->users;
  if (qp->xrc != nullptr) --qp->xrc->users;
  forget_events([pair](const ibv_async_event& e) {
    const bool of_port = e.event_type == IBV_EVENT_PORT_ACTIVE || e.event_type == IBV_EVENT_PORT_ERR;
    return !of_port && !of_cq(e.event_type) && !of_srq(e.event_type) && e.element.qp == pair;
  });
  resources_->give_back(resource::qp, number);
  queue_pair* const companion = qp->roce_v2_sender;
  qps_.erase(qpn);
  return companion != nullptr ? destroy_qp(companion) : 0;
}

int device::query_qp(ibv_qp* pair, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  static_cast<void>(mask);
  auto& qp = *static_cast<queue_pair*>(pair);
  *attr = ibv_qp_attr{};
  attr->qp_state = attr->cur_qp_state = qp.state;
  if (qp.state != IBV_QPS_RESET) {
    command_channel::mailbox box(channel_);
    if (const int error = channel_.read(box, abi::opcode::query_qp, qp.qp_num)) return error;
    const std::uint8_t* c = box.data() + abi::qp_mailbox::context;
    const auto get = [&](auto field) { return abi::get(c, field); };
    const auto path = [&](auto field) { return abi::get(c, abi::at(abi::qpc::primary_path, field)); };
    const std::uint32_t code = get(abi::qpc::flags) >> 28;
    qp.state = attr->qp_state = attr->cur_qp_state = state_of(code);
    attr->sq_draining = code == 7 ? 1 : 0;
    attr->path_mtu = static_cast<ibv_mtu>(c[8] >> 5);
    attr->path_mig_state = IBV_MIG_MIGRATED;
    attr->qkey = get(abi::qpc::qkey);
    attr->rq_psn = get(abi::qpc::next_receive_psn);
    attr->sq_psn = get(abi::qpc::next_send_psn);
    attr->dest_qp_num = get(abi::qpc::remote_qpn);
    attr->qp_access_flags = (get(abi::qpc::remote_read) != 0 ? unsigned{IBV_ACCESS_REMOTE_READ} : 0u) |
                            (get(abi::qpc::remote_write) != 0 ? unsigned{IBV_ACCESS_REMOTE_WRITE} : 0u) |
                            (get(abi::qpc::remote_atomic) != 0 ? unsigned{IBV_ACCESS_REMOTE_ATOMIC} : 0u);
    attr->pkey_index = path(abi::path::pkey_index) & 0x7f;
    attr->port_num = static_cast<std::uint8_t>(qp.state == IBV_QPS_INIT ? qp.port : path(abi::path::port) + 1u);
    attr->max_rd_atomic = static_cast<std::uint8_t>(1u << get(abi::qpc::requester_rdma));
    attr->max_dest_rd_atomic = static_cast<std::uint8_t>(1u << get(abi::qpc::responder_rdma));
    attr->min_rnr_timer = static_cast<std::uint8_t>(get(abi::qpc::min_rnr_timer));
    attr->timeout = path(abi::path::ack_timeout);
    attr->retry_cnt = static_cast<std::uint8_t>(get(abi::qpc::retry_count));
    attr->rnr_retry = static_cast<std::uint8_t>(get(abi::qpc::rnr_retry));
    attr->ah_attr.sl = static_cast<std::uint8_t>(path(abi::path::priority));
    attr->ah_attr.port_num = attr->port_num;
    attr->ah_attr.is_global = path(abi::path::grh);
    attr->ah_attr.grh.sgid_index = path(abi::path::gid_index);
    attr->ah_attr.grh.hop_limit = path(abi::path::hop_limit);
    attr->ah_attr.grh.traffic_class = static_cast<std::uint8_t>(path(abi::path::traffic_class));
    attr->ah_attr.grh.flow_label = path(abi::path::flow_label);
    std::memcpy(attr->ah_attr.grh.dgid.raw, c + abi::qpc::primary_path + abi::path::remote_gid, 16);
  }
  attr->cap = qp.caps;
  if (init != nullptr) {
    *init = ibv_qp_init_attr{};
    init->qp_context = qp.qp_context;
    init->send_cq = qp.send_cq;
    init->recv_cq = qp.recv_cq;
    init->srq = qp.srq;
    init->cap = qp.caps;
    init->qp_type = qp.qp_type;
    init->sq_sig_all = qp.signal_bits != 0 ? 1 : 0;
  }
  return 0;
}

address_handle* device::create_ah(ibv_pd* pd, const ibv_ah_attr* attr, const mac_address* remote_mac) {
  const auto fail = [](int error) -> address_handle* {
    errno = error;
    return nullptr;
  };
  const unsigned port = attr->port_num;
  if (pd == nullptr || !has_port(port) || attr->is_global == 0 || attr->grh.sgid_index >= ports_[port - 1].gid_rows ||
      attr->sl > 7) {
    return fail(EINVAL);
  }
  const gid_row& row = ports_[port - 1].gids[attr->grh.sgid_index];
  if (!row.valid) return fail(EINVAL);
  auto ah = std::make_unique<address_handle>();
  ah->pd = pd;
  ah->type = row.type;
  if (remote_mac != nullptr) {
    ah->mac = *remote_mac;
  } else if (const int error = resolve(to_bytes(attr->grh.dgid), &ah->mac)) {
    return fail(-error);
  }
  namespace f = abi::wqe::datagram;
  std::uint8_t* av = ah->av;
  abi::set(av, f::port_pd, static_cast<protection_domain*>(pd)->pdn | port << 24);
  av[f::mac_index.offset] = 0x80;
  abi::set(av, f::gid_index, attr->grh.sgid_index);
  abi::set(av, f::static_rate, static_cast<std::uint8_t>(attr->static_rate != 0 ? attr->static_rate + 5 : 0));
  abi::set(av, f::hop_limit, attr->grh.hop_limit);
  abi::set(av, f::priority, attr->sl);
  abi::set(av, f::traffic_class, attr->grh.traffic_class);
  abi::set(av, f::flow_label, attr->grh.flow_label);
  std::memcpy(av + f::remote_gid, attr->grh.dgid.raw, 16);
  if (row.vlan != no_vlan) {
    abi::set(av, f::vlan_valid, 1);
    ah->vlan = static_cast<std::uint16_t>(row.vlan | attr->sl << 13);
  }
  ahs_.push_back(std::move(ah));
  return ahs_.back().get();
}

int device::destroy_ah(ibv_ah* ah) {
  const auto at = std::find_if(ahs_.begin(), ahs_.end(), [&](const auto& o) { return o.get() == ah; });
  if (at == ahs_.end()) return -EINVAL;
  ahs_.erase(at);
  return 0;
}

}  // namespace rnic::host_driver
