// SPDX-License-Identifier: Apache-2.0
// `rnic run`: workloads on a network.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host_driver/hosts/huge_pages.h"
#include "host_driver/hosts/network.h"
#include "host_driver/workloads/workload_run.h"
#include "testbenches/bench/utilisation.h"
#include "testbenches/rnic/fabric/network_results.h"
#include "testbenches/rnic/fabric/network_setup.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/run/experiment_file.h"
#include "testbenches/rnic/run/run_results.h"
#include "testbenches/rnic/trace/run_watch.h"
#include "testbenches/rnic/trace/run_wave.h"

namespace rnic::program {

namespace {

/// What the drivers' tables must hold: of each host the queue pairs and memory of its workloads, of the hosts the most.
demand demand_of(const experiment_file& e) {
  demand most;
  for (unsigned h = 0; h < e.shape.hosts().size(); ++h) {
    demand d{1, 0};
    for (const workloads::workload_config& w : e.workloads) {
      const auto times_in = [h](const std::vector<unsigned>& hosts) {
        return static_cast<std::uint64_t>(std::count(hosts.begin(), hosts.end(), h));
      };
      const std::uint64_t sends = times_in(w.from) * w.to.size(), receives = times_in(w.to) * w.from.size(),
                          queue_pairs = (sends + receives) * w.threads * w.qps;
      if (queue_pairs == 0) continue;
      d.queue_pairs += 2 * queue_pairs;  // XRC has two for one
      d.depth = std::max<std::uint64_t>(d.depth, w.depth);
      d.bytes += w.memory.number * w.memory.bytes + receives * w.threads * w.qps * (w.sizes.largest() + 4096u);
    }
    most = larger_of(most, d);
  }
  return most;
}

std::vector<std::string> names_of(const std::vector<workloads::workload_config>& workloads) {
  std::vector<std::string> names;
  for (const workloads::workload_config& w : workloads) names.push_back(w.name);
  return names;
}

class experiment_run {
 public:
  experiment_run(const run_options& options, const experiment_file& file) : options_(options), file_(file) {}

  void run() {
    hosts::network_config config = network_from(options_.common, file_, options_.file, demand_of(file_), &effective_);
    capture_at(config, options_.capture_at);
    config.threads = options_.trace.any() ? 1 : options_.threads;
    if (file_.faults_at >= 0) {
      const auto at = static_cast<unsigned>(file_.faults_at);
      config.sides = std::array<unsigned, 2>{at, at == 0 ? 1u : 0u};
      config.faults = file_.faults;
      config.fault_seed = config.middle.seed;
    }
    hosts::use_huge_pages(static_cast<unsigned>(config.shape.hosts().size()));
    hosts::network network(config);
    network_ = &network;
    if (!options_.common.quiet) print_warnings(network.warnings());
    const auto watch = watch_of(network, options_.common, options_.trace, options_.file);
    const auto wave = wave_of(bench::watched(network), options_.trace);
    progress shown(options_.common, "run", file_.duration_us != 0 ? file_.duration_us : messages());
    const workloads::run_length length{file_.warm_up_us * sim::ps_per_us, file_.duration_us * sim::ps_per_us,
                                       file_.drain_us * sim::ps_per_us};
    workloads::run_listeners listeners;
    listeners.onlooker = watch ? watch->onlooker() : nullptr;
    listeners.begins = [this, &watch, &wave](const workloads::workload_times& t) {
      if (file_.duration_us == 0) network_->end_when_stuck();
      begin_ = t.begin;
      before_ = statistics_json(network_->statistics());
      used_before_ = bench::measure_utilisation(*network_);
      if (watch) watch->begin(t.begin);
      if (wave) wave->begin();
    };
    listeners.goes_on = [this, &shown](sim::time_ps since) {
      network_->look_for_standstills();
      shown.at(done(since));
    };
    listeners.drains = [this] { measured_ = look(); };
    listeners.ends = [this] { ended_ = look(); };
    workloads::workload_run workloads(network, file_.workloads, length, file_.common, config.middle.seed, listeners);
    workloads_ = &workloads;
    workloads.run();
    keep(config.middle.seed);
    const nlohmann::json trace = watch ? watch->finish() : nlohmann::json();
    if (!trace.is_null()) results_["trace"] = trace;
    if (wave) results_["wave"] = wave_json(options_.trace, *wave);
  }

  const nlohmann::json& results() const { return results_; }
  bool ok() const { return ok_; }
  void print() const;

 private:
  std::uint64_t messages() const {
    std::uint64_t all = 0;
    for (const workloads::workload_config& w : file_.workloads) all += w.messages * w.from.size();
    return all;
  }

