// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/host.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"
#include "testbenches/replay/numbers.h"

namespace rnic::replay {

namespace {

constexpr unsigned queue_depth = 1024;  // work requests of a connection that are posted at a time
constexpr std::uint32_t largest_sink = 1u << 30;
constexpr unsigned room_for_masks = 64;  // inline bytes that make an entry of the send queue large enough
// wr_id: connection << 2, with these for receives: of the queue pair, or of a shared queue instead of the connection.
constexpr std::uint64_t receive_id = 1, shared_id = 2;

std::string error_text(int error) { return std::strerror(error < 0 ? -error : error); }

std::string status_text(ibv_wc_status s) {
  switch (s) {
    case IBV_WC_LOC_LEN_ERR:
      return "local length error";
    case IBV_WC_LOC_QP_OP_ERR:
      return "local queue pair operation error";
    case IBV_WC_LOC_PROT_ERR:
      return "local protection error";
    case IBV_WC_WR_FLUSH_ERR:
      return "flushed";
    case IBV_WC_REM_INV_REQ_ERR:
      return "remote invalid request";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error";
    case IBV_WC_REM_OP_ERR:
      return "remote operation error";
    case IBV_WC_RETRY_EXC_ERR:
      return "retries exhausted";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "receiver not ready too often";
    default:
      return "status " + std::to_string(static_cast<int>(s));
  }
}

std::uint16_t vlan_of(const wire::packet& p) {
  const std::uint16_t vid = p.vlan_tci & 0xfff;
  return p.vlan_present && vid != 0 ? vid : host_driver::no_vlan;
}

bool is_reliable(const connection& c) { return c.service == wire::transport::rc || c.service == wire::transport::xrc; }

}  // namespace

replay_host::replay_host(const plan& p, hosts::node& node, unsigned port)
    : plan_(p),
      port_(port),
      device_(node.device()),
      memory_(p, node.device()),
      ends_(p.connections.size()),
      deliveries_(p.connections.size()) {}

void replay_host::set_up(std::vector<std::pair<int, std::string>>& rejected,
                         std::map<std::string, std::uint64_t>& remarks) {
  pd_ = device_.alloc_pd();
  send_cq_ = device_.create_cq(16384);
  receive_cq_ = device_.create_cq(16384, 1);
  if (pd_ == nullptr || send_cq_ == nullptr || receive_cq_ == nullptr)
    throw std::runtime_error("setting up the held host failed");
  move_special_queue_pairs(plan_, device_);
  memory_.set_up(pd_, remarks);
  set_up_own_memory();
  set_up_shared_queues(remarks);
  // Connections that come after others of the same number are tried now, and set up again when their time has come.
  for (const bool first : {false, true})
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      // One of which all frames were rejected is none.
      if ((plan_.connections[i].before < 0) != first || plan_.connections[i].order.empty()) continue;
      const std::string why = set_up_connection(i);
      if (!why.empty()) rejected.emplace_back(static_cast<int>(i), why);
      if (!why.empty() || !first) close(static_cast<int>(i));
    }
}

void replay_host::close(int connection) {
  end& e = ends_[static_cast<std::size_t>(connection)];
  if (e.qp != nullptr) device_.destroy_qp(e.qp);
  e.qp = nullptr;
}

void replay_host::open(int connection) {
  const std::string why = set_up_connection(static_cast<std::size_t>(connection));
  if (why.empty()) return;
  close(connection);  // frames that were still under way to the connection before it may have ended it, too
  failures_.push_back({connection, "set up again: " + why});
}

