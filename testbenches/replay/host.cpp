// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include "model/abi/commands.h"
#include "model/abi/contexts.h"
#include "model/wire/ethernet.h"
#include "testbenches/bench/connection.h"

namespace rnic::replay {

namespace {

constexpr unsigned queue_depth = 1024;              // work requests of a connection that are posted at a time
constexpr std::uint64_t largest_region = 1u << 30;  // of memory that is rebuilt
constexpr std::uint32_t largest_sink = 1u << 30;
constexpr std::uint32_t special_qps = 8, reserved_qps = 0x40;
constexpr unsigned log_most_srqs = 16;  // of the adapter
constexpr unsigned page = 4096;
constexpr unsigned room_for_masks = 64;  // inline bytes that make an entry of the send queue large enough
constexpr std::uint32_t own_keys = 64;   // places for the driver's own entries and ours
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

/// Whether the numbers fall into places of their own in a table of 2^log entries.
bool distinct(const std::vector<std::uint32_t>& numbers, unsigned log) {
  std::set<std::uint32_t> places;
  for (const std::uint32_t n : numbers) {
    if (!places.insert(n & ((1u << log) - 1)).second) return false;
  }
  return true;
}

std::vector<std::uint32_t> numbers_of(const plan& p) {
  std::vector<std::uint32_t> numbers;
  for (const connection& c : p.connections)
    if (c.before < 0) numbers.push_back(c.held_qpn);
  return numbers;
}

/// A place of the table for the special queue pairs, which is none of the numbers'; 0 when there is none.
std::uint32_t special_place(const std::vector<std::uint32_t>& numbers, unsigned log) {
  std::set<std::uint32_t> blocks;
  for (const std::uint32_t n : numbers) blocks.insert((n & ((1u << log) - 1)) / special_qps);
  for (std::uint32_t at = (1u << log) - special_qps; at >= reserved_qps; at -= special_qps)
    if (blocks.count(at / special_qps) == 0) return at;
  return 0;
}

/// The driver's own entries of the table of keys, made before any of ours and beside them, must not take the place of a
/// captured key: the first of so many places in a row that no key has.
std::uint32_t free_places(const plan& p) {
  std::set<std::uint32_t> taken;
  for (const held_region& r : p.regions) taken.insert(place_of_key(r.rkey) / own_keys);
  for (std::uint32_t block = (1u << log_key_places) / own_keys - 1; block != 0; --block)
    if (taken.count(block) == 0) return block * own_keys;
  return 0;
}

/// Why no queue pair can be as the capture has it; empty: it can.
std::string impossible(const connection& c) {
  constexpr wire::gid nobody{};
  if (c.held_qpn <= 1 || c.held_qpn == 0xffffff)
    return "no connection has queue pair " + fmt::format("{:#x}", c.held_qpn);
  if (c.service == wire::transport::ud) return "";
  if (!c.srqns.empty() && *c.srqns.rbegin() >> log_most_srqs != 0)
    return "no shared receive queue has number " + fmt::format("{:#x}", *c.srqns.rbegin()) + ": 0xffff at most";
  if (wire::is_multicast(c.peer_mac) || wire::to_u64(c.peer_mac) == 0) return "its peer has no unicast MAC address";
  for (const wire::gid& id : {c.held_gid, c.peer_gid})
    if (id == nobody || wire::is_multicast(id)) return "no host has the address " + wire::to_string(id);
  return "";
}

bool is_reliable(const connection& c) { return c.service == wire::transport::rc || c.service == wire::transport::xrc; }

}  // namespace

void shape_node(const plan& p, bench::node_config& c) {
  // What the captured host was told, and whether it obeyed, is in the capture: all it sent is sent again.
  c.adapter.requester.end_to_end_credits = false;
  if (!p.held.empty()) c.firmware.mac[0] = wire::to_u64(p.held_mac);
  const std::vector<std::uint32_t> qpns = numbers_of(p);
  unsigned& log_qp = c.driver.log_num_qp;
  while (log_qp < 18 && ((qpns.size() + 0x400) >> log_qp != 0 || !distinct(qpns, log_qp))) ++log_qp;
  for (const connection& x : p.connections)
    if (!x.srqns.empty())
      while (c.driver.log_num_srq < log_most_srqs && *x.srqns.rbegin() >> c.driver.log_num_srq != 0)
        ++c.driver.log_num_srq;
  c.driver.log_num_mpt = log_key_places;
  c.driver.log_num_mtt = 20;
  c.driver.first_mpt = free_places(p);
}

replay_host::replay_host(const plan& p, bench::node& node)
    : plan_(p), device_(node.device()), ends_(p.connections.size()), deliveries_(p.connections.size()) {}

void replay_host::set_up(std::vector<std::pair<int, std::string>>& rejected,
                         std::map<std::string, std::uint64_t>& remarks) {
  pd_ = device_.alloc_pd();
  send_cq_ = device_.create_cq(16384);
  receive_cq_ = device_.create_cq(16384, 1);
  if (pd_ == nullptr || send_cq_ == nullptr || receive_cq_ == nullptr)
    throw std::runtime_error("setting up the held host failed");
  move_special_queue_pairs();
  set_up_regions(remarks);
  set_up_own_memory();
  set_up_shared_queues(remarks);
  // Connections that come after others of the same number are tried now, and set up again when their time has come.
  for (const bool first : {false, true})
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if ((plan_.connections[i].before < 0) != first) continue;
      const std::string why = set_up_connection(i);
      if (!why.empty()) rejected.emplace_back(static_cast<int>(i), why);
      if (!why.empty() || !first) close(static_cast<int>(i));
    }
}

