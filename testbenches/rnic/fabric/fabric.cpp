// SPDX-License-Identifier: Apache-2.0
// `rnic fabric`: flows between hosts of a network of switches.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "host_driver/hosts/network.h"
#include "testbenches/bench/flow.h"
#include "testbenches/rnic/fabric/fabric_file.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

constexpr sim::time_ps look_interval = 20 * sim::ps_per_us;  // for standstills and progress

class fabric_run {
 public:
  fabric_run(const fabric_options& options, const fabric_file& file) : options_(options), file_(file) {}

  void run(std::string* effective) {
    hosts::network_config config = network_from(effective);
    hosts::network network(config);
    network_ = &network;
    if (!options_.common.quiet) print_warnings(network.warnings());
    std::mt19937_64 random(config.middle.seed);
    for (bench::flow_config f : file_.flows) {
      f.seed = random();
      f.start += random() % (f.spread + 1);
      flows_.push_back(std::make_unique<bench::flow>(network, f));
    }
    progress shown(options_.common, "fabric", file_.duration_us != 0 ? file_.duration_us : messages());
    progress_ = &shown;
    network.run([this](unsigned host) { program(host); });
    keep();
  }

  nlohmann::json results() const { return results_; }
  /// Every flow that was to end has, and none has failed or stands still.
  bool ok() const { return ok_; }
  void print() const;

 private:
  hosts::network_config network_from(std::string* effective) {
    hosts::network_config c;
    c.shape = file_.shape;
    c.vlans = file_.vlans;
    c.node = hosts::make_node_config(options_.common.profile);
    c.middle.seed = file_.seed != 0 ? file_.seed : options_.common.seed;
    c.capture = options_.common.pcap_file;
    c.capture_options.overwrite = options_.common.overwrite;
    c.capture_options.fcs = options_.common.pcap_fcs;
    if (!options_.capture_at.empty()) {
      const auto& names = file_.shape.hosts();
      const auto at = std::find(names.begin(), names.end(), options_.capture_at);
      if (at == names.end()) throw usage_error("--pcap-at: there is no host " + options_.capture_at);
      c.capture_at = static_cast<unsigned>(at - names.begin());
    }
    demand most;
    for (unsigned h = 0; h < c.shape.hosts().size(); ++h) {
      demand d{1, 0};
      for (const bench::flow_config& f : file_.flows) {
        if (f.from != h && f.to != h) continue;
        d.queue_pairs += 2 * f.qps;
        d.bytes += std::uint64_t{f.qps} * (f.size + 4096);
      }
      most = {std::max(most.queue_pairs, d.queue_pairs), std::max(most.bytes, d.bytes)};
    }
    fit(c.node.driver, most);
    sim::parameter_set parameters;
    hosts::announce(parameters, c);
    if (!options_.common.config_file.empty()) parameters.load_toml(options_.common.config_file);
    for (const auto& [path, value] : file_.parameters) parameters.set(path, value, options_.file);
    for (const std::string& a : options_.common.assignments) parameters.set_assignment(a);
    force_paths(c.node.driver, options_.common);
    *effective = parameters.to_toml();
    return c;
  }

  std::uint64_t messages() const {
    std::uint64_t all = 0;
    for (const bench::flow_config& f : file_.flows) all += f.messages;
    return all;
  }

  void program(unsigned host) {
    hosts::set_address(network_->end(host), file_.common, host + 1);
    network_->meet();
    for (auto& f : flows_) f->create(host);
    network_->meet();
    for (auto& f : flows_) f->connect(host);
    network_->meet();
    if (host == 0) {
      begin_ = network_->now_ps();
      deadline_ = file_.duration_us != 0 ? begin_ + file_.duration_us * sim::ps_per_us : ~sim::time_ps{0};
      before_ = counters();
      sending_ = static_cast<unsigned>(flows_.size());
    }
    network_->meet();
    std::vector<sc_core::sc_process_handle> processes;
    const auto spawn = [&](auto what) {
      processes.push_back(sc_core::sc_spawn([this, what] {
        try {
          what();
        } catch (...) {
          if (!failure_) failure_ = std::current_exception();
        }
      }));
    };
    for (auto& f : flows_) {
      if (f->config().to == host && f->receives()) spawn([&f, this] { f->receive(deadline_); });
      if (f->config().from != host) continue;
      spawn([&f, this] {
        f->send(begin_, deadline_);
        --sending_;
      });
    }
    if (host == 0) spawn([this] { watch(); });
    for (sc_core::sc_process_handle& p : processes)
      if (!p.terminated()) sc_core::wait(p.terminated_event());
    if (failure_) std::rethrow_exception(failure_);
    network_->meet();
    if (host == 0) end_ = network_->now_ps();
  }

