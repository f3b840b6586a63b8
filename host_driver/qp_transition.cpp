// SPDX-License-Identifier: Apache-2.0
// State transitions of queue pairs: the context as the kernel builds it (ib/qp.c:__mlx4_ib_modify_qp, net/qp.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "host_driver/qp_rules.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/paravirtual.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

namespace {

constexpr std::uint32_t ack_request_log = 8;        // MLX4_IB_ACK_REQ_FREQ
constexpr std::uint8_t default_sched_queue = 0x83;  // MLX4_IB_DEFAULT_SCHED_QUEUE
constexpr std::uint32_t path_migrated = 3u << 11;
constexpr std::uint8_t roce_mode_v2 = 2 << 6;
constexpr unsigned ud_message_log = 13;  // with 4096-byte MTU: what the kernel writes for UD

std::uint32_t service_of(ibv_qp_type type) {
  if (type == IBV_QPT_RAW_PACKET) return 7;
  return type == IBV_QPT_RC ? 0 : type == IBV_QPT_UC ? 1 : is_xrc(type) ? 6 : 3;
}

std::uint32_t code_of(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return 0;
    case IBV_QPS_INIT:
      return 1;
    case IBV_QPS_RTR:
      return 2;
    case IBV_QPS_RTS:
      return 3;
    case IBV_QPS_SQE:
      return 4;
    case IBV_QPS_SQD:
      return 5;
    default:
      return 6;
  }
}

/// Opcode of a transition, states by their codes; nop where there is none (net/qp.c:__mlx4_qp_modify).
abi::opcode command_of(ibv_qp_state from, ibv_qp_state to) {
  using op = abi::opcode;
  if (to == IBV_QPS_RESET) return op::to_rst_qp;
  if (to == IBV_QPS_ERR) return op::to_err_qp;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return op::rst2init_qp;
  if (from == IBV_QPS_INIT && to == IBV_QPS_INIT) return op::init2init_qp;
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) return op::init2rtr_qp;
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) return op::rtr2rts_qp;
  if (from == IBV_QPS_RTS && to == IBV_QPS_RTS) return op::rts2rts_qp;
  if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) return op::rts2sqd_qp;
  if (from == IBV_QPS_SQD && to == IBV_QPS_RTS) return op::sqd2rts_qp;
  if (from == IBV_QPS_SQD && to == IBV_QPS_SQD) return op::sqd2sqd_qp;
  if (from == IBV_QPS_SQE && to == IBV_QPS_RTS) return op::sqerr2rts_qp;
  return op::nop;
}

/// fls(n - 1): log2 rounded up, as the kernel stores limits of outstanding requests. The peer's: it may have as many.
std::uint32_t log_of_limit(std::uint8_t n) { return n == 0 ? 0 : log2_up(n); }
/// Our own are never more than was agreed, for what the peer has no resources it drops: rounded down, not as the
/// kernel.
std::uint32_t log_of_depth(std::uint8_t n) { return n == 0 ? 0 : log2_up(std::uint64_t{n} + 1) - 1; }

}  // namespace

