// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/measure/network_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/sim/check.h"

namespace rnic::program {

namespace {

const fabric::network_link& link_at(const fabric::topology& shape, bool of_switch, unsigned number, unsigned port) {
  for (const fabric::network_link& l : shape.links())
    for (const fabric::plug_place& e : l.ends)
      if (e.is_switch == of_switch && e.number == number && e.port == port) return l;
  RNIC_ASSERT(false, "no cable at port " + std::to_string(port));
  return shape.links().front();
}

nlohmann::json hop(const fabric::topology& shape, const std::string& from, const fabric::plug_place& next,
                   const fabric::network_link& l) {
  return {{"from", from},
          {"to", (next.is_switch ? shape.switches() : shape.hosts())[next.number]},
          {"metres", l.metres},
          {"rate_mbps", l.rate_mbps}};
}

}  // namespace

bool leads(const fabric::topology& shape, host_port from, host_port to) {
  return !shape.ways_to(to.host, to.port)[shape.beyond_host(from.host, from.port).number].empty();
}

nlohmann::json way_json(const fabric::topology& shape, host_port from, host_port to) {
  const auto ways = shape.ways_to(to.host, to.port);
  const fabric::plug_place first = shape.beyond_host(from.host, from.port);
  nlohmann::json hops = nlohmann::json::array();
  hops.push_back({hop(shape, shape.hosts()[from.host], first, link_at(shape, false, from.host, from.port))});
  // All shortest ways have the same number of hops, so the switches of one are followed by those of the next.
  std::vector<unsigned> at{first.number};
  while (!at.empty()) {
    std::vector<unsigned> next;
    nlohmann::json step = nlohmann::json::array();
    for (const unsigned s : at)
      for (const unsigned out : ways[s]) {
        const fabric::plug_place behind = shape.beyond(s, out);
        step.push_back(hop(shape, shape.switches()[s], behind, link_at(shape, true, s, out)));
        if (behind.is_switch && std::find(next.begin(), next.end(), behind.number) == next.end())
          next.push_back(behind.number);
      }
    hops.push_back(step);
    at = next;
  }
  return {{"from", shape.hosts()[from.host]},
          {"to", shape.hosts()[to.host]},
          {"cables", hops.size()},
          {"switches", hops.size() - 1},
          {"hops", hops}};
}

std::string way_text(const nlohmann::json& way) {
  std::string text = way["from"].get<std::string>();
  for (const nlohmann::json& step : way["hops"]) {
    std::vector<std::string> to, how;
    const auto note = [](std::vector<std::string>& names, const std::string& name) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const nlohmann::json& cable : step) {
      note(to, cable["to"].get<std::string>());
      note(how,
           fmt::format("{} m, {:g} Gb/s", cable["metres"].get<unsigned>(), cable["rate_mbps"].get<double>() / 1000));
    }
    text += fmt::format(" - {} - {}", fmt::join(how, " or "), fmt::join(to, " or "));
  }
  return text;
}

}  // namespace rnic::program
