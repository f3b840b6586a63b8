// SPDX-License-Identifier: Apache-2.0
// An RDMA WRITE: from the memory of host a, through its adapter, a cable and the other adapter, into the memory of b.
#include <cstdio>
#include <cstring>
#include <exception>
#include <systemc>

#include "host_driver/hosts/two_nodes.h"

using namespace rnic;

int sc_main(int, char*[]) try {
  hosts::two_nodes_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  hosts::two_nodes system(config);
  const hosts::connection_options options;  // RC over RoCE v2 and IPv4
  ibv_cq* cq[2];
  host_driver::queue_pair* qp[2];
  hosts::buffer memory[2];
  const auto connect = [&](unsigned i) {  // on each host, as a verbs program does
    hosts::endpoint& e = system.end(i);
    hosts::set_address(e, options, i + 1);
    cq[i] = hosts::require_made(*e.device, e.device->create_cq(16), "completion queue");
    qp[i] = hosts::make_qp(e, options, *cq[i], *cq[i]);
    memory[i] = hosts::make_buffer(e, 4096);
    system.meet();  // the other one's queue pair is there
    hosts::connect(e, options, *qp[i], system.end(1 - i), qp[1 - i]->qp_num, 0, 0);
    system.meet();
  };
  const auto write = [&] {
    connect(0);
    std::strcpy(reinterpret_cast<char*>(memory[0].at()), "from a to b");
    ibv_sge from{memory[0].address(), 12, memory[0].region->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.wr.rdma = {memory[1].address(), memory[1].region->rkey};
    const sim::time_ps start = system.now_ps();
    hosts::require(system.a().device->post_send(qp[0], &wr, &bad), "post");
    ibv_wc wc{};
    hosts::require(system.a().device->wait_cq(cq[0], 1, &wc), "wait");
    std::printf("a: %s after %.3f us\n", hosts::to_string(wc.status),
                static_cast<double>(system.now_ps() - start) / 1e6);
  };
  const auto receive = [&] {
    connect(1);
    system.b().bus->wait_for_write(memory[1].memory.bus_address, 12, 0);
    std::printf("b: \"%s\"\n", reinterpret_cast<const char*>(memory[1].at()));
  };
  system.run(write, receive);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "write: %s\n", e.what());
  return 1;
}
