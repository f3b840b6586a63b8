// SPDX-License-Identifier: Apache-2.0
// --topology and what belongs to it, from the command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "testbenches/rnic/measure/measured_system.h"
#include "testbenches/rnic/measure/network_ways.h"

namespace rnic::program {

namespace {

bool is_given(const traffic_options& t, const char* option) {
  return std::find(t.given.begin(), t.given.end(), option) != t.given.end();
}

/// Options of a cable without a network, and the other way round.
void check_together(const traffic_options& t) {
  if (t.topology.empty()) {
    for (const char* option : {"--between", "--no-flows", "--settle"})
      if (is_given(t, option)) throw usage_error(std::string(option) + ": only with --topology");
    return;
  }
  for (const auto& [option, field] : {std::pair{"--cable", "metres"}, std::pair{"--rate", "rate_mbps"}})
    if (is_given(t, option))
      throw usage_error(fmt::format("{}: not with --topology, whose file has {} for its cables", option, field));
}

std::array<unsigned, 2> hosts_of(const traffic_options& t, const fabric::topology& shape) {
  const std::vector<std::string>& names = shape.hosts();
  if (names.size() < 2)
    throw usage_error(fmt::format("--topology: {}: {} host, expected 2 or more", t.topology, names.size()));
  if (t.between.empty()) return {0, static_cast<unsigned>(names.size() - 1)};
  const auto comma = t.between.find(',');
  if (comma == std::string::npos)
    throw usage_error("--between: " + t.between + ": expected two hosts, as in " + names[0] + "," + names[1]);
  std::array<unsigned, 2> found{};
  for (unsigned side = 0; side < 2; ++side) {
    const std::string name = side == 0 ? t.between.substr(0, comma) : t.between.substr(comma + 1);
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      throw usage_error(fmt::format("--between: there is no host {} in {}, expected two of {}", name, t.topology,
                                    fmt::join(names, ", ")));
    found[side] = static_cast<unsigned>(at - names.begin());
  }
  if (found[0] == found[1]) throw usage_error("--between: " + t.between + ": expected two different hosts");
  return found;
}

/// Those of --port, or of each host the first one with a cable.
std::vector<unsigned> ports_of(const traffic_options& t, const fabric::topology& shape, unsigned host) {
  const unsigned cabled = shape.cabled(host);
  if (!is_given(t, "--port")) return {(cabled & 1) != 0 ? 1u : 2u};
  if (t.ports.size() > 2 || (t.ports.size() == 2 && t.ports[0] == t.ports[1]))
    throw usage_error(fmt::format("--port: {}: expected 1, 2, 1,2 or 2,1", fmt::join(t.ports, ",")));
  for (const unsigned p : t.ports)
    if ((cabled >> (p - 1) & 1) == 0)
      throw usage_error(fmt::format("--port: {}: port {} of {} has no cable in {}, expected {}",
                                    fmt::join(t.ports, ","), p, shape.hosts()[host], t.topology, cabled == 1 ? 1 : 2));
  return t.ports;
}

void take_from_file(traffic_options& t, const hosts::connection_options& common) {
  if (!is_given(t, "--vlan")) t.vlan = common.vlan == host_driver::no_vlan ? 0 : common.vlan;
  if (!is_given(t, "--priority")) {
    t.priority = common.priority;
    if (common.priority_is_given) t.given.emplace_back("--priority");
  }
  if (!is_given(t, "--mtu")) t.mtu = common.mtu;
  if (!is_given(t, "--roce")) t.roce = common.roce == host_driver::roce_types::v1 ? "v1" : "v2";
  if (!is_given(t, "--ip")) t.ip = common.ip;
}

}  // namespace

std::optional<measured_network> network_of(traffic_options& traffic) {
  check_together(traffic);
  if (traffic.topology.empty()) return std::nullopt;
  measured_network n;
  n.name = traffic.topology;
  n.file = load_fabric_file(traffic.topology, flows_in_file::may_be_missing);
  if (traffic.no_flows) n.file.flows.clear();
  n.hosts = hosts_of(traffic, n.file.shape);
  for (unsigned side = 0; side < 2; ++side) n.ports[side] = ports_of(traffic, n.file.shape, n.hosts[side]);
  for (std::size_t i = 0; i < n.ports[0].size(); ++i)
    for (unsigned from = 0; from < 2; ++from) {
      const unsigned to = 1 - from;
      if (!leads(n.file.shape, {n.hosts[from], n.ports[from][i]}, {n.hosts[to], n.ports[to][i]}))
        throw usage_error(fmt::format("--between: no way leads from port {} of {} to port {} of {} in {}",
                                      n.ports[from][i], n.file.shape.hosts()[n.hosts[from]], n.ports[to][i],
                                      n.file.shape.hosts()[n.hosts[to]], traffic.topology));
    }
  n.settle = sim::time_ps{traffic.settle_us} * sim::ps_per_us;
  take_from_file(traffic, n.file.common);
  return n;
}

}  // namespace rnic::program
