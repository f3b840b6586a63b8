// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/measure/measured_system.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "host_driver/hosts/huge_pages.h"
#include "testbenches/rnic/fabric/network_results.h"
#include "testbenches/rnic/fabric/network_setup.h"
#include "testbenches/rnic/measure/bonds.h"
#include "testbenches/rnic/measure/network_ways.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

measured_system::measured_system(const options& o, const demand& d, const measured_network* network,
                                 std::string* effective)
    : asked_(network), trace_(o.trace) {
  if (network != nullptr)
    make_network(o, d, effective);
  else
    join_cable(o, d, effective);
  for (unsigned side = 0; side < 2; ++side) {
    const std::vector<unsigned>& ports = network != nullptr ? asked_->ports[side] : cable_->config().ports;
    if (pair_->host(side).own_ports(ports).empty())
      throw usage_error(fmt::format("host.function: {} has no port with a cable (--port {}, driver.functions.port1)",
                                    unsigned{pair_->built_from(side).function}, fmt::join(ports, ",")));
  }
}

measured_system::~measured_system() = default;

const trace_options measured_system::no_trace;

void measured_system::look_on(const options& o, const bench::watched_system& system) {
  if (trace_.wave_of.empty())
    for (unsigned side = 0; side < 2; ++side) trace_.wave_of.push_back(pair_->name(side));
  wave_ = wave_of(system, trace_);
  if (!run_watch::is_wanted(o.common, trace_)) return;
  watch_ = std::make_unique<run_watch>(system, trace_, o.messages.empty() ? "latency" : o.messages);
  if (!o.messages.empty()) watch_->follow(o.messages);
}

bench::single_messages* measured_system::follow_singly(const std::vector<std::string>& flows) {
  return watch_ ? watch_->follow_singly(flows) : nullptr;
}

void measured_system::begin_watch() {
  if (watch_) watch_->begin(pair_->now_ps());
  if (wave_) wave_->begin();
}

void measured_system::join_cable(const options& o, const demand& d, std::string* effective) {
  hosts::two_nodes_config c = system_from(o.common, o.traffic, d, effective);
  c.faults = faults_from(o.faults);
  c.fault_seed = o.common.seed;
  cable_ = std::make_unique<hosts::two_nodes>(c);
  pair_ = cable_.get();
  look_on(o, bench::watched(*cable_));
  metres_ = o.traffic.cable_metres;
}

void measured_system::make_network(const options& o, const demand& d, std::string* effective) {
  hosts::network_config c = network_from(o.common, asked_->file, asked_->name, d, effective, &asked_->hosts);
  c.sides = asked_->hosts;
  c.capture_at = asked_->hosts[0];
  c.faults = faults_from(o.faults);
  c.fault_seed = o.common.seed;
  hosts::use_huge_pages(static_cast<unsigned>(c.shape.hosts().size()));
  network_ = std::make_unique<hosts::network>(c);
  if (!o.common.quiet) print_warnings(network_->warnings());
  in_network_ = std::make_unique<hosts::network_pair>(*network_, asked_->ports);
  pair_ = in_network_.get();
  look_on(o, bench::watched(*network_));
  flows_ = std::make_unique<bench::flow_set>(*network_, asked_->file.flows, asked_->file.common, c.middle.seed,
                                             watch_ ? watch_->onlooker() : nullptr);
}

namespace {
/// Nothing but the content tells of such damage.
bool makes_damage_right(const fabric::fault_plan& plan) {
  return std::any_of(plan.rules.begin(), plan.rules.end(), [](const fabric::fault_rule& r) {
    return r.action == fabric::fault_action::corrupt && r.right == fabric::made_right::icrc;
  });
}
}  // namespace

void measured_system::run(const std::function<void()>& program_a, const std::function<void()>& program_b) {
  try {
    if (cable_) return cable_->run(program_a, program_b);
    network_->run([&](unsigned host) { program(host, {program_a, program_b}); });
  } catch (const hosts::content_differs& e) {
    if (!makes_damage_right(cable_ ? cable_->config().faults : network_->config().faults)) throw;
    throw hosts::message_failed(std::string(e.what()) + ": --faults damages frames and makes their ICRC right");
  }
}

