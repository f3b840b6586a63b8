// SPDX-License-Identifier: Apache-2.0
// `rnic fabric`: flows between hosts of a network of switches.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "host_driver/hosts/huge_pages.h"
#include "host_driver/hosts/network.h"
#include "testbenches/bench/flow_set.h"
#include "testbenches/bench/utilisation.h"
#include "testbenches/rnic/fabric/fabric_file.h"
#include "testbenches/rnic/fabric/network_results.h"
#include "testbenches/rnic/fabric/network_setup.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/trace/run_watch.h"
#include "testbenches/rnic/trace/run_wave.h"

namespace rnic::program {

namespace {

constexpr sim::time_ps look_interval = 20 * sim::ps_per_us;  // for standstills and progress

class fabric_run {
 public:
  fabric_run(const fabric_options& options, const fabric_file& file) : options_(options), file_(file) {}

  void run(std::string* effective) {
    hosts::network_config config = network_from(options_.common, file_, options_.file, demand{1, 0}, effective);
    capture_at(config, options_.capture_at);
    config.threads = options_.trace.any() ? 1 : options_.threads;
    hosts::use_huge_pages(static_cast<unsigned>(config.shape.hosts().size()));
    hosts::network network(config);
    network_ = &network;
    if (!options_.common.quiet) print_warnings(network.warnings());
    const auto watch = watch_of(network, options_.common, options_.trace, options_.file);
    watch_ = watch.get();
    const auto wave = wave_of(bench::watched(network), options_.trace);
    wave_ = wave.get();
    bench::flow_set flows(network, file_.flows, file_.common, config.middle.seed, watch ? watch->onlooker() : nullptr);
    flows_ = &flows;
    progress shown(options_.common, "fabric", file_.duration_us != 0 ? file_.duration_us : messages());
    progress_ = &shown;
    network.run([this](unsigned host) { program(host); });
    keep();
    const nlohmann::json trace = watch ? watch->finish() : nlohmann::json();
    if (!trace.is_null()) results_["trace"] = trace;
    if (wave) results_["wave"] = wave_json(options_.trace, *wave);
  }

  nlohmann::json results() const { return results_; }
  /// Every flow that was to end has, and none has failed or stands still.
  bool ok() const { return ok_; }
  void print() const;

 private:
  std::uint64_t messages() const {
    std::uint64_t all = 0;
    for (const bench::flow_config& f : file_.flows) all += f.messages;
    return all;
  }

  void program(unsigned host) {
    flows_->set_up(host);
    if (host == 0) {
      begin_ = network_->now_ps();
      deadline_ = file_.duration_us != 0 ? begin_ + file_.duration_us * sim::ps_per_us : ~sim::time_ps{0};
      before_ = counters();
      used_before_ = bench::measure_utilisation(*network_);
      if (watch_ != nullptr) watch_->begin(begin_);
      if (wave_ != nullptr) wave_->begin();
    }
    network_->meet();
    if (host == 0 && options_.common.pcap_file.empty()) network_->run_apart();
    if (host == 0 && file_.duration_us == 0) network_->end_when_stuck();
    flows_->start(host, begin_, deadline_);
    sc_core::sc_process_handle watching;
    if (host == 0) watching = sc_core::sc_spawn([this] { watch(); });
    flows_->join(host);
    network_->wait_until(network_->now_ps());
    end_ = std::max(end_, network_->now_ps());
    if (host == 0 && !watching.terminated()) sc_core::wait(watching.terminated_event());
    network_->wait_until(network_->now_ps() + network_->lookahead());  // then all hosts are at that time
    network_->meet();
  }

  /// No look at the end itself: whether flows have ended by then would be a matter of who is the first to run.
  void watch() {
    while (flows_->is_sending() && !flows_->failed() && network_->now_ps() + look_interval < deadline_) {
      network_->wait_until(network_->now_ps() + look_interval);
      network_->look_for_standstills();
      ++looks_;
      for (std::size_t i = 0; i < flows_->size(); ++i) {
        const bench::flow_config& c = (*flows_)[i].config();
        const unsigned priority = hosts::priority_of(network_->end(c.from), c.connection);
        const std::string by = network_->blocked_by(c.from, c.to, priority);
        if (!by.empty()) ++blocked_[{i, by}];
      }
      std::uint64_t done = 0;
      for (std::size_t i = 0; i < flows_->size(); ++i) done += (*flows_)[i].result().completed;
      progress_->at(file_.duration_us != 0 ? (network_->now_ps() - begin_) / sim::ps_per_us : done);
    }
  }

  nlohmann::json counters() const { return statistics_json(network_->statistics()); }

