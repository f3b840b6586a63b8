// SPDX-License-Identifier: Apache-2.0
// The calibration set (calibration 6.1) and how each of its points is measured here.
#include <algorithm>

#include "testbenches/bench/slot_load.h"
#include "testbenches/bench/swarm.h"
#include "testbenches/rnic/calibration.h"
#include "testbenches/rnic/experiment.h"

namespace rnic::program {

namespace {

constexpr std::uint32_t qdr_mbps = 32'000;      // InfiniBand QDR after coding
constexpr std::uint32_t fastest_mbps = 56'000;  // nearest to InfiniBand FDR
constexpr std::uint32_t hop_ps = 250'000;       // cut-through switch (calibration 5)
// What the adapter that was measured adds to a read on the bus: its 560 ns for 64 bytes, less the 310 ns of the host
// (calibration 5).
constexpr double foreign_engine_ns = 250;

bench::node_config node_of(const common_options& common) {
  return system_from(common, traffic_options{}, demand{}, nullptr).node;
}

double dma_write(const common_options& common, std::uint32_t bytes) {
  return bench::dma_write_gbps(node_of(common), bytes, 400'000 / bytes);
}

double dma_read(const common_options& common, std::uint32_t bytes) {
  return static_cast<double>(bench::dma_read_ps(node_of(common), bytes)) / 1000 + foreign_engine_ns;
}

double write_latency(const common_options& common, std::uint32_t bytes, bool switched) {
  latency_options o;
  o.common = common;
  o.common.quiet = true;
  o.traffic.sizes = {bytes};
  if (switched) {
    o.traffic.rate_mbps = qdr_mbps;
    o.common.assignments.insert(o.common.assignments.begin(), "cable.hop_ps=" + std::to_string(hop_ps));
  }
  return typical_latency_us(o);
}

double write_goodput(const common_options& common) {
  bandwidth_options o;
  o.common = common;
  o.common.quiet = true;
  o.traffic.inline_bytes = 0;
  o.traffic.sizes = {65536};
  o.messages = 400;
  return measure_bandwidth(o).goodput_gbps;
}

double one_queue_pair(const common_options& common, const char* verb) {
  bandwidth_options o;
  o.common = common;
  o.common.quiet = true;
  o.common.assignments.insert(o.common.assignments.begin(), "cable.hop_ps=" + std::to_string(hop_ps));
  o.traffic.verb = verb;
  o.traffic.inline_bytes = 0;
  o.traffic.rate_mbps = qdr_mbps;
  o.traffic.sizes = {64};
  o.messages = 20'000;
  return measure_bandwidth(o).rate_mpps;
}

/// Which end of a measurement stands for many machines, and so is never what limits.
enum class crowd : std::uint8_t { nobody, sender, receiver };

struct rate_test {
  bench::swarm_config load;
  ibv_qp_type type = IBV_QPT_RC;
  unsigned inline_bytes = 0;
  std::uint32_t rate_mbps = fastest_mbps;
  crowd many = crowd::nobody;
  bool both = false;  ///< both hosts post
  std::uint64_t warm_up = 10'000, messages = 30'000;
};

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

/// Messages per microsecond that the first host completes.
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
  sim::time_ps elapsed = 1;
  const auto host = [&](bench::endpoint& e, bool first) {
    bench::set_address(e, connection, first ? 1 : 2);
    system.meet();
    swarm.set_up(e);
    if (!first && !t.both) return;
    const sim::time_ps took = swarm.run(e, t.warm_up, t.messages);
    if (first) elapsed = took;
  };
  system.run([&] { host(system.a(), true); }, [&] { host(system.b(), false); });
  return static_cast<double>(t.messages) * 1e6 / static_cast<double>(elapsed);
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

rate_test outbound_read() {
  rate_test t;
  t.load.opcode = IBV_WR_RDMA_READ;
  t.load.size = 32;
  t.load.qps = 32;
  t.load.threads = 16;
  t.many = crowd::receiver;
  return t;
}

rate_test outbound_inline(std::uint32_t bytes) {
  rate_test t;
  t.type = IBV_QPT_UC;
  t.inline_bytes = 236;
  t.load.size = bytes;
  t.load.qps = t.load.threads = 16;
  t.load.window = 64;
  t.load.signal_every = 16;
  t.many = crowd::receiver;
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

rate_test registered(std::uint64_t megabytes) {
  rate_test t;
  t.load.size = 64;
  t.load.qps = t.load.threads = 1;
  t.load.window = 64;
  t.load.random_bytes = megabytes << 20;
  t.rate_mbps = 40'000;
  return t;
}

std::vector<calibration_point> make_points() {
  std::vector<calibration_point> p;
  const auto add = [&p](const char* id, const std::string& x, const char* what, const char* unit, double expected,
                        double band, const char* source, std::function<double(const common_options&)> measure) {
    p.push_back({id, x, what, unit, expected, band, source, std::move(measure)});
  };
  const auto rate = [](const rate_test& t) { return [t](const common_options& o) { return message_rate(o, t); }; };
  using o = const common_options&;

  const std::pair<std::uint32_t, double> writes[] = {{128, 42.41}, {256, 50.55}, {512, 54.45}, {2048, 54.45}};
  for (const auto& [bytes, gbps] : writes)
    add("C01", std::to_string(bytes) + " B", "DMA write bandwidth, Gen3 x8", "Gb/s", gbps, 5, "pcie-bench, SIGCOMM'18",
        [bytes = bytes](o c) { return dma_write(c, bytes); });
  const std::pair<std::uint32_t, double> reads[] = {{64, 560}, {512, 706}, {2048, 1146}};
  for (const auto& [bytes, ns] : reads)
    add("C02", std::to_string(bytes) + " B", "DMA read latency, 250 ns of it the measuring engine's", "ns", ns, 10,
        "pcie-bench, SIGCOMM'18", [bytes = bytes](o c) { return dma_read(c, bytes); });
  add("C03", "65536 B", "WRITE goodput, 40GbE", "Gb/s", 38.21, 2, "perftest, MT4103", write_goodput);
  add("C04", "2 B", "WRITE latency, 40GbE", "us", 0.85, 10, "perftest, MT4103",
      [](o c) { return write_latency(c, 2, false); });
  const std::pair<std::uint32_t, double> latencies[] = {{2, 0.98}, {64, 1.09}, {128, 1.22}, {256, 1.84}, {2048, 3.18}};
  for (const auto& [bytes, us] : latencies)
    add("C05", std::to_string(bytes) + " B", "WRITE latency, 32 Gb/s and a switch", "us", us, 12, "perftest, MT4099",
        [bytes = bytes](o c) { return write_latency(c, bytes, true); });
  const std::pair<std::uint32_t, double> in[] = {{32, 35.3}, {128, 31.0}, {256, 19.8}, {512, 11.5}};
  for (const auto& [bytes, mops] : in)
    add("C06a", std::to_string(bytes) + " B", "inbound WRITE rate, 56GbE", "M/s", mops, 10, "HERD, SIGCOMM'14, fig. 3b",
        rate(inbound(IBV_WR_RDMA_WRITE, bytes)));
  add("C06b", "16 B", "inbound READ rate, 56GbE", "M/s", 26, 10, "HERD, SIGCOMM'14, 3.2",
      rate(inbound(IBV_WR_RDMA_READ, 16)));
  add("C06c", "32 B", "outbound READ rate, 56GbE", "M/s", 22, 10, "HERD, SIGCOMM'14, 3.2", rate(outbound_read()));
  const std::pair<std::uint32_t, double> out[] = {{28, 38}, {64, 26.3}, {128, 17.8}, {200, 13.3}};
  for (const auto& [bytes, mops] : out)
    add("C06d", std::to_string(bytes) + " B", "outbound UC WRITE rate, inline, 56GbE", "M/s", mops, 10,
        "HERD, SIGCOMM'14, fig. 4b", rate(outbound_inline(bytes)));
  const std::pair<unsigned, double> many[] = {{48, 10.8}, {88, 6.82}, {176, 2.34}, {792, 1.16}};
  for (const auto& [qps, mops] : many)
    add("C07", std::to_string(qps) + " QPs", "READ rate of each of two that read from each other", "M/s", mops, 15,
        "FaSST, OSDI'16, raw data", rate(symmetric_read(qps)));
  add("C08", "16 QPs", "fetch and add rate", "M/s", 2.7, 10, "ATC'16, 5", rate(atomics()));
  add("C09a", "64 B", "WRITE rate of one queue pair, 32 Gb/s and a switch", "M/s", 5.47, 15, "perftest, MT4099",
      [](o c) { return one_queue_pair(c, "write"); });
  add("C09b", "64 B", "READ rate of one queue pair, 32 Gb/s and a switch", "M/s", 4.76, 15, "perftest, MT4099",
      [](o c) { return one_queue_pair(c, "read"); });
  const std::pair<std::uint64_t, double> sizes[] = {{4, 5.8}, {64, 1.72}, {1024, 1.55}};
  for (const auto& [megabytes, mops] : sizes)
    add("C10", std::to_string(megabytes) + " MB", "64 B WRITE rate to random places of a region", "M/s", mops, 15,
        "LITE, SOSP'17, fig. 5", rate(registered(megabytes)));
  return p;
}

}  // namespace

const std::vector<calibration_point>& calibration_points() {
  static const std::vector<calibration_point> points = make_points();
  return points;
}

}  // namespace rnic::program