/// The address path of a connected queue pair (ib/qp.c:_mlx4_set_path).
int device::fill_path(queue_pair& qp, const ibv_ah_attr& ah, const mac_address* remote_mac, std::uint8_t* path,
                      bool* roce_v2) {
  namespace f = abi::path;
  const unsigned port = qp.port;
  if (ah.is_global == 0 || ah.sl > 7 || ah.grh.sgid_index >= ports_[port - 1].gid_rows) return -EINVAL;
  const gid_row& row = ports_[port - 1].gids[ah.grh.sgid_index];
  if (!row.valid) return -EINVAL;
  mac_address mac{};
  if (remote_mac != nullptr) {
    mac = *remote_mac;
  } else if (const int error = resolve(to_bytes(ah.grh.dgid), &mac)) {
    return error;
  }
  abi::set(path, f::grh, 1);
  abi::set(path, f::mac_index, static_cast<std::uint8_t>(ports_[port - 1].mac_index));
  abi::set(path, f::rlid, ah.dlid);
  abi::set(path, f::static_rate, static_cast<std::uint8_t>(ah.static_rate != 0 ? ah.static_rate + 5 : 0));
  abi::set(path, f::gid_index, ah.grh.sgid_index);
  abi::set(path, f::hop_limit, ah.grh.hop_limit);
  abi::set(path, f::traffic_class, ah.grh.traffic_class);
  abi::set(path, f::flow_label, ah.grh.flow_label);
  std::memcpy(path + f::remote_gid, ah.grh.dgid.raw, 16);
  abi::set(path, f::sched_queue,
           static_cast<std::uint8_t>(default_sched_queue | (port - 1) << 6 | unsigned{ah.sl} << 3));
  std::uint8_t feup = f::feup_force_up;
  if (row.vlan != no_vlan) {
    const int index = add_vlan(port, row.vlan);
    if (index < 0) return index;
    qp.next_vlan = {port, static_cast<unsigned>(index)};
    abi::set(path, f::vlan_index, static_cast<std::uint8_t>(index));
    abi::set(path, f::fl, f::fl_cvlan);
    feup |= f::feup_force_vlan;
  }
  abi::set(path, f::feup, feup);
  abi::set(path, f::link_type, f::link_ethernet);
  std::memcpy(path + f::dmac, mac.data(), mac.size());
  *roce_v2 = row.type == IBV_GID_TYPE_ROCE_V2;
  return 0;
}

/// The VLAN of a path that the queue pair has now, or has not got, is registered for it, or is so no more.
void device::settle_vlan(queue_pair& qp, bool moved) {
  if (moved) std::swap(qp.vlan, qp.next_vlan);
  if (qp.next_vlan) remove_vlan(qp.next_vlan->port, qp.next_vlan->index);
  qp.next_vlan.reset();
}

/// What the administrator has set for RC queue pairs, in the place of what the program gave.
void device::force_path(const ibv_ah_attr& ah, unsigned port, std::uint8_t* path) const {
  const forced_path& of_port = forced(port);
  const gid_row& row = ports_[port - 1].gids[ah.grh.sgid_index];
  if (const auto value = of_port.traffic_class(row.id, to_bytes(ah.grh.dgid)))
    abi::set(path, abi::path::traffic_class, *value);
  if (const auto value = of_port.ttl()) abi::set(path, abi::path::hop_limit, *value);
}

int device::check_limits(const queue_pair& qp, const ibv_qp_attr& attr, int mask) const {
  const unsigned ports = qp.ethernet.physical_port ? caps_.num_ports : num_ports();
  if ((mask & IBV_QP_PORT) != 0 && (attr.port_num == 0 || attr.port_num > ports)) return -EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && attr.pkey_index != 0) return -EINVAL;  // RoCE has one
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && attr.max_rd_atomic > caps_.max_requester_rdma) return -EINVAL;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 && attr.max_dest_rd_atomic > caps_.max_responder_rdma) return -EINVAL;
  if ((mask & IBV_QP_PATH_MTU) != 0 && (attr.path_mtu < IBV_MTU_256 || attr.path_mtu > IBV_MTU_4096)) return -EINVAL;
  if ((mask & IBV_QP_AV) != 0 && qp.port == 0 && (mask & IBV_QP_PORT) == 0) return -EINVAL;
  if ((mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT)) != 0) return -EOPNOTSUPP;
  return 0;
}

/// What only RST2INIT carries: the geometry of the queues.
void device::fill_init_fields(queue_pair& qp, std::uint8_t* c) const {
  abi::store_mtt(c, abi::qpc::mtt_high, abi::qpc::mtt_low, std::uint64_t{qp.mtt.first} * caps_.mtt_bytes);
  if (qp.rq.count != 0) abi::set(c, abi::qpc::db_record, qp.record.bus_address);
  if (qp.xrc != nullptr) abi::set(c, abi::qpc::xrcd, qp.xrc->xrcdn);
}

