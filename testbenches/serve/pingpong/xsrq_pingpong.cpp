// SPDX-License-Identifier: Apache-2.0
// The ping-pong over XRC: each side has a queue pair to send with and one to receive with, which puts what comes into a
// shared receive queue that the sender names.
#include <fmt/format.h>

#include <cstdio>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/pingpong/pingpong_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

// As in the example of rdma-core.
constexpr std::uint8_t hop_limit = 5;
constexpr std::size_t message_bytes = xsrq_message_bytes, srqn_at = 26, srqn_digits = 6, gid_digits = 32;
const std::string the_end = std::string("END") + '\0';

/// What one side tells: the numbers of its two queue pairs and of its shared receive queue, and one PSN for all.
struct xrc_address {
  std::uint32_t receiver = 0, sender = 0, psn = 0, srqn = 0;
  gid_bytes gid{};
};

std::string to_text(const xrc_address& a) {
  std::string text = fmt::format("0000:{:06x}:{:06x}:{:06x}:{:06x}:", a.receiver, a.sender, a.psn, a.srqn);
  for (const std::uint8_t byte : a.gid) text += fmt::format("{:02x}", byte);
  text.resize(message_bytes, '\0');
  return text;
}

/// The same fields as in `%04x:%06x:%06x:%06x:%06x:%32s`, of which parse_peer knows all but one.
std::optional<xrc_address> parse_xrc(const std::string& text) {
  if (text.size() != message_bytes) return std::nullopt;
  const std::string numbers = text.substr(0, srqn_at - 1), srqn = text.substr(srqn_at, srqn_digits),
                    gid = text.substr(srqn_at + srqn_digits + 1, gid_digits);
  const auto queues = parse_peer(numbers.substr(0, 18) + ":" + gid);
  const auto rest = parse_peer("0000:" + srqn + ":" + numbers.substr(19) + ":" + gid);
  if (!queues || !rest || text[srqn_at - 1] != ':' || text[18] != ':') return std::nullopt;
  return xrc_address{queues->qpn, queues->psn, rest->psn, rest->qpn, queues->gid};
}

std::string to_line(const xrc_address& a) {
  return fmt::format("QPN RECV 0x{:06x} SEND 0x{:06x}, PSN 0x{:06x}, SRQN 0x{:06x}, GID {}", a.receiver, a.sender,
                     a.psn, a.srqn, wire::to_string(a.gid));
}

class xsrq_pingpong {
 public:
  xsrq_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& o)
      : host_(host), device_(host.device()), exchange_(exchange), o_(o), objects_(device_) {}
  ~xsrq_pingpong() { exchange_.close(); }
  void run(pingpong_result& r);

 private:
  bool client() const { return !o_.server.empty(); }
  void make_queues();
  void meet();
  void hear();
  void say(const std::string& text);
  void connect();
  void connect(queue_pair* qp, ibv_qp_type type, std::uint32_t peer, const mac_address& mac);
  void post_receive();
  void post_send();
  void exchange_messages(pingpong_result& r);
  void take(const ibv_wc& wc, pingpong_result& r);
  void part();

  served_host& host_;
  device& device_;
  address_exchange& exchange_;
  const pingpong_options& o_;
  verbs_objects objects_;
  completion_queue* cq_ = nullptr;
  shared_receive_queue* srq_ = nullptr;
  queue_pair *receiver_ = nullptr, *sender_ = nullptr;
  app_buffer buffer_;
  xrc_address own_, peer_;
  unsigned posted_ = 0;
};

