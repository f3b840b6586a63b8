// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/host.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>

#include "model/abi/contexts.h"
#include "model/wire/ethernet.h"
#include "testbenches/bench/connection.h"

namespace rnic::replay {

namespace {

constexpr unsigned queue_depth = 1024;              // work requests of a connection that are posted at a time
constexpr std::uint64_t largest_region = 1u << 30;  // of memory that is rebuilt
constexpr std::uint32_t largest_sink = 1u << 30;
constexpr unsigned first_special_qp = 0x200, special_qps = 8;
constexpr unsigned page = 4096;
constexpr std::uint64_t receive_id = 1;  // wr_id: connection << 1 | receive

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

std::uint16_t vlan_of(const connection& c) {
  const wire::packet& p = c.seen_from_peer ? c.first_from_peer : c.first_from_held;
  const std::uint16_t vid = p.vlan_tci & 0xfff;
  return p.vlan_present && vid != 0 ? vid : host_driver::no_vlan;
}

/// Whether the numbers fall into places of their own in a table of 2^log entries.
bool distinct(const std::vector<std::uint32_t>& numbers, unsigned log) {
  std::set<std::uint32_t> places;
  for (const std::uint32_t n : numbers) {
    const std::uint32_t place = n & ((1u << log) - 1);
    if (place - first_special_qp < special_qps) return false;
    if (!places.insert(place).second) return false;
  }
  return true;
}

}  // namespace

void shape_node(const plan& p, bench::node_config& c) {
  // What the captured host was told, and whether it obeyed, is in the capture: all it sent is sent again.
  c.adapter.requester.end_to_end_credits = false;
  if (!p.held.empty()) c.firmware.mac[0] = wire::to_u64(p.held_mac);
  std::vector<std::uint32_t> qpns, indices;
  for (const connection& x : p.connections) qpns.push_back(x.held_qpn);
  for (const held_region& r : p.regions) indices.push_back(abi::key_to_index(r.rkey));
  unsigned& log_qp = c.driver.log_num_qp;
  while (log_qp < 18 && ((qpns.size() + 0x400) >> log_qp != 0 || !distinct(qpns, log_qp))) ++log_qp;
  c.driver.log_num_mpt = 17;
  c.driver.log_num_mtt = 20;
  // The driver's own entry, made before any of ours, must not take the place of a captured key.
  std::set<std::uint32_t> places;
  for (const std::uint32_t i : indices) places.insert(i & ((1u << c.driver.log_num_mpt) - 1));
  c.driver.first_mpt = places.empty() ? 0 : std::min(*places.rbegin() + 1, (1u << c.driver.log_num_mpt) - 64);
}

replay_host::replay_host(const plan& p, bench::node& node)
    : plan_(p), device_(node.device()), ends_(p.connections.size()) {}

void replay_host::set_up(std::vector<std::pair<int, std::string>>& rejected) {
  pd_ = device_.alloc_pd();
  send_cq_ = device_.create_cq(16384);
  receive_cq_ = device_.create_cq(16384, 1);
  if (pd_ == nullptr || send_cq_ == nullptr || receive_cq_ == nullptr)
    throw std::runtime_error("setting up the held host failed");
  set_up_regions();
  set_up_own_memory();
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const std::string why = set_up_connection(i);
    if (why.empty()) continue;
    ends_[i].qp = nullptr;
    rejected.emplace_back(static_cast<int>(i), why);
  }
}

/// A region that cannot be had is left out: the peer's requests are then answered with an access error, which shows.
void replay_host::set_up_regions() {
  constexpr int access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  for (const held_region& r : plan_.regions) {
    if (r.end <= r.begin || r.end - r.begin > largest_region) continue;
    memory m;
    m.region = r;
    const std::uint64_t offset = r.begin % page;
    m.buffer = device_.allocate_buffer(r.end - r.begin + offset);
    if (m.buffer.pointer == nullptr) continue;
    m.first = m.buffer.pointer + offset;
    if (device_.reg_mr(pd_, m.first, r.end - r.begin, access, &r.begin, &r.rkey) != nullptr) memories_.push_back(m);
  }
}

