// SPDX-License-Identifier: Apache-2.0
#include "testbenches/system/conformance/subject.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/endian.h"
#include "model/abi/queue_entries.h"

namespace rnic::conformance {

namespace {

constexpr int all_remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t impossible_key = 0x0fff'ff00;
constexpr unsigned inbox_slots = 16;
constexpr std::uint8_t empty_gid_row = 100;

ibv_qp_type type_of(service s, bool sends) {
  switch (s) {
    case service::rc:
      return IBV_QPT_RC;
    case service::uc:
      return IBV_QPT_UC;
    case service::ud:
      return IBV_QPT_UD;
    default:
      return sends ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV;
  }
}

template <class T>
T* made(T* object, const char* what) {
  if (object == nullptr) throw std::runtime_error(what);
  return object;
}

host_driver::shared_receive_queue* make_srq(hosts::endpoint& at, host_driver::xrc_domain* domain,
                                            host_driver::completion_queue* cq) {
  ibv_srq_init_attr_ex attr{};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = domain != nullptr ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  attr.pd = at.pd;
  attr.xrcd = domain;
  attr.cq = cq;
  attr.attr.max_wr = inbox_slots;
  attr.attr.max_sge = 4;
  return made(at.device->create_srq_ex(&attr), "create_srq");
}

}  // namespace

estate& estate::instance() {
  static estate one;
  return one;
}

estate::estate() {
  hosts::endpoint& at = rig::instance().at();
  target = hosts::make_buffer(at, memory_bytes);
  inbox = hosts::make_buffer(at, inbox_slots * receive_slot);
  origin = hosts::make_buffer(at, memory_bytes);
  ibv_pd* const other = made(at.device->alloc_pd(), "alloc_pd");
  // All over all memory: a row's fault is in the key alone.
  const auto add = [&](key k, ibv_pd* pd, int access) {
    regions_[k] = made(at.device->reg_mr(pd, target.at(), memory_bytes, access), "reg_mr");
  };
  add(key::read_only, at.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  add(key::write_only, at.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  add(key::no_atomic, at.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  add(key::local_only, at.pd, IBV_ACCESS_LOCAL_WRITE);
  add(key::not_writable, at.pd, IBV_ACCESS_REMOTE_READ);
  add(key::other_domain, other, IBV_ACCESS_LOCAL_WRITE | all_remote);
  add(key::freed, at.pd, IBV_ACCESS_LOCAL_WRITE | all_remote);
  add(key::window, at.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | all_remote);
  freed_ = regions_[key::freed]->rkey;
  hosts::require(at.device->dereg_mr(regions_[key::freed]), "dereg_mr");
  domain = made(at.device->open_xrcd(), "open_xrcd");
  foreign = made(at.device->open_xrcd(), "open_xrcd");
  find_doorbell();
  foreign_srq = make_srq(at, foreign, made(at.device->create_cq(16), "create_cq"));
}

/// The driver's page of doorbells, as the context of any queue pair of it says.
void estate::find_doorbell() {
  hosts::endpoint& at = rig::instance().at();
  host_driver::completion_queue* const cq = made(at.device->create_cq(1), "create_cq");
  host_driver::queue_pair* const qp = hosts::make_qp(at, rig::instance().options(), *cq, *cq);
  host_driver::command_channel::mailbox box(at.device->commands());
  hosts::require(at.device->commands().read(box, abi::opcode::query_qp, qp->qp_num), "query_qp");
  const std::uint64_t page = abi::get(box.data() + abi::qp_mailbox::context, abi::qpc::uar);
  doorbell = (page << abi::uar::log_page) + abi::uar::send_doorbell;
  hosts::require(at.device->destroy_qp(qp), "destroy_qp");
  hosts::require(at.device->destroy_cq(cq), "destroy_cq");
}

std::uint32_t estate::find(key k, bool remote) const {
  switch (k) {
    case key::good:
      return remote ? target.region->rkey : origin.region->lkey;
    case key::stale:
      return target.region->rkey ^ 0x55;
    case key::freed:
      return freed_;
    case key::unknown:
      return impossible_key;
    default:
      return regions_.at(k)->rkey;
  }
}

void estate::fill() {
  for (unsigned i = 0; i < memory_bytes; ++i) {
    *target.at(i) = pattern_of_target(i);
    *origin.at(i) = static_cast<std::uint8_t>(i * 5 + (i >> 8) + 9);
  }
  std::fill_n(inbox.at(), inbox_slots * receive_slot, std::uint8_t{0xee});
}

subject::subject(rig& r, service s, const setup& before)
    : rig_(r), service_(s), before_(before), peer_qpn_(r.new_peer_qpn()) {
  make_queues(before);
  bring(before);
}

subject::~subject() {
  host_driver::device& dev = rig_.dev();
  dev.destroy_qp(qp_);
  if (window_ != nullptr) dev.dealloc_mw(window_);
  if (srq_ != nullptr) dev.destroy_srq(srq_);
  dev.destroy_cq(send_cq_);
  dev.destroy_cq(receive_cq_);
  if (vector_ != nullptr) dev.destroy_ah(vector_);
}

void subject::make_queues(const setup& before) {
  hosts::endpoint& at = rig_.at();
  send_cq_ = made(rig_.dev().create_cq(static_cast<int>(before.cq_entries)), "create_cq");
  receive_cq_ = made(rig_.dev().create_cq(static_cast<int>(before.cq_entries)), "create_cq");
  if (service_ == service::xrc) return make_xrc(before);
  if (before.shared) srq_ = make_srq(at, nullptr, receive_cq_);
  hosts::connection_options o = rig_.options();
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.srq = srq_;
  init.qp_type = type_of(service_, before.sends);
  init.cap = {o.send_depth, before.shared ? 0 : o.receive_depth, o.send_sges, o.receive_sges, o.inline_bytes};
  qp_ = made(rig_.dev().create_qp(at.pd, &init), "create_qp");
}

void subject::make_xrc(const setup& before) {
  const estate& e = estate::instance();
  ibv_qp_init_attr_ex attr{};
  attr.comp_mask = before.sends ? IBV_QP_INIT_ATTR_PD : IBV_QP_INIT_ATTR_XRCD;
  attr.qp_type = type_of(service_, before.sends);
  attr.pd = rig_.at().pd;
  attr.xrcd = before.sends ? nullptr : e.domain;
  attr.send_cq = send_cq_;
  attr.cap = {16, 0, 4, 0, 64};
  qp_ = made(rig_.dev().create_qp_ex(&attr), "create_qp_ex");
  if (!before.sends) srq_ = make_srq(rig_.at(), e.domain, receive_cq_);
}

void subject::to_init(unsigned access) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = access;
  attr.qkey = datagram_qkey;
  const int which = service_ == service::ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  hosts::require(rig_.dev().modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | which), "INIT");
}

void subject::bring(const setup& before) {
  if (before.state == IBV_QPS_RESET) return;
  to_init(before.access);
  if (service_ != service::xrc || !before.sends)
    for (const receive& r : before.receives) post(r);
  if (before.state == IBV_QPS_INIT) return;
  to_rtr(before);
  if (before.state == IBV_QPS_RTR) return;
  to_rts(before);
  if (before.window) bind_window();
  if (before.state == IBV_QPS_SQD || before.state == IBV_QPS_ERR) hosts::require(modify(before.state), "modify_qp");
  if (before.state == IBV_QPS_SQE) post(work({0, 0, 0, 0}));
}

void subject::to_rtr(const setup& before) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = hosts::to_ibv_mtu(rig_.options().mtu);
  attr.dest_qp_num = peer_qpn_;
  attr.rq_psn = first_request_in;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(before.rd_atomic);
  attr.min_rnr_timer = static_cast<std::uint8_t>(before.rnr_timer);
  attr.ah_attr.is_global = 1;
  std::memcpy(attr.ah_attr.grh.dgid.raw, rig_.peer().gid.data(), 16);
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(rig_.at().gid_index);
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.port_num = 1;
  const bool receives = service_ == service::rc || (service_ == service::xrc && !before.sends);
  const int path = service_ == service::ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const int limits = receives ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
  hosts::require(rig_.dev().modify_qp(qp_, &attr, IBV_QP_STATE | path | limits, &rig_.peer().mac), "RTR");
}

void subject::to_rts(const setup& before) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = first_request_out;
  attr.timeout = static_cast<std::uint8_t>(before.ack_timeout);
  attr.retry_cnt = static_cast<std::uint8_t>(before.retries);
  attr.rnr_retry = static_cast<std::uint8_t>(before.rnr_retries);
  attr.max_rd_atomic = static_cast<std::uint8_t>(before.rd_atomic);
  const bool reliable = service_ == service::rc || service_ == service::xrc;
  const bool sends = service_ == service::rc || (service_ == service::xrc && before.sends);
  const int limits = sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
  const int timer = reliable ? IBV_QP_TIMEOUT : 0;
  hosts::require(rig_.dev().modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | timer | limits), "RTS");
}

