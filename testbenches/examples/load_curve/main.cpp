// SPDX-License-Identifier: Apache-2.0
// A load curve: WRITEs of 4 KiB arrive at random, and their latency grows with how much of the cable they take.
#include <cstdio>
#include <exception>
#include <systemc>

#include "host_driver/hosts/network.h"
#include "host_driver/workloads/measured.h"
#include "host_driver/workloads/workload_run.h"
#include "model/sim/simulation.h"

using namespace rnic;

namespace {

void run(double gbps) {
  const sim::simulation kernel;  // several systems, one after the other
  hosts::network_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.shape = fabric::make_star(2, {});
  hosts::network system(config);

  workloads::workload_config w;
  w.name = "writes";
  w.from = {0};
  w.to = {1};
  w.sizes = workloads::message_sizes(4096);
  w.memory.bytes = 1 << 20;
  w.qps = 8;
  w.messages = 4000;
  w.open = workloads::arrival_config{};  // Poisson
  w.open->gap_ps = 8e3 * 4096 / gbps;
  workloads::workload_run all(system, {w}, {}, {}, 1);
  all.run();

  const workloads::workload& writes = all.workloads()[0];
  const workloads::latency_record latencies = workloads::latencies_of(writes);
  if (latencies.empty()) throw std::runtime_error("no message has come through: " + writes.failure());
  const auto us = [&latencies](double part) { return static_cast<double>(latencies.quantile(part)) / 1e6; };
  std::printf("%9.1f %9.3f %9.3f %9.3f %9.3f\n", gbps, workloads::measure(writes, all.times()).gbps(), us(0.5),
              us(0.99), us(0.999));
}

}  // namespace

int sc_main(int, char*[]) try {
  std::printf("%9s %9s %9s %9s %9s\n", "offered", "Gb/s", "50 % us", "99 %", "99.9 %");
  for (const double gbps : {4.0, 20.0, 32.0, 36.0}) run(gbps);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "load_curve: %s\n", e.what());
  return 1;
}
