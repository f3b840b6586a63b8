// SPDX-License-Identifier: Apache-2.0
// QP1 of a port: management datagrams (adapter control plane 4.17; adapter data plane A.4.5, A.9.3; ib/qp.c).
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "host_driver/special_context.h"
#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/queue_entries.h"
#include "model/wire/packet.h"

namespace rnic::host_driver {

namespace {

namespace wqe = abi::wqe;

constexpr std::uint32_t qp1_offset = 2;  // of QP1 of the first port in the block of special numbers
constexpr std::uint32_t wire_qpn = 1;
constexpr std::uint32_t controlled_qkey = 1u << 31;
constexpr unsigned message_log = 11;
constexpr std::uint8_t feup_keep = 1 << 7;  // "don't fsm"
constexpr std::uint16_t udp_source = 0xc000;
constexpr std::uint8_t flag_loopback = 1;
constexpr std::size_t most_headers = 128;

/// Headers in inline segments, none of them across a 64-byte line; bytes of the segments, rounded up.
std::size_t put_headers(std::uint8_t* at, const std::uint8_t* headers, std::size_t length) {
  const std::size_t offset = wqe::control::bytes + wqe::inline_data::header;
  const std::size_t fits = std::min(length, wqe::inline_data::boundary - offset);
  const std::size_t rest = length - fits;
  std::memcpy(at + wqe::inline_data::header, headers, fits);
  if (rest != 0) {
    std::uint8_t* second = at + wqe::inline_data::header + fits;
    std::memcpy(second + wqe::inline_data::header, headers + fits, rest);
    abi::store32(second, 0, wqe::inline_data::flag | static_cast<std::uint32_t>(rest));
  }
  abi::store32(at, 0, wqe::inline_data::flag | static_cast<std::uint32_t>(fits));
  const std::size_t bytes = length + wqe::inline_data::header * (rest != 0 ? 2 : 1);
  return (bytes + wqe::unit - 1) / wqe::unit * wqe::unit;
}

bool mapped_ipv4(const gid_bytes& g) {
  static constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(prefix.begin(), prefix.end(), g.begin());
}

}  // namespace

/// The headers of a datagram to an address (ib/qp.c:build_mlx_header); bytes written to `out`.
std::size_t device::build_mad_headers(const queue_pair& qp, const queue_pair& sender, const ibv_send_wr& wr,
                                      std::uint32_t payload, std::uint8_t* out) const {
  namespace f = wqe::datagram;
  const auto& ah = *static_cast<const address_handle*>(wr.wr.ud.ah);
  const port_state& port = ports_[qp.port - 1];
  const gid_row& source = port.gids[abi::get(ah.av, f::gid_index)];
  wire::packet p;
  p.dmac = ah.mac;
  p.smac = ah.source.value_or(port.mac);
  p.vlan_present = abi::get(ah.av, f::vlan_valid) != 0;
  p.vlan_tci = ah.vlan;
  p.sgid = source.id;
  std::copy_n(ah.av + f::remote_gid, p.dgid.size(), p.dgid.begin());
  p.encap = source.type != IBV_GID_TYPE_ROCE_V2 ? wire::encapsulation::roce_v1
            : mapped_ipv4(p.dgid)               ? wire::encapsulation::roce_v2_ipv4
                                                : wire::encapsulation::roce_v2_ipv6;
  p.traffic_class = static_cast<std::uint8_t>(abi::get(ah.av, f::traffic_class));
  p.flow_label = abi::get(ah.av, f::flow_label);
  p.hop_limit = abi::get(ah.av, f::hop_limit);
  p.udp_source = udp_source;
  p.bth.opcode = wire::make_opcode(wire::transport::ud, wire::operation::send_only);
  p.bth.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  p.bth.dest_qp = wr.wr.ud.remote_qpn;
  p.bth.psn = wire::psn_t(sender.mad_psn);
  p.deth.qkey = (wr.wr.ud.remote_qkey & controlled_qkey) != 0 ? gsi_qkey : wr.wr.ud.remote_qkey;
  p.deth.src_qp = &sender == &qp ? wire_qpn : sender.qp_num;
  p.payload_length = payload;
  std::array<std::uint8_t, most_headers + mad_bytes + 8> frame;
  const std::uint8_t* begin = wire::build(p, frame.data() + most_headers);
  std::memcpy(out, begin, p.payload_offset);
  return p.payload_offset;
}

int device::post_mads(queue_pair& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  bus_.spend_ps(cfg_.post_send_ns * 1000);
  for (; wr != nullptr; wr = wr->next) {
    if (const int error = post_mad(qp, *wr)) {
      *bad_wr = wr;
      return error;
    }
  }
  return 0;
}

int device::post_mad(queue_pair& qp, const ibv_send_wr& wr) {
  if (qp.role == paravirtual_role::proxy) return post_to_tunnel(qp, wr);
  const auto* ah = static_cast<const address_handle*>(wr.wr.ud.ah);
  std::uint64_t payload = 0;
  for (int i = 0; i < wr.num_sge; ++i) payload += wr.sg_list[i].length;
  if (wr.opcode != IBV_WR_SEND || ah == nullptr || payload > mad_bytes || payload % 4 != 0 ||
      (wr.send_flags & IBV_SEND_INLINE) != 0)
    return -EINVAL;
  const gid_row& row = ports_[qp.port - 1].gids[abi::get(ah->av, wqe::datagram::gid_index)];
  if (!row.valid) return -EINVAL;
  queue_pair& sender = row.type == IBV_GID_TYPE_ROCE_V2 ? *qp.roce_v2_sender : qp;
  if (sender.sq.overflows(0) || wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > sender.sq.max_sge)
    return -ENOMEM;

  const std::uint32_t index = sender.sq.head;
  std::uint8_t* entry = sender.send_entry(index);
  sender.sq.wr_ids[index & (sender.sq.count - 1)] = wr.wr_id;
  std::array<std::uint8_t, most_headers> headers;
  const std::size_t length = build_mad_headers(qp, sender, wr, static_cast<std::uint32_t>(payload), headers.data());
  sender.mad_psn = (sender.mad_psn + 1) & 0xffffff;
  std::uint8_t* at = entry + wqe::control::bytes;
  at += put_headers(at, headers.data(), length);
  for (int i = 0; i < wr.num_sge; ++i, at += wqe::data::bytes) {
    abi::store32(at, 4, wr.sg_list[i].lkey);
    abi::store64(at, 8, wr.sg_list[i].addr);
    abi::store32(at, 0, wr.sg_list[i].length);
  }
  std::memset(at, 0, wqe::unit);  // the adapter writes the ICRC there
  abi::store32(at, 0, wqe::inline_data::flag | 4);
  at += wqe::unit;
  const bool signalled = sender.signal_bits != 0 || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  const bool own = ah->mac == ports_[qp.port - 1].mac;
  std::memcpy(entry + 12, ah->mac.data() + 2, 4);
  abi::store32(entry, 8, (signalled ? wqe::control::cq_update : 0) | (own ? flag_loopback : 0u));
  std::memcpy(entry + 8, ah->mac.data(), 2);
  const std::uint32_t priority = abi::get(ah->av, wqe::datagram::priority);
  abi::store32(entry, 4, priority << 29 | static_cast<std::uint32_t>(static_cast<std::size_t>(at - entry) / wqe::unit));
  abi::store32(
      entry, 0,
      static_cast<std::uint32_t>(wqe::opcode::send) | ((index & sender.sq.count) != 0 ? wqe::control::owner_bit : 0));
  ++sender.sq.head;
  bus_.mmio_write32(2, uar_offset_ + abi::uar::send_doorbell, abi::uar::send_doorbell_value(sender.qp_num));
  stamp_send_entry(sender, index + sender.spare_wqes);
  return 0;
}

/// RESET to RTS, without any peer.
int device::start_special_qp(queue_pair& qp, bool roce_v2) {
  namespace f = abi::qpc;
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    command_channel::mailbox box(channel_);
    std::uint8_t* c = box.data() + abi::qp_mailbox::context;
    std::uint8_t* path = c + f::primary_path;
    fill_special_context(qp, to, f::service_mlx, message_log, gsi_qkey, uar_, c);
    abi::set(path, abi::path::feup, feup_keep);
    abi::set(path, abi::path::counter_index, static_cast<std::uint8_t>(qp.port - 1));
    if (roce_v2 && to == IBV_QPS_RTR) abi::set(c, f::roce_mode, f::roce_mode_v2);
    if (qp.role == paravirtual_role::wire) abi::set(c, f::reserved_lkey, 1);
    if (to == IBV_QPS_INIT) fill_init_fields(qp, c);
    abi::set(box.data(), abi::qp_mailbox::optional, abi::qp_mailbox::opt_pkey | abi::qp_mailbox::opt_qkey);
    if (const int error = move_qp(qp, to, &box, false)) return error;
  }
  return 0;
}