/// Special queue pairs, which nobody uses here, lie where the capture has no number.
void replay_host::move_special_queue_pairs() {
  const unsigned log = device_.settings().log_num_qp;
  const std::uint32_t place = special_place(numbers_of(plan_), log);
  if (place == 0) return;
  bench::require(device_.commands().command(abi::opcode::conf_special_qp, place), "moving the special queue pairs");
}

void replay_host::close(int connection) {
  end& e = ends_[static_cast<std::size_t>(connection)];
  if (e.qp != nullptr) device_.destroy_qp(e.qp);
  e.qp = nullptr;
}

void replay_host::open(int connection) {
  const std::string why = set_up_connection(static_cast<std::size_t>(connection));
  if (!why.empty()) throw std::runtime_error("setting up a connection again failed: " + why);
}

/// Regions of one place share a buffer, but for those whose bytes must outlast another's time.
void replay_host::allocate_regions() {
  std::unordered_map<std::uint32_t, std::uint64_t> shared;
  for (std::size_t i = 0; i < plan_.regions.size(); ++i) {
    const held_region& r = plan_.regions[i];
    if (r.last - r.begin >= largest_region) continue;
    const std::uint64_t bytes = r.last - r.begin + 1 + r.begin % page;
    if (r.returns) {
      own_buffers_[i] = device_.allocate_buffer(bytes);
      continue;
    }
    std::uint64_t& most = shared[place_of_key(r.rkey)];
    most = std::max(most, bytes);
  }
  for (const auto& [place, bytes] : shared) places_[place].shared = device_.allocate_buffer(bytes);
}

/// A region that cannot be had is left out: the peer's requests are then answered with an access error, which shows.
void replay_host::set_up_regions(std::map<std::string, std::uint64_t>& remarks) {
  allocate_regions();
  for (std::size_t i = 0; i < plan_.regions.size(); ++i) {
    const held_region& r = plan_.regions[i];
    const bool had = r.last - r.begin < largest_region && (r.late || register_region(places_[place_of_key(r.rkey)], i));
    if (!had) ++remarks["memory regions that could not be had (1 GiB at most each): requests for them are refused"];
  }
}

