// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/calibration_experiments.h"

#include <algorithm>
#include <string>

#include "testbenches/bench/slot_load.h"
#include "testbenches/rnic/experiment.h"

namespace rnic::program {

namespace {

constexpr std::uint32_t hop_ps = 250'000;  // cut-through switch (calibration 5)
// What the adapter that was measured adds to a read on the bus: its 560 ns for 64 bytes, less the 310 ns of the host
// (calibration 5).
constexpr double foreign_engine_ns = 250;

void put_between(network over, common_options& common, traffic_options& traffic) {
  if (over == network::direct_40g) return;
  traffic.rate_mbps = over == network::switched_qdr ? 32'000 : 56'000;
  common.assignments.insert(common.assignments.begin(), "cable.hop_ps=" + std::to_string(hop_ps));
}

bench::node_config node_of(const common_options& common) {
  return system_from(common, traffic_options{}, demand{}, nullptr).node;
}

/// An adapter and a host with the throughput of several.
void multiply(bench::node_config& c) {
  c.adapter.clock_khz *= 4;
  c.adapter.requester.processing_units = c.adapter.scheduler.grants = 32;
  c.adapter.pcie.link.width = 16;
  c.adapter.pcie.dma.tags = 256;
  c.adapter.pcie.dma.reads_per_client = 64;
  c.adapter.pcie.dma.interface_cycle_ps /= 4;
  c.adapter.pcie.dma.request_setup_ps /= 4;
  c.uncore_khz *= 2;
}

}  // namespace

double dma_write(const common_options& common, std::uint32_t bytes) {
  return bench::dma_write_gbps(node_of(common), bytes, 400'000 / bytes);
}

double dma_read(const common_options& common, std::uint32_t bytes) {
  return static_cast<double>(bench::dma_read_ps(node_of(common), bytes)) / 1000 + foreign_engine_ns;
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

double write_goodput(const common_options& common, std::uint32_t rate_mbps) {
  bandwidth_options o;
  o.common = common;
  o.common.quiet = true;
  o.traffic.inline_bytes = 0;
  o.traffic.rate_mbps = rate_mbps;
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

double message_rate(const common_options& common, const rate_test& t) {
  traffic_options traffic;
  traffic.rate_mbps = t.rate_mbps;
  bench::two_nodes_config config =
      system_from(common, traffic, demand{t.load.qps, 2 * t.load.random_bytes + (1u << 20)}, nullptr);
  config.node_b = config.node;
  if (t.many == crowd::sender) multiply(config.node);
  if (t.many == crowd::receiver) multiply(*config.node_b);
  bench::two_nodes system(config);
  bench::connection_options connection;
  connection.type = t.type;
  connection.inline_bytes = t.inline_bytes;
  connection.send_depth = std::max(128u, t.load.window);
  connection.receive_depth = 1;
  bench::swarm_config load = t.load;
  load.seed = common.seed;
  bench::swarm swarm(system, connection, load);
  double rates[2] = {0, 0};  // of the hosts, messages per microsecond
  const auto host = [&](bench::endpoint& e, bool first) {
    bench::set_address(e, connection, first ? 1 : 2);
    system.meet();
    swarm.set_up(e);
    if (!first && !t.both) return;
    const sim::time_ps took = swarm.run(e, t.warm_up, t.messages);
    rates[first ? 0 : 1] = static_cast<double>(t.messages) * 1e6 / static_cast<double>(std::max<sim::time_ps>(took, 1));
  };
  system.run([&] { host(system.a(), true); }, [&] { host(system.b(), false); });
  return t.both ? (rates[0] + rates[1]) / 2 : rates[0];
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

rate_test symmetric_read(unsigned qps) {
  rate_test t;
  t.load.opcode = IBV_WR_RDMA_READ;
  t.load.size = 32;
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
