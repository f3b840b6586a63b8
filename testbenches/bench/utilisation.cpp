// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/utilisation.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "host_driver/hosts/network.h"
#include "host_driver/hosts/pair_if.h"
#include "model/sim/memory.h"
#include "model/sim/server.h"

namespace rnic::bench {

namespace {

enum class whose : std::uint8_t { own, peers, neighbours };
/// requester.standstill.<of>_cycles, and what that is a lack of: at the adapter itself, at the peer, or at what is at
/// the other end of its cable.
struct lack {
  const char* of;
  const char* name;
  whose at;
};
/// What waits for a timer holds up what is behind it, which may stand still for another of these: so those are first.
constexpr std::array<lack, 8> lacks{{
    {"timeout", "time-outs of adapter ", whose::own},
    {"receiver", "receivers not ready of host ", whose::peers},
    {"receives", "receives of host ", whose::peers},
    {"rate", "rate limit of adapter ", whose::own},
    {"egress", "pauses of ", whose::neighbours},
    {"reads", "READs under way of adapter ", whose::own},
    {"packets", "packets under way of adapter ", whose::own},
    {"messages", "message table of adapter ", whose::own},
}};

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

/// "a.adapter.responder.check" is "responder check of adapter a", "a.root_complex.iommu.lookup" "iommu lookup of host
/// a".
std::string words(const std::string& path) {
  const std::size_t first = path.find('.'), block = path.find('.', first + 1) + 1;
  const bool adapter = path.compare(first + 1, block - first - 2, "adapter") == 0;
  return spaced(path.substr(block)) + (adapter ? " of adapter " : " of host ") + path.substr(0, first);
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

/// What a host has beside engines and memories.
void add_buses(utilisation& u, const sim::statistics& statistics, const std::string& own) {
  const auto add = [&](const std::string& name, const std::string& statistic) {
    u.resources.push_back({name, statistics.value(statistic)});
  };
  add("PCIe, adapter " + own + " to host", own + ".adapter.pcie.link.busy_ps");
  add("PCIe, host " + own + " to adapter", own + ".root_complex.link.busy_ps");
}
void add_processor(utilisation& u, const sim::statistics& statistics, const std::string& own) {
  u.resources.push_back({"processor " + own, statistics.value(own + "_bus.busy_ps")});
}
void add_adapter(utilisation& u, hosts::node& n) {
  for (const sim::clock_domain* clock : n.nic().clocks()) add_counted(u, *clock);
}

/// `names`: of whose the lacks are, by `whose`.
void add_standstills(utilisation& u, hosts::node& n, const sim::statistics& statistics,
                     const std::array<std::string, 3>& names) {
  const sim::clock_domain& clock = n.nic().clock();
  for (const lack& l : lacks) {
    const std::string counter = std::string(n.name()) + ".adapter.requester.standstill." + l.of + "_cycles";
    u.standstills.emplace_back(l.name + names[static_cast<std::size_t>(l.at)],
                               clock.edge_time(statistics.value(counter)) - clock.edge_time(0));
  }
}

/// In steps of 0.0001: the programs of both hosts measure at one instant, and which of them goes on first is the
/// kernel's choice.
double part_of(std::uint64_t ps, sim::time_ps elapsed) {
  return elapsed == 0 ? 0 : std::round(static_cast<double>(ps) / static_cast<double>(elapsed) * 1e4) / 1e4;
}

void longest_first(std::vector<std::pair<std::string, double>>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
}

std::vector<std::pair<std::string, double>> blocked_between(const utilisation::resource& before,
                                                            const utilisation::resource& after, sim::time_ps elapsed) {
  std::vector<std::pair<std::string, double>> all;
  for (std::size_t i = 0; i < after.blocked_ps.size(); ++i) {  // in the order in which they first occurred
    const std::uint64_t earlier = i < before.blocked_ps.size() ? before.blocked_ps[i].second : 0;
    const double part = part_of(after.blocked_ps[i].second - earlier, elapsed);
    if (part != 0) all.emplace_back(after.blocked_ps[i].first, part);
  }
  longest_first(all);
  return all;
}

}  // namespace

utilisation measure_utilisation(hosts::pair_if& system) {
  utilisation u;
  u.at = system.now_ps();
  for (const hosts::pair_if::line& l : system.lines()) u.resources.push_back({l.name, l.busy_ps});
  for (unsigned side = 0; side < 2; ++side) add_buses(u, system.statistics(), system.name(side));
  for (unsigned side = 0; side < 2; ++side) add_processor(u, system.statistics(), system.name(side));
  for (hosts::node* n : {&system.node_a(), &system.node_b()}) add_adapter(u, *n);
  for (hosts::node* n : {&system.node_a(), &system.node_b()}) add_counted(u, n->root().domain());
  for (unsigned side = 0; side < 2; ++side) {
    const sim::clock_domain& clock = (side == 0 ? system.node_a() : system.node_b()).nic().clock();
    const std::string own = system.name(side), peer = system.name(1 - side);
    const auto of = [&](const std::string& counter) {
      return clock.edge_time(system.statistics().value(own + ".adapter." + counter)) - clock.edge_time(0);
    };
    u.units_ps[side] = of("requester.unit_busy_cycles");
    const auto add_stall = [&](const std::string& engine, const std::string& counter) {
      u.stalls.push_back({engine + " of adapter " + own, "contexts of adapter " + own, of(counter)});
    };
    add_stall("requester send engine", "requester.context_stall_cycles");
    add_stall("read engine turns", "requester.read_stall_cycles");
    add_stall("read engine turns", "responder.read_stall_cycles");
    add_stall("requester read engine turns", "requester.read_stall_cycles");
    add_stall("responder read engine turns", "responder.read_stall_cycles");
    add_standstills(u, side == 0 ? system.node_a() : system.node_b(), system.statistics(),
                    {own, peer, system.neighbour(side)});
  }
  return u;
}

utilisation measure_utilisation(hosts::network& system) {
  utilisation u;
  u.at = system.now_ps();
  const fabric::topology& shape = system.config().shape;
  const auto add_line = [&](const fabric::plug_place& at, const fabric::plug_place& behind, std::uint64_t busy_ps) {
    std::string name = "wire, " + system.name_of(at) + " to " + system.name_of(behind);
    const auto same = [&name](const utilisation::resource& r) { return r.name == name; };
    if (std::any_of(u.resources.begin(), u.resources.end(), same)) name += " at port " + std::to_string(at.port);
    u.resources.push_back({name, busy_ps});
  };
  for (const fabric::network_link& l : shape.links())
    for (unsigned end = 0; end < 2; ++end) {
      const fabric::plug_place &at = l.ends[end], &behind = l.ends[1 - end];
      if (at.is_switch) {
        const fabric::network_switch& s = system.middle(at.number);
        add_line(
            at, behind,
            hosts::line_busy_ps(s.count(at.port).tx_frames, s.count(at.port).tx_bytes, s.config_of(at.port).rate_mbps));
      } else {
        add_line(at, behind,
                 hosts::line_busy_ps(system.host(at.number), at.port,
                                     system.built_from(at.number).adapter.rate_mbps(at.port - 1)));
      }
    }
  for (unsigned i = 0; i < system.hosts(); ++i) {
    hosts::node& n = system.host(i);
    const std::string own = n.name();
    add_buses(u, system.statistics(), own);
    add_processor(u, system.statistics(), own);
    add_adapter(u, n);
    add_counted(u, n.root().domain());
    const fabric::plug_place beyond = shape.beyond_host(i, system.end(i).port);
    add_standstills(
        u, n, system.statistics(),
        {own, "peers of " + own, (beyond.is_switch ? "switch " : "host ") + system.name_of(beyond) + " to " + own});
  }
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

namespace {

/// In the order of `lacks`.
std::vector<std::pair<std::string, double>> parts_of_standstills(const utilisation& before, const utilisation& after) {
  std::vector<std::pair<std::string, double>> all;
  for (std::size_t i = 0; i < after.standstills.size(); ++i) {
    const double part = part_of(after.standstills[i].second - before.standstills[i].second, after.at - before.at);
    if (part != 0) all.emplace_back(after.standstills[i].first, part);
  }
  return all;
}

constexpr double saturated = 0.92, mostly = 0.5;

/// In use, or blocked by that, for all of the time.
bool is_held(const share& s, const char* by) {
  double part = s.busy;
  for (const auto& [name, p] : s.blocked)
    if (name == by) part += p;
  return part >= saturated;
}

/// The first of the standstills that lasted for most of the time, or nothing.
std::string long_standstill(const utilisation& before, const utilisation& after) {
  for (const auto& [name, part] : parts_of_standstills(before, after))
    if (part > mostly) return name;
  return {};
}

}  // namespace

std::vector<std::pair<std::string, double>> standstills_between(const utilisation& before, const utilisation& after) {
  std::vector<std::pair<std::string, double>> all = parts_of_standstills(before, after);
  longest_first(all);
  return all;
}

namespace {

/// "atomic unit engine 3 of adapter b" is one of "atomic unit engine" of adapter b; nothing for what is no engine of
/// several.
std::string group_of(const std::string& resource) {
  const std::size_t engine = resource.find(" engine ");
  const bool numbered = engine != std::string::npos && std::isdigit(static_cast<unsigned char>(resource[engine + 8]));
  return numbered ? resource.substr(0, engine + 8) : std::string();
}
std::string side_of(const std::string& resource) { return resource.substr(resource.rfind(" of ")); }

/// What the busiest of several engines, which take the same work, says of what limits; nothing where there is one that
/// has nothing to do.
std::string limit_of_several(const std::vector<share>& shares, const share& busiest, unsigned qps) {
  double busy = 0;
  unsigned engines = 0;
  bool locked = false;
  for (const share& s : shares) {
    if (group_of(s.name) != group_of(busiest.name) || side_of(s.name) != side_of(busiest.name)) continue;
    busy += s.busy;
    ++engines;
    locked = locked || (s.busy < saturated && is_held(s, "lock"));
  }
  if (busy >= saturated * engines) return busiest.name;
  if (locked) return "atomic unit locks" + side_of(busiest.name);
  return busy >= saturated * qps ? "order of a queue pair's atomics" + side_of(busiest.name) : std::string();
}

/// The name of what was in use for all of the time, or nothing.
std::string saturated_of(const std::vector<share>& shares, unsigned qps) {
  for (const share& s : shares) {
    if (s.busy < saturated) break;
    const std::string name = group_of(s.name).empty() ? s.name : limit_of_several(shares, s, qps);
    if (!name.empty()) return name;
  }
  return {};
}

/// What the engine stood still for in most of the time, or nothing.
std::string long_stall(const utilisation& before, const utilisation& after, const std::string& engine) {
  std::uint64_t ps = 0;
  std::string of;
  for (std::size_t i = 0; i < after.stalls.size(); ++i) {
    if (after.stalls[i].engine != engine) continue;
    ps += after.stalls[i].ps - before.stalls[i].ps;
    of = after.stalls[i].of;
  }
  return part_of(ps, after.at - before.at) > mostly ? of : std::string();
}

}  // namespace

std::string limited_by(hosts::pair_if& system, const utilisation& before, const utilisation& after, unsigned qps) {
  const std::vector<share> shares = shares_between(before, after);
  const sim::time_ps elapsed = after.at - before.at;
  const std::string busiest = saturated_of(shares, qps);
  if (!busiest.empty()) {
    const std::string missing = long_stall(before, after, busiest);
    return missing.empty() ? busiest : missing;
  }
  const unsigned units = std::min<unsigned>(qps, system.built_from(0).adapter.requester.processing_units);
  const std::string still = long_standstill(before, after);
  for (unsigned i = 0; i < 2; ++i) {
    const std::string own = system.name(i), side = "adapter " + own;
    // Nothing for an engine that this configuration has not.
    const auto held = [&](const char* engine, const char* by) {
      const auto at = std::find_if(shares.begin(), shares.end(),
                                   [&](const share& s) { return s.name == std::string(engine) + " of " + side; });
      return at != shares.end() && is_held(*at, by);
    };
    const auto requests_held = [&](const char* by) { return held("pcie interface", by) || held("pcie issue", by); };
    const bool units_in_use = part_of(after.units_ps[i] - before.units_ps[i], elapsed * units) >= saturated;
    const std::string missing = long_stall(before, after, "requester send engine of " + side);
    if (units_in_use && !missing.empty()) return missing;
    if (requests_held("tags")) return "PCIe tags of " + side;
    if (requests_held("credits")) return "PCIe credits of host " + own;
    const bool no_room = held("requester send engine", "egress credits") || still == "pauses of " + system.neighbour(i);
    if (no_room && held("gather leave", "payload")) return "payload reads of " + side;
    if (units_in_use) return "processing units of " + side;
  }
  return still.empty() ? "window (depth and latency)" : still;
}

}  // namespace rnic::bench
