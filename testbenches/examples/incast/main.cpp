// SPDX-License-Identifier: Apache-2.0
// Incast: four hosts send to a fifth one through a switch, whose output is what limits them. A switch that pauses them
// is compared with one that drops what its buffer has no room for.
#include <cstdio>
#include <exception>
#include <string>
#include <systemc>
#include <vector>

#include "host_driver/hosts/network.h"
#include "model/sim/simulation.h"

using namespace rnic;

namespace {

constexpr unsigned senders = 4, messages = 32;
constexpr std::uint32_t bytes = 65'536;

/// A queue pair of a host, with what its peer must know.
struct queue {
  ibv_cq* cq = nullptr;
  host_driver::queue_pair* qp = nullptr;
  hosts::buffer memory;
};

queue make_queue(hosts::endpoint& e) {
  queue q;
  q.cq = hosts::require_made(*e.device, e.device->create_cq(64), "completion queue");
  q.qp = hosts::make_qp(e, {}, *q.cq, *q.cq);
  q.memory = hosts::make_buffer(e, bytes);
  return q;
}

/// All messages one after the other, and then their completions.
void write(hosts::endpoint& e, const queue& from, const queue& to) {
  ibv_sge data{from.memory.address(), bytes, from.memory.region->lkey};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &data;
  wr.num_sge = 1;
  wr.wr.rdma = {to.memory.address(), to.memory.region->rkey};
  for (unsigned i = 0; i < messages; ++i) hosts::require(e.device->post_send(from.qp, &wr, &bad), "post");
  for (unsigned i = 0; i < messages; ++i) {
    ibv_wc wc{};
    hosts::require(e.device->wait_cq(from.cq, 1, &wc), "wait");
    if (wc.status != IBV_WC_SUCCESS) throw hosts::message_failed(wc);
  }
}

/// Of the switch's ports.
unsigned long long sum(const sim::statistics& all, const std::string& counter) {
  unsigned long long total = 0;
  for (const auto& [name, value] : all.of("s1"))
    if (name.size() > counter.size() && name.compare(name.size() - counter.size(), counter.size(), counter) == 0)
      total += *value;
  return total;
}

void run(const char* what, fabric::lossless_by how) {
  const sim::simulation kernel;  // several systems, one after the other
  hosts::network_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.shape = fabric::make_star(senders + 1, {});  // 3 m of cable at 40 Gb/s
  config.middle.buffer.flow_control = how;
  hosts::network system(config);
  constexpr unsigned receiver = senders;
  std::vector<queue> from(senders), to(senders);
  sim::time_ps start = 0, end = 0;
  system.run([&](unsigned host) {
    hosts::endpoint& e = system.end(host);
    hosts::set_address(e, {}, host + 1);
    for (unsigned s = 0; s < senders; ++s) {
      if (host == s) from[s] = make_queue(e);
      if (host == receiver) to[s] = make_queue(e);
    }
    system.meet();
    for (unsigned s = 0; s < senders; ++s) {
      if (host == s) hosts::connect(e, {}, *from[s].qp, system.end(receiver), to[s].qp->qp_num, 0, 0);
      if (host == receiver) hosts::connect(e, {}, *to[s].qp, system.end(s), from[s].qp->qp_num, 0, 0);
    }
    system.meet();
    if (host == 0) start = system.now_ps();
    if (host != receiver) write(e, from[host], to[host]);
    system.meet();
    end = system.now_ps();
  });
  std::printf("%-6s %7.3f Gb/s, %4llu frames dropped, %4llu pauses sent\n", what,
              8e3 * senders * messages * bytes / static_cast<double>(end - start),
              sum(system.statistics(), ".drop_queue"), sum(system.statistics(), ".tx_pause"));
}

}  // namespace

int sc_main(int, char*[]) try {
  std::printf("%u hosts send %u messages of %u bytes each to one\n", senders, messages, bytes);
  run("drop", fabric::lossless_by::nothing);
  run("pause", fabric::lossless_by::pause);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "incast: %s\n", e.what());
  return 1;
}