int device::fill_context(queue_pair& qp, const ibv_qp_attr& attr, int mask, ibv_qp_state to,
                         const mac_address* remote_mac, std::uint8_t* mailbox) {
  namespace f = abi::qpc;
  namespace opt = abi::qp_mailbox;
  std::uint8_t* c = mailbox + opt::context;
  std::uint8_t* path = c + f::primary_path;
  std::uint32_t optional = 0;
  const bool ud = qp.qp_type == IBV_QPT_UD;
  abi::set(c, f::flags, code_of(to) << 28 | service_of(qp.qp_type) << 16 | path_migrated);
  const bool raw = qp.qp_type == IBV_QPT_RAW_PACKET;
  if (raw) {
    c[0x08] = 0xff;  // MLX4_RAW_QP_MTU, MLX4_RAW_QP_MSGMAX
    fill_raw_path(qp, path);
    if (to == IBV_QPS_INIT) abi::set(c, f::vlan_strip_disable, qp.ethernet.strip_vlan ? 0 : 1);
    if (qp.ethernet.keep_fcs) abi::set(c, f::keep_fcs, 1);
    if (qp.ethernet.physical_port && to == IBV_QPS_RTR) abi::set(c, f::force_physical_port, 1);
  } else if (ud) {
    c[0x08] = static_cast<std::uint8_t>(IBV_MTU_4096 << 5 | ud_message_log);
  } else if ((mask & IBV_QP_PATH_MTU) != 0) {
    c[0x08] = static_cast<std::uint8_t>(static_cast<unsigned>(attr.path_mtu) << 5 | caps_.log_max_message);
  }
  c[0x09] = static_cast<std::uint8_t>((qp.rq.count != 0 ? log2_up(qp.rq.count) << 3 : 0) | (qp.rq.log_stride - 4));
  c[0x0a] = static_cast<std::uint8_t>(log2_up(qp.sq.count) << 3 | (qp.sq.log_stride - 4));
  abi::set(c, f::uar, uar_);
  abi::set(c, f::local_qpn, qp.qp_num);
  if ((mask & IBV_QP_DEST_QPN) != 0) abi::set(c, f::remote_qpn, attr.dest_qp_num);
  if (qp.state == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    abi::set(path, abi::path::counter_index, ports_[bonded_ ? 0 : qp.port - 1].counter);
    if (caps_.has(abi::dev_cap::flag_counters)) optional |= opt::opt_counter;
  }
  if ((mask & IBV_QP_PKEY_INDEX) != 0) optional |= opt::opt_pkey;
  if ((mask & IBV_QP_AV) != 0) {
    bool v2 = false;
    if (const int error = fill_path(qp, attr.ah_attr, remote_mac, path, &v2)) return error;
    optional |= opt::opt_primary_path | opt::opt_sched_queue;
    if (v2 && to == IBV_QPS_RTR) c[0x0b] |= roce_mode_v2;
    if (qp.qp_type == IBV_QPT_RC) force_path(attr.ah_attr, qp.port, path);
  }
  if (ud && qp.state == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    abi::set(path, abi::path::sched_queue, static_cast<std::uint8_t>(default_sched_queue | (qp.port - 1) << 6));
    abi::set(path, abi::path::grh, 1);
    abi::set(path, abi::path::mac_index, static_cast<std::uint8_t>(ports_[qp.port - 1].mac_index));
    abi::set(path, abi::path::link_type, abi::path::link_ethernet);
    if (cfg_.ud_gid_type == config::datagram_version::v2) c[0x0b] |= roce_mode_v2;
  }
  if ((mask & IBV_QP_TIMEOUT) != 0) {
    abi::set(path, abi::path::ack_timeout, attr.timeout);
    optional |= opt::opt_ack_timeout;
  }
  abi::store32(c, 0x04, qp.domain->pdn);
  abi::set(c, f::send_cqn, qp.send_queue->cqn);
  abi::set(c, f::receive_cqn, qp.receive_queue->cqn);
  abi::set(c, f::ack_request, ack_request_log);
  if (qp.kernel) abi::set(c, f::fast_reg, 1);
  if (qp.inline_receive) abi::set(c, f::inline_receive, 1);
  if ((mask & IBV_QP_RNR_RETRY) != 0) {
    abi::set(c, f::rnr_retry, attr.rnr_retry);
    optional |= opt::opt_rnr_retry;
  }
  if ((mask & IBV_QP_RETRY_CNT) != 0) {
    abi::set(c, f::retry_count, attr.retry_cnt);
    optional |= opt::opt_retry;
  }
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
    abi::set(c, f::requester_rdma, log_of_depth(attr.max_rd_atomic));
    optional |= opt::opt_sra_max;
  }
  if ((mask & IBV_QP_SQ_PSN) != 0) abi::set(c, f::next_send_psn, attr.sq_psn);
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) {
    abi::set(c, f::responder_rdma, log_of_limit(attr.max_dest_rd_atomic));
    optional |= opt::opt_rra_max;
  }
  if ((mask & (IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_DEST_RD_ATOMIC)) != 0) {
    // The context has the logarithm of the depth: a depth of 0 is told by the rights (ib/qp.c:to_mlx4_access_flags).
    unsigned access = (mask & IBV_QP_ACCESS_FLAGS) != 0 ? attr.qp_access_flags : qp.access_flags;
    const unsigned taken = (mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 ? attr.max_dest_rd_atomic : qp.reads_taken;
    if (taken == 0) access &= IBV_ACCESS_REMOTE_WRITE;
    abi::set(c, f::remote_read, (access & IBV_ACCESS_REMOTE_READ) != 0 ? 1 : 0);
    abi::set(c, f::remote_write, (access & IBV_ACCESS_REMOTE_WRITE) != 0 ? 1 : 0);
    abi::set(c, f::remote_atomic, (access & IBV_ACCESS_REMOTE_ATOMIC) != 0 ? 1 : 0);
    optional |= opt::opt_rwe | opt::opt_rre | opt::opt_rae;
  }
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) {
    abi::set(c, f::min_rnr_timer, attr.min_rnr_timer);
    optional |= opt::opt_rnr_timer;
  }
  if ((mask & IBV_QP_RQ_PSN) != 0) abi::set(c, f::next_receive_psn, attr.rq_psn);
  if ((mask & IBV_QP_QKEY) != 0) {
    if (enabled_functions_ != 0 && abi::paravirtual::is_reserved_qkey(attr.qkey)) return -EINVAL;
    abi::set(c, f::qkey, attr.qkey);
    optional |= opt::opt_qkey;
  }
  if (qp.shared != nullptr) {
    abi::set(c, f::no_credits, 1);
    abi::set(c, f::srq_valid, 1);
    abi::set(c, f::srqn, qp.shared->srqn);
  }
  if (qp.state == IBV_QPS_RESET && to == IBV_QPS_INIT) fill_init_fields(qp, c);
  abi::set(mailbox, opt::optional, optional);
  return 0;
}