/// One buffer: the payload of every message that the held host sent, then room for everything that it received.
void replay_host::set_up_own_memory() {
  std::uint64_t at = 0, sink_bytes = 64;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const connection& c = plan_.connections[i];
    ends_[i].source.clear();
    sink_bytes = std::max<std::uint64_t>(sink_bytes, std::min(c.receives.largest, largest_sink));
    for (const held_message& m : c.messages) {
      ends_[i].source.push_back(at);
      at += m.length;
      if (m.operation == wire::operation::read_request)
        sink_bytes = std::max<std::uint64_t>(sink_bytes, std::min(m.reth.length, largest_sink));
    }
  }
  sink_ = at;
  own_ = device_.allocate_buffer(at + sink_bytes);
  if (own_.pointer == nullptr) throw std::runtime_error("no host memory for the messages of the capture");
  for (std::size_t i = 0; i < ends_.size(); ++i)
    for (std::size_t m = 0; m < ends_[i].source.size(); ++m) {
      for (const message_piece& piece : plan_.connections[i].messages[m].pieces) {
        const captured_frame& f = plan_.frames[piece.frame];
        std::copy_n(f.bytes.begin() + f.packet.payload_offset, f.known_payload(),
                    own_.pointer + ends_[i].source[m] + piece.offset);
      }
    }
  own_region_ = device_.reg_mr(pd_, own_.pointer, own_.bytes, IBV_ACCESS_LOCAL_WRITE);
  if (own_region_ == nullptr) throw std::runtime_error("registering memory for the messages of the capture failed");
}

/// Row of an address of the held host, as a packet to or from it has it.
int replay_host::gid_row(const wire::packet& p, const wire::gid& id) {
  const bool v1 = p.encap == wire::encapsulation::roce_v1;
  return device_.add_address(port_, id, v1 ? host_driver::roce_types::v1 : host_driver::roce_types::v2, vlan_of(p));
}

std::string replay_host::set_up_connection(std::size_t index) {
  const connection& c = plan_.connections[index];
  end& e = ends_[index];
  if (std::string why = impossible(c); !why.empty()) return why;
  if (std::string why = create(c, e); !why.empty()) return why;
  std::string why = c.service == wire::transport::ud ? start_datagrams(c, e) : connect(c, e);
  if (!why.empty()) return why;
  e.under_way = 0;
  if (c.service == wire::transport::xrc) return "";
  receiver::config r;
  r.qp = e.qp;
  r.memory = sink(c.receives.largest);
  r.wr_id = index << 2 | receive_id;
  r.receives = c.receives.count;
  r.rules = c.receives.rules;
  e.receives = receiver(device_, std::move(r));
  return "";
}

/// Where nobody looks at what comes.
ibv_sge replay_host::sink(std::uint32_t bytes) const {
  return {own_region_->iova + sink_, std::clamp(bytes, 1u, largest_sink), own_region_->lkey};
}

/// The queue pair with the number that the capture has.
std::string replay_host::create(const connection& c, end& e) {
  ibv_qp_init_attr_ex init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.sq_sig_all = 1;
  e.depth = static_cast<unsigned>(std::clamp<std::size_t>(c.messages.size(), 1, queue_depth));
  init.cap.max_send_wr = e.depth;
  init.cap.max_send_sge = 1;
  const bool masks = std::any_of(c.messages.begin(), c.messages.end(), [](const held_message& m) { return m.masked; });
  init.cap.max_inline_data = masks ? room_for_masks : 0;
  init.pd = pd_;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.qp_type = c.service == wire::transport::ud   ? IBV_QPT_UD
                 : c.service == wire::transport::uc ? IBV_QPT_UC
                                                    : IBV_QPT_RC;
  if (c.service == wire::transport::xrc) {
    init.qp_type = c.xrc.held_asks ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV;
    init.xrcd = domain_;
    if (!c.xrc.held_asks) {
      init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
      init.cap = {};
    }
  } else {
    init.cap.max_recv_wr = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(c.receives.count, 1, queue_depth));
    init.cap.max_recv_sge = 2;
  }
  e.qp = device_.create_qp_ex(&init, nullptr, &c.held_qpn);
  return e.qp != nullptr ? "" : "queue pair number cannot be had: " + error_text(errno);
}

