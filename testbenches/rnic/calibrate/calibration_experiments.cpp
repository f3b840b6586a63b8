// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/calibrate/calibration_experiments.h"

#include <algorithm>
#include <string>

#include "host_driver/hosts/star.h"
#include "testbenches/bench/measuring_card.h"
#include "testbenches/bench/slot_load.h"
#include "testbenches/rnic/measure/experiment.h"

namespace rnic::program {

namespace {

constexpr std::uint32_t hop_ps = 250'000;  // cut-through switch (calibration 5)

void put_between(network over, common_options& common, traffic_options& traffic) {
  if (over == network::direct_40g) return;
  if (over == network::direct_edr) {
    traffic.rate_mbps = {97'000};
    traffic.cable_metres = 1;
    traffic.mtu = 4096;
    common.assignments.insert(common.assignments.begin(), "adapter.port.fec=none");
    return;
  }
  traffic.rate_mbps = {over == network::switched_qdr ? 32'000u : 56'000u};
  common.assignments.insert(common.assignments.begin(), "cable.hop_ps=" + std::to_string(hop_ps));
}

/// The slot of `common` with the measuring card in it.
hosts::node_config with_measuring_card(const common_options& common) {
  hosts::node_config c = system_from(common, traffic_options{}, demand{}, nullptr).node;
  c.adapter.pcie = bench::measuring_card(c.adapter.pcie);
  return c;
}

}  // namespace

double dma_write(const common_options& common, std::uint32_t bytes, std::uint32_t offset) {
  bench::write_load load;
  load.bytes = bytes;
  load.offset = offset;
  load.writes = 400'000 / bytes;
  return bench::dma_write_gbps(with_measuring_card(common), load);
}

double write_and_read(const common_options& common, std::uint32_t bytes, std::uint64_t window) {
  return bench::dma_write_read_extra_ns(with_measuring_card(common), bytes, window, host::memory_class::dram);
}

double dma_read(const common_options& common, std::uint32_t bytes) {
  return static_cast<double>(bench::dma_read_ps(with_measuring_card(common), bytes)) / 1000 +
         static_cast<double>(bench::card_engine_ps) / 1000;
}

double typical_latency(const common_options& common, const char* verb, std::uint32_t bytes, network over) {
  latency_options o;
  o.common = common;
  o.common.quiet = true;
  o.traffic.verb = verb;
  o.traffic.sizes = {bytes};
  put_between(over, o.common, o.traffic);
  return typical_latency_us(o);
}

double write_goodput(const common_options& common, std::uint32_t rate_mbps, unsigned mtu) {
  bandwidth_options o;
  o.common = common;
  o.common.quiet = true;
  o.traffic.inline_bytes = 0;
  if (rate_mbps != 0) o.traffic.rate_mbps = {rate_mbps};
  o.traffic.mtu = mtu;
  o.traffic.sizes = {65536};
  o.messages = 400;
  return measure_bandwidth(o).goodput_gbps;
}

double one_queue_pair(const common_options& common, const char* verb) {
  bandwidth_options o;
  o.common = common;
  o.common.quiet = true;
  put_between(network::switched_qdr, o.common, o.traffic);
  o.traffic.verb = verb;
  o.traffic.inline_bytes = 0;
  o.traffic.sizes = {64};
  o.messages = 20'000;
  return measure_bandwidth(o).rate_mpps;
}

namespace {

hosts::connection_options connection_of(const rate_test& t) {
  hosts::connection_options c;
  c.type = t.type;
  c.inline_bytes = t.inline_bytes;
  c.send_depth = std::max(128u, t.load.window);
  c.receive_depth = 1;
  return c;
}

/// One host's part: what it does, and the rate of its side in `rates`, messages per microsecond.
void run_host(hosts::hosts_if& system, bench::swarm& swarm, const rate_test& t, hosts::endpoint& e, double* rates) {
  const unsigned side = swarm.side_of(e);
  hosts::set_address(e, connection_of(t), hosts::number_of(system, e));
  system.meet();
  swarm.set_up(e);
  if (!t.both && side != (t.many == crowd::sender ? 1u : 0u)) return;
  const sim::time_ps took = swarm.run(e, t.warm_up, t.messages);
  rates[side] = static_cast<double>(t.messages) * 1e6 / static_cast<double>(std::max<sim::time_ps>(took, 1));
}

}  // namespace

double message_rate(const common_options& common, const rate_test& t) {
  traffic_options traffic;
  if (t.rate_mbps != 0) traffic.rate_mbps = {t.rate_mbps};
  const hosts::two_nodes_config config =
      system_from(common, traffic, demand{t.load.qps, 2 * t.load.random_bytes + (1u << 20)}, nullptr);
  bench::swarm_config load = t.load;
  load.seed = common.seed;
  double rates[2] = {0, 0};
  if (t.many == crowd::nobody) {
    hosts::two_nodes system(config);
    hosts::pair_of_hosts hosts(system);
    bench::swarm swarm(hosts, connection_of(t), load);
    system.run([&] { run_host(hosts, swarm, t, system.a(), rates); },
               [&] { run_host(hosts, swarm, t, system.b(), rates); });
  } else {
    hosts::star_config around;
    around.node = config.node;
    around.timing = config.timing;
    around.leaves = t.machines;
    around.hop_ps = hop_ps;
    hosts::star hosts(around);
    bench::swarm swarm(hosts, connection_of(t), load);
    hosts.run([&](hosts::endpoint& e) { run_host(hosts, swarm, t, e, rates); });
  }
  return t.both ? (rates[0] + rates[1]) / 2 : rates[0] + rates[1];
}

rate_test inbound(ibv_wr_opcode opcode, std::uint32_t bytes) {
  rate_test t;
  t.load.opcode = opcode;
  t.load.size = bytes;
  t.load.qps = t.load.threads = 32;
  t.load.window = 64;
  t.many = crowd::sender;
  if (opcode == IBV_WR_RDMA_WRITE) {
    t.type = IBV_QPT_UC;
    t.inline_bytes = 220;
    t.load.signal_every = 16;
  } else {
    t.load.window = 16;
  }
  return t;
}

rate_test outbound_read(std::uint32_t bytes) {
  rate_test t;
  t.load.opcode = IBV_WR_RDMA_READ;
  t.load.size = bytes;
  t.load.qps = 32;
  t.load.threads = 16;
  t.many = crowd::receiver;
  return t;
}

rate_test outbound_write(std::uint32_t bytes, bool is_inline) {
  rate_test t;
  t.type = IBV_QPT_UC;
  t.inline_bytes = is_inline ? 256 : 0;
  t.load.size = bytes;
  t.load.qps = t.load.threads = 16;
  t.load.window = 64;
  t.load.signal_every = 16;
  t.many = crowd::receiver;
  return t;
}

rate_test outbound_spread(unsigned qps) {
  rate_test t = outbound_write(32, true);
  t.load.qps = qps;
  t.load.random_qp = true;
  t.load.signal_every = 1;
  return t;
}

rate_test symmetric_read(unsigned qps, std::uint32_t bytes) {
  rate_test t;
  t.load.opcode = IBV_WR_RDMA_READ;
  t.load.size = bytes;
  t.load.qps = qps;
  t.load.threads = 8;
  t.load.window = 16;
  t.load.random_qp = true;
  t.both = true;
  t.warm_up = 20'000;
  t.messages = 60'000;
  return t;
}

rate_test atomics() {
  rate_test t;
  t.load.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  t.load.size = 8;
  t.load.qps = t.load.threads = 16;
  t.messages = 10'000;
  t.warm_up = 2'000;
  return t;
}

rate_test spread_atomics(unsigned counters) {
  rate_test t = atomics();
  t.load.qps = t.load.threads = 64;
  t.load.stride = 8;
  t.load.random_bytes = std::uint64_t{8} * counters;
  t.rate_mbps = 100'000;
  t.messages = 30'000;
  return t;
}

rate_test registered(std::uint32_t bytes, std::uint64_t megabytes) {
  rate_test t;
  t.load.size = bytes;
  t.load.qps = t.load.threads = 1;
  t.load.window = 64;
  t.load.random_bytes = megabytes << 20;
  t.rate_mbps = 40'000;
  return t;
}

}  // namespace rnic::program
