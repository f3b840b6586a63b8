// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/host/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr unsigned retries = 7, rnr_retries = 7, rnr_timer = 12;

}  // namespace

verbs_objects::~verbs_objects() {
  for (address_handle* a : ahs_) device_.destroy_ah(a);
  for (queue_pair* q : qps_) device_.destroy_qp(q);
  for (shared_receive_queue* s : srqs_) device_.destroy_srq(s);
  for (completion_queue* c : cqs_) device_.destroy_cq(c);
  for (host_driver::xrc_domain* d : xrc_domains_) device_.close_xrcd(d);
  for (const app_buffer& b : buffers_) {
    if (b.region != nullptr) device_.dereg_mr(b.region);
    device_.free_buffer(b.memory);
  }
  device_.dealloc_pd(pd_);
}

completion_queue* verbs_objects::cq(unsigned entries) {
  cqs_.push_back(made(device_.create_cq(static_cast<int>(std::max(entries, 1u))), "create_cq"));
  return cqs_.back();
}

shared_receive_queue* verbs_objects::srq(unsigned requests) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = requests;
  init.attr.max_sge = 1;
  srqs_.push_back(made(device_.create_srq(pd_, &init), "create_srq"));
  return srqs_.back();
}

queue_pair* verbs_objects::qp(ibv_qp_init_attr init) {
  qps_.push_back(made(device_.create_qp(pd_, &init), "create_qp"));
  return qps_.back();
}

host_driver::xrc_domain* verbs_objects::xrc_domain() {
  xrc_domains_.push_back(made(device_.open_xrcd(), "open_xrcd"));
  return xrc_domains_.back();
}

shared_receive_queue* verbs_objects::xrc_srq(host_driver::xrc_domain* domain, completion_queue* cq, unsigned requests) {
  ibv_srq_init_attr_ex init{};
  init.attr.max_wr = requests;
  init.attr.max_sge = 1;
  init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  init.srq_type = IBV_SRQT_XRC;
  init.pd = pd_;
  init.xrcd = domain;
  init.cq = cq;
  srqs_.push_back(made(device_.create_srq_ex(&init), "create_srq_ex"));
  return srqs_.back();
}

queue_pair* verbs_objects::xrc_receiver(host_driver::xrc_domain* domain) {
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_XRC_RECV;
  init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  init.xrcd = domain;
  qps_.push_back(made(device_.create_qp_ex(&init), "create_qp_ex"));
  return qps_.back();
}

queue_pair* verbs_objects::xrc_sender(completion_queue* cq, unsigned requests) {
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_XRC_SEND;
  init.send_cq = cq;
  init.cap.max_send_wr = requests;
  init.cap.max_send_sge = 1;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = pd_;
  qps_.push_back(made(device_.create_qp_ex(&init), "create_qp_ex"));
  return qps_.back();
}

app_buffer verbs_objects::buffer(std::size_t bytes, int access, std::uint8_t content) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes > most_client_bytes - buffer_bytes_)
    throw std::runtime_error(fmt::format("a client has up to {} MiB of memory", most_client_bytes >> 20));
  buffer_bytes_ += bytes;
  app_buffer b;
  b.memory = device_.allocate_buffer(bytes);
  if (b.memory.pointer == nullptr) throw std::runtime_error("allocate_buffer: no host memory");
  std::memset(b.memory.pointer, content, bytes);
  buffers_.push_back(b);
  b.region = made(device_.reg_mr(pd_, b.memory.pointer, bytes, access), "reg_mr");
  buffers_.back() = b;
  return b;
}

address_handle* verbs_objects::ah(const ibv_ah_attr& path, const mac_address& mac) {
  ahs_.push_back(made(device_.create_ah(pd_, &path, &mac), "create_ah"));
  return ahs_.back();
}

void post(device& device, queue_pair* qp, ibv_send_wr wr, ibv_sge sge) {
  wr.sg_list = &sge;
  wr.num_sge = sge.length != 0 ? 1 : 0;
  wr.next = nullptr;
  ibv_send_wr* bad = nullptr;
  hosts::require(device.post_send(qp, &wr, &bad), "post_send");
}

void post_receive(device& device, queue_pair* qp, std::uint64_t id, ibv_sge sge) {
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  hosts::require(device.post_recv(qp, &wr, &bad), "post_recv");
}

