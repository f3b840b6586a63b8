// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/connection.h"

#include <infiniband/mlx4dv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "host_driver/dcb/service.h"
#include "host_driver/hosts/node.h"
#include "model/sim/check.h"

namespace rnic::hosts {

using namespace host_driver;

namespace {
void expect_open(const device& d, const std::string& what) {
  if (!d.is_open()) throw sim::config_error(what + ": the device is not open, which it is for the programs of a run");
}
}  // namespace

void not_made(const device& d, const std::string& what) {
  const int error = errno;
  expect_open(d, what);
  const pinned_memory& pinned = d.pinned();
  if (error == ENOMEM && pinned.is_limited())
    throw sim::config_error("driver.memlock: " + std::to_string(pinned.limit_bytes()) + " bytes are too few: " + what +
                            " found " + std::to_string(pinned.bytes()) + " of them in use");
  throw std::runtime_error(what + ": " + std::strerror(error));
}

void require(int result, const std::string& what) {
  if (result < 0) throw std::runtime_error(what + ": " + std::strerror(-result));
}

namespace {

/// Longer packets than the interface's MTU leaves are dropped by ports.
void check_mtu(const endpoint& e, unsigned mtu) {
  const host_driver::config& c = e.device->settings();
  const ibv_mtu most = host_driver::path_mtu(std::min(c.mtu, e.device->port(e.port).max_mtu), c.path_mtu_rule);
  if (to_ibv_mtu(mtu) <= most) return;
  throw sim::config_error("driver.mtu: " + std::to_string(c.mtu) + ": the longest path MTU is " +
                          (most == 0 ? "none" : std::to_string(128u << most)) + ", not " + std::to_string(mtu) +
                          " (--mtu)");
}

gid_bytes address_of(unsigned ip, unsigned port, unsigned host) {
  gid_bytes g{};
  if (ip == 4) {
    g[10] = g[11] = 0xff;
    g[12] = 10;
  } else {
    g[0] = 0xfd;
  }
  g[13] = static_cast<std::uint8_t>(port - 1);
  g[14] = static_cast<std::uint8_t>(host >> 8);
  g[15] = static_cast<std::uint8_t>(host);
  return g;
}

}  // namespace

ibv_mtu to_ibv_mtu(unsigned bytes) {
  switch (bytes) {
    case 256:
      return IBV_MTU_256;
    case 512:
      return IBV_MTU_512;
    case 1024:
      return IBV_MTU_1024;
    case 2048:
      return IBV_MTU_2048;
    case 4096:
      return IBV_MTU_4096;
    default:
      throw sim::config_error("mtu: " + std::to_string(bytes) + ": expected 256, 512, 1024, 2048 or 4096");
  }
}

const char* to_string(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "success";
    case IBV_WC_LOC_LEN_ERR:
      return "local_length";
    case IBV_WC_LOC_QP_OP_ERR:
      return "local_qp_operation";
    case IBV_WC_LOC_PROT_ERR:
      return "local_protection";
    case IBV_WC_WR_FLUSH_ERR:
      return "flushed";
    case IBV_WC_BAD_RESP_ERR:
      return "bad_response";
    case IBV_WC_REM_INV_REQ_ERR:
      return "remote_invalid_request";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote_access";
    case IBV_WC_REM_OP_ERR:
      return "remote_operation";
    case IBV_WC_RETRY_EXC_ERR:
      return "retry_exceeded";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "rnr_retry_exceeded";
    default:
      return "other";
  }
}

message_failed::message_failed(const ibv_wc& wc)
    : std::runtime_error(std::string("a message ended with ") + to_string(wc.status) + " (status " +
                         std::to_string(static_cast<int>(wc.status)) + ", vendor error " +
                         std::to_string(wc.vendor_err) + ")") {}