int device::move_qp(queue_pair& qp, ibv_qp_state to, const command_channel::mailbox* box, bool notify) {
  const abi::opcode op = command_of(qp.state, to);
  if (op == abi::opcode::nop) return -EINVAL;
  int error = 0;
  if (op == abi::opcode::to_rst_qp) {
    error = channel_.command(op, qp.qp_num, abi::qp_mailbox::to_reset_op_modifier);
  } else {
    error = channel_.write(*box, op, qp.qp_num | (notify ? abi::qp_mailbox::sqd_event : 0));
  }
  if (error == 0) qp.state = to;
  return error;
}

int device::modify_qp(ibv_qp* pair, const ibv_qp_attr* attr, int mask, const mac_address* remote_mac) {
  auto& qp = *static_cast<queue_pair*>(pair);
  if (qp.qp_type == IBV_QPT_DRIVER) return -EINVAL;
  if ((mask & IBV_QP_CUR_STATE) != 0) qp.state = attr->cur_qp_state;
  const ibv_qp_state from = qp.state;
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
  if (!modify_qp_is_ok(from, to, qp.qp_type, mask)) return -EINVAL;
  if (from == IBV_QPS_RESET && to == IBV_QPS_RESET) return 0;
  if (const int error = check_limits(qp, *attr, mask)) return error;
  if ((mask & IBV_QP_PORT) != 0) {
    if (!bonded_ || qp.ethernet.physical_port)
      qp.port = attr->port_num;
    else if (from == IBV_QPS_RESET)
      choose_virtual_port(qp);
  }

  command_channel::mailbox box(channel_);
  if (to != IBV_QPS_RESET) {
    if (const int error = fill_context(qp, *attr, mask, to, remote_mac, box.data())) {
      settle_vlan(qp, false);
      return error;
    }
  }
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS && (caps_.bmme_flags & abi::dev_cap::bmme_roce_v1_v2) != 0) {
    command_channel::mailbox query(channel_);
    constexpr std::uint16_t without_query = 0xdead;
    std::uint16_t entropy = without_query;
    if (channel_.read(query, abi::opcode::query_qp, qp.qp_num) == 0) {
      entropy = roce_entropy(qp.qp_num, abi::get(query.data() + abi::qp_mailbox::context, abi::qpc::remote_qpn));
    }
    if (qp.udp_source != 0) entropy = qp.udp_source;
    abi::set(box.data() + abi::qp_mailbox::context, abi::qpc::roce_entropy, entropy);
  }
  const bool notify = from == IBV_QPS_RTS && to == IBV_QPS_SQD && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 &&
                      attr->en_sqd_async_notify != 0;
  const int error = move_qp(qp, to, &box, notify);
  if ((mask & IBV_QP_AV) != 0 || to == IBV_QPS_RESET) settle_vlan(qp, error == 0);
  if (error != 0) return error;
  if ((mask & IBV_QP_DEST_QPN) != 0) qp.remote_qpn = attr->dest_qp_num;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) qp.access_flags = attr->qp_access_flags;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) qp.reads_taken = attr->max_dest_rd_atomic;
  if (to == IBV_QPS_RESET) {  // a fresh start: nothing posted, nothing owed
    purge_completions(qp);
    init_send_ring(qp);
    qp.sq.head = qp.sq.tail = qp.rq.head = qp.rq.tail = 0;
    if (qp.record.pointer != nullptr) abi::store32(qp.record.pointer, 0, 0);
  }
  return 0;
}

int device::set_max_rate(ibv_qp* pair, std::uint32_t mbps) {
  namespace u = abi::update_qp;
  namespace rate = abi::qp_rate;
  if (caps_.rate_limits == 0) return -EOPNOTSUPP;
  const unsigned unit = mbps > rate::value_mask ? rate::gbps : mbps != 0 ? rate::mbps : rate::none;
  const unsigned value = unit == rate::gbps ? mbps / 1000 : mbps;
  command_channel::mailbox box(channel_);
  abi::set(box.data(), u::qp_mask, std::uint64_t{1} << u::rate_limit_bit);
  abi::set(box.data() + u::context, abi::qpc::rate_limit,
           static_cast<std::uint16_t>(unit << rate::unit_shift | (value & rate::value_mask)));
  return channel_.write(box, abi::opcode::update_qp, pair->qp_num);
}

}  // namespace rnic::host_driver
