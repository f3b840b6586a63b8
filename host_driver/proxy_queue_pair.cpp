// SPDX-License-Identifier: Apache-2.0
// QP1 where there are virtual functions: proxies, which send to a tunnel of the physical function's driver, and the
// tunnels (ib/qp.c: MLX4_IB_QPT_PROXY_GSI, MLX4_IB_QPT_TUN_GSI; ib/cq.c: use_tunnel_data).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "host_driver/special_context.h"
#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/paravirtual.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

namespace {

namespace wqe = abi::wqe;
namespace pv = abi::paravirtual;

constexpr unsigned datagram_log = 13;
constexpr std::uint8_t keep_frame = 1 << 7;
/// A header in one inline segment, which is one 64-byte line.
constexpr std::size_t header_segment = 64;
static_assert(wqe::inline_data::header + pv::to_tunnel::bytes <= header_segment);
static_assert((wqe::control::bytes + wqe::datagram::bytes) % wqe::inline_data::boundary == 0);
/// What lies in front of a datagram for a proxy: the network header of the way from the tunnel, and the tunnel's own.
constexpr std::uint32_t in_front = 40 + pv::to_proxy::bytes;

}  // namespace

/// Numbers of a port's QP1: the physical function's driver has said them. 0: a port without RoCE.
int device::ask_proxy(unsigned port, std::uint32_t* proxy, std::uint32_t* tunnel) {
  if (!virtual_) {
    *proxy = pv::proxy(tables_.base_special_qpn(), 0, port);
    *tunnel = pv::tunnel(tables_.base_special_qpn(), 0, port);
    return 0;
  }
  command_channel::mailbox box(channel_);
  if (const int error = channel_.read(box, abi::opcode::query_func_cap, port, 1)) return error;
  *proxy = abi::get(box.data(), pv::qp1_proxy) & 0xffffff;
  *tunnel = abi::get(box.data(), pv::qp1_tunnel) & 0xffffff;
  return *proxy != 0 && *tunnel != 0 ? 0 : -EOPNOTSUPP;
}

/// RESET to RTS. Of a virtual function's the Q_Key is not its own to choose.
int device::start_paravirtual_qp(queue_pair& qp, std::uint32_t qkey) {
  namespace f = abi::qpc;
  namespace p = abi::path;
  const port_state& port = ports_[bonded_ ? 0 : qp.port - 1];
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    command_channel::mailbox box(channel_);
    std::uint8_t* const c = box.data() + abi::qp_mailbox::context;
    std::uint8_t* const path = c + f::primary_path;
    fill_special_context(qp, to, f::service_ud, datagram_log, qkey, uar_, c);
    abi::set(c, f::reserved_lkey, 1);
    abi::set(path, p::fl, p::fl_loopback);
    abi::set(path, p::grh, 1);
    abi::set(path, p::mac_index, static_cast<std::uint8_t>(port.mac_index));
    abi::set(path, p::link_type, p::link_ethernet);
    abi::set(path, p::counter_index, port.counter);
    if (qp.role == paravirtual_role::tunnel) abi::set(path, p::feup, keep_frame);
    if (to == IBV_QPS_INIT) fill_init_fields(qp, c);
    abi::set(box.data(), abi::qp_mailbox::optional, abi::qp_mailbox::opt_pkey | abi::qp_mailbox::opt_qkey);
    if (const int error = move_qp(qp, to, &box, false)) return error;
  }
  return 0;
}