/// Shared receive queues with the numbers that peers name. Of a queue that several connections use the order in which
/// they took its receives is not followed.
void replay_host::set_up_shared_queues(std::map<std::string, std::uint64_t>& remarks) {
  std::map<std::uint32_t, std::vector<const connection*>> users;
  for (const connection& c : plan_.connections)
    for (const std::uint32_t n : c.xrc.srqns) users[n].push_back(&c);
  const bool xrc = std::any_of(plan_.connections.begin(), plan_.connections.end(),
                               [](const connection& c) { return c.service == wire::transport::xrc; });
  if (xrc && (domain_ = device_.open_xrcd()) == nullptr) throw std::runtime_error("no XRC domain");
  for (const auto& [number, of] : users) {
    const auto taken = plan_.srqs.find(number);
    receiver::config r;
    r.receives = taken == plan_.srqs.end() ? 0 : taken->second;
    ibv_srq_init_attr_ex init{};
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    init.srq_type = IBV_SRQT_XRC;
    init.pd = pd_;
    init.xrcd = domain_;
    init.cq = receive_cq_;
    init.attr.max_wr = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(r.receives, 1, queue_depth));
    init.attr.max_sge = 2;
    r.srq = device_.create_srq_ex(&init, &number);
    if (r.srq == nullptr) {
      ++remarks["shared receive queues whose number cannot be had: messages for them are refused"];
      continue;
    }
    std::uint32_t largest = 0;
    for (const connection* c : of) largest = std::max(largest, c->receives.largest);
    r.memory = sink(largest);
    r.wr_id = shared_.size() << 2 | receive_id | shared_id;
    if (of.size() == 1)
      std::copy_if(of.front()->receives.rules.begin(), of.front()->receives.rules.end(), std::back_inserter(r.rules),
                   [n = number](const receive_rule& rule) { return rule.srqn == n; });
    shared_at_[number] = shared_.size();
    shared_.emplace_back(device_, std::move(r));
  }
}

void replay_host::allow(int connection, std::size_t frame) {
  const auto at = static_cast<std::size_t>(connection);
  ends_[at].receives.sent(frame);
  for (const std::uint32_t n : plan_.connections[at].xrc.srqns)
    if (const auto shared = shared_at_.find(n); shared != shared_at_.end()) shared_[shared->second].sent(frame);
}

std::string replay_host::connect(const connection& c, end& e) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = static_cast<std::uint8_t>(port_);
  attr.qp_access_flags = (c.terms.may_read ? unsigned{IBV_ACCESS_REMOTE_READ} : 0u) |
                         (c.terms.may_write ? unsigned{IBV_ACCESS_REMOTE_WRITE} : 0u) |
                         (c.terms.may_atomic ? unsigned{IBV_ACCESS_REMOTE_ATOMIC} : 0u);
  int error = device_.modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return "queue pair to INIT: " + error_text(error);
  const int row = gid_row(c.seen_from_peer ? c.first_from_peer : c.first_from_held, c.held_gid);
  if (row < 0) return "address cannot be had: " + error_text(row);
  if ((error = to_rtr(c, e, row)) != 0) return "queue pair to RTR: " + error_text(error);
  error = to_rts(c, e);
  return error == 0 ? "" : "queue pair to RTS: " + error_text(error);
}

int replay_host::to_rtr(const connection& c, end& e, int row) {
  const wire::packet& like = c.seen_from_held ? c.first_from_held : c.first_from_peer;
  ibv_qp_attr rtr{};
  rtr.qp_state = IBV_QPS_RTR;
  rtr.path_mtu = hosts::to_ibv_mtu(c.mtu);
  rtr.dest_qp_num = c.peer_qpn;
  rtr.rq_psn = c.peer_start_psn;
  rtr.max_dest_rd_atomic = 16;
  rtr.min_rnr_timer = c.terms.rnr_timer;
  rtr.ah_attr.is_global = 1;
  std::memcpy(rtr.ah_attr.grh.dgid.raw, c.peer_gid.data(), 16);
  rtr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(row);
  rtr.ah_attr.grh.hop_limit = like.hop_limit;
  rtr.ah_attr.grh.traffic_class = like.traffic_class;
  rtr.ah_attr.grh.flow_label = like.flow_label;
  rtr.ah_attr.sl = static_cast<std::uint8_t>(like.vlan_present ? like.vlan_tci >> 13 : 0);
  rtr.ah_attr.port_num = static_cast<std::uint8_t>(port_);
  const int path = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const bool answers = is_reliable(c) && e.qp->qp_type != IBV_QPT_XRC_SEND;
  return device_.modify_qp(e.qp, &rtr, path | (answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0),
                           &c.peer_mac);
}

