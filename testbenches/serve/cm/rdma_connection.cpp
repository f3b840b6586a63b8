// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/cm/rdma_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint8_t ack_timeout = 16;  // 0.27 s
constexpr std::uint8_t retries = 7, rnr_timer = 12;
constexpr std::uint64_t try_every = sim::ps_per_us * 100'000;  // while nobody listens
/// A server that believed in a connection with this queue pair, of a process before this one, ends that.
constexpr std::uint64_t forget_ps = 2 * sim::ps_per_s;
constexpr std::size_t most_told = 56;  // room of a REQ behind the addresses
constexpr std::uint16_t client_port = 0xc0de;
constexpr std::uint8_t rate_10_gbps = 3;

/// IBA volume 1, table 107.
std::string words(cm::reason why) {
  const char* text = "";
  switch (why) {
    case cm::reason::no_qp:
    case cm::reason::no_resources:
      text = ": it has no room for another connection";
      break;
    case cm::reason::timeout:
      text = ": it did not hear from us in time";
      break;
    case cm::reason::invalid_service:
      text = ": nobody listens there";
      break;
    case cm::reason::invalid_transport:
      text = ": it does not take this transport";
      break;
    case cm::reason::stale:
      text = ": it has a connection with this queue pair already";
      break;
    case cm::reason::invalid_gid:
      text = ": not with this GID";
      break;
    case cm::reason::consumer:
      text = ": its application does not want to";
      break;
    default:
      break;
  }
  return fmt::format("the peer refused: reason {}{}", static_cast<unsigned>(why), text);
}

/// The same of a REQ over XRC. A Linux host without XRC refuses with one of these: it listens, has no such queue pair
/// to make, and its application gives up.
const char* words_of_xrc(cm::reason why) {
  switch (why) {
    case cm::reason::invalid_service:
      return " over XRC (the tools' -c x, --connection XRC of this program)";
    case cm::reason::unsupported:
    case cm::reason::invalid_transport:
    case cm::reason::consumer:
      return ", as a peer that has no XRC says it (Soft-RoCE has none)";
    default:
      return "";
  }
}

}  // namespace

cm::private_area addressed_private(const gid_bytes& own, const gid_bytes& to, std::uint16_t source_port) {
  cm::private_area area{};
  cm::put_ip_header({source_port, own, to}, area.data());
  return area;
}

cm::address find_peer(served_host& host, const gid_bytes& to, const rdma_route& route) {
  const auto mac = host.resolve(to, route.gid_index);
  if (!mac) throw peer_failure("no neighbour has the address " + wire::to_string(to));
  return {to, *mac, route.gid_index, static_cast<std::uint8_t>(route.service_level), route.traffic_class};
}

rdma_connection::~rdma_connection() {
  service_.retire(*this);
  stop();
  if (id_ != 0) service_.manager().abandon(id_, service_.now_ps());
}

void rdma_connection::set_private(const std::uint8_t* data, std::size_t bytes) {
  std::copy_n(data, std::min(bytes, most_told), private_.begin());
}

void rdma_connection::prepare(queue_pair* qp) {
  qp_ = qp;
  std::mt19937_64 random(route_.seed ^ (wire::to_u64(host_.mac()) << 16) ^ qp->qp_num);
  psn_ = static_cast<std::uint32_t>(random() & 0xffffff);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  hosts::require(
      host_.device().modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
      "modify_qp to INIT");
}

/// `theirs`: the peer's queue pair. `both`: what REQ said for the two of them, its service level and traffic class too.
void rdma_connection::to_receive(const cm::address& peer, const cm::connection_data& theirs,
                                 const cm::connection_data& both, unsigned reads) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(std::clamp<int>(both.mtu_code, IBV_MTU_256, IBV_MTU_4096));
  attr.dest_qp_num = theirs.qpn;
  attr.rq_psn = psn_;  // a starting PSN is the one that the other side begins to send with (IBA volume 1, 12.7)
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(std::min<unsigned>(reads, theirs.initiator_depth));
  attr.min_rnr_timer = rnr_timer;
  attr.ah_attr =
      path_to(peer.gid, peer.gid_index, both.path.service_level & 7u, kernel_hop_limit, both.path.traffic_class);
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (!over_xrc()) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;  // what receives
  hosts::require(host_.device().modify_qp(qp_, &attr, mask, &peer.mac), "modify_qp to RTR");
  sender_ = ibv_qp_attr{};
  sender_.qp_state = IBV_QPS_RTS;
  sender_.sq_psn = theirs.psn;
  sender_.timeout = ack_timeout;
  sender_.retry_cnt = std::min(both.retry_count, retries);
  sender_.rnr_retry = std::min(theirs.rnr_retry_count, retries);
  sender_.max_rd_atomic = static_cast<std::uint8_t>(std::min<unsigned>(reads, theirs.responder_resources));
  up_ = true;
}