  void keep() {
    results_["network"] = {{"kind", file_.kind},
                           {"hosts", file_.shape.hosts()},
                           {"switches", file_.shape.switches()},
                           {"simulated_us", to_us(end_ - begin_)}};
    keep_flows();
    bench::utilisation used = bench::measure_utilisation(*network_);
    // Behind end_ there is what was under way at the deadline; it is in the counters.
    if (file_.duration_us == 0) used.at = used_before_.at + (end_ - begin_);
    results_["ports"] = ports_json(*network_, increase(before_, counters()), used.at - used_before_.at);
    standstills_ = network_->standstills();
    results_["standstills"] = deadlocks_json(standstills_, begin_);
    ok_ &= standstills_.empty();
    results_["head_of_line_blocking"] = nlohmann::json::array();
    for (const auto& [where, count] : blocked_) {
      const bench::flow_config& c = (*flows_)[where.first].config();
      results_["head_of_line_blocking"].push_back({{"flow", c.name},
                                                   {"from", file_.shape.hosts()[c.from]},
                                                   {"to", file_.shape.hosts()[c.to]},
                                                   {"behind", where.second},
                                                   {"part", static_cast<double>(count) / looks_}});
    }
    results_["counters"] = increase(before_, counters());
    usage_ = {0, bench::shares_between(used_before_, used), bench::standstills_between(used_before_, used)};
    put_usage(results_, usage_);
  }

  void keep_flows() {
    const sim::time_ps end = std::min(deadline_, end_);
    const nlohmann::json& all = results_["flows"] = flows_json(*flows_, file_.shape, begin_, end);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < flows_->size(); ++i) {
      const double gbps = all[i]["goodput_gbps"].get<double>();
      const std::uint64_t to_do = (*flows_)[i].config().messages;
      const bool unfinished = to_do != 0 && (*flows_)[i].result().completed != to_do;
      if (all[i].contains("failure") || unfinished) ok_ = false;
      sum += gbps;
      squares += gbps * gbps;
    }
    results_["goodput_gbps"] = goodput_of_all(*flows_, end);
    const double n = static_cast<double>(flows_->size());
    results_["fairness"] = squares > 0 ? sum * sum / (n * squares) : 0;  // Jain 1984
  }

  const fabric_options& options_;
  const fabric_file& file_;
  hosts::network* network_ = nullptr;
  progress* progress_ = nullptr;
  bench::flow_set* flows_ = nullptr;
  run_watch* watch_ = nullptr;           // nullptr: none
  bench::network_wave* wave_ = nullptr;  // nullptr: none
  sim::time_ps begin_ = 0, deadline_ = 0, end_ = 0;
  std::vector<hosts::standstill> standstills_;
  std::map<std::pair<std::size_t, std::string>, unsigned> blocked_;  // looks, by flow and whose queue
  unsigned looks_ = 0;
  bench::utilisation used_before_;
  usage_column usage_;
  nlohmann::json before_, results_;
  bool ok_ = true;
};

void fabric_run::print() const {
  const nlohmann::json& r = results_;
  fmt::print("{} of {} hosts and {} switches, {:.3f} us\n\n", file_.kind, file_.shape.hosts().size(),
             file_.shape.switches().size(), r["network"]["simulated_us"].get<double>());
  print_flows(r["flows"]);
  fmt::print("\nall flows {:.3f} Gb/s", r["goodput_gbps"].get<double>());
  if (r["flows"].size() > 1) fmt::print(", fairness (Jain) {:.4f}", r["fairness"].get<double>());
  fmt::print("\n\n");
  print_ports(r["ports"]);
  constexpr double seldom = 0.1;
  for (const nlohmann::json& b : r["head_of_line_blocking"])
    if (b["part"].get<double>() >= seldom)
      fmt::print("\nhead-of-line blocking: flow {} from {} to {} was stopped {:.0f} % of the time by the queue of {}\n",
                 b["flow"].get<std::string>(), b["from"].get<std::string>(), b["to"].get<std::string>(),
                 100 * b["part"].get<double>(), b["behind"].get<std::string>());
  print_deadlocks(standstills_, begin_);
  print_busiest(usage_);
  if (r.contains("trace")) print_trace(r["trace"]);
  if (r.contains("wave")) print_wave(r["wave"]);
}

}  // namespace

int run_fabric(const fabric_options& options) {
  if (options.print) {
    fmt::print("{}", fabric_text(options.file));
    return 0;
  }
  check_writable(options.common, options.common.json_file);
  check_writable(options.common, options.common.pcap_file);
  const fabric_file file = load_fabric_file(options.file);
  std::vector<std::string> names;
  for (const bench::flow_config& f : file.flows) names.push_back(f.name);
  check_trace(options.common, options.trace, names);
  fabric_run run(options, file);
  std::string effective;
  run.run(&effective);
  run.print();
  if (!options.common.json_file.empty()) {
    nlohmann::json result = run_header("fabric", options.common);
    result["seed"] = seed_of(options.common, file);
    result.update(run.results());
    result["parameters"] = effective;
    write_json(options.common.json_file, result);
  }
  return run.ok() ? 0 : 1;
}

}  // namespace rnic::program