void measured_system::program(unsigned host, const std::array<std::function<void()>, 2>& programs) {
  flows_->set_up(host);
  if (host == 0) ready_ = network_->now_ps();
  network_->meet();
  if (host == 0) network_->end_when_stuck({asked_->hosts[0], asked_->hosts[1]});
  flows_->start(host, ready_, ~sim::time_ps{0});
  for (unsigned side = 0; side < 2; ++side) {
    if (asked_->hosts[side] != host) continue;
    network_->wait_until(ready_ + asked_->settle);
    if (side == 0) {
      begin_ = network_->now_ps();
      before_ = statistics_json(network_->statistics());
    }
    programs[side]();
    if (++ended_ != 2) continue;
    end_ = network_->now_ps();
    after_ = statistics_json(network_->statistics());
    flows_->stop();
  }
  flows_->join(host);
}

system_results measured_system::results() {
  system_results r;
  r.faults = nlohmann::json::object();
  const auto add_faults = [&](const fabric::fault_injector* injector, unsigned port) {
    if (injector == nullptr) return;
    if (r.faults.empty())
      r.faults = faults_json(*injector, pair_->now_ps());
    else
      r.faults["port" + std::to_string(port)] = faults_json(*injector, pair_->now_ps());
  };
  if (cable_)
    for (std::size_t i = 0; i < cable_->cables(); ++i) add_faults(cable_->faults(i), cable_->config().ports[i]);
  else
    for (const auto& c : network_->fault_cables()) add_faults(c->faults(), c->port());
  if (watch_) r.trace = watch_->finish();
  if (wave_) r.wave = wave_json(trace_, *wave_);
  r.bonds = bonds_json(*pair_);
  r.statistics = statistics_json(pair_->statistics());
  r.use = use_json(*pair_);
  if (cable_) {
    r.between = fmt::format("{} m of cable", metres_);
  } else {
    const std::vector<std::string>& names = asked_->file.shape.hosts();
    r.between = fmt::format("{} to {} in {}", names[asked_->hosts[0]], names[asked_->hosts[1]], asked_->name);
    r.network = network_json();
  }
  return r;
}

nlohmann::json measured_system::network_json() {
  const fabric::topology& shape = asked_->file.shape;
  nlohmann::json j = {{"topology", asked_->name},
                      {"kind", asked_->file.kind},
                      {"between", {shape.hosts()[asked_->hosts[0]], shape.hosts()[asked_->hosts[1]]}},
                      {"ways", nlohmann::json::array()}};
  for (std::size_t i = 0; i < asked_->ports[0].size(); ++i)
    for (unsigned from = 0; from < 2; ++from)
      j["ways"].push_back(way_json(shape, {asked_->hosts[from], asked_->ports[from][i]},
                                   {asked_->hosts[1 - from], asked_->ports[1 - from][i]}));
  j["measured_us"] = to_us(end_ - begin_);
  j["flows"] = flows_json(*flows_, shape, ready_, end_);
  j["ports"] = ports_json(*network_, increase(before_, after_), end_ - begin_);
  return j;
}

void print_way(const system_results& results) {
  if (results.network.empty()) return;
  for (const nlohmann::json& way : results.network["ways"]) fmt::print("    {}\n", way_text(way));
}

void print_system(const system_results& results) {
  print_bonds(results.bonds);
  print_faults(results.faults, "");
  for (const auto& [name, value] : results.faults.items())
    if (name.rfind("port", 0) == 0) print_faults(value, "port " + name.substr(4));
  if (!results.trace.empty()) print_trace(results.trace);
  if (!results.wave.empty()) print_wave(results.wave);
  if (results.network.empty()) return;
  const nlohmann::json& n = results.network;
  if (!n["flows"].empty()) {
    fmt::print("\nbeside them\n");
    print_flows(n["flows"]);
  }
  nlohmann::json used = nlohmann::json::array();  // the results have all of them
  for (const nlohmann::json& p : n["ports"])
    if (p["tx_gbps"].get<double>() > 0 || p["tx_pause"].get<std::uint64_t>() != 0 || dropped_at(p) != 0)
      used.push_back(p);
  fmt::print("\n");
  print_ports(used);
}

void add_to(nlohmann::json& result, const system_results& results) {
  if (!results.faults.empty()) result["faults"] = results.faults;
  if (!results.bonds.empty()) result["bonds"] = results.bonds;
  result["statistics"] = results.statistics;
  result["use"] = results.use;
  if (!results.network.empty()) result["network"] = results.network;
  if (!results.trace.empty()) result["trace"] = results.trace;
  if (!results.wave.empty()) result["wave"] = results.wave;
}

}  // namespace rnic::program