int replay_host::to_rts(const connection& c, end& e) {
  ibv_qp_attr rts{};
  rts.qp_state = IBV_QPS_RTS;
  rts.sq_psn = c.held_start_psn;
  rts.timeout = 31;  // 2.4 hours: what the capture shows is repeated, and nothing else
  rts.retry_cnt = 7;
  rts.rnr_retry = c.terms.rnr_retries;
  rts.max_rd_atomic = 16;
  e.qp->udp_source = c.seen_from_held ? c.first_from_held.udp_source : std::uint16_t{0};
  int more = is_reliable(c) ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
  if (e.qp->qp_type == IBV_QPT_XRC_RECV) more = IBV_QP_TIMEOUT;
  return device_.modify_qp(e.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | more);
}

std::string replay_host::start_datagrams(const connection& c, end& e) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = static_cast<std::uint8_t>(port_);
  attr.qkey = hosts::datagram_qkey;
  std::uint64_t most = 0;
  for (const auto& [qkey, count] : c.datagrams.qkeys)
    if (count > most) most = count, attr.qkey = qkey;
  int error = device_.modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  if (error != 0) return "queue pair to INIT: " + error_text(error);
  attr.qp_state = IBV_QPS_RTR;
  error = device_.modify_qp(e.qp, &attr, IBV_QP_STATE);
  if (error != 0) return "queue pair to RTR: " + error_text(error);
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = c.held_start_psn;
  error = device_.modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  if (error != 0) return "queue pair to RTS: " + error_text(error);
  for (const wire::gid& group : c.datagrams.groups) {  // what came from the wire only, as the capture has it
    ibv_gid id;
    std::memcpy(id.raw, group.data(), 16);
    if (const int full = device_.attach_mcast(e.qp, &id, true); full != 0)
      return "group cannot be joined: " + error_text(full);
  }
  for (const std::size_t i : c.order) {  // addresses to which datagrams came
    const wire::packet& p = plan_.frames[i].packet;
    if (plan_.frames[i].from_held || wire::is_multicast(p.dgid)) continue;
    if (const int row = gid_row(p, p.dgid); row < 0) return "address cannot be had: " + error_text(row);
  }
  return "";
}

/// The way of a datagram that the held host sent. nullptr: it cannot be had.
host_driver::address_handle* replay_host::way_of(const wire::packet& p) {
  way_key key{p.dgid, p.dmac, p.sgid, p.encap, p.traffic_class, p.hop_limit, p.flow_label, p.vlan_tci};
  const auto known = ways_.find(key);
  if (known != ways_.end()) return known->second;
  const int row = gid_row(p, p.sgid);
  ibv_ah_attr ah{};
  ah.is_global = 1;
  std::memcpy(ah.grh.dgid.raw, p.dgid.data(), 16);
  ah.grh.sgid_index = static_cast<std::uint8_t>(std::max(row, 0));
  ah.grh.hop_limit = p.hop_limit;
  ah.grh.traffic_class = p.traffic_class;
  ah.grh.flow_label = p.flow_label;
  ah.sl = static_cast<std::uint8_t>(p.vlan_present ? p.vlan_tci >> 13 : 0);
  ah.port_num = static_cast<std::uint8_t>(port_);
  return ways_[key] = row < 0 ? nullptr : device_.create_ah(pd_, &ah, &p.dmac);
}

