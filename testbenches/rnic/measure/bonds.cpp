// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/measure/bonds.h"

#include <fmt/format.h>

namespace rnic::program {

namespace {

constexpr double ps_per_us = 1e6;

std::string text_of(const host_driver::mac_address& mac) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

nlohmann::json to_json(const wire::lacp_end& e) {
  return {{"system", text_of(e.system)},
          {"system_priority", e.system_priority},
          {"key", e.key},
          {"port", e.port},
          {"port_priority", e.port_priority},
          {"state", e.state}};
}

nlohmann::json to_json(const host_driver::lacp::churn_machine& m) {
  return {{"state", host_driver::lacp::to_string(m.is())}, {"times", m.churned()}};
}

nlohmann::json to_json(const host_driver::lacp::lacp_agent& agent, unsigned port) {
  const auto& m = agent.port(port);
  const auto& c = agent.count(port);
  return {{"receive", host_driver::lacp::to_string(m.receiving())},
          {"mux", host_driver::lacp::to_string(m.mux())},
          {"actor", to_json(m.actor())},
          {"partner", to_json(m.partner())},
          {"actor_churn", to_json(m.actor_churn())},
          {"partner_churn", to_json(m.partner_churn())},
          {"lacpdus_in", c.lacpdus_in},
          {"lacpdus_out", c.lacpdus_out},
          {"markers_in", c.markers_in},
          {"unknown_in", c.unknown_in},
          {"illegal_in", c.illegal_in}};
}

std::string link_names(unsigned links) {
  return links == 3 ? "ports 1 and 2" : links == 1 ? "port 1" : links == 2 ? "port 2" : "no port";
}

}  // namespace

nlohmann::json bond_json(const host_driver::bond& b) {
  nlohmann::json out{{"mode", host_driver::to_string(b.settings().bond)}, {"changes", nlohmann::json::array()}};
  for (const host_driver::bond::change& c : b.changes())
    out["changes"].push_back({{"links", c.links},
                              {"active", c.active},
                              {"map", {c.map[0], c.map[1]}},
                              {"seen_us", static_cast<double>(c.seen_ps) / ps_per_us},
                              {"done_us", static_cast<double>(c.done_ps) / ps_per_us}});
  if (const auto* lacp = b.lacp(); lacp != nullptr)
    for (unsigned p = 1; p <= 2; ++p) out["lacp"].push_back(to_json(lacp->agent(), p));
  return out;
}

std::string bond_text(const host_driver::bond& b) {
  const unsigned active = b.changes().empty() ? 0 : b.changes().back().active;
  std::string churned;
  using state = host_driver::lacp::churn_machine::state;
  for (unsigned p = 1; b.lacp() != nullptr && p <= 2; ++p) {
    const host_driver::lacp::lacp_port& m = b.lacp()->agent().port(p);
    if (m.actor_churn().is() == state::churn || m.partner_churn().is() == state::churn)
      churned += fmt::format("; port {} churns ({})", p,
                             m.partner_churn().is() != state::churn ? "this end"
                             : m.actor_churn().is() != state::churn ? "the partner"
                                                                    : "both ends");
  }
  return fmt::format("bond: {}, {} {} active{}", host_driver::to_string(b.settings().bond), link_names(active),
                     active == 3 ? "are" : "is", churned);
}

nlohmann::json bonds_json(hosts::pair_if& system) {
  nlohmann::json out = nlohmann::json::object();
  hosts::node* const nodes[] = {&system.node_a(), &system.node_b()};
  for (std::size_t side = 0; side < 2; ++side) {
    hosts::node& n = *nodes[side];
    if (n.bond() == nullptr) continue;
    nlohmann::json& of = out[side == 0 ? "a" : "b"] = bond_json(*n.bond());
    for (unsigned p = 0; p < n.nic().num_ports(); ++p)
      of["frames_sent"].push_back(system.statistics().value(std::string(n.nic().port(p).name()) + ".tx_frames"));
  }
  return out;
}

void print_bonds(const nlohmann::json& bonds) {
  for (const auto& [side, b] : bonds.items()) {
    fmt::print("\nhost {}: {}, frames by port {} and {}\n", side, b["mode"].get<std::string>(),
               b["frames_sent"][0].get<std::uint64_t>(), b["frames_sent"][1].get<std::uint64_t>());
    const bool has_lacp = b.contains("lacp");
    for (std::size_t i = 1; i < b["changes"].size(); ++i) {
      const nlohmann::json& c = b["changes"][i];
      fmt::print("    {:.3f} us  link on {}; {}{:.3f} us later the virtual ports are ports {} and {}\n",
                 c["seen_us"].get<double>(), link_names(c["links"].get<unsigned>()),
                 has_lacp ? "LACP distributes to " + link_names(c["active"].get<unsigned>()) + "; " : "",
                 c["done_us"].get<double>() - c["seen_us"].get<double>(), c["map"][0].get<unsigned>(),
                 c["map"][1].get<unsigned>());
    }
  }
}

}  // namespace rnic::program
