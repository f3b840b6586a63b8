// SPDX-License-Identifier: Apache-2.0
// cmtime: many connections at a time, and how long each step of them takes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>

#include "testbenches/serve/cm/cm_program.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr unsigned cmtime_connections = 100;

class cmtime_node : private cm_program, public arrival {
 public:
  cmtime_node(served_host& host, cm_service& service, const cm_application_options& o) : cm_program(host, service, o) {
    completion_queue* cq = objects_.cq(2);
    connection_.prepare(make_qp(IBV_QPT_RC, cq, cq, 1));
  }
  rdma_connection& connection() override { return connection_; }
  std::uint64_t began_ps = 0, took_ps = 0;

 private:
  rdma_connection connection_{host_, service_, o_.route};
};

class cmtime_client {
 public:
  cmtime_client(served_host& host, cm_service& service, const cm_application_options& o)
      : host_(host), service_(service), o_(o) {}
  void run(application_result& r);

 private:
  using node = cmtime_node;
  /// All begin a step before the first one is waited for.
  template <class Begin, class Finish>
  void step(const char* name, Begin begin, Finish finish);
  void print(const char* name, std::uint64_t total_ps) const;

  served_host& host_;
  cm_service& service_;
  const cm_application_options& o_;
  std::deque<node> nodes_;
};

unsigned wanted(const cm_application_options& o) { return o.connections != 0 ? o.connections : cmtime_connections; }

void cmtime_client::print(const char* name, std::uint64_t total_ps) const {
  const auto us = [](std::uint64_t t) { return static_cast<double>(t) * 1e-6; };
  const auto shorter = [](const node& a, const node& b) { return a.took_ps < b.took_ps; };
  const auto [least, most] = std::minmax_element(nodes_.begin(), nodes_.end(), shorter);
  fmt::print(" {:<12} {:>12.2f} {:>10.2f} {:>10.2f} {:>10.2f}\n", name, us(total_ps), us(least->took_ps),
             us(most->took_ps), us(total_ps) / static_cast<double>(nodes_.size()));
}

template <class Begin, class Finish>
void cmtime_client::step(const char* name, Begin begin, Finish finish) {
  const std::uint64_t start = service_.now_ps();
  for (node& n : nodes_) {
    n.began_ps = service_.now_ps();
    begin(n.connection());
  }
  for (node& n : nodes_) {
    finish(n.connection());
    n.took_ps = service_.now_ps() - n.began_ps;
  }
  print(name, service_.now_ps() - start);
}

void cmtime_client::run(application_result& r) {
  const std::uint64_t start = service_.now_ps();
  const std::uint16_t port = o_.port != 0 ? o_.port : cmtime_port;
  for (unsigned i = 0; i < wanted(o_); ++i) {
    const std::uint64_t began = service_.now_ps();
    node& n = nodes_.emplace_back(host_, service_, o_);
    n.took_ps = service_.now_ps() - began;
  }
  fmt::print(" {:<12} {:>12} {:>10} {:>10} {:>10}\n", "step", "in all us", "least us", "most us", "us each");
  print("create qp", service_.now_ps() - start);
  step(
      "connect", [this, port](rdma_connection& c) { c.begin_connect(o_.peer, port); },
      [](rdma_connection& c) {
        if (!c.finish_connect()) throw c.refusal();
      });
  r.sent = r.received = nodes_.size();
  step(
      "disconnect", [](rdma_connection& c) { c.begin_disconnect(); },
      [](rdma_connection& c) { c.finish_disconnect(); });
  std::fflush(stdout);
}

}  // namespace

std::unique_ptr<arrival> cmtime_guest(served_host& host, cm_service& service, const cm_application_options& o) {
  return std::make_unique<cmtime_node>(host, service, o);
}

void run_cmtime(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                application_result& r) {
  if (o.client) return cmtime_client(host, service, o).run(r);
  const auto all = clients_of_one_host<cmtime_node>(*clients, wanted(o));
  r.sent = r.received = all.size();
  for (const auto& n : all) n->connection().wait_released();
}

}  // namespace rnic::serve
