// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/fabric/network_setup.h"

#include <algorithm>
#include <tuple>

#include "testbenches/rnic/side_parameters.h"

namespace rnic::program {

namespace {

/// What was set of a port would be without effect; what a profile has, and a file of all parameters, is not meant.
void check_port_rates(const adapter::config& c, const std::string& profile) {
  const adapter::config usual = hosts::make_node_config(profile).adapter;
  for (const auto& [path, is, was] : {std::tuple{"adapter.port.rate_mbps", c.port.rate_mbps, usual.port.rate_mbps},
                                      std::tuple{"adapter.port2.rate_mbps", c.port2.rate_mbps, usual.port2.rate_mbps}})
    if (is != was) throw sim::config_error(std::string(path) + ": " + port_has_rate_of_cable);
}

}  // namespace

std::uint64_t seed_of(const common_options& common, const network_file& file) {
  return common.seed_given ? common.seed : file.seed.value_or(common.seed);
}

hosts::network_config network_from(const common_options& common, const network_file& file, const std::string& name,
                                   const demand& most, std::string* effective, const std::array<unsigned, 2>* sides) {
  hosts::network_config c;
  c.shape = file.shape;
  c.vlans = file.vlans;
  c.settings = file.host_parameters;
  c.node = hosts::make_node_config(common.profile);
  c.middle.seed = seed_of(common, file);
  c.capture = common.pcap_file;
  c.capture_options.overwrite = common.overwrite;
  c.capture_options.fcs = common.pcap_fcs;
  fit(c.node.driver, most);
  sim::parameter_set parameters;
  hosts::announce(parameters, c);
  side_parameters given(parameters, c.node, sides != nullptr ? two_sides : no_sides);
  if (!common.config_file.empty()) given.load_toml(common.config_file);
  given.set(file.parameters, name);
  for (const std::string& a : common.assignments) given.set_assignment(a);
  check_port_rates(c.node.adapter, common.profile);
  force_paths(c.node.driver, common);
  if (effective != nullptr) *effective = given.to_toml();
  if (sides == nullptr) return c;
  for (const hosts::network_config::host_setting& s : given.settings(*sides)) c.settings.push_back(s);
  return c;
}

hosts::network_config network_from(const common_options& common, const fabric_file& file, const std::string& name,
                                   const demand& beside, std::string* effective, const std::array<unsigned, 2>* sides) {
  demand most;
  for (unsigned h = 0; h < file.shape.hosts().size(); ++h) {
    demand d = beside;
    for (const bench::flow_config& f : file.flows) {
      if (f.from != h && f.to != h) continue;
      d.queue_pairs += 2 * f.qps;
      d.depth = std::max<std::uint64_t>(d.depth, f.depth);
      d.bytes += std::uint64_t{f.qps} * (f.size + 4096);
    }
    most = larger_of(most, d);
  }
  return network_from(common, static_cast<const network_file&>(file), name, most, effective, sides);
}

void capture_at(hosts::network_config& c, const std::string& host) {
  if (host.empty()) return;
  const auto& names = c.shape.hosts();
  const auto at = std::find(names.begin(), names.end(), host);
  if (at == names.end()) throw usage_error("--pcap-at: there is no host " + host);
  c.capture_one = true;
  c.capture_at = static_cast<unsigned>(at - names.begin());
}

}  // namespace rnic::program