  /// Microseconds, or messages, of those that make up the run.
  std::uint64_t done(sim::time_ps since) const {
    if (file_.duration_us != 0) return since / sim::ps_per_us;
    std::uint64_t completed = 0;
    for (std::size_t i = 0; i < workloads_->workloads().size(); ++i)
      completed += workloads_->workloads()[i].completed();
    return completed;
  }

  /// What is counted, at one time.
  struct state {
    nlohmann::json statistics;
    bench::utilisation used;
  };
  state look() const { return {statistics_json(network_->statistics()), bench::measure_utilisation(*network_)}; }

  /// Ports and resources are of the time in which workloads send. One that the number of messages ends has drained by
  /// then, unless nobody acknowledges them.
  state& measured() {
    if (measured_) return *measured_;
    bool unanswered = false;
    for (std::size_t i = 0; i < workloads_->workloads().size(); ++i)
      unanswered |= workloads_->workloads()[i].unreliable();
    measured_ = ended_;
    if (!unanswered) measured_->used.at = used_before_.at + (workloads_->end() - workloads_->times().begin);
    return *measured_;
  }

  void keep(std::uint64_t seed) {
    const sim::time_ps took = workloads_->end() - workloads_->times().begin;
    const state& used = measured();
    const sim::time_ps counted = used.used.at - used_before_.at;
    results_["experiment"] = {
        {"hosts", file_.shape.hosts()},   {"switches", file_.shape.switches()}, {"seed", seed},
        {"warm_up_us", file_.warm_up_us}, {"simulated_us", to_us(took)},        {"counted_us", to_us(counted)}};
    results_["workloads"] = workloads_json(workloads_->workloads(), file_.shape, workloads_->times());
    results_["all"] = sum_json(workloads_->workloads(), workloads_->times());
    for (const nlohmann::json& w : results_["workloads"]) ok_ &= !w.contains("failure");
    results_["ports"] = ports_json(*network_, increase(before_, used.statistics), counted);
    standstills_ = network_->standstills();
    results_["standstills"] = deadlocks_json(standstills_, begin_);
    ok_ &= standstills_.empty();
    for (const auto& cable : network_->fault_cables())
      if (cable->faults() != nullptr) {
        results_["faults"].push_back(faults_json(*cable->faults(), workloads_->end()));
        results_["faults"].back()["port"] = cable->port();
      }
    results_["counters"] = increase(before_, ended_.statistics);
    usage_ = {0, bench::shares_between(used_before_, used.used), bench::standstills_between(used_before_, used.used)};
    put_usage(results_, usage_);
    results_["parameters"] = effective_;
    for (const hosts::network_config::host_setting& s : file_.host_parameters)
      results_["host_parameters"][file_.shape.hosts()[s.host]][s.path] = s.value;
  }

  const run_options& options_;
  const experiment_file& file_;
  std::string effective_;
  hosts::network* network_ = nullptr;
  const workloads::workload_run* workloads_ = nullptr;
  bench::utilisation used_before_;
  usage_column usage_;
  nlohmann::json before_, results_;
  std::optional<state> measured_;
  state ended_;
  sim::time_ps begin_ = 0;
  std::vector<hosts::standstill> standstills_;
  bool ok_ = true;
};

void experiment_run::print() const {
  const nlohmann::json& e = results_["experiment"];
  fmt::print("{}: {} hosts, {} switches, {:.3f} us, seed {}; latencies in microseconds\n\n", options_.file,
             e["hosts"].size(), e["switches"].size(), e["simulated_us"].get<double>(), e["seed"].get<std::uint64_t>());
  print_workloads(results_["workloads"], results_["all"]);
  if (!results_["ports"].empty()) {
    fmt::print("\n");
    print_ports(results_["ports"]);
  }
  print_deadlocks(standstills_, begin_);
  print_busiest(usage_);
  if (results_.contains("trace")) print_trace(results_["trace"]);
  if (results_.contains("wave")) print_wave(results_["wave"]);
  if (!results_.contains("faults")) return;
  for (const nlohmann::json& f : results_["faults"])
    print_faults(f, fmt::format("the cable of {}, port {}", file_.shape.hosts()[static_cast<unsigned>(file_.faults_at)],
                                f["port"].get<unsigned>()));
}

}  // namespace

int run_experiment(const run_options& options, const std::string& text) {
  check_writable(options.common, options.common.json_file);
  check_writable(options.common, options.common.pcap_file);
  const experiment_file file = parse_experiment(text, options.file);
  check_trace(options.common, options.trace, names_of(file.workloads));
  experiment_run run(options, file);
  run.run();
  run.print();
  if (!options.common.json_file.empty()) {
    nlohmann::json result = run_header("run", options.common);
    result["seed"] = seed_of(options.common, file);
    result["file"] = text;
    result.update(run.results());
    write_json(options.common.json_file, result);
  }
  return run.ok() ? 0 : 1;
}

}  // namespace rnic::program