void xsrq_pingpong::make_queues() {
  buffer_ = objects_.buffer(o_.size);
  cq_ = objects_.cq(4);
  xrc_domain* const domain = objects_.xrc_domain();
  srq_ = objects_.xrc_srq(domain, cq_, 2);
  receiver_ = objects_.xrc_receiver(domain);
  sender_ = objects_.xrc_sender(cq_, 2);
  to_init(device_, receiver_, IBV_QPT_XRC_RECV, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  to_init(device_, sender_, IBV_QPT_XRC_SEND);
  own_ = {receiver_->qp_num, sender_->qp_num, starting_psn(o_.seed, host_.mac(), receiver_->qp_num), srq_->srqn, {}};
  own_.gid = device_.port(1).gids[static_cast<std::size_t>(o_.gid_index)].id;
}

void xsrq_pingpong::say(const std::string& text) {
  if (!exchange_.send(text)) throw peer_failure("the peer is gone");
}

void xsrq_pingpong::hear() {
  const auto text = exchange_.receive(message_bytes, exchange_ps);
  if (!text) throw peer_failure("the peer did not tell its address");
  const auto peer = parse_xrc(*text);
  if (!peer) throw peer_failure("the peer's address makes no sense");
  peer_ = *peer;
}

void xsrq_pingpong::meet() {
  if (client() ? !exchange_.connect(o_.server, o_.port, o_.connect_ps) : !exchange_.accept())
    throw peer_failure(client() ? fmt::format("nobody answers at {}:{}", o_.server, o_.port)
                                : "no client could be accepted");
  if (client()) say(to_text(own_));
  hear();
  if (!client()) say(to_text(own_));
  connect();
}

void xsrq_pingpong::connect() {
  const auto mac = host_.resolve(peer_.gid, o_.gid_index);
  if (!mac) throw peer_failure("no neighbour has the address " + wire::to_string(peer_.gid));
  connect(receiver_, IBV_QPT_XRC_RECV, peer_.sender, *mac);
  connect(sender_, IBV_QPT_XRC_SEND, peer_.receiver, *mac);
}

void xsrq_pingpong::connect(queue_pair* qp, ibv_qp_type type, std::uint32_t peer, const mac_address& mac) {
  qp_route route{type, o_.mtu, own_.psn, peer_.psn, peer};
  route.path = path_to(peer_.gid, o_.gid_index, o_.service_level, hop_limit);
  route.mac = mac;
  route.ack_timeout = o_.ack_timeout;
  to_ready_to_receive(device_, qp, route);
  to_ready_to_send(device_, qp, route);
}

void xsrq_pingpong::post_receive() {
  ibv_sge sge = buffer_.sge(o_.size);
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = id_receive;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  hosts::require(device_.post_srq_recv(srq_, &wr, &bad), "post_srq_recv");
}

void xsrq_pingpong::post_send() {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.qp_type.xrc.remote_srqn = peer_.srqn;
  post(device_, sender_, wr, buffer_.sge(o_.size));
  ++posted_;
}

void xsrq_pingpong::take(const ibv_wc& wc, pingpong_result& r) {
  require_success(wc);
  if (wc.wr_id == id_send) {
    ++r.sent;
    return;
  }
  check_zeroes(wc, buffer_, o_.size, r);
  ++r.received;
  post_receive();
  if (posted_ < o_.iterations) post_send();
}

/// The server begins.
void xsrq_pingpong::exchange_messages(pingpong_result& r) {
  if (!client()) post_send();
  exchange_all(device_, cq_, o_, r, [&](const ibv_wc& wc) { take(wc, r); });
}

/// Each tells the other that it has had all messages.
void xsrq_pingpong::part() {
  if (client()) say(the_end);
  if (exchange_.receive(the_end.size(), exchange_ps) != the_end)
    throw peer_failure("the peer did not say that it has all");
  if (!client()) say(the_end);
}

void xsrq_pingpong::run(pingpong_result& r) {
  make_queues();
  post_receive();
  meet();
  r.local = to_line(own_);
  r.remote = to_line(peer_);
  fmt::print("  local address:  {}\n  remote address: {}\n", r.local, r.remote);
  std::fflush(stdout);
  const std::uint64_t start = sc_core::sc_time_stamp().value();
  exchange_messages(r);
  r.took_ps = sc_core::sc_time_stamp().value() - start;
  part();
}

}  // namespace

pingpong_result run_xsrq_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& options) {
  return run_program<xsrq_pingpong>(host, exchange, options);
}

}  // namespace rnic::serve