namespace {

/// IBA volume 1, 11.6.2: what each status says.
const char* status_words(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
      return "local length error: a message was longer than the memory posted for it (--size differs?)";
    case IBV_WC_LOC_QP_OP_ERR:
      return "local queue pair operation error: the request does not suit the queue pair";
    case IBV_WC_LOC_PROT_ERR:
      return "local protection error: the request names memory that it may not use";
    case IBV_WC_WR_FLUSH_ERR:
      return "flushed: the queue pair was in error before the request's turn came";
    case IBV_WC_REM_INV_REQ_ERR:
      return "remote invalid request error: the peer refused it, for example as longer than its receive";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error: the peer's memory is not open to it";
    case IBV_WC_REM_OP_ERR:
      return "remote operation error: the peer could not carry it out";
    case IBV_WC_RETRY_EXC_ERR:
      return "transport retry counter exceeded: the peer did not answer";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "RNR retry counter exceeded: the peer had no receive posted";
    default:
      return "an error";
  }
}

}  // namespace

std::string failure_words(const ibv_wc& wc, bool timeout_is_ours) {
  const bool helps = timeout_is_ours && wc.status == IBV_WC_RETRY_EXC_ERR;
  return fmt::format("work request {} failed: {} (status {}){}", wc.wr_id, status_words(wc.status),
                     static_cast<int>(wc.status), helps ? "; a higher --timeout would have waited longer" : "");
}

void require_success(const ibv_wc& wc, bool timeout_is_ours) {
  if (wc.status != IBV_WC_SUCCESS) throw peer_failure(failure_words(wc, timeout_is_ours));
}

ibv_wc next_completion(device& device, completion_queue* cq, std::uint64_t patience_ps) {
  ibv_wc wc{};
  const int n = device.wait_cq(cq, 1, &wc, patience_ps);
  hosts::require(n, "poll_cq");
  if (n == 0) throw peer_failure("the peer does not send any more");
  require_success(wc);
  return wc;
}

void to_init(device& device, queue_pair* qp, ibv_qp_type type, int access) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = datagram_qkey;
  attr.qp_access_flags = static_cast<unsigned>(access);
  const int last = type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  hosts::require(device.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last),
                 "modify_qp to INIT");
}

void to_ready_to_receive(device& device, queue_pair* qp, const qp_route& route) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = hosts::to_ibv_mtu(route.mtu);
  attr.dest_qp_num = route.peer_qpn;
  attr.rq_psn = route.peer_psn;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(route.reads_taken);
  attr.min_rnr_timer = rnr_timer;
  attr.ah_attr = route.path;
  const bool connected = route.type != IBV_QPT_UD;
  int mask = IBV_QP_STATE;
  if (connected) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (route.type == IBV_QPT_RC || route.type == IBV_QPT_XRC_RECV)
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  hosts::require(device.modify_qp(qp, &attr, mask, connected ? &route.mac : nullptr), "modify_qp to RTR");
}

void to_ready_to_send(device& device, queue_pair* qp, const qp_route& route) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = route.own_psn;
  attr.timeout = static_cast<std::uint8_t>(route.ack_timeout);
  attr.retry_cnt = retries;
  attr.rnr_retry = rnr_retries;
  attr.max_rd_atomic = static_cast<std::uint8_t>(route.reads_made);
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (route.type == IBV_QPT_XRC_RECV) mask |= IBV_QP_TIMEOUT;
  if (route.type == IBV_QPT_RC || route.type == IBV_QPT_XRC_SEND)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  hosts::require(device.modify_qp(qp, &attr, mask), "modify_qp to RTS");
}

std::uint32_t starting_psn(std::uint64_t seed, const mac_address& mac, std::uint32_t qpn) {
  std::mt19937_64 random(seed ^ (wire::to_u64(mac) << 16) ^ qpn);
  return static_cast<std::uint32_t>(random() & 0xffffff);
}

ibv_ah_attr path_to(const gid_bytes& gid, int gid_index, unsigned service_level, std::uint8_t hop_limit,
                    std::uint8_t traffic_class) {
  ibv_ah_attr path{};
  path.is_global = 1;
  std::copy(gid.begin(), gid.end(), path.grh.dgid.raw);
  path.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
  path.grh.hop_limit = hop_limit;
  path.grh.traffic_class = traffic_class;
  path.sl = static_cast<std::uint8_t>(service_level);
  path.port_num = 1;
  return path;
}

}  // namespace rnic::serve