/// One buffer: the payload of every message that the held host sent, then room for everything that it received.
void replay_host::set_up_own_memory() {
  std::uint64_t at = 0, sink_bytes = 64;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const connection& c = plan_.connections[i];
    sink_bytes = std::max<std::uint64_t>(sink_bytes, c.largest_receive);
    for (const held_message& m : c.messages) {
      ends_[i].source.push_back(at);
      at += m.payload.size();
      if (m.operation == wire::operation::read_request)
        sink_bytes = std::max<std::uint64_t>(sink_bytes, std::min(m.reth.length, largest_sink));
    }
  }
  sink_ = at;
  own_ = device_.allocate_buffer(at + sink_bytes);
  if (own_.pointer == nullptr) throw std::runtime_error("no host memory for the messages of the capture");
  for (std::size_t i = 0; i < ends_.size(); ++i)
    for (std::size_t m = 0; m < ends_[i].source.size(); ++m) {
      const std::vector<std::uint8_t>& payload = plan_.connections[i].messages[m].payload;
      std::copy(payload.begin(), payload.end(), own_.pointer + ends_[i].source[m]);
    }
  own_region_ = device_.reg_mr(pd_, own_.pointer, own_.bytes, IBV_ACCESS_LOCAL_WRITE);
  if (own_region_ == nullptr) throw std::runtime_error("registering memory for the messages of the capture failed");
}

int replay_host::gid_row(const connection& c) {
  const bool v1 = c.encap == wire::encapsulation::roce_v1;
  return device_.add_address(1, c.held_gid, v1 ? host_driver::roce_types::v1 : host_driver::roce_types::v2, vlan_of(c));
}

std::string replay_host::set_up_connection(std::size_t index) {
  const connection& c = plan_.connections[index];
  end& e = ends_[index];
  ibv_qp_init_attr init{};
  init.send_cq = send_cq_;
  init.recv_cq = receive_cq_;
  init.qp_type = c.service == wire::transport::uc ? IBV_QPT_UC : IBV_QPT_RC;
  init.sq_sig_all = 1;
  e.depth = static_cast<unsigned>(std::clamp<std::size_t>(c.messages.size(), 1, queue_depth));
  init.cap.max_send_wr = e.depth;
  init.cap.max_recv_wr = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(c.receives, 1, queue_depth));
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  e.qp = device_.create_qp(pd_, &init, &c.held_qpn);
  if (e.qp == nullptr) return "queue pair number cannot be had: " + error_text(errno);
  std::string why = connect(c, e);
  if (!why.empty()) return why;
  e.receives_left = c.receives;
  e.receive_bytes = std::max(c.largest_receive, 1u);
  while (e.receives_left != 0 && post_receive(e, index)) {
  }
  return "";
}

std::string replay_host::connect(const connection& c, end& e) {
  const bool rc = c.service == wire::transport::rc;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  int error = device_.modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return "queue pair to INIT: " + error_text(error);

  const int row = gid_row(c);
  if (row < 0) return "address cannot be had: " + error_text(row);
  const wire::packet& like = c.seen_from_held ? c.first_from_held : c.first_from_peer;
  ibv_qp_attr rtr{};
  rtr.qp_state = IBV_QPS_RTR;
  rtr.path_mtu = bench::to_ibv_mtu(c.mtu);
  rtr.dest_qp_num = c.peer_qpn;
  rtr.rq_psn = c.peer_start_psn;
  rtr.max_dest_rd_atomic = 16;
  rtr.min_rnr_timer = 12;
  rtr.ah_attr.is_global = 1;
  std::memcpy(rtr.ah_attr.grh.dgid.raw, c.peer_gid.data(), 16);
  rtr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(row);
  rtr.ah_attr.grh.hop_limit = like.hop_limit;
  rtr.ah_attr.grh.traffic_class = like.traffic_class;
  rtr.ah_attr.grh.flow_label = like.flow_label;
  rtr.ah_attr.sl = static_cast<std::uint8_t>(like.vlan_present ? like.vlan_tci >> 13 : 0);
  rtr.ah_attr.port_num = 1;
  const int path = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  error =
      device_.modify_qp(e.qp, &rtr, path | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0), &c.peer_mac);
  if (error != 0) return "queue pair to RTR: " + error_text(error);

  ibv_qp_attr rts{};
  rts.qp_state = IBV_QPS_RTS;
  rts.sq_psn = c.held_start_psn;
  rts.timeout = 31;  // 2.4 hours: what the capture shows is repeated, and nothing else
  rts.retry_cnt = rts.rnr_retry = 7;
  rts.max_rd_atomic = 16;
  e.qp->udp_source = c.seen_from_held ? c.first_from_held.udp_source : std::uint16_t{0};
  const int requester = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  error = device_.modify_qp(e.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | (rc ? requester : 0));
  return error == 0 ? "" : "queue pair to RTS: " + error_text(error);
}

