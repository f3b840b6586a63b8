// SPDX-License-Identifier: Apache-2.0
// The ping-pong over a shared receive queue: several connections, one queue of receives.
#include <fmt/format.h>

#include <algorithm>

#include "model/wire/ethernet.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/pingpong/pingpong_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

class srq_pingpong {
 public:
  srq_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& o)
      : host_(host), device_(host.device()), exchange_(exchange), o_(o), objects_(device_) {}
  ~srq_pingpong() { exchange_.close(); }
  void run(pingpong_result& r);

 private:
  struct connection {
    queue_pair* qp = nullptr;
    std::uint64_t pending = id_receive;
    peer_address own, peer;
  };
  void make_queue_pairs();
  void say_addresses();
  void hear_addresses();
  void meet();
  void connect(connection& c);
  void post_receives(unsigned count);
  void post_send(connection& c);
  void exchange_messages(pingpong_result& r);
  void take(const ibv_wc& wc, pingpong_result& r);

  served_host& host_;
  device& device_;
  address_exchange& exchange_;
  const pingpong_options& o_;
  verbs_objects objects_;
  completion_queue* cq_ = nullptr;
  shared_receive_queue* srq_ = nullptr;
  app_buffer buffer_;
  std::vector<connection> connections_;
  unsigned posted_ = 0;
};

void srq_pingpong::make_queue_pairs() {
  buffer_ = objects_.buffer(o_.size);
  cq_ = objects_.cq(o_.receive_depth + o_.queue_pairs);
  srq_ = objects_.srq(o_.receive_depth);
  connections_.resize(o_.queue_pairs);
  for (connection& c : connections_) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.srq = srq_;
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = init.cap.max_send_sge = 1;
    c.qp = objects_.qp(init);
    to_init(device_, c.qp, IBV_QPT_RC);
    c.own = {0, c.qp->qp_num, starting_psn(o_.seed, host_.mac(), c.qp->qp_num), {}};
    c.own.gid = device_.port(1).gids[static_cast<std::size_t>(o_.gid_index)].id;
    fmt::print("  local address:  {}\n", to_line(c.own));
  }
  std::fflush(stdout);
}

/// The tool sends and takes as many addresses as it could have queue pairs, whatever their number is.
void srq_pingpong::say_addresses() {
  std::string all;
  for (unsigned i = 0; i < most_queue_pairs; ++i) {
    std::string message = to_text(i < connections_.size() ? connections_[i].own : peer_address{});
    message.resize(address_exchange::message_bytes, '\0');
    all += message;
  }
  if (!exchange_.send(all)) throw peer_failure("the peer is gone before it had our addresses");
}

void srq_pingpong::hear_addresses() {
  const auto all = exchange_.receive(address_exchange::message_bytes * most_queue_pairs, exchange_ps);
  if (!all) throw peer_failure("the peer did not tell its addresses");
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const auto peer = parse_peer(all->substr(i * address_exchange::message_bytes, address_exchange::message_bytes));
    if (!peer || peer->qpn == 0)
      throw peer_failure(fmt::format("address {} of the peer makes no sense: has it as many queue pairs?", i + 1));
    connections_[i].peer = *peer;
    fmt::print("  remote address: {}\n", to_line(*peer));
  }
  std::fflush(stdout);
}

void srq_pingpong::meet() {
  if (o_.server.empty()) {
    if (!exchange_.accept()) throw peer_failure("no client could be accepted");
    hear_addresses();
    for (connection& c : connections_) connect(c);
    say_addresses();
    if (!exchange_.receive(4, exchange_ps)) throw peer_failure("the client did not say that it is ready");
    return;
  }
  if (!exchange_.connect(o_.server, o_.port, o_.connect_ps))
    throw peer_failure(fmt::format("nobody answers at {}:{}", o_.server, o_.port));
  say_addresses();
  hear_addresses();
  for (connection& c : connections_) connect(c);
  if (!exchange_.send(std::string("done") + '\0')) throw peer_failure("the peer is gone before it was told to begin");
}

void srq_pingpong::connect(connection& c) {
  const auto mac = host_.resolve(c.peer.gid, o_.gid_index);
  if (!mac) throw peer_failure("no neighbour has the address " + wire::to_string(c.peer.gid));
  qp_route route{IBV_QPT_RC, o_.mtu, c.own.psn, c.peer.psn, c.peer.qpn};
  route.path = path_to(c.peer.gid, o_.gid_index, o_.service_level);
  route.mac = *mac;
  route.ack_timeout = o_.ack_timeout;
  to_ready_to_receive(device_, c.qp, route);
  to_ready_to_send(device_, c.qp, route);
}

void srq_pingpong::post_receives(unsigned count) {
  ibv_sge sge = buffer_.sge(o_.size);
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = id_receive;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  for (unsigned i = 0; i < count; ++i) hosts::require(device_.post_srq_recv(srq_, &wr, &bad), "post_srq_recv");
  posted_ += count;
}

void srq_pingpong::post_send(connection& c) {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (o_.size <= c.qp->max_inline) wr.send_flags |= IBV_SEND_INLINE;
  post(device_, c.qp, wr, buffer_.sge(o_.size));
  c.pending = id_receive | id_send;
}

void srq_pingpong::take(const ibv_wc& wc, pingpong_result& r) {
  require_success(wc);
  const auto at = std::find_if(connections_.begin(), connections_.end(),
                               [&](const connection& c) { return c.qp->qp_num == wc.qp_num; });
  if (at == connections_.end()) throw std::runtime_error("a completion of a queue pair that is not ours");
  if (wc.wr_id == id_send) {
    ++r.sent;
  } else {
    check_zeroes(wc, buffer_, o_.size, r);
    ++r.received;
    if (--posted_ <= o_.queue_pairs) post_receives(o_.receive_depth - posted_);
  }
  at->pending &= ~wc.wr_id;
  if (r.sent < o_.iterations && at->pending == 0) post_send(*at);
}

void srq_pingpong::exchange_messages(pingpong_result& r) {
  if (!o_.server.empty())
    for (connection& c : connections_) post_send(c);
  exchange_all(device_, cq_, o_, r, [&](const ibv_wc& wc) { take(wc, r); });
}

void srq_pingpong::run(pingpong_result& r) {
  make_queue_pairs();
  post_receives(o_.receive_depth);
  meet();
  r.local = to_line(connections_.front().own);
  r.remote = to_line(connections_.front().peer);
  exchange_.close();
  const std::uint64_t start = sc_core::sc_time_stamp().value();
  exchange_messages(r);
  r.took_ps = sc_core::sc_time_stamp().value() - start;
}

}  // namespace

std::size_t first_word_bytes(const std::string& app) {
  if (app == "xsrq_pingpong") return xsrq_message_bytes;
  return address_exchange::message_bytes * (app == "srq_pingpong" ? most_queue_pairs : 1);
}

pingpong_result run_srq_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& options) {
  return run_program<srq_pingpong>(host, exchange, options);
}

}  // namespace rnic::serve
