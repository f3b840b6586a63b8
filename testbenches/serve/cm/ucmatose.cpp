// SPDX-License-Identifier: Apache-2.0
// ucmatose: messages over several connections, the server's first.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "testbenches/serve/cm/cm_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

/// One connection, with what it needs of its own: it may come before the run that it belongs to.
class ucmatose_node : private cm_program, public arrival {
 public:
  ucmatose_node(served_host& host, cm_service& service, const cm_application_options& o);
  rdma_connection& connection() override { return connection_; }
  void connect() { connection_.connect(o_.peer, port(ucmatose_port)); }
  void post_sends();
  void wait_sends(application_result& r);
  void receive(application_result& r);

 private:
  unsigned depth() const { return count(message_count); }
  ibv_wc one(completion_queue* cq);

  completion_queue *send_cq_ = nullptr, *receive_cq_ = nullptr;
  app_buffer out_, in_;
  rdma_connection connection_{host_, service_, o_.route};
};

ucmatose_node::ucmatose_node(served_host& host, cm_service& service, const cm_application_options& o)
    : cm_program(host, service, o) {
  send_cq_ = objects_.cq(depth());
  receive_cq_ = objects_.cq(depth());
  out_ = objects_.buffer(size(message_size), IBV_ACCESS_LOCAL_WRITE, 0x5a);
  in_ = objects_.buffer(size(message_size));
  queue_pair* qp = make_qp(IBV_QPT_RC, send_cq_, receive_cq_, depth());
  connection_.prepare(qp);
  for (unsigned i = 0; i < depth(); ++i) post_receive(device_, qp, id_receive, in_.sge(size(message_size)));
}

ibv_wc ucmatose_node::one(completion_queue* cq) {
  const auto wc = connection_.next(cq);
  if (!wc) throw peer_failure("the peer released the connection before all messages were exchanged");
  return *wc;
}

void ucmatose_node::post_sends() {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  for (unsigned i = 0; i < depth(); ++i) post(device_, connection_.qp(), wr, out_.sge(size(message_size)));
}

void ucmatose_node::wait_sends(application_result& r) {
  for (unsigned i = 0; i < depth(); ++i, ++r.sent) one(send_cq_);
}

void ucmatose_node::receive(application_result& r) {
  for (unsigned i = 0; i < depth(); ++i, ++r.received)
    if (const ibv_wc wc = one(receive_cq_); wc.byte_len != size(message_size))
      throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, size(message_size)));
}

using nodes = std::vector<std::unique_ptr<ucmatose_node>>;

void send(const nodes& all, application_result& r) {
  for (const auto& n : all) n->post_sends();
  for (const auto& n : all) n->wait_sends(r);
}

void receive(const nodes& all, application_result& r) {
  for (const auto& n : all) n->receive(r);
}

}  // namespace

std::unique_ptr<arrival> ucmatose_guest(served_host& host, cm_service& service, const cm_application_options& o) {
  return std::make_unique<ucmatose_node>(host, service, o);
}

/// The server sends first, then the client; the server releases the connections.
void run_ucmatose(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                  application_result& r) {
  const unsigned wanted = o.connections != 0 ? o.connections : 1;
  if (o.client) {
    nodes all;
    for (unsigned i = 0; i < wanted; ++i) all.push_back(std::make_unique<ucmatose_node>(host, service, o));
    for (const auto& n : all) n->connect();
    receive(all, r);
    send(all, r);
    for (const auto& n : all) n->connection().wait_released();
    return;
  }
  const nodes all = clients_of_one_host<ucmatose_node>(*clients, wanted);
  send(all, r);
  receive(all, r);
  for (const auto& n : all) n->connection().disconnect();
}

}  // namespace rnic::serve