bool replay_host::post_receive(end& e, std::size_t connection) {
  ibv_sge sge{own_region_->iova + sink_, e.receive_bytes, own_region_->lkey};
  ibv_recv_wr wr{};
  wr.wr_id = connection << 1 | receive_id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (device_.post_recv(e.qp, &wr, &bad) != 0) return false;
  --e.receives_left;
  return true;
}

bool replay_host::post(int connection, std::size_t index) {
  const auto at = static_cast<std::size_t>(connection);
  end& e = ends_[at];
  const held_message& m = plan_.connections[at].messages[index];
  if (e.under_way == e.depth) return false;
  const bool read = m.operation == wire::operation::read_request;
  const bool write = m.operation == wire::operation::write_only;
  const bool swap = m.operation == wire::operation::compare_swap;
  const bool atomic = swap || m.operation == wire::operation::fetch_add;
  ibv_sge sge{};
  sge.addr = own_region_->iova + (read || atomic ? sink_ : e.source[index]);
  sge.length = read     ? std::min(m.reth.length, largest_sink)
               : atomic ? bench::atomic_bytes
                        : static_cast<std::uint32_t>(m.payload.size());
  sge.lkey = own_region_->lkey;
  ibv_send_wr wr{};
  wr.wr_id = at << 1;
  wr.sg_list = &sge;
  wr.num_sge = sge.length != 0 ? 1 : 0;
  wr.opcode = read    ? IBV_WR_RDMA_READ
              : write ? (m.has_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE)
                      : (m.has_immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
  wr.send_flags = m.solicited ? IBV_SEND_SOLICITED : 0;
  for (unsigned shift = 0; shift < 32; shift += 8)  // verbs has immediate data in network order
    reinterpret_cast<std::uint8_t*>(&wr.imm_data)[shift / 8] = static_cast<std::uint8_t>(m.immediate >> (24 - shift));
  wr.wr.rdma.remote_addr = m.reth.va;
  wr.wr.rdma.rkey = m.reth.rkey;
  if (atomic) {
    wr.opcode = swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = m.atomic.va;
    wr.wr.atomic.rkey = m.atomic.rkey;
    wr.wr.atomic.compare_add = swap ? m.atomic.compare : m.atomic.swap_add;
    wr.wr.atomic.swap = m.atomic.swap_add;
  }
  ibv_send_wr* bad = nullptr;
  if (device_.post_send(e.qp, &wr, &bad) != 0) return false;
  ++e.under_way;
  return true;
}

void replay_host::fill(std::size_t frame) {
  const auto contents = plan_.contents.find(frame);
  if (contents == plan_.contents.end()) return;
  for (const memory_content& c : contents->second)
    for (const memory& m : memories_) {
      if (m.region.rkey != c.rkey || c.address < m.region.begin || c.address + c.bytes.size() > m.region.end) continue;
      std::copy(c.bytes.begin(), c.bytes.end(), m.first + (c.address - m.region.begin));
    }
}

void replay_host::poll() {
  ibv_wc wc[16];
  for (host_driver::completion_queue* cq : {send_cq_, receive_cq_}) {
    for (int n = device_.poll_cq(cq, 16, wc); n > 0; n = device_.poll_cq(cq, 16, wc)) {
      for (int i = 0; i < n; ++i) {
        const std::size_t at = wc[i].wr_id >> 1;
        end& e = ends_[at];
        ++completions_;
        if (wc[i].status != IBV_WC_SUCCESS) failures_.push_back({static_cast<int>(at), status_text(wc[i].status)});
        if ((wc[i].wr_id & receive_id) == 0)
          --e.under_way;
        else if (e.receives_left != 0)
          post_receive(e, at);
      }
    }
  }
}

}  // namespace rnic::replay