queue_pair* device::create_proxy(ibv_pd* pd, ibv_qp_init_attr* attr, unsigned port) {
  const auto fail = [](int error) -> queue_pair* {
    errno = error;
    return nullptr;
  };
  std::uint32_t number = 0, tunnel = 0;
  if (const int error = ask_proxy(port, &number, &tunnel)) return fail(-error);
  if (find_qp(number) != nullptr) return fail(EBUSY);
  if (!virtual_ && carrier_ == nullptr) return fail(ENODEV);
  // Room for the header of the tunnel, going and coming.
  constexpr std::uint32_t going = header_segment / wqe::data::bytes, coming = 1;
  attr->qp_type = IBV_QPT_UD;
  attr->cap.max_send_sge = std::max(1u, attr->cap.max_send_sge) + going;
  attr->cap.max_recv_sge = std::max(1u, attr->cap.max_recv_sge) + coming;
  attr->cap.max_inline_data = 0;
  queue_pair* const qp = make_qp(pd, attr, &number);
  if (qp == nullptr) return nullptr;
  qp->port = port;
  qp->role = paravirtual_role::proxy;
  qp->tunnel_qpn = tunnel;
  qp->sq.max_sge -= going;
  attr->cap.max_send_sge = qp->sq.max_sge;
  attr->cap.max_recv_sge -= coming;
  attr->cap.max_inline_data = qp->max_inline = 0;
  qp->caps = attr->cap;
  qp->tunnel_headers = bus_.allocate(std::size_t{qp->rq.count} * in_front);
  int error = qp->tunnel_headers.pointer == nullptr ? -ENOMEM : 0;
  if (error == 0 && !virtual_) error = carrier_->open_tunnel(0, port);
  if (error == 0) error = start_paravirtual_qp(*qp, pv::qkey(0, port));
  if (error == 0) return qp;
  destroy_qp(qp);
  return fail(-error);
}

queue_pair* device::create_tunnel(ibv_pd* pd, ibv_qp_init_attr* attr, unsigned function, unsigned port) {
  const std::uint32_t number = pv::tunnel(tables_.base_special_qpn(), function, port);
  attr->qp_type = IBV_QPT_UD;
  queue_pair* const qp = make_qp(pd, attr, &number);
  if (qp == nullptr) return nullptr;
  qp->port = port;
  qp->role = paravirtual_role::tunnel;
  if (const int error = start_paravirtual_qp(*qp, pv::qkey(function, port))) {
    destroy_qp(qp);
    errno = -error;
    return nullptr;
  }
  return qp;
}

/// A datagram of a proxy: what the request says of its way becomes data, and the way is to the tunnel, inside the port
/// (ib/qp.c: set_tunnel_datagram_seg, build_tunnel_header).
int device::post_to_tunnel(queue_pair& qp, const ibv_send_wr& wr) {
  namespace d = wqe::datagram;
  namespace h = pv::to_tunnel;
  const auto* ah = static_cast<const address_handle*>(wr.wr.ud.ah);
  if (wr.opcode != IBV_WR_SEND || ah == nullptr || (wr.send_flags & IBV_SEND_INLINE) != 0) return -EINVAL;
  std::uint64_t payload = 0;
  for (int i = 0; i < wr.num_sge; ++i) payload += wr.sg_list[i].length;
  if (payload > mad_bytes || payload % 4 != 0) return -EINVAL;
  if (!ports_[qp.port - 1].gids[abi::get(ah->av, d::gid_index)].valid) return -EINVAL;
  if (qp.sq.overflows(0) || wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.sq.max_sge) return -ENOMEM;

  const std::uint32_t index = qp.sq.head;
  std::uint8_t* const entry = qp.send_entry(index);
  qp.sq.wr_ids[index & (qp.sq.count - 1)] = wr.wr_id;
  std::uint8_t* at = entry + wqe::control::bytes;
  std::memset(at, 0, d::bytes);
  abi::set(at, d::port_pd, abi::get(ah->av, d::port_pd));
  abi::set(at, d::vlan_valid, 0);
  abi::set(at, d::loopback, 1);
  abi::set(at, d::priority, abi::get(ah->av, d::priority));
  abi::set(at, d::qpn, qp.tunnel_qpn);
  abi::set(at, d::qkey, pv::own_qkey);
  at += d::bytes;
  std::uint8_t* const header = at + wqe::inline_data::header;
  std::memset(at, 0, header_segment);
  std::memcpy(header, ah->av, h::address_vector);
  abi::set(header, h::remote_qpn, wr.wr.ud.remote_qpn);
  abi::set(header, h::qkey, wr.wr.ud.remote_qkey);
  abi::set(header, h::vlan, abi::get(ah->av, d::vlan_valid) != 0 ? ah->vlan : h::untagged);
  std::memcpy(header + h::destination_mac, ah->mac.data(), ah->mac.size());
  abi::store32(at, 0, wqe::inline_data::flag | static_cast<std::uint32_t>(h::bytes));
  at += header_segment;
  for (int i = 0; i < wr.num_sge; ++i, at += wqe::data::bytes) {
    abi::store32(at, 4, wr.sg_list[i].lkey);
    abi::store64(at, 8, wr.sg_list[i].addr);
    abi::store32(at, 0, wr.sg_list[i].length);
  }
  const bool signalled = qp.signal_bits != 0 || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  abi::store32(entry, 12, 0);
  abi::store32(entry, 8, signalled ? wqe::control::cq_update : 0);
  abi::store32(entry, 4, static_cast<std::uint32_t>(static_cast<std::size_t>(at - entry) / wqe::unit));
  abi::store32(
      entry, 0,
      static_cast<std::uint32_t>(wqe::opcode::send) | ((index & qp.sq.count) != 0 ? wqe::control::owner_bit : 0));
  ++qp.sq.head;
  bus_.mmio_write32(2, uar_offset_ + abi::uar::send_doorbell, abi::uar::send_doorbell_value(qp.qp_num));
  stamp_send_entry(qp, index + qp.spare_wqes);
  return 0;
}