bool rdma_connection::try_to_send() {
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
  if (qp_->qp_type != IBV_QPT_XRC_RECV) mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return host_.device().modify_qp(qp_, &sender_, mask) == 0;
}

void rdma_connection::to_send() {
  if (!try_to_send()) throw std::runtime_error("modify_qp to RTS: the queue pair is in error already");
}

peer_failure rdma_connection::refusal(cm::reason why) const {
  return peer_failure(words(why) + (over_xrc() ? words_of_xrc(why) : ""));
}

void rdma_connection::refused(const cm_service::event& e) const {
  using kind = cm::event::kind;
  if (e.what == kind::rejected) throw peer_failure(refusal(e.message.why).what() + service_.other_version(e.from.gid));
  if (e.what == kind::unreachable) throw peer_failure("the peer does not answer");
  throw peer_failure("the peer released the connection before it was there");
}

void rdma_connection::begin_connect(const gid_bytes& to, std::uint16_t port, unsigned reads) {
  peer_ = find_peer(host_, to, route_);
  const gid_bytes own = host_.device().port(1).gids[static_cast<std::size_t>(route_.gid_index)].id;
  cm::connection_data data;
  data.service_id = cm::service_id(over_xrc() ? cm::port_space::ib : cm::port_space::tcp, port);
  if (over_xrc()) data.set_xrc();
  data.qpn = qp_->qp_num;
  data.psn = psn_;
  data.responder_resources = data.initiator_depth = static_cast<std::uint8_t>(reads);
  data.retry_count = data.rnr_retry_count = retries;
  data.mtu_code = static_cast<std::uint8_t>(hosts::to_ibv_mtu(route_.mtu));
  data.path.local = own;
  data.path.remote = to;
  data.path.hop_limit = kernel_hop_limit;
  data.path.rate = rate_10_gbps;
  data.path.service_level = static_cast<std::uint8_t>(route_.service_level);
  data.path.traffic_class = route_.traffic_class;
  data.path.ack_timeout = ack_timeout;
  cm::private_area area = addressed_private(own, to, client_port);
  std::copy_n(private_.begin(), most_told, area.begin() + cm::ip_header::bytes);
  id_ = service_.manager().connect(peer_, data, area, service_.now_ps());
  if (id_ == 0) throw std::runtime_error("no room for a connection");
  asked_ = data;
}

bool rdma_connection::finish_connect() {
  const auto e = service_.wait_of(id_, route_.patience_ps);
  if (!e) throw peer_failure("the peer does not answer");
  if (e->what == cm::event::kind::rejected) why_not_ = e->message.why;
  if (may_try_again() && e->what == cm::event::kind::rejected) return false;
  if (e->what != cm::event::kind::reply) refused(*e);
  peer_private_ = e->message.private_data;
  to_receive(peer_, e->message.connection, asked_, asked_.initiator_depth);
  to_send();
  service_.manager().confirm(id_, {});
  return true;
}

void rdma_connection::connect(const gid_bytes& to, std::uint16_t port, unsigned reads) {
  const std::uint64_t deadline = service_.now_ps() + forget_ps;
  for (begin_connect(to, port, reads); !finish_connect(); begin_connect(to, port, reads)) {
    if (why_not_ != cm::reason::stale || service_.now_ps() >= deadline) throw refusal();
    sc_core::wait(sc_core::sc_time::from_value(try_every));
  }
}

bool rdma_connection::may_try_again() const {
  return why_not_ == cm::reason::invalid_service || why_not_ == cm::reason::stale;
}

