// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/measure/bonds.h"

#include <fmt/format.h>

namespace rnic::program {

namespace {

constexpr double ps_per_us = 1e6;

nlohmann::json to_json(const host_driver::bond& b, hosts::node& n) {
  nlohmann::json out{{"mode", host_driver::to_string(b.settings().bond)}, {"changes", nlohmann::json::array()}};
  for (unsigned p = 0; p < n.nic().num_ports(); ++p) out["frames_sent"].push_back(n.nic().port(p).count().tx_frames);
  for (const host_driver::bond::change& c : b.changes())
    out["changes"].push_back({{"links", c.links},
                              {"map", {c.map[0], c.map[1]}},
                              {"seen_us", static_cast<double>(c.seen_ps) / ps_per_us},
                              {"done_us", static_cast<double>(c.done_ps) / ps_per_us}});
  return out;
}

std::string link_names(unsigned links) {
  return links == 3 ? "ports 1 and 2" : links == 1 ? "port 1" : links == 2 ? "port 2" : "no port";
}

}  // namespace

nlohmann::json bonds_json(hosts::pair_if& system) {
  nlohmann::json out = nlohmann::json::object();
  hosts::node* const nodes[] = {&system.node_a(), &system.node_b()};
  for (std::size_t side = 0; side < 2; ++side)
    if (nodes[side]->bond() != nullptr) out[side == 0 ? "a" : "b"] = to_json(*nodes[side]->bond(), *nodes[side]);
  return out;
}

void print_bonds(const nlohmann::json& bonds) {
  for (const auto& [side, b] : bonds.items()) {
    fmt::print("\nhost {}: {}, frames by port {} and {}\n", side, b["mode"].get<std::string>(),
               b["frames_sent"][0].get<std::uint64_t>(), b["frames_sent"][1].get<std::uint64_t>());
    for (std::size_t i = 1; i < b["changes"].size(); ++i) {
      const nlohmann::json& c = b["changes"][i];
      fmt::print("    {:.3f} us  link on {}; {:.3f} us later the virtual ports are ports {} and {}\n",
                 c["seen_us"].get<double>(), link_names(c["links"].get<unsigned>()),
                 c["done_us"].get<double>() - c["seen_us"].get<double>(), c["map"][0].get<unsigned>(),
                 c["map"][1].get<unsigned>());
    }
  }
}

}  // namespace rnic::program