void subject::move(ibv_qp_state to) {
  if (to == IBV_QPS_INIT) return to_init(before_.access);
  if (to == IBV_QPS_RTR) return to_rtr(before_);
  to_rts(before_);
}

void subject::post(const receive& r) {
  const estate& e = estate::instance();
  const unsigned slot = receives_++ % inbox_slots;
  const std::uint32_t part = r.length / r.segments;
  std::vector<ibv_sge> sges;
  for (unsigned i = 0; i < r.segments; ++i) {
    ibv_sge s{e.inbox.address(slot * receive_slot + i * part), part, e.inbox.region->lkey};
    if (r.lkey != key::good) s = {e.target.address(), part, e.rkey(r.lkey)};
    sges.push_back(s);
  }
  ibv_recv_wr wr{}, *failed = nullptr;
  wr.wr_id = receives_ - 1;
  wr.sg_list = sges.data();
  wr.num_sge = r.length == 0 ? 0 : static_cast<int>(sges.size());
  const int error =
      srq_ != nullptr ? rig_.dev().post_srq_recv(srq_, &wr, &failed) : rig_.dev().post_recv(qp_, &wr, &failed);
  hosts::require(error, "post_recv");
  if (!r.malformed) return;
  // Behind the link of a shared queue's entry.
  std::uint8_t* const place = srq_ != nullptr ? srq_->entry(receives_ - 1) + 16 : qp_->receive_entry(receives_ - 1);
  abi::store32(place, 0, 0x8000'0000 | r.length);
}

void subject::post(const work& w) {
  if (!w.words.empty()) return post_raw(w);
  const estate& e = estate::instance();
  ibv_sge sge{e.origin.address(0) + static_cast<std::uint64_t>(w.place), w.length, e.lkey(w.lkey)};
  if (w.lkey != key::good) sge.addr = e.target.address(0) + static_cast<std::uint64_t>(w.place);
  ibv_send_wr wr{}, *failed = nullptr;
  wr.wr_id = sends_++;
  wr.opcode = w.opcode;
  wr.sg_list = &sge;
  wr.num_sge = w.length == 0 ? 0 : 1;
  wr.send_flags = w.flags;
  wr.imm_data = __builtin_bswap32(0x11223344);
  wr.wr.rdma = {e.target.address(), e.rkey(key::good)};
  if (w.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || w.opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
    hosts::make_atomic(wr, w.opcode == IBV_WR_ATOMIC_CMP_AND_SWP, e.target.address(), e.rkey(key::good), 7);
  if (w.opcode == IBV_WR_SEND_WITH_INV || w.opcode == IBV_WR_LOCAL_INV) wr.invalidate_rkey = e.rkey(key::unknown);
  if (service_ == service::xrc) wr.qp_type.xrc.remote_srqn = 0x77;
  if (service_ == service::ud) {
    ibv_ah_attr attr{};
    attr.is_global = attr.port_num = 1;
    std::memcpy(attr.grh.dgid.raw, rig_.peer().gid.data(), 16);
    attr.grh.sgid_index = static_cast<std::uint8_t>(rig_.at().gid_index);
    attr.grh.hop_limit = 64;
    if (vector_ == nullptr) vector_ = made(rig_.dev().create_ah(rig_.at().pd, &attr, &rig_.peer().mac), "create_ah");
    vector_->av[abi::wqe::datagram::gid_index.offset] =
        w.no_vector ? empty_gid_row : static_cast<std::uint8_t>(rig_.at().gid_index);
    wr.wr.ud = {vector_, peer_qpn_, datagram_qkey};
  }
  hosts::require(rig_.dev().post_send(qp_, &wr, &failed), "post_send");
}

/// Puts a WQE into the ring as it is, with the owner bit that it must have, and rings.
void subject::post_raw(const work& w) {
  const std::uint32_t index = qp_->sq.head;
  std::uint8_t* const entry = qp_->send_entry(index);
  qp_->sq.wr_ids[index & (qp_->sq.count - 1)] = sends_++;
  for (std::size_t i = w.words.size(); i-- != 0;) {
    const std::uint32_t owner = i == 0 && (index & qp_->sq.count) != 0 ? abi::wqe::control::owner_bit : 0;
    abi::store32(entry, 4 * i, w.words[i] | owner);
  }
  ++qp_->sq.head;
  ring();
}

void subject::ring() {
  rig_.at().bus->mmio_write32(2, estate::instance().doorbell, abi::uar::send_doorbell_value(qp_->qp_num));
}

int subject::drain() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  return rig_.dev().modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

/// A window of type 2 over all that the peer may reach, which a peer may take back.
void subject::bind_window() {
  window_ = made(rig_.dev().alloc_mw(rig_.at().pd, IBV_MW_TYPE_2), "alloc_mw");
  window_key_ = ibv_inc_rkey(window_->rkey);
  ibv_send_wr wr{}, *failed = nullptr;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.bind_mw.mw = window_;
  wr.bind_mw.rkey = window_key_;
  wr.bind_mw.bind_info = {estate::instance().bindable(), estate::instance().target.address(), memory_bytes, all_remote};
  hosts::require(rig_.dev().post_send(qp_, &wr, &failed), "post_send");
  ibv_wc wc{};
  if (rig_.dev().wait_cq(send_cq_, 1, &wc, 1000 * us) != 1 || wc.status != IBV_WC_SUCCESS)
    throw std::runtime_error("bind_mw");
}

int subject::modify(ibv_qp_state to) {
  ibv_qp_attr attr{};
  attr.qp_state = to;
  return rig_.dev().modify_qp(qp_, &attr, IBV_QP_STATE);
}

int subject::modify(ibv_qp_state to, int mask) {
  ibv_qp_attr attr{};
  attr.qp_state = to;
  attr.port_num = 1;
  attr.path_mtu = IBV_MTU_256;
  return rig_.dev().modify_qp(qp_, &attr, IBV_QP_STATE | mask);
}

ibv_qp_state subject::state() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  hosts::require(rig_.dev().query_qp(qp_, &attr, IBV_QP_STATE, &init), "query_qp");
  return attr.qp_state;
}

std::vector<ibv_wc> subject::completions(bool of_sends) {
  std::vector<ibv_wc> all;
  for (ibv_wc wc{}; rig_.dev().poll_cq(of_sends ? send_cq_ : receive_cq_, 1, &wc) == 1;) all.push_back(wc);
  return all;
}

}  // namespace rnic::conformance
