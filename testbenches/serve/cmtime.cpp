// SPDX-License-Identifier: Apache-2.0
// cmtime: many connections at a time, and how long each step of them takes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <vector>

#include "testbenches/serve/cm_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint16_t cmtime_port = 7471;
constexpr unsigned cmtime_connections = 100;

class cmtime : private cm_program {
 public:
  using cm_program::cm_program;
  void run(application_result& r);

 private:
  struct node {
    node(served_host& host, cm_service& service, const rdma_route& route) : connection(host, service, route) {}
    rdma_connection connection;
    std::uint64_t began_ps = 0, took_ps = 0;
  };
  node& make_node();
  void client(application_result& r);
  void server(application_result& r);
  /// All begin a step before the first one is waited for.
  template <class Begin, class Finish>
  void step(const char* name, Begin begin, Finish finish);
  void print(const char* name, std::uint64_t total_ps) const;

  completion_queue* cq_ = nullptr;
  std::deque<node> nodes_;
};

cmtime::node& cmtime::make_node() {
  if (cq_ == nullptr) cq_ = objects_.cq(2 * connections(cmtime_connections));
  node& n = nodes_.emplace_back(host_, service_, o_.route);
  n.connection.prepare(make_qp(IBV_QPT_RC, cq_, cq_, 1));
  return n;
}

void cmtime::print(const char* name, std::uint64_t total_ps) const {
  const auto us = [](std::uint64_t t) { return static_cast<double>(t) * 1e-6; };
  const auto shorter = [](const node& a, const node& b) { return a.took_ps < b.took_ps; };
  const auto [least, most] = std::minmax_element(nodes_.begin(), nodes_.end(), shorter);
  fmt::print(" {:<12} {:>12.2f} {:>10.2f} {:>10.2f} {:>10.2f}\n", name, us(total_ps), us(least->took_ps),
             us(most->took_ps), us(total_ps) / static_cast<double>(nodes_.size()));
}

template <class Begin, class Finish>
void cmtime::step(const char* name, Begin begin, Finish finish) {
  const std::uint64_t start = service_.now_ps();
  for (node& n : nodes_) {
    n.began_ps = service_.now_ps();
    begin(n.connection);
  }
  for (node& n : nodes_) {
    finish(n.connection);
    n.took_ps = service_.now_ps() - n.began_ps;
  }
  print(name, service_.now_ps() - start);
}

void cmtime::client(application_result& r) {
  const std::uint64_t start = service_.now_ps();
  for (unsigned i = 0; i < connections(cmtime_connections); ++i) {
    const std::uint64_t began = service_.now_ps();
    node& n = make_node();
    n.took_ps = service_.now_ps() - began;
  }
  fmt::print(" {:<12} {:>12} {:>10} {:>10} {:>10}\n", "step", "in all us", "least us", "most us", "us each");
  print("create qp", service_.now_ps() - start);
  step(
      "connect", [this](rdma_connection& c) { c.begin_connect(o_.peer, port(cmtime_port)); },
      [](rdma_connection& c) {
        if (!c.finish_connect()) throw peer_failure("the peer refused: nobody listens there");
      });
  r.sent = r.received = nodes_.size();
  step(
      "disconnect", [](rdma_connection& c) { c.begin_disconnect(); },
      [](rdma_connection& c) { c.finish_disconnect(); });
  std::fflush(stdout);
}

void cmtime::server(application_result& r) {
  listener here(service_, cm::service_id(cm::port_space::tcp, port(cmtime_port)));
  while (nodes_.size() < connections(cmtime_connections)) {
    const auto request = wait_for_client(service_);
    make_node().connection.begin_accept(request);
  }
  here.stop();
  for (node& n : nodes_) n.connection.finish_accept();
  r.sent = r.received = nodes_.size();
  for (node& n : nodes_) n.connection.wait_released();
}

void cmtime::run(application_result& r) {
  if (o_.client)
    client(r);
  else
    server(r);
}

}  // namespace

void run_cmtime(served_host& host, cm_service& service, const cm_application_options& o, application_result& r) {
  cmtime(host, service, o).run(r);
}

}  // namespace rnic::serve