bool replay_host::register_region(key_place& place, std::size_t region) {
  const held_region& r = plan_.regions[region];
  if (place.registered != nullptr || r.last - r.begin >= largest_region) return false;
  const host_driver::bus_if::dma_memory& buffer = r.returns ? own_buffers_[region] : place.shared;
  if (buffer.pointer == nullptr) return false;
  const int access = IBV_ACCESS_LOCAL_WRITE | (r.read ? IBV_ACCESS_REMOTE_READ : 0) |
                     (r.write ? IBV_ACCESS_REMOTE_WRITE : 0) | (r.atomic ? IBV_ACCESS_REMOTE_ATOMIC : 0);
  place.region = region;
  place.first = buffer.pointer + r.begin % page;
  place.registered = device_.reg_mr(pd_, place.first, r.last - r.begin + 1, access, &r.begin, &r.rkey);
  return place.registered != nullptr && (!r.invalidated || let_invalidate(*place.registered));
}

/// What a peer may invalidate is a region of fast registration, or a window (IBA volume 1, 10.6.7.2.6): the entry of
/// the table is changed as a driver does that registers again (mlx4_mr_hw_get_mpt, mlx4_mr_hw_write_mpt).
bool replay_host::let_invalidate(const host_driver::memory_region& r) {
  host_driver::command_channel& commands = device_.commands();
  host_driver::command_channel::mailbox box(commands);
  const std::uint32_t slot = place_of_key(r.rkey);
  if (commands.read(box, abi::opcode::hw2sw_mpt, slot) != 0) return false;
  std::uint8_t* m = box.data();
  abi::set(m, abi::mpt::owner, abi::mpt::owner_software);
  abi::set(m, abi::mpt::pd_flags,
           abi::get(m, abi::mpt::pd_flags) | abi::mpt::pd_en_inv | abi::mpt::pd_fast_reg | abi::mpt::pd_remote_access);
  abi::set(m, abi::mpt::mtt_count, r.mtt.count);
  return commands.write(box, abi::opcode::sw2hw_mpt, slot) == 0;
}

void replay_host::revoke(std::uint32_t rkey) {
  const auto at = places_.find(place_of_key(rkey));
  if (at == places_.end() || at->second.registered == nullptr || at->second.registered->rkey != rkey) return;
  device_.dereg_mr(at->second.registered);
  at->second.registered = nullptr;
}

void replay_host::install(std::size_t index) {
  key_place& place = places_[place_of_key(plan_.regions[index].rkey)];
  if (place.registered != nullptr) device_.dereg_mr(place.registered);
  place.registered = nullptr;
  register_region(place, index);
}

/// One buffer: the payload of every message that the held host sent, then room for everything that it received.
void replay_host::set_up_own_memory() {
  std::uint64_t at = 0, sink_bytes = 64;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const connection& c = plan_.connections[i];
    ends_[i].source.clear();
    sink_bytes = std::max<std::uint64_t>(sink_bytes, std::min(c.largest_receive, largest_sink));
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
  return device_.add_address(1, id, v1 ? host_driver::roce_types::v1 : host_driver::roce_types::v2, vlan_of(p));
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
  r.memory = sink(c.largest_receive);
  r.wr_id = index << 2 | receive_id;
  r.receives = c.receives;
  r.rules = c.receive_rules;
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
    init.qp_type = c.held_asks ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV;
    init.xrcd = domain_;
    if (!c.held_asks) {
      init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
      init.cap = {};
    }
  } else {
    init.cap.max_recv_wr = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(c.receives, 1, queue_depth));
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
    for (const std::uint32_t n : c.srqns) users[n].push_back(&c);
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
    for (const connection* c : of) largest = std::max(largest, c->largest_receive);
    r.memory = sink(largest);
    r.wr_id = shared_.size() << 2 | receive_id | shared_id;
    if (of.size() == 1)
      std::copy_if(of.front()->receive_rules.begin(), of.front()->receive_rules.end(), std::back_inserter(r.rules),
                   [n = number](const receive_rule& rule) { return rule.srqn == n; });
    shared_at_[number] = shared_.size();
    shared_.emplace_back(device_, std::move(r));
  }
}

