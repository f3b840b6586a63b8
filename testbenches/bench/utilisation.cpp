// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/utilisation.h"

#include <algorithm>
#include <cmath>

#include "host_driver/hosts/two_nodes.h"
#include "model/sim/memory.h"
#include "model/sim/server.h"

namespace rnic::bench {

namespace {

struct counter {
  const char* name;
  const char* statistic;  // picoseconds in use
};

constexpr std::array<counter, 6> counted{{
    {"PCIe, adapter a to host", "a.adapter.pcie.link.busy_ps"},
    {"PCIe, host a to adapter", "a.root_complex.link.busy_ps"},
    {"PCIe, adapter b to host", "b.adapter.pcie.link.busy_ps"},
    {"PCIe, host b to adapter", "b.root_complex.link.busy_ps"},
    {"processor a", "a_bus.busy_ps"},
    {"processor b", "b_bus.busy_ps"},
}};
constexpr std::uint64_t wire_overhead_bytes = 20;  // preamble and gap (IEEE 802.3, 4.2.3.2 and 4.4.2)

std::uint64_t wire_ps(hosts::node& n, std::uint32_t rate_mbps) {
  const mac::port::counters& c = n.nic().port(0).count();
  return (c.tx_bytes + wire_overhead_bytes * c.tx_frames) * 8'000'000 / rate_mbps;
}

/// "send_engine" in words, "parser1" as "parser 1".
std::string spaced(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool number = c >= '0' && c <= '9' && !text.empty() && text.back() > '9';
    if (number) text += ' ';
    text += c == '_' || c == '.' ? ' ' : c;
  }
  return text;
}

/// "a.adapter.responder.check" is "responder check of adapter a".
std::string words(const std::string& path) {
  const std::size_t first = path.find('.'), block = path.find('.', first + 1) + 1;
  return spaced(path.substr(block)) + " of adapter " + path.substr(0, first);
}

void add_counted(utilisation& u, const sim::clock_domain& clock) {
  const auto ps = [&](std::uint64_t cycles) { return clock.edge_time(cycles) - clock.edge_time(0); };
  for (const sim::server* s : clock.servers()) {
    u.resources.push_back({words(s->name()), ps(s->busy_cycles())});
    for (const sim::server::hold_up& h : s->blocked_cycles())
      u.resources.back().blocked_ps.emplace_back(h.by, ps(h.cycles));
  }
  for (const sim::memory_ports* m : clock.memories()) {
    u.resources.push_back({words(m->name()), ps(m->busy_cycles()), {}, true});
    for (const sim::memory_ports::counted& user : m->users())
      u.resources.back().blocked_ps.emplace_back(spaced(user.name), ps(user.waits));
  }
}

/// In steps of 0.0001: the programs of both hosts measure at one instant, and which of them goes on first is the
/// kernel's choice.
double part_of(std::uint64_t ps, sim::time_ps elapsed) {
  return elapsed == 0 ? 0 : std::round(static_cast<double>(ps) / static_cast<double>(elapsed) * 1e4) / 1e4;
}

std::vector<std::pair<std::string, double>> blocked_between(const utilisation::resource& before,
                                                            const utilisation::resource& after, sim::time_ps elapsed) {
  std::vector<std::pair<std::string, double>> all;
  for (std::size_t i = 0; i < after.blocked_ps.size(); ++i) {  // in the order in which they first occurred
    const std::uint64_t earlier = i < before.blocked_ps.size() ? before.blocked_ps[i].second : 0;
    const double part = part_of(after.blocked_ps[i].second - earlier, elapsed);
    if (part != 0) all.emplace_back(after.blocked_ps[i].first, part);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  return all;
}

}  // namespace

utilisation measure_utilisation(hosts::two_nodes& system) {
  utilisation u;
  u.at = system.now_ps();
  const adapter::config& nic = system.config().node.adapter;
  u.resources.push_back({"wire, a to b", wire_ps(system.node_a(), nic.port.rate_mbps)});
  u.resources.push_back({"wire, b to a", wire_ps(system.node_b(), nic.port.rate_mbps)});
  for (const counter& c : counted) u.resources.push_back({c.name, system.statistics().value(c.statistic)});
  for (hosts::node* n : {&system.node_a(), &system.node_b()})
    for (const sim::clock_domain* clock : n->nic().clocks()) add_counted(u, *clock);
  const auto units = [&](hosts::node& n, const char* counter) {
    return n.nic().clock().edge_time(system.statistics().value(counter)) - n.nic().clock().edge_time(0);
  };
  u.units_ps[0] = units(system.node_a(), "a.adapter.requester.unit_busy_cycles");
  u.units_ps[1] = units(system.node_b(), "b.adapter.requester.unit_busy_cycles");
  return u;
}

std::vector<share> shares_between(const utilisation& before, const utilisation& after) {
  std::vector<share> shares;
  const sim::time_ps elapsed = after.at - before.at;
  for (std::size_t i = 0; i < after.resources.size(); ++i)
    shares.push_back({after.resources[i].name,
                      part_of(after.resources[i].busy_ps - before.resources[i].busy_ps, elapsed),
                      blocked_between(before.resources[i], after.resources[i], elapsed), after.resources[i].memory});
  std::stable_sort(shares.begin(), shares.end(), [](const share& x, const share& y) { return x.busy > y.busy; });
  return shares;
}

std::string limited_by(hosts::two_nodes& system, const utilisation& before, const utilisation& after, unsigned qps) {
  constexpr double saturated = 0.92;
  const share busiest = shares_between(before, after).front();
  if (busiest.busy >= saturated) return busiest.name;
  const auto elapsed = static_cast<double>(after.at - before.at);
  const unsigned units = std::min<unsigned>(qps, system.config().node.adapter.requester.processing_units);
  for (unsigned i = 0; i < 2; ++i)
    if (static_cast<double>(after.units_ps[i] - before.units_ps[i]) >= saturated * elapsed * units)
      return i == 0 ? "processing units of adapter a" : "processing units of adapter b";
  return "window (depth and latency)";
}

}  // namespace rnic::bench
