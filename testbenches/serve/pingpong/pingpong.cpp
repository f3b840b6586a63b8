// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/pingpong/pingpong.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/wire/ethernet.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/pingpong/pingpong_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint8_t contents = 0x7b;

class pingpong {
 public:
  pingpong(served_host& host, address_exchange& exchange, const pingpong_options& o)
      : host_(host), device_(host.device()), exchange_(exchange), o_(o), objects_(device_) {}
  ~pingpong() { exchange_.close(); }
  void run(pingpong_result& r);

 private:
  bool datagrams() const { return o_.type == IBV_QPT_UD; }
  std::uint32_t header() const { return datagrams() ? grh_bytes : 0; }
  void make_queue_pair();
  void meet_as_client();
  void meet_as_server();
  void say_address();
  void hear_address();
  void connect();
  void post_receives(unsigned count);
  void post_send();
  void exchange_messages(pingpong_result& r);
  void check(const ibv_wc& wc, pingpong_result& r);

  served_host& host_;
  device& device_;
  address_exchange& exchange_;
  const pingpong_options& o_;
  verbs_objects objects_;
  completion_queue* cq_ = nullptr;
  queue_pair* qp_ = nullptr;
  address_handle* ah_ = nullptr;
  app_buffer buffer_;
  peer_address own_, peer_;
};

void pingpong::make_queue_pair() {
  buffer_ = objects_.buffer(o_.size + header(), IBV_ACCESS_LOCAL_WRITE, contents);
  cq_ = objects_.cq(o_.receive_depth + 1);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = o_.type;
  init.cap.max_send_wr = 1;
  init.cap.max_recv_wr = o_.receive_depth;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  qp_ = objects_.qp(init);
  to_init(device_, qp_, o_.type);
}

void pingpong::say_address() {
  std::string message = to_text(own_);
  message.resize(address_exchange::message_bytes, '\0');
  if (!exchange_.send(message)) throw peer_failure("the peer is gone before it had our address");
}

void pingpong::hear_address() {
  const auto message = exchange_.receive(address_exchange::message_bytes, exchange_ps);
  if (!message) throw peer_failure("the peer did not tell its address");
  const auto peer = parse_peer(*message);
  if (!peer) throw peer_failure("the peer's address makes no sense");
  peer_ = *peer;
}

void pingpong::meet_as_client() {
  if (!exchange_.connect(o_.server, o_.port, o_.connect_ps))
    throw peer_failure(fmt::format("nobody answers at {}:{}", o_.server, o_.port));
  say_address();
  hear_address();
  // Before "done": the peer's messages may come as soon as it has read that.
  connect();
  if (!exchange_.send(std::string("done") + '\0')) throw peer_failure("the peer is gone before it was told to begin");
}

void pingpong::meet_as_server() {
  if (!exchange_.accept()) throw peer_failure("no client could be accepted");
  hear_address();
  connect();
  say_address();
  if (!exchange_.receive(4, exchange_ps)) throw peer_failure("the client did not say that it is ready");
}

void pingpong::connect() {
  const auto mac = host_.resolve(peer_.gid, o_.gid_index);
  if (!mac) throw peer_failure("no neighbour has the address " + wire::to_string(peer_.gid));
  qp_route route{o_.type, o_.mtu, own_.psn, peer_.psn, peer_.qpn};
  route.path = path_to(peer_.gid, o_.gid_index, o_.service_level);
  route.mac = *mac;
  route.ack_timeout = o_.ack_timeout;
  to_ready_to_receive(device_, qp_, route);
  to_ready_to_send(device_, qp_, route);
  if (datagrams()) ah_ = objects_.ah(route.path, *mac);
}

void pingpong::post_receives(unsigned count) {
  for (unsigned i = 0; i < count; ++i) post_receive(device_, qp_, id_receive, buffer_.sge(o_.size + header()));
}

void pingpong::post_send() {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (o_.size <= qp_->max_inline) wr.send_flags |= IBV_SEND_INLINE;
  if (datagrams()) {
    wr.wr.ud.ah = ah_;
    wr.wr.ud.remote_qpn = peer_.qpn;
    wr.wr.ud.remote_qkey = datagram_qkey;
  }
  post(device_, qp_, wr, buffer_.sge(o_.size, header()));
}

/// The last message received; the tools send what they have received, which is what everybody began with. With their
/// option -c the client begins with a zero at the start of each page.
void pingpong::check(const ibv_wc& wc, pingpong_result& r) {
  constexpr std::uint32_t page = 4096;
  if (wc.byte_len != o_.size + header())
    throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, o_.size + header()));
  const std::uint8_t* data = buffer_.at(header());
  for (std::uint32_t i = 0; i < o_.size; ++i)
    if (data[i] != contents && (data[i] != 0 || i % page != 0)) ++r.wrong_bytes;
}

void pingpong::exchange_messages(pingpong_result& r) {
  unsigned posted = o_.receive_depth;
  std::uint64_t pending = id_receive;
  if (!o_.server.empty()) {
    post_send();
    pending |= id_send;
  }
  exchange_all(device_, cq_, o_, r, [&](const ibv_wc& wc) {
    require_success(wc);
    if (wc.wr_id == id_send) {
      ++r.sent;
    } else {
      check(wc, r);
      ++r.received;
      if (--posted <= 1) {
        post_receives(o_.receive_depth - posted);
        posted = o_.receive_depth;
      }
    }
    pending &= ~wc.wr_id;
    if (r.sent < o_.iterations && pending == 0) {
      post_send();
      pending = id_receive | id_send;
    }
  });
}

void pingpong::run(pingpong_result& r) {
  make_queue_pair();
  own_ = {0, qp_->qp_num, starting_psn(o_.seed, host_.mac(), qp_->qp_num), {}};
  own_.gid = device_.port(1).gids[static_cast<std::size_t>(o_.gid_index)].id;
  r.local = to_line(own_);
  fmt::print("  local address:  {}\n", r.local);
  std::fflush(stdout);
  post_receives(o_.receive_depth);
  if (o_.server.empty())
    meet_as_server();
  else
    meet_as_client();
  r.remote = to_line(peer_);
  fmt::print("  remote address: {}\n", r.remote);
  std::fflush(stdout);
  exchange_.close();
  const std::uint64_t start = sc_core::sc_time_stamp().value();
  exchange_messages(r);
  r.took_ps = sc_core::sc_time_stamp().value() - start;
}

}  // namespace

pingpong_result run_pingpong(served_host& host, address_exchange& exchange, const pingpong_options& options) {
  return run_program<pingpong>(host, exchange, options);
}

}  // namespace rnic::serve
