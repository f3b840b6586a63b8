// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/fabric/network_setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "testbenches/rnic/fabric/network_waves.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

hosts::network_config network_from(const common_options& common, const network_file& file, const std::string& name,
                                   const demand& most, std::string* effective) {
  hosts::network_config c;
  c.shape = file.shape;
  c.vlans = file.vlans;
  c.settings = file.host_parameters;
  c.node = hosts::make_node_config(common.profile);
  c.middle.seed = file.seed != 0 ? file.seed : common.seed;
  c.capture = common.pcap_file;
  c.capture_options.overwrite = common.overwrite;
  c.capture_options.fcs = common.pcap_fcs;
  fit(c.node.driver, most);
  sim::parameter_set parameters;
  hosts::announce(parameters, c);
  if (!common.config_file.empty()) parameters.load_toml(common.config_file);
  for (const auto& [path, value] : file.parameters) parameters.set(path, value, name);
  for (const std::string& a : common.assignments) parameters.set_assignment(a);
  force_paths(c.node.driver, common);
  if (effective != nullptr) *effective = parameters.to_toml();
  return c;
}

hosts::network_config network_from(const common_options& common, const fabric_file& file, const std::string& name,
                                   const demand& beside, std::string* effective) {
  demand most;
  for (unsigned h = 0; h < file.shape.hosts().size(); ++h) {
    demand d = beside;
    for (const bench::flow_config& f : file.flows) {
      if (f.from != h && f.to != h) continue;
      d.queue_pairs += 2 * f.qps;
      d.bytes += std::uint64_t{f.qps} * (f.size + 4096);
    }
    most = {std::max(most.queue_pairs, d.queue_pairs), std::max(most.bytes, d.bytes)};
  }
  return network_from(common, static_cast<const network_file&>(file), name, most, effective);
}

void check_trace(const common_options& common, const trace_options& trace, const std::vector<std::string>& names) {
  if (trace.file.empty() && trace.konata.empty()) {
    if (!trace.flows.empty()) throw usage_error("--flow: needs --trace FILE or --konata FILE");
    if (trace.wave.empty() && (trace.from_us != 0 || trace.until_us != 0))
      throw usage_error("--from, --until: need --trace FILE, --konata FILE or --wave FILE");
  }
  check_wave(common, trace);
  if (trace.until_us != 0 && trace.until_us <= trace.from_us)
    throw usage_error(fmt::format("--until: {} is not above --from {}", trace.until_us, trace.from_us));
  for (const std::string& f : trace.flows)
    if (std::find(names.begin(), names.end(), f) == names.end())
      throw usage_error(fmt::format("--flow: there is no {}, expected one of {}", f, fmt::join(names, ", ")));
  check_writable(common, trace.file);
  check_writable(common, trace.konata);
}

std::unique_ptr<bench::network_trace> trace_of(hosts::network& network, const trace_options& trace,
                                               const std::string& title) {
  if (trace.file.empty() && trace.konata.empty()) return nullptr;
  bench::trace_config c;
  c.file = trace.file;
  c.konata = trace.konata;
  c.title = title;
  c.from = static_cast<sim::time_ps>(std::llround(trace.from_us * sim::ps_per_us));
  if (trace.until_us != 0) c.until = static_cast<sim::time_ps>(std::llround(trace.until_us * sim::ps_per_us));
  c.flows = trace.flows;
  return std::make_unique<bench::network_trace>(network, c);
}

nlohmann::json trace_json(const trace_options& trace, const bench::trace_counts& counts) {
  return {{"file", trace.file},
          {"konata", trace.konata},
          {"messages", counts.messages},
          {"unfinished", counts.unfinished},
          {"not_followed", counts.not_followed},
          {"late_marks", counts.late_marks},
          {"events", counts.events}};
}

void print_trace(const nlohmann::json& trace) {
  fmt::print("\ntrace: {} messages ({} without a completion, {} not followed)", trace["messages"].get<std::uint64_t>(),
             trace["unfinished"].get<std::uint64_t>(), trace["not_followed"].get<std::uint64_t>());
  for (const char* file : {"file", "konata"})
    if (!trace[file].get<std::string>().empty()) fmt::print(" in {}", trace[file].get<std::string>());
  fmt::print("\n");
}

void capture_at(hosts::network_config& c, const std::string& host) {
  if (host.empty()) return;
  const auto& names = c.shape.hosts();
  const auto at = std::find(names.begin(), names.end(), host);
  if (at == names.end()) throw usage_error("--pcap-at: there is no host " + host);
  c.capture_at = static_cast<unsigned>(at - names.begin());
}

}  // namespace rnic::program
