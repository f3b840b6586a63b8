// SPDX-License-Identifier: Apache-2.0
// rdma_server and rdma_client: a message, and its answer. rdma_xserver and rdma_xclient: a message, over RC or XRC.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "host_driver/hosts/connection.h"
#include "model/abi/endian.h"
#include "testbenches/serve/cm/cm_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint32_t greeting_bytes = 16;

class rdma_server : private cm_program, public arrival {
 public:
  rdma_server(served_host& host, cm_service& service, const cm_application_options& o, bool answers)
      : cm_program(host, service, o), answers_(answers) {}
  void set_up();
  rdma_connection& connection() override { return connection_; }
  void run_client(application_result& r);
  void serve(application_result& r);

 private:
  void set_up_xrc();
  void say(application_result& r);
  void hear(application_result& r);
  ibv_wc one(completion_queue* cq);

  bool answers_;
  completion_queue *send_cq_ = nullptr, *receive_cq_ = nullptr;
  std::uint32_t peer_srqn_ = 0;  // XRC
  app_buffer out_, in_;
  rdma_connection connection_{host_, service_, o_.route};
};

void rdma_server::set_up() {
  send_cq_ = objects_.cq(1);
  receive_cq_ = objects_.cq(1);
  out_ = objects_.buffer(greeting_bytes);
  in_ = objects_.buffer(greeting_bytes);
  if (o_.xrc) return set_up_xrc();
  connection_.prepare(make_qp(IBV_QPT_RC, send_cq_, receive_cq_, 1));
  post_receive(device_, connection_.qp(), id_receive, in_.sge(greeting_bytes));
}

/// The client sends with one half, to a shared receive queue whose number the server tells in its private data.
void rdma_server::set_up_xrc() {
  if (o_.client) return connection_.prepare(objects_.xrc_sender(send_cq_, 1));
  xrc_domain* const domain = objects_.xrc_domain();
  shared_receive_queue* const srq = objects_.xrc_srq(domain, receive_cq_, 1);
  connection_.prepare(objects_.xrc_receiver(domain));
  ibv_sge sge = in_.sge(greeting_bytes);
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = id_receive;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  hosts::require(device_.post_srq_recv(srq, &wr, &bad), "post_srq_recv");
  std::array<std::uint8_t, 4> told{};
  abi::store32(told.data(), 0, srq->srqn);
  connection_.set_private(told.data(), told.size());
}

ibv_wc rdma_server::one(completion_queue* cq) {
  const auto wc = connection_.next(cq);
  if (!wc) throw peer_failure("the peer released the connection before the messages were exchanged");
  return *wc;
}

void rdma_server::say(application_result& r) {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (o_.xrc) wr.qp_type.xrc.remote_srqn = peer_srqn_;
  post(device_, connection_.qp(), wr, out_.sge(greeting_bytes));
  one(send_cq_);
  ++r.sent;
}

void rdma_server::hear(application_result& r) {
  const ibv_wc wc = one(receive_cq_);
  if (wc.byte_len != greeting_bytes)
    throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, greeting_bytes));
  ++r.received;
}

void rdma_server::run_client(application_result& r) {
  set_up();
  connection_.connect(o_.peer, port(rdma_server_port));
  if (o_.xrc) peer_srqn_ = abi::load32(connection_.peer_private(), 0);
  say(r);
  if (answers_) hear(r);
  connection_.disconnect();
}

void rdma_server::serve(application_result& r) {
  hear(r);
  if (!answers_) return connection_.disconnect();
  say(r);
  connection_.wait_released();
}

std::unique_ptr<arrival> make_guest(served_host& host, cm_service& service, const cm_application_options& o,
                                    bool answers) {
  auto guest = std::make_unique<rdma_server>(host, service, o, answers);
  guest->set_up();
  return guest;
}

void run(served_host& host, cm_service& service, reception* clients, const cm_application_options& o, bool answers,
         application_result& r) {
  if (o.client) return rdma_server(host, service, o, answers).run_client(r);
  const auto client = next_as<rdma_server>(*clients);
  clients->enough();
  client->serve(r);
}

}  // namespace

std::unique_ptr<arrival> rdma_server_guest(served_host& host, cm_service& service, const cm_application_options& o) {
  return make_guest(host, service, o, true);
}

std::unique_ptr<arrival> rdma_xserver_guest(served_host& host, cm_service& service, const cm_application_options& o) {
  return make_guest(host, service, o, false);
}

void run_rdma_server(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                     application_result& r) {
  run(host, service, clients, o, true, r);
}

void run_rdma_xserver(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                      application_result& r) {
  run(host, service, clients, o, false, r);
}

}  // namespace rnic::serve
