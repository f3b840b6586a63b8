// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/fabric/network_setup.h"

#include <algorithm>

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

void capture_at(hosts::network_config& c, const std::string& host) {
  if (host.empty()) return;
  const auto& names = c.shape.hosts();
  const auto at = std::find(names.begin(), names.end(), host);
  if (at == names.end()) throw usage_error("--pcap-at: there is no host " + host);
  c.capture_one = true;
  c.capture_at = static_cast<unsigned>(at - names.begin());
}

}  // namespace rnic::program