namespace {
void set_port_address(endpoint& e, const connection_options& options, unsigned host) {
  e.gid = address_of(options.ip, e.port, host);
  e.mac = e.device->port(e.port).mac;
  e.gid_index = e.device->add_address(e.port, e.gid, options.roce, options.vlan);
  if (e.gid_index == -EOPNOTSUPP)
    throw sim::config_error(std::string("there are no GIDs of RoCE ") +
                            (options.roce == host_driver::roce_types::v1 ? "v1" : "v2") +
                            ": adapter.port.roce_v2 or driver.roce_mode excludes them");
  if (e.gid_index == -ENOSPC)
    throw sim::config_error("the GID table of the function has " + std::to_string(e.device->port(e.port).gid_rows) +
                            " entries, which are taken: fewer functions (--functions) leave more to each");
  if (e.gid_index == -EPERM)
    throw sim::config_error("a function with a VLAN of its administrator's (driver.functions.vlan) has no other one: " +
                            std::to_string(options.vlan) + " is not legal for its addresses (--vlan)");
  require(e.gid_index, "add address");
}
}  // namespace

void set_address(endpoint& e, const connection_options& options, unsigned host) {
  expect_open(*e.device, "set_address");
  if (options.ip != 4 && options.ip != 6)
    throw sim::config_error("ip: " + std::to_string(options.ip) + ": expected 4 or 6");
  check_mtu(e, options.mtu);
  set_port_address(e, options, host);
  e.pd = require_made(*e.device, e.device->alloc_pd(), "alloc_pd");
  if (e.other == nullptr) return;
  set_port_address(*e.other, options, host);
  e.other->pd = e.pd;
}

xrc_domain* domain_of(endpoint& e) {
  if (e.xrcd == nullptr) e.xrcd = require_made(*e.device, e.device->open_xrcd(), "open_xrcd");
  return e.xrcd;
}

unsigned priority_of(const endpoint& e, const connection_options& options) {
  const bool is_said = options.priority != 0 || options.priority_is_given;
  if (is_said || options.vlan == no_vlan || e.of == nullptr || e.device->is_virtual()) return options.priority;
  const dcb::service* agent = e.of->dcb(e.port);
  return agent == nullptr ? 0u : agent->roce_priority(options.roce).value_or(0);
}

ibv_ah_attr path_of(const endpoint& e, const connection_options& options, const endpoint& peer) {
  ibv_ah_attr path{};
  path.is_global = 1;
  std::memcpy(path.grh.dgid.raw, peer.gid.data(), 16);
  path.grh.sgid_index = static_cast<std::uint8_t>(e.gid_index);
  path.grh.hop_limit = 64;
  path.grh.traffic_class = options.traffic_class;
  path.static_rate = static_cast<std::uint8_t>(options.static_rate);
  path.sl = static_cast<std::uint8_t>(priority_of(e, options));
  path.port_num = static_cast<std::uint8_t>(e.port);
  return path;
}

queue_pair* create_qp(const endpoint& e, const ibv_qp_init_attr& attr, unsigned inline_receive) {
  ibv_qp_init_attr_ex all{};
  const bool in_domain = attr.qp_type == IBV_QPT_XRC_RECV;
  all.comp_mask = in_domain ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  all.pd = e.pd;
  all.xrcd = e.xrcd;
  all.send_cq = attr.send_cq;
  all.recv_cq = attr.recv_cq;
  all.srq = attr.srq;
  all.cap = attr.cap;
  all.qp_type = attr.qp_type;
  mlx4dv_qp_init_attr direct{MLX4DV_QP_INIT_ATTR_MASK_INL_RECV, inline_receive};
  return require_made(*e.device, e.device->create_qp_ex(&all, inline_receive != 0 ? &direct : nullptr), "create_qp");
}