  void watch() {
    while (sending_ != 0 && !failure_) {
      network_->wait_until(network_->now_ps() + look_interval);
      for (hosts::standstill& s : network_->look_for_standstills()) {
        const auto same = [&](const hosts::standstill& known) { return known.ways == s.ways; };
        if (std::none_of(standstills_.begin(), standstills_.end(), same)) standstills_.push_back(std::move(s));
      }
      ++looks_;
      for (std::size_t i = 0; i < flows_.size(); ++i) {
        const bench::flow_config& c = flows_[i]->config();
        const std::string by = network_->blocked_by(c.from, c.to, c.connection.priority);
        if (!by.empty()) ++blocked_[{i, by}];
      }
      std::uint64_t done = 0;
      for (const auto& f : flows_) done += f->result().completed;
      progress_->at(file_.duration_us != 0 ? (network_->now_ps() - begin_) / sim::ps_per_us : done);
    }
  }

  nlohmann::json counters() const {
    nlohmann::json out = nlohmann::json::object();
    for (const auto& [name, counter] : network_->statistics().all()) out[name] = *counter;
    return out;
  }

  void keep() {
    results_["network"] = {{"kind", file_.kind},
                           {"hosts", file_.shape.hosts()},
                           {"switches", file_.shape.switches()},
                           {"simulated_us", to_us(end_ - begin_)}};
    keep_flows();
    keep_switches();
    results_["standstills"] = nlohmann::json::array();
    for (const hosts::standstill& s : standstills_)
      results_["standstills"].push_back(
          {{"ways", s.ways}, {"priority", s.priority}, {"since_us", to_us(s.since - std::min(s.since, begin_))}});
    if (!standstills_.empty()) ok_ = false;
    results_["head_of_line_blocking"] = nlohmann::json::array();
    for (const auto& [where, count] : blocked_)
      results_["head_of_line_blocking"].push_back({{"flow", flows_[where.first]->config().name},
                                                   {"from", file_.shape.hosts()[flows_[where.first]->config().from]},
                                                   {"to", file_.shape.hosts()[flows_[where.first]->config().to]},
                                                   {"behind", where.second},
                                                   {"part", static_cast<double>(count) / looks_}});
    results_["counters"] = increase(before_, counters());
  }

  void keep_flows() {
    results_["flows"] = nlohmann::json::array();
    double sum = 0, squares = 0;
    for (const auto& f : flows_) {
      const bench::flow_config& c = f->config();
      const bench::flow_result& r = f->result();
      // A flow that goes on until the end is measured until then.
      const bool whole = c.messages != 0 && r.completed == c.messages;
      const sim::time_ps until = whole ? r.end : std::min(deadline_, end_);
      const double took = static_cast<double>(until - std::min(until, r.begin));
      const double gbps = took > 0 ? static_cast<double>(r.bytes) * 8e3 / took : 0;
      nlohmann::json j = {{"name", c.name},
                          {"from", file_.shape.hosts()[c.from]},
                          {"to", file_.shape.hosts()[c.to]},
                          {"verb", c.what->name},
                          {"size", c.size},
                          {"posted", r.posted},
                          {"completed", r.completed},
                          {"start_us", to_us(r.begin - begin_)},
                          {"goodput_gbps", gbps}};
      if (whole) j["completion_us"] = to_us(r.end - r.begin);
      if (!r.failure.empty()) j["failure"] = r.failure;
      if (!r.times.empty()) {
        const sample_summary s = summarise(r.times);
        j["message_us"] = {{"min", to_us(s.minimum)},
                           {"typical", to_us(s.typical)},
                           {"average", s.average_ps() / 1e6},
                           {"p99", to_us(s.p99)},
                           {"max", to_us(s.maximum)}};
      }
      if (!r.failure.empty() || (c.messages != 0 && !whole)) ok_ = false;
      sum += gbps;
      squares += gbps * gbps;
      results_["flows"].push_back(j);
    }
    results_["goodput_gbps"] = sum;
    const double n = static_cast<double>(flows_.size());
    results_["fairness"] = squares > 0 ? sum * sum / (n * squares) : 0;  // Jain 1984
  }

  void keep_switches() {
    results_["ports"] = nlohmann::json::array();
    const nlohmann::json now = increase(before_, counters());
    const double took = static_cast<double>(end_ - begin_);
    for (unsigned s = 0; s < network_->switches(); ++s) {
      const std::string& name = file_.shape.switches()[s];
      const fabric::network_switch& sw = network_->middle(s);
      for (unsigned p = 0; p < sw.num_ports(); ++p) {
        const fabric::plug_place to = file_.shape.beyond(s, p);
        const std::string port = name + ".port" + std::to_string(p) + ".";
        const auto of = [&](const char* counter) { return now.value(port + counter, std::uint64_t{0}); };
        nlohmann::json j = {{"switch", name},
                            {"port", p},
                            {"to", (to.is_switch ? file_.shape.switches() : file_.shape.hosts())[to.number]},
                            {"tx_gbps", static_cast<double>(of("tx_bytes")) * 8e3 / took}};
        std::uint32_t most = 0;
        for (unsigned q = 0; q < fabric::priorities; ++q) most = std::max(most, sw.buffer().most_queued(p, q));
        j["most_queued_bytes"] = most;
        for (const char* counter : {"rx_pause", "tx_pause", "marked", "drop_queue", "drop_headroom", "drop_vlan",
                                    "drop_unknown", "drop_fcs", "drop_no_line"})
          j[counter] = of(counter);
        results_["ports"].push_back(j);
      }
    }
  }