void replay_host::allow(int connection, std::size_t frame) {
  const auto at = static_cast<std::size_t>(connection);
  ends_[at].receives.sent(frame);
  for (const std::uint32_t n : plan_.connections[at].srqns)
    if (const auto shared = shared_at_.find(n); shared != shared_at_.end()) shared_[shared->second].sent(frame);
}

std::string replay_host::connect(const connection& c, end& e) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = (c.may_read ? unsigned{IBV_ACCESS_REMOTE_READ} : 0u) |
                         (c.may_write ? unsigned{IBV_ACCESS_REMOTE_WRITE} : 0u) |
                         (c.may_atomic ? unsigned{IBV_ACCESS_REMOTE_ATOMIC} : 0u);
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
  rtr.path_mtu = bench::to_ibv_mtu(c.mtu);
  rtr.dest_qp_num = c.peer_qpn;
  rtr.rq_psn = c.peer_start_psn;
  rtr.max_dest_rd_atomic = 16;
  rtr.min_rnr_timer = c.rnr_timer;
  rtr.ah_attr.is_global = 1;
  std::memcpy(rtr.ah_attr.grh.dgid.raw, c.peer_gid.data(), 16);
  rtr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(row);
  rtr.ah_attr.grh.hop_limit = like.hop_limit;
  rtr.ah_attr.grh.traffic_class = like.traffic_class;
  rtr.ah_attr.grh.flow_label = like.flow_label;
  rtr.ah_attr.sl = static_cast<std::uint8_t>(like.vlan_present ? like.vlan_tci >> 13 : 0);
  rtr.ah_attr.port_num = 1;
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
  rts.rnr_retry = c.rnr_retries;
  rts.max_rd_atomic = 16;
  e.qp->udp_source = c.seen_from_held ? c.first_from_held.udp_source : std::uint16_t{0};
  int more = is_reliable(c) ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
  if (e.qp->qp_type == IBV_QPT_XRC_RECV) more = IBV_QP_TIMEOUT;
  return device_.modify_qp(e.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | more);
}

std::string replay_host::start_datagrams(const connection& c, end& e) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = bench::datagram_qkey;
  std::uint64_t most = 0;
  for (const auto& [qkey, count] : c.qkeys)
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
  for (const wire::gid& group : c.groups) {  // what came from the wire only, as the capture has it
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
  ah.port_num = 1;
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
               : atomic ? bench::atomic_bytes
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

void replay_host::fill(std::size_t frame) {
  const auto contents = plan_.contents.find(frame);
  if (contents == plan_.contents.end()) return;
  for (const memory_content& c : contents->second) {
    const auto at = places_.find(place_of_key(c.rkey));
    if (at == places_.end() || at->second.registered == nullptr || at->second.registered->rkey != c.rkey) continue;
    std::uint8_t counter[8];  // memory as the host sees it: little-endian
    for (unsigned i = 0; i < 8; ++i) counter[i] = static_cast<std::uint8_t>(c.counter >> 8 * i);
    const captured_frame* f = c.is_counter ? nullptr : &plan_.frames[c.answer];
    const std::size_t bytes = f == nullptr ? sizeof counter : f->known_payload();
    const held_region& r = plan_.regions[at->second.region];
    if (bytes == 0 || c.address < r.begin || c.address > r.last || bytes - 1 > r.last - c.address) continue;
    std::copy_n(f == nullptr ? counter : f->bytes.data() + f->packet.payload_offset, bytes,
                at->second.first + (c.address - r.begin));
  }
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