queue_pair* make_qp(endpoint& e, const connection_options& options, ibv_cq& send_cq, ibv_cq& receive_cq,
                    ibv_srq* shared) {
  ibv_qp_init_attr init{};
  init.srq = shared;
  init.send_cq = &send_cq;
  init.recv_cq = &receive_cq;
  init.qp_type = options.type;
  init.cap.max_send_wr = options.send_depth;
  if (!is_xrc(options.type)) init.cap.max_recv_wr = options.receive_depth;
  init.cap.max_send_sge = options.send_sges;
  if (!is_xrc(options.type)) init.cap.max_recv_sge = options.receive_sges;
  init.cap.max_inline_data = options.inline_bytes;
  if (options.type == IBV_QPT_XRC_RECV) domain_of(e);
  queue_pair* qp = create_qp(e, init, options.inline_receive);
  qp->kernel = options.kernel;
  qp->flow_entropy = options.flow_entropy;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = static_cast<std::uint8_t>(e.port);
  attr.qp_access_flags = static_cast<unsigned>(options.access);
  attr.qkey = datagram_qkey;
  const int last = options.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  require(e.device->modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last), "modify_qp to INIT");
  return qp;
}

void connect(endpoint& e, const connection_options& options, queue_pair& qp, const endpoint& peer,
             std::uint32_t peer_qpn, std::uint32_t own_psn, std::uint32_t peer_psn) {
  // XRC queue pairs are one half only.
  const bool connected = qp.qp_type != IBV_QPT_UD, reliable = connected && qp.qp_type != IBV_QPT_UC;
  const bool receives = reliable && qp.qp_type != IBV_QPT_XRC_SEND, sends = qp.qp_type != IBV_QPT_XRC_RECV;
  ibv_qp_attr rtr{};
  rtr.qp_state = IBV_QPS_RTR;
  rtr.path_mtu = to_ibv_mtu(options.mtu);
  rtr.dest_qp_num = peer_qpn;
  rtr.rq_psn = peer_psn;
  rtr.max_dest_rd_atomic = static_cast<std::uint8_t>(options.rd_atomic);
  rtr.min_rnr_timer = static_cast<std::uint8_t>(options.rnr_timer);
  rtr.ah_attr = path_of(e, options, peer);
  require(e.device->modify_qp(&qp, &rtr,
                              IBV_QP_STATE |
                                  (connected ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN : 0) |
                                  (receives ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0),
                              connected ? &peer.mac : nullptr),
          "modify_qp to RTR");
  ibv_qp_attr rts{};
  rts.qp_state = IBV_QPS_RTS;
  rts.sq_psn = own_psn;
  rts.timeout = static_cast<std::uint8_t>(options.ack_timeout);
  rts.retry_cnt = static_cast<std::uint8_t>(options.retries);
  rts.rnr_retry = static_cast<std::uint8_t>(options.rnr_retries);
  rts.max_rd_atomic = static_cast<std::uint8_t>(options.rd_atomic);
  const int retries = sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
  require(e.device->modify_qp(&qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? IBV_QP_TIMEOUT | retries : 0)),
          "modify_qp to RTS");
}

buffer make_buffer(const endpoint& e, std::size_t bytes) {
  expect_open(*e.device, "make_buffer");
  if (e.pd == nullptr) throw sim::config_error("make_buffer: the host has no address yet, set_address comes first");
  buffer b;
  b.memory = e.device->allocate_buffer(bytes);
  if (b.memory.pointer == nullptr)
    throw sim::config_error("host memory has no room for a buffer of " + std::to_string(bytes) +
                            " bytes more: less of regions, messages, queue pairs or depth is needed");
  b.region = require_made(*e.device,
                          e.device->reg_mr(e.pd, b.memory.pointer, bytes,
                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                               IBV_ACCESS_REMOTE_ATOMIC),
                          "reg_mr");
  return b;
}

void make_atomic(ibv_send_wr& wr, bool compare_swap, std::uint64_t address, std::uint32_t rkey, std::uint64_t found) {
  wr.opcode = compare_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic.remote_addr = address;
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.compare_add = compare_swap ? found : 1;
  wr.wr.atomic.swap = found + 1;
}

}  // namespace rnic::hosts