bool replay_host::post(int connection, std::size_t index) {
  const auto at = static_cast<std::size_t>(connection);
  end& e = ends_[at];
  const held_message& m = plan_.connections[at].messages[index];
  if (e.qp == nullptr || e.under_way == e.depth) return false;
  const bool read = m.operation == wire::operation::read_request;
  const bool write = m.operation == wire::operation::write_only;
  const bool swap = m.operation == wire::operation::compare_swap;
  const bool atomic = swap || m.operation == wire::operation::fetch_add;
  ibv_sge sge{};
  sge.addr = own_region_->iova + (read || atomic ? sink_ : e.source[index]);
  sge.length = read     ? std::min(m.reth.length, largest_sink)
               : atomic ? hosts::atomic_bytes
                        : static_cast<std::uint32_t>(m.length);
  sge.lkey = own_region_->lkey;
  ibv_send_wr wr{};
  wr.wr_id = at << 2;
  wr.sg_list = &sge;
  wr.num_sge = sge.length != 0 ? 1 : 0;
  wr.opcode = read    ? IBV_WR_RDMA_READ
              : write ? (m.has_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE)
                      : (m.has_immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
  wr.send_flags = m.solicited ? IBV_SEND_SOLICITED : 0;
  for (unsigned shift = 0; shift < 32; shift += 8)  // verbs has immediate data in network order
    reinterpret_cast<std::uint8_t*>(&wr.imm_data)[shift / 8] = static_cast<std::uint8_t>(m.immediate >> (24 - shift));
  if (m.invalidates) {
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.invalidate_rkey = m.invalidated;
  }
  wr.wr.rdma.remote_addr = m.reth.va;
  wr.wr.rdma.rkey = m.reth.rkey;
  if (atomic) {
    wr.opcode = swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = m.atomic.va;
    wr.wr.atomic.rkey = m.atomic.rkey;
    wr.wr.atomic.compare_add = swap ? m.atomic.compare : m.atomic.swap_add;
    wr.wr.atomic.swap = m.atomic.swap_add;
  }
  if (plan_.connections[at].service == wire::transport::xrc) wr.qp_type.xrc.remote_srqn = m.srqn;
  if (plan_.connections[at].service == wire::transport::ud) {
    const wire::packet& p = plan_.frames[m.first_frame].packet;
    wr.wr.ud.ah = way_of(p);
    if (wr.wr.ud.ah == nullptr) return false;
    wr.wr.ud.remote_qpn = p.bth.dest_qp;
    wr.wr.ud.remote_qkey = p.deth.qkey;
  }
  host_driver::masked_atomic_wr masked(swap ? host_driver::driver_opcode::masked_compare_swap
                                            : host_driver::driver_opcode::masked_fetch_add);
  if (m.masked) {
    static_cast<ibv_send_wr&>(masked) = wr;
    masked.opcode = IBV_WR_DRIVER1;
    masked.swap_mask = m.atomic.swap_mask;
    masked.compare_add_mask = swap ? m.atomic.compare_mask : m.atomic.compare;
  }
  ibv_send_wr* bad = nullptr;
  if (device_.post_send(e.qp, m.masked ? &masked : &wr, &bad) != 0) return false;
  ++e.under_way;
  return true;
}

void replay_host::take(const ibv_wc& wc) {
  ++completions_;
  const std::size_t at = wc.wr_id >> 2;
  const bool good = wc.status == IBV_WC_SUCCESS;
  if ((wc.wr_id & shared_id) != 0) {  // XRC: the queue pair's own failures show in what it sends
    if (good) shared_[at].post();
    return;
  }
  end& e = ends_[at];
  if (!good) failures_.push_back({static_cast<int>(at), status_text(wc.status)});
  if ((wc.wr_id & receive_id) == 0) --e.under_way;
  if ((wc.wr_id & receive_id) != 0 && good) {
    ++deliveries_[at].messages;
    deliveries_[at].bytes += wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : wc.byte_len;
    if (e.qp != nullptr) e.receives.post();
  }
  touched_.push_back(static_cast<int>(at));
}

const std::vector<int>& replay_host::poll() {
  touched_.clear();
  ibv_wc wc[16];
  for (host_driver::completion_queue* cq : {send_cq_, receive_cq_}) {
    for (int n = device_.poll_cq(cq, 16, wc); n > 0; n = device_.poll_cq(cq, 16, wc)) {
      for (int i = 0; i < n; ++i) take(wc[i]);
    }
  }
  return touched_;
}

}  // namespace rnic::replay
