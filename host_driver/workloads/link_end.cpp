// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/link_end.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "model/sim/check.h"

namespace rnic::workloads {

using namespace host_driver;

host_driver::completion_queue* new_cq(hosts::endpoint& e, std::uint64_t entries) {
  host_driver::completion_queue* cq = e.device->create_cq(static_cast<int>(std::min<std::uint64_t>(entries, 1u << 20)));
  hosts::require_made(*e.device, cq, "create_cq");
  return cq;
}

void link_end::create(hosts::endpoint& at, const hosts::connection_options& options, ibv_cq& send_cq,
                      ibv_cq& receive_cq) {
  at_ = &at;
  options_ = options;
  if (options.type == IBV_QPT_XRC_SEND) return create_xrc(send_cq, receive_cq);
  sender_ = receiver_ = hosts::make_qp(at, options, send_cq, receive_cq);
}

void link_end::create_xrc(ibv_cq& send_cq, ibv_cq& receive_cq) {
  sender_ = hosts::make_qp(*at_, options_, send_cq, receive_cq);
  hosts::connection_options receiving = options_;
  receiving.type = IBV_QPT_XRC_RECV;
  receiver_ = hosts::make_qp(*at_, receiving, send_cq, receive_cq);
  ibv_srq_init_attr_ex attr{};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = IBV_SRQT_XRC;
  attr.pd = at_->pd;
  attr.xrcd = hosts::domain_of(*at_);
  attr.cq = &receive_cq;
  attr.attr.max_wr = options_.receive_depth;
  attr.attr.max_sge = options_.receive_sges;
  srq_ = at_->device->create_srq_ex(&attr);
  hosts::require_made(*at_->device, srq_, "create_srq_ex");
}

void link_end::connect(const link_end& peer, std::uint32_t own_psn, std::uint32_t peer_psn) {
  peer_qpn_ = peer.receiver_->qp_num;
  hosts::connect(*at_, options_, *sender_, *peer.at_, peer_qpn_, own_psn, peer_psn);
  if (receiver_ != sender_)
    hosts::connect(*at_, options_, *receiver_, *peer.at_, peer.sender_->qp_num, own_psn, peer_psn);
  if (peer.srq_ != nullptr) peer_srqn_ = peer.srq_->srqn;
  if (options_.type != IBV_QPT_UD) return;
  check_datagram_version();
  const ibv_ah_attr path = hosts::path_of(*at_, options_, *peer.at_);
  ah_ = at_->device->create_ah(at_->pd, &path, &peer.at_->mac);
  if (ah_ == nullptr) throw std::runtime_error("create_ah failed");
}

/// The driver posts no datagram to an address of another version than that of all of them.
void link_end::check_datagram_version() const {
  using version = host_driver::config::datagram_version;
  const version all = at_->device->settings().ud_gid_type;
  const version own = options_.roce == roce_types::v2 ? version::v2 : version::v1;
  if (all == version::by_address || all == own) return;
  throw sim::config_error(std::string("driver.ud_gid_type: ") + (all == version::v1 ? "v1" : "v2") +
                          ", but the addresses of the hosts' datagrams are of the other version of RoCE; by_address is "
                          "for both");
}

void link_end::aim(ibv_send_wr& wr) const {
  if (ah_ != nullptr) wr.wr.ud = {ah_, peer_qpn_, hosts::datagram_qkey};
  if (srq_ != nullptr) wr.qp_type.xrc.remote_srqn = peer_srqn_;
}

void link_end::post_send(ibv_send_wr& list) const {
  ibv_send_wr* bad = nullptr;
  hosts::require(at_->device->post_send(sender_, &list, &bad), "post_send");
}

void link_end::post_receive(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey, std::uint64_t id) const {
  const std::uint32_t before = ah_ != nullptr ? datagram_header : 0;
  hosts::message_segments segments(address - before, bytes + before, lkey);
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  wr.sg_list = segments.list.data();
  wr.num_sge = segments.count;
  hosts::require(
      srq_ != nullptr ? at_->device->post_srq_recv(srq_, &wr, &bad) : at_->device->post_recv(receiver_, &wr, &bad),
      "post_recv");
}

void link_end::take_out(const ibv_wc& wc, std::uint8_t* to) const {
  if ((wc.wc_flags & host_driver::wc_inline_receive) == 0) return;
  const std::uint32_t before = ah_ != nullptr ? datagram_header : 0;
  std::memcpy(to - before, receiver_->last_received(), wc.byte_len);
}

void make_message(ibv_send_wr& wr, const verb& v, std::uint64_t address, std::uint32_t rkey, std::uint64_t found) {
  wr.opcode = v.opcode;
  if (!v.atomic) {
    if (v.reads || v.writes()) wr.wr.rdma = {address, rkey};
    return;
  }
  hosts::make_atomic(wr, v.opcode == IBV_WR_ATOMIC_CMP_AND_SWP, address, rkey, found);
  if (!v.masked) return;
  auto& masked = static_cast<masked_atomic_wr&>(wr);
  const bool adds = v.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  masked.opcode = IBV_WR_DRIVER1;
  masked.operation = adds ? driver_opcode::masked_fetch_add : driver_opcode::masked_compare_swap;
  masked.swap_mask = ~std::uint64_t{0};
  masked.compare_add_mask = adds ? std::uint64_t{1} << 63 : ~std::uint64_t{0};  // fetch and add: ends of fields
}

}  // namespace rnic::workloads
