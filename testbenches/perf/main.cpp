// SPDX-License-Identifier: Apache-2.0
// The program `rnic-perf`: what simulating costs. Two whole adapters, driven by their drivers; CPU time per packet in
// nanoseconds and in R, the cost of one kernel activation on this machine at this moment.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <systemc>
#include <vector>

#include "host_driver/hosts/huge_pages.h"
#include "host_driver/hosts/two_nodes.h"
#include "testbenches/bench/child.h"
#include "testbenches/bench/stream.h"
#include "testbenches/perf/kernel_cost.h"

namespace {

using namespace rnic;

struct result {
  double cpu_ns = 0;
  double packets = 0;  // data packets, or messages where a message is one packet
  double cycles = 0;   // of the core clock, simulated
  double deltas = 0;   // kernel delta cycles: activations of the model's method and of the programs' threads
  bool ok = false;
};

/// Runs `work` in a process of its own.
result in_child(const std::function<result()>& work) {
  result r;
  try {
    r = bench::in_child(work);
    r.ok = true;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rnic-perf: %s\n", e.what());
  }
  return r;
}

struct load {
  std::uint32_t size = 65536;
  unsigned mtu = 1024;
  unsigned qps = 1;
  unsigned depth = 64;
  std::uint64_t warm_up = 200;
  std::uint64_t messages = 2000;
  std::uint32_t rate_mbps = 40'000;
  unsigned places = 0;  // see stream_config
};

/// WRITEs from one host to the other; the CPU time between the end of the warm-up and the last completion.
result run_writes(const load& l) {
  hosts::use_huge_pages(2);  // as `rnic` does
  hosts::two_nodes_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.node.adapter.port.rate_mbps = l.rate_mbps;
  hosts::two_nodes system(config);
  hosts::connection_options connection;
  connection.mtu = l.mtu;
  connection.send_depth = l.depth;
  connection.receive_depth = 1;
  connection.inline_bytes = 0;
  bench::stream_config stream_config;
  stream_config.qps = l.qps;
  stream_config.depth = l.depth;
  stream_config.largest = l.size;
  stream_config.places = l.places;
  bench::stream stream(system, system.a(), system.b(), connection, stream_config);
  result r;
  const auto host = [&](hosts::endpoint& e, bool sends) {
    hosts::set_address(e, connection, sends ? 1 : 2);
    system.meet();
    stream.set_up(e);
    for (const std::uint64_t messages : {l.warm_up, l.messages}) {
      const bench::stream::work work{sends ? &stream : nullptr, nullptr, l.size, messages};
      bench::stream::prepare(work);
      system.meet();
      const double cpu = perf::cpu_ns();
      const std::uint64_t cycles = system.node_a().nic().clock().now();
      const std::uint64_t deltas = sc_core::sc_delta_count();
      if (sends) bench::stream::run_host(e, work);
      if (sends) {
        r.cpu_ns = perf::cpu_ns() - cpu;
        r.cycles = static_cast<double>(system.node_a().nic().clock().now() - cycles);
        r.deltas = static_cast<double>(sc_core::sc_delta_count() - deltas);
        const std::uint64_t packets_each = (l.size + l.mtu - 1) / l.mtu;
        r.packets = static_cast<double>(messages * packets_each);
      }
      system.meet();
    }
    if (!sends) stream.check_content(l.size);
  };
  system.run([&] { host(system.a(), true); }, [&] { host(system.b(), false); });
  return r;
}

/// A simulated second in which nobody asks for anything.
result run_idle() {
  hosts::two_nodes_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  hosts::two_nodes system(config);
  result r;
  system.run([] {}, [] {});
  const double cpu = perf::cpu_ns();
  const std::uint64_t deltas = sc_core::sc_delta_count();
  const std::uint64_t cycles = system.node_a().nic().clock().now();
  system.pass(sim::ps_per_s);
  r.cpu_ns = perf::cpu_ns() - cpu;
  r.deltas = static_cast<double>(sc_core::sc_delta_count() - deltas);
  r.cycles = static_cast<double>(system.node_a().nic().clock().now() - cycles);
  return r;
}

double activation_ns() {
  return in_child([] {
           result r;
           r.cpu_ns = perf::measure_activation_ns();
           return r;
         })
      .cpu_ns;
}

/// Machines change their speed within seconds, some by half. A round counts if R was the same before and behind it.
constexpr unsigned wanted_rounds = 5;
constexpr unsigned most_rounds = 15;
constexpr double steady = 0.05;

struct round {
  double activation = 0;  // ns
  result run;
  [[nodiscard]] double per_packet() const { return run.cpu_ns / run.packets; }
  [[nodiscard]] double ratio() const { return (run.packets > 0 ? per_packet() : run.cpu_ns) / activation; }
};

/// Rounds whose R was steady, by their ratio; all of them if none was. Empty if a run failed.
std::vector<round> measure(const std::function<result()>& work) {
  std::vector<round> good;
  std::vector<round> all;
  double before = activation_ns();
  while (good.size() < wanted_rounds && all.size() < most_rounds) {
    const result r = in_child(work);
    if (!r.ok) return {};
    const double after = activation_ns();
    all.push_back({(before + after) / 2, r});
    if (std::abs(before - after) < steady * std::min(before, after)) good.push_back(all.back());
    before = after;
  }
  std::vector<round>& chosen = good.empty() ? all : good;
  std::sort(chosen.begin(), chosen.end(), [](const round& x, const round& y) { return x.ratio() < y.ratio(); });
  return chosen;
}

/// Of the rounds the one in the middle; `r_lowest` and `r_highest` are the ratios of the two at the ends.
void report(benchmark::State& state, const std::function<result()>& work) {
  for ([[maybe_unused]] auto _ : state) {
    const std::vector<round> rounds = measure(work);
    if (rounds.empty()) return state.SkipWithError("the run failed");
    const round& middle = rounds[rounds.size() / 2];
    const result& r = middle.run;
    state.SetIterationTime(r.cpu_ns * 1e-9);
    state.counters["rounds"] = static_cast<double>(rounds.size());
    state.counters["r"] = middle.activation;
    state.counters["cycles_per_cpu_s"] = r.cycles / r.cpu_ns * 1e9;
    state.counters["kernel_activations"] = r.deltas;
    if (r.packets == 0) continue;
    state.counters["ns_per_packet"] = middle.per_packet();
    state.counters["packets_per_cpu_s"] = r.packets / r.cpu_ns * 1e9;
    state.counters["activations_per_packet"] = r.deltas / r.packets;
    state.counters["r_per_packet"] = middle.ratio();
    state.counters["r_lowest"] = rounds.front().ratio();
    state.counters["r_highest"] = rounds.back().ratio();
  }
}

void add(const char* name, const load& l) {
  benchmark::RegisterBenchmark(name, [l](benchmark::State& s) { report(s, [l] { return run_writes(l); }); })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

int sc_main(int argc, char* argv[]) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  // The same depth for all numbers of queue pairs: it decides how many completions there are for a message.
  add("write_64B", {64, 1024, 16, 16, 2000, 40'000, 40'000});
  add("write_1KiB", {1024, 1024, 1, 16, 1000, 20'000, 40'000});
  add("write_64KiB", {65536, 1024, 1, 16, 20, 400, 40'000});
  add("write_64KiB_10Gb", {65536, 1024, 1, 16, 20, 400, 10'000});
  add("write_64KiB_100Gb", {65536, 1024, 1, 16, 20, 400, 100'000});
  // How the cost grows with the queue pairs. They all work on the same amount of payload: how fast this machine's
  // memory is does not depend on queue pairs. The last case has a buffer for each of them, 64 MiB a side.
  add("write_64B_1qp", {64, 1024, 1, 16, 2000, 40'000, 40'000, 64});
  add("write_64B_64qp", {64, 1024, 64, 16, 2000, 40'000, 40'000, 64});
  add("write_64B_1024qp", {64, 1024, 1024, 16, 20'000, 60'000, 40'000, 64});
  add("write_1KiB_1qp", {1024, 1024, 1, 16, 2000, 20'000, 40'000, 64});
  add("write_1KiB_64qp", {1024, 1024, 64, 16, 2000, 20'000, 40'000, 64});
  add("write_1KiB_1024qp", {1024, 1024, 1024, 16, 20'000, 40'000, 40'000, 64});
  add("write_64KiB_1qp", {65536, 1024, 1, 16, 128, 1000, 40'000, 64});
  add("write_64KiB_64qp", {65536, 1024, 64, 16, 256, 1000, 40'000, 64});
  add("write_64KiB_1024qp", {65536, 1024, 1024, 16, 2048, 2048, 40'000, 64});
  add("write_64KiB_1024qp_64MiB", {65536, 1024, 1024, 16, 2048, 2048, 40'000});
  benchmark::RegisterBenchmark("idle_second", [](benchmark::State& s) { report(s, run_idle); })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