queue_pair* device::create_gsi(ibv_pd* pd, ibv_qp_init_attr* attr, unsigned port) {
  const auto fail = [](int error) -> queue_pair* {
    errno = error;
    return nullptr;
  };
  if (!open_) return fail(ENODEV);
  if (!has_port(port) || attr->srq != nullptr) return fail(EINVAL);
  const bool shared = virtual_ || enabled_functions_ != 0;
  return shared ? create_proxy(pd, attr, port) : create_wire_gsi(pd, attr, port, paravirtual_role::none);
}

queue_pair* device::create_wire_gsi(ibv_pd* pd, ibv_qp_init_attr* attr, unsigned port, paravirtual_role role) {
  const auto fail = [](int error) -> queue_pair* {
    errno = error;
    return nullptr;
  };
  const std::uint32_t qpn = tables_.base_special_qpn() + qp1_offset + port - 1;
  if (find_qp(qpn) != nullptr) return fail(EBUSY);
  attr->qp_type = IBV_QPT_DRIVER;
  ibv_qp_init_attr sender_attr = *attr;
  sender_attr.cap.max_recv_wr = sender_attr.cap.max_recv_sge = 1;
  queue_pair* qp = make_qp(pd, attr, &qpn);
  if (qp == nullptr) return nullptr;
  qp->port = port;
  qp->role = role;
  qp->roce_v2_sender = make_qp(pd, &sender_attr, nullptr);
  int error = qp->roce_v2_sender == nullptr ? -errno : 0;
  if (error == 0) {
    qp->roce_v2_sender->port = port;
    qp->roce_v2_sender->role = role;
    error = start_special_qp(*qp, false);
  }
  if (error == 0) error = start_special_qp(*qp->roce_v2_sender, true);
  if (error == 0) return qp;
  destroy_qp(qp);
  return fail(-error);
}

}  // namespace rnic::host_driver
