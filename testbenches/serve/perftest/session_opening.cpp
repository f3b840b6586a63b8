// SPDX-License-Identifier: Apache-2.0
// How the two sides of a session come together.
#include <fmt/format.h>

#include <cstdio>
#include <random>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"
#include "testbenches/serve/perftest/session.h"

namespace rnic::serve::perftest {

using namespace host_driver;

namespace {

constexpr unsigned inline_bytes = 220;

rdma_route route_of(const perftest_options& o) {
  rdma_route route;
  route.gid_index = o.gid_index;
  route.service_level = o.service_level;
  route.traffic_class = o.traffic_class;
  route.mtu = o.mtu;
  route.seed = o.seed;
  route.patience_ps = o.patience_ps;
  return route;
}

}  // namespace

session::session(served_host& host, address_exchange& socket, cm_service* service, reception* clients,
                 const perftest_options& o)
    : host_(host),
      device_(host.device()),
      socket_(socket),
      service_(service),
      clients_(clients),
      o_(o),
      size_(o.message_bytes()),
      iterations_(o.messages()),
      depth_(o.latency ? 1 : o.depth),
      objects_(device_),
      lanes_(o.queue_pairs),
      route_(route_of(o)) {}

int session::peers_access() const {
  switch (o_.verb) {
    case perftest_verb::write:
      return IBV_ACCESS_REMOTE_WRITE;
    case perftest_verb::read:
      return IBV_ACCESS_REMOTE_READ;
    case perftest_verb::atomic:
      return IBV_ACCESS_REMOTE_ATOMIC;
    case perftest_verb::send:
      break;
  }
  return 0;
}

/// READs and atomics of the peer under way on a queue pair; 0: the test has none.
std::uint32_t session::reads_taken() const {
  if (o_.verb != perftest_verb::read && o_.verb != perftest_verb::atomic) return 0;
  const auto most = static_cast<std::uint32_t>(limits_.max_qp_rd_atom);
  return o_.reads != 0 ? std::min(o_.reads, most) : most;
}

void session::make_lane(lane& l) {
  const bool atomic = o_.verb == perftest_verb::atomic, receives = o_.verb == perftest_verb::send;
  l.out = objects_.buffer(atomic ? depth_ * sizeof(std::uint64_t) : buffer_bytes_);
  l.in = objects_.buffer(buffer_bytes_, IBV_ACCESS_LOCAL_WRITE | peers_access());
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = o_.type;
  init.cap.max_send_wr = depth_;
  init.cap.max_recv_wr = receives ? o_.receive_depth : 1;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 2;
  if (o_.latency) init.cap.max_inline_data = inline_bytes;
  l.qp = objects_.qp(init);
  if (o_.meeting == perftest_meeting::cm) {
    l.connection = std::make_unique<rdma_connection>(host_, *service_, route_);
    l.connection->prepare(l.qp);
  } else {
    to_init(device_, l.qp, o_.type, peers_access());
  }
  fill(l);
  l.own.reads = std::max(reads_taken(), 1u);
  l.own.qpn = l.qp->qp_num;
  l.own.psn = starting_psn(o_.seed, host_.mac(), l.qp->qp_num);
  l.own.rkey = l.in.region->rkey;
  l.own.address = l.in.region->iova;
  l.own.gid = device_.port(1).gids[static_cast<std::size_t>(o_.gid_index)].id;
}

/// What is sent or read looks like nothing else; what is written to or counted begins with zeroes, as does everything
/// in the test of WRITE's latency, whose messages are told by their last byte.
void session::fill(lane& l) const {
  if (o_.verb == perftest_verb::atomic || (o_.verb == perftest_verb::write && o_.latency)) return;
  const app_buffer& b = o_.verb == perftest_verb::read ? l.in : l.out;
  std::mt19937_64 random(o_.seed ^ (wire::to_u64(host_.mac()) << 16) ^ l.qp->qp_num);
  std::generate(b.at(), b.at(buffer_bytes_), [&random] { return static_cast<std::uint8_t>(random()); });
}

std::unique_ptr<conversation> session::talk_over_tcp() {
  if (client() ? !socket_.connect(o_.server, o_.port, o_.connect_ps) : !socket_.accept())
    throw peer_failure(client() ? fmt::format("nobody answers at {}:{}", o_.server, o_.port)
                                : "no client could be accepted");
  return std::make_unique<tcp_conversation>(socket_);
}

std::unique_ptr<conversation> session::talk_over_cm() {
  if (!client()) {
    auto talk = next_as<cm_conversation>(*clients_);
    peer_gid_ = talk->connection().peer_gid();
    return talk;
  }
  auto talk = std::make_unique<cm_conversation>(host_, *service_, route_);
  talk->connection().connect_patiently(o_.peer, o_.port, 1, o_.connect_ps);
  return talk;
}

void session::agree() {
  exchange::agreement own;
  own.mtu = o_.mtu;
  agreed_ = exchange_->agree(own);
  if (!exchange_->versions().empty()) {
    fmt::print("  the peer {}\n", exchange_->versions());
    std::fflush(stdout);
  }
  if (o_.type == IBV_QPT_UD && o_.all_sizes) size_ = agreed_.mtu;
  if (o_.type == IBV_QPT_UD && size_ > agreed_.mtu)
    throw peer_failure(fmt::format("a datagram of {} bytes is longer than the MTU, {}", size_, agreed_.mtu));
  buffer_bytes_ = std::max(size_, agreed_.cycle_bytes);
  const std::uint64_t all = std::uint64_t{2} * buffer_bytes_ * lanes_.size();
  if (all > most_client_bytes)
    throw peer_failure(fmt::format("with the peer's pages of {} bytes the test takes {} MiB: a client has up to {}",
                                   agreed_.cycle_bytes, all >> 20, most_client_bytes >> 20));
  set_size(size_);
}

void session::meet() {
  exchange_.emplace(o_.meeting == perftest_meeting::tcp ? talk_over_tcp() : talk_over_cm(), client());
  agree();
  hosts::require(device_.query_device(&limits_), "query_device");
  const unsigned receives = o_.verb == perftest_verb::send ? o_.receive_depth : 0;
  cq_ = objects_.cq((depth_ + receives) * static_cast<unsigned>(lanes_.size()));
  watch_.emplace(
      device_, [this] { return exchange_->peer_closed(); }, o_.patience_ps);
  for (lane& l : lanes_) {
    make_lane(l);
    watch_->add(l.qp);
  }
  exchange_->set_meanwhile([this] { watch_->look(); });
  const bool managed = o_.meeting == perftest_meeting::cm;
  if (managed) connect_by_cm();
  if (clients_ != nullptr) clients_->enough();
  tell_all();
  if (!managed)
    for (lane& l : lanes_) connect(l);
  if (told_once_more()) tell();
  tell_all();
}

/// A request of our client's for one of its queue pairs. They come to the same service as its conversation did, and as
/// those of clients whose turn has not come; ours made none before it was told that we are there.
cm_service::event session::request_of_client(cm_service::connection_id not_before) {
  const auto e = service_->wait_request(exchange_ps, [this, not_before](const cm_service::event& r) {
    return r.from.gid == peer_gid_ && r.id >= not_before;
  });
  if (!e) throw peer_failure("the client did not connect its queue pairs");
  return *e;
}

void session::connect_by_cm() {
  const cm_service::connection_id first = service_->manager().next_id();
  tell();
  const unsigned under_way = reads_taken();
  for (lane& l : lanes_) {
    if (client())
      l.connection->connect_patiently(o_.peer, o_.port, under_way, o_.connect_ps);
    else
      l.connection->accept(request_of_client(first), under_way);
  }
  tell();
}

void session::part() {
  for (lane& l : lanes_) {
    if (!l.connection) continue;
    if (client())
      l.connection->disconnect();
    else
      l.connection->wait_released();
  }
  exchange_->close();
}

void session::tell_all() {
  for (lane& l : lanes_) l.peer = exchange_->tell(l.own);
}

void session::connect(lane& l) {
  const auto mac = host_.resolve(l.peer.gid, o_.gid_index);
  if (!mac) throw peer_failure("no neighbour has the address " + wire::to_string(l.peer.gid));
  qp_route route{o_.type, agreed_.mtu, l.own.psn, l.peer.psn, l.peer.qpn};
  route.reads_taken = l.own.reads;
  const auto most = static_cast<std::uint32_t>(limits_.max_qp_init_rd_atom);
  route.reads_made = std::clamp(l.peer.reads, 1u, o_.reads != 0 ? std::min(o_.reads, most) : most);
  route.path = path_to(l.peer.gid, o_.gid_index, o_.service_level, 255);
  route.mac = *mac;
  route.ack_timeout = o_.ack_timeout;
  to_ready_to_receive(device_, l.qp, route);
  if (asks() || o_.latency) to_ready_to_send(device_, l.qp, route);
  if (o_.type == IBV_QPT_UD) l.ah = objects_.ah(route.path, *mac);
}

}  // namespace rnic::serve::perftest

namespace rnic::serve {

std::unique_ptr<reception> receive_clients(served_host& host, cm_service& service, const std::string& tool,
                                           const perftest_options& o) {
  if (o.client || o.meeting == perftest_meeting::tcp) return nullptr;
  return std::make_unique<reception>(service, host_driver::cm::service_id(host_driver::cm::port_space::tcp, o.port),
                                     tool, [&host, &service, route = perftest::route_of(o)] {
                                       return std::make_unique<perftest::cm_conversation>(host, service, route);
                                     });
}

}  // namespace rnic::serve