void rdma_connection::connect_patiently(const gid_bytes& to, std::uint16_t port, unsigned reads,
                                        std::uint64_t at_most_ps) {
  const std::uint64_t deadline = service_.now_ps() + at_most_ps;
  for (begin_connect(to, port, reads); !finish_connect(); begin_connect(to, port, reads)) {
    if (service_.now_ps() >= deadline) throw refusal();
    sc_core::wait(sc_core::sc_time::from_value(try_every));
  }
}

/// The queue pair receives from now on. It sends when the client has confirmed, in a message or by its first packet: in
/// this state the adapter tells of that one.
bool rdma_connection::begin_accept(const cm_service::event& request, unsigned reads) {
  const cm::connection_data& theirs = request.message.connection;
  to_receive(request.from, theirs, theirs, reads);
  id_ = request.id;
  peer_ = request.from;
  const auto& told = request.message.private_data;
  std::copy_n(told.begin() + cm::ip_header::bytes, most_told, peer_private_.begin());
  cm::connection_data data;
  data.qpn = qp_->qp_num;
  data.psn = psn_;
  data.responder_resources = static_cast<std::uint8_t>(std::min<unsigned>(reads, theirs.initiator_depth));
  data.initiator_depth = static_cast<std::uint8_t>(std::min<unsigned>(reads, theirs.responder_resources));
  data.rnr_retry_count = retries;
  data.shared_receive_queue = qp_->srq != nullptr;
  return service_.manager().accept(id_, data, private_, service_.now_ps());
}

void rdma_connection::finish_accept() {
  const auto e = service_.wait_of(id_, route_.patience_ps);
  if (!e) throw peer_failure("the peer does not confirm");
  if (e->what != cm::event::kind::established) refused(*e);
  confirmed_ = true;
  to_send();
}

void rdma_connection::accept(const cm_service::event& request, unsigned reads) {
  if (!begin_accept(request, reads)) throw peer_failure("the peer gave up meanwhile");
  finish_accept();
}

rdma_connection::progress rdma_connection::look() {
  cm_service::event e;
  if (!confirmed_ && service_.manager().take_event_of(id_, e)) {
    if (e.what != cm::event::kind::established || !try_to_send()) return progress::gone;
    confirmed_ = true;
  }
  return confirmed_ ? progress::confirmed : progress::waits;
}

void rdma_connection::give_up() {
  service_.manager().reject(id_, cm::reason::timeout, {}, service_.now_ps());
  id_ = 0;
}

void rdma_connection::stop() {
  if (!up_) return;
  up_ = false;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  (void)host_.device().modify_qp(qp_, &attr, IBV_QP_STATE);  // a device that does not answer sends nothing either
}

void rdma_connection::begin_disconnect() {
  stop();
  releasing_ = service_.manager().disconnect(id_, {}, service_.now_ps());
}

void rdma_connection::finish_disconnect() {
  while (releasing_) {
    const auto e = service_.wait_of(id_, route_.patience_ps);
    if (!e) throw peer_failure("the peer does not release the connection");
    if (e->what == cm::event::kind::disconnected) return;
    if (e->what == cm::event::kind::disconnect_request) {  // it asked before it had our wish
      service_.manager().disconnect(id_, {}, service_.now_ps());
      return;
    }
  }
}

bool rdma_connection::released() {
  cm_service::event e;
  while (service_.manager().take_event_of(id_, e)) {
    if (e.what == cm::event::kind::established) continue;
    stop();
    service_.manager().disconnect(id_, {}, service_.now_ps());
    return true;
  }
  return false;
}

void rdma_connection::wait_released() {
  const std::uint64_t deadline = service_.now_ps() + route_.patience_ps;
  while (!released()) {
    if (service_.now_ps() >= deadline) throw peer_failure("the peer does not release the connection");
    sc_core::wait(sc_core::sc_time::from_value(look_for_end_ps));
  }
}

std::optional<ibv_wc> rdma_connection::next(completion_queue* cq) {
  const std::uint64_t deadline = service_.now_ps() + route_.patience_ps;
  while (service_.now_ps() < deadline) {
    ibv_wc wc{};
    const int n = host_.device().wait_cq(cq, 1, &wc, look_for_end_ps);
    hosts::require(n, "poll_cq");
    if (n != 0 && wc.status == IBV_WC_SUCCESS) return wc;
    if (released()) return std::nullopt;
    if (n != 0) require_success(wc, false);
  }
  throw peer_failure("the peer does not send any more");
}

}  // namespace rnic::serve
