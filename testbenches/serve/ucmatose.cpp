// SPDX-License-Identifier: Apache-2.0
// ucmatose: messages over several connections, the server's first.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "testbenches/bench/connection.h"
#include "testbenches/serve/cm_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint16_t ucmatose_port = 7471;

class ucmatose : private cm_program {
 public:
  using cm_program::cm_program;
  void run(application_result& r);

 private:
  struct node {
    std::unique_ptr<rdma_connection> connection;
    completion_queue *send_cq = nullptr, *receive_cq = nullptr;
    app_buffer out, in;
  };
  node make_node();
  void send(application_result& r);
  void receive(application_result& r);
  ibv_wc one(node& n, completion_queue* cq);

  std::vector<node> nodes_;
};

ucmatose::node ucmatose::make_node() {
  node n;
  const unsigned depth = count(message_count);
  n.send_cq = objects_.cq(depth);
  n.receive_cq = objects_.cq(depth);
  n.out = objects_.buffer(size(message_size), IBV_ACCESS_LOCAL_WRITE, 0x5a);
  n.in = objects_.buffer(size(message_size));
  n.connection = std::make_unique<rdma_connection>(host_, service_, o_.route);
  queue_pair* qp = make_qp(IBV_QPT_RC, n.send_cq, n.receive_cq, depth);
  n.connection->prepare(qp);
  for (unsigned i = 0; i < depth; ++i) post_receive(device_, qp, id_receive, n.in.sge(size(message_size)));
  return n;
}

ibv_wc ucmatose::one(node& n, completion_queue* cq) {
  const auto wc = n.connection->next(cq);
  if (!wc) throw peer_failure("the peer released the connection before all messages were exchanged");
  return *wc;
}

void ucmatose::send(application_result& r) {
  ibv_send_wr wr{};
  wr.wr_id = id_send;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  for (node& n : nodes_)
    for (unsigned i = 0; i < count(message_count); ++i)
      post(device_, n.connection->qp(), wr, n.out.sge(size(message_size)));
  for (node& n : nodes_)
    for (unsigned i = 0; i < count(message_count); ++i, ++r.sent) one(n, n.send_cq);
}

void ucmatose::receive(application_result& r) {
  for (node& n : nodes_)
    for (unsigned i = 0; i < count(message_count); ++i, ++r.received)
      if (const ibv_wc wc = one(n, n.receive_cq); wc.byte_len != size(message_size))
        throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, size(message_size)));
}

/// The server sends first, then the client; the server releases the connections.
void ucmatose::run(application_result& r) {
  if (o_.client) {
    for (unsigned i = 0; i < connections(1); ++i) nodes_.push_back(make_node());
    for (node& n : nodes_) n.connection->connect(o_.peer, port(ucmatose_port));
    receive(r);
    send(r);
    for (node& n : nodes_) n.connection->wait_released();
    return;
  }
  listener here(service_, cm::service_id(cm::port_space::tcp, port(ucmatose_port)));
  while (nodes_.size() < connections(1)) {
    const auto request = wait_for_client(service_);
    nodes_.push_back(make_node());
    nodes_.back().connection->accept(request);
  }
  here.stop();
  send(r);
  receive(r);
  for (node& n : nodes_) n.connection->disconnect();
}

}  // namespace

void run_ucmatose(served_host& host, cm_service& service, const cm_application_options& o, application_result& r) {
  ucmatose(host, service, o).run(r);
}

}  // namespace rnic::serve