/// First segment of a proxy's receive request.
void device::put_tunnel_segment(const queue_pair& qp, std::uint32_t index, std::uint8_t* segment) const {
  abi::store32(segment, 0, in_front);
  abi::store32(segment, 4, caps_.reserved_lkey);
  abi::store64(segment, 8, qp.tunnel_headers.bus_address + std::uint64_t{index & (qp.rq.count - 1)} * in_front);
}

static const std::uint8_t* last_header(const queue_pair& qp) {
  const std::size_t place = (qp.rq.tail - 1) & (qp.rq.count - 1);
  return qp.tunnel_headers.pointer + place * in_front + (in_front - pv::to_proxy::bytes);
}

/// What the tunnel has said of a datagram takes the place of what the completion says of the way from the tunnel.
void device::take_tunnel_header(const queue_pair& qp, ibv_wc& wc) {
  const std::uint8_t* const h = last_header(qp);
  if (wc.byte_len < in_front) {
    wc.status = IBV_WC_GENERAL_ERR;
    return;
  }
  wc.byte_len -= in_front;
  wc.src_qp = abi::get(h, pv::to_proxy::source_qpn);
  wc.wc_flags = abi::get(h, pv::to_proxy::network_header) != 0 ? unsigned{IBV_WC_GRH} : 0u;
  wc.pkey_index = abi::get(h, pv::to_proxy::pkey_index);
  const std::uint16_t tag = abi::get(h, pv::to_proxy::vlan);
  wc.sl = static_cast<std::uint8_t>(tag != pv::to_tunnel::untagged ? tag >> 13 : 0);
  wc.dlid_path_bits = 0;
}

mac_address device::last_source(const completion_queue& cq) const {
  mac_address mac{};
  const std::uint8_t* const entry = cq.entry(cq.consumer - 1);
  const bool received = (entry[abi::cqe::owner_opcode.offset] & abi::cqe::send_bit) == 0;
  if (received && cq.last_qp != nullptr && cq.last_qp->role == paravirtual_role::proxy) {
    const std::uint8_t* const h = last_header(*cq.last_qp);
    std::copy_n(h + pv::to_proxy::mac_begin, 4, mac.begin());
    std::copy_n(h + pv::to_proxy::mac_end, 2, mac.begin() + 4);
    return mac;
  }
  std::memcpy(mac.data(), entry + abi::cqe::source_mac, mac.size());
  return mac;
}

std::uint16_t device::last_tag(const completion_queue& cq) const {
  const std::uint8_t* const entry = cq.entry(cq.consumer - 1);
  const bool tagged = (abi::get(entry, abi::cqe::qpn_word) & abi::cqe::ctag) != 0;
  return tagged ? abi::get(entry, abi::cqe::sl_vid) : pv::to_tunnel::untagged;
}

}  // namespace rnic::host_driver