  const fabric_options& options_;
  const fabric_file& file_;
  hosts::network* network_ = nullptr;
  progress* progress_ = nullptr;
  std::vector<std::unique_ptr<bench::flow>> flows_;
  sim::time_ps begin_ = 0, deadline_ = 0, end_ = 0;
  unsigned sending_ = 0;
  std::exception_ptr failure_;
  std::vector<hosts::standstill> standstills_;
  std::map<std::pair<std::size_t, std::string>, unsigned> blocked_;  // looks, by flow and whose queue
  unsigned looks_ = 0;
  nlohmann::json before_, results_;
  bool ok_ = true;
};

double us_of(const nlohmann::json& flow, const char* what) {
  return flow.contains("message_us") ? flow["message_us"][what].get<double>() : 0;
}

void fabric_run::print() const {
  const nlohmann::json& r = results_;
  fmt::print("{} of {} hosts and {} switches, {:.3f} us\n\n", file_.kind, file_.shape.hosts().size(),
             file_.shape.switches().size(), r["network"]["simulated_us"].get<double>());
  fmt::print("{:<12} {:<6} {:<6} {:<10} {:>9} {:>10} {:>10} {:>12} {:>9} {:>11} {:>9} {:>9}\n", "flow", "from", "to",
             "verb", "bytes", "completed", "start us", "complete us", "Gb/s", "typical us", "99 %", "max");
  for (const nlohmann::json& f : r["flows"])
    fmt::print("{:<12} {:<6} {:<6} {:<10} {:>9} {:>10} {:>10.3f} {:>12} {:>9.3f} {:>11.3f} {:>9.3f} {:>9.3f}{}\n",
               f["name"].get<std::string>(), f["from"].get<std::string>(), f["to"].get<std::string>(),
               f["verb"].get<std::string>(), f["size"].get<std::uint64_t>(), f["completed"].get<std::uint64_t>(),
               f["start_us"].get<double>(),
               f.contains("completion_us") ? fmt::format("{:.3f}", f["completion_us"].get<double>()) : "-",
               f["goodput_gbps"].get<double>(), us_of(f, "typical"), us_of(f, "p99"), us_of(f, "max"),
               f.contains("failure") ? "  failed: " + f["failure"].get<std::string>() : "");
  fmt::print("\nall flows {:.3f} Gb/s", r["goodput_gbps"].get<double>());
  if (flows_.size() > 1) fmt::print(", fairness (Jain) {:.4f}", r["fairness"].get<double>());
  fmt::print("\n\n{:<10} {:>4} {:<8} {:>9} {:>12} {:>9} {:>9} {:>9} {:>9}\n", "switch", "port", "to", "tx Gb/s",
             "most queued", "pauses rx", "tx", "marked", "dropped");
  for (const nlohmann::json& p : r["ports"]) {
    std::uint64_t dropped = 0;
    for (const auto& [name, value] : p.items())
      if (name.rfind("drop_", 0) == 0) dropped += value.get<std::uint64_t>();
    fmt::print("{:<10} {:>4} {:<8} {:>9.3f} {:>12} {:>9} {:>9} {:>9} {:>9}\n", p["switch"].get<std::string>(),
               p["port"].get<unsigned>(), p["to"].get<std::string>(), p["tx_gbps"].get<double>(),
               p["most_queued_bytes"].get<std::uint64_t>(), p["rx_pause"].get<std::uint64_t>(),
               p["tx_pause"].get<std::uint64_t>(), p["marked"].get<std::uint64_t>(), dropped);
  }
  constexpr double seldom = 0.1;
  for (const nlohmann::json& b : r["head_of_line_blocking"])
    if (b["part"].get<double>() >= seldom)
      fmt::print("\nhead-of-line blocking: flow {} from {} to {} was stopped {:.0f} % of the time by the queue of {}\n",
                 b["flow"].get<std::string>(), b["from"].get<std::string>(), b["to"].get<std::string>(),
                 100 * b["part"].get<double>(), b["behind"].get<std::string>());
  for (const hosts::standstill& s : standstills_)
    fmt::print("\ndeadlock: {} wait for each other in priority {} since {} us\n", fmt::join(s.ways, ", "), s.priority,
               microseconds(s.since - std::min(s.since, begin_)));
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
  fabric_run run(options, file);
  std::string effective;
  run.run(&effective);
  run.print();
  if (!options.common.json_file.empty()) {
    nlohmann::json result = run_header("fabric", options.common);
    result.update(run.results());
    result["parameters"] = effective;
    write_json(options.common.json_file, result);
  }
  return run.ok() ? 0 : 1;
}

}  // namespace rnic::program
