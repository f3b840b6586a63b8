// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/utilisation.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "host_driver/hosts/network.h"
#include "host_driver/hosts/pair_if.h"
#include "model/sim/memory_ports.h"
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

/// <adapter>.<counter>: cycles in which all places were taken, and of what.
struct all_taken {
  const char* counter;
  const char* name;
};
constexpr std::array<all_taken, 7> taken_places{{
    {"requester.contexts.full_cycles", "contexts of adapter "},
    {"responder.contexts.full_cycles", "contexts of adapter "},
    {"responder.histories.full_cycles", "histories of adapter "},
    {"responder.srqs.full_cycles", "contexts of shared receive queues of adapter "},
    {"completion.cq_cache.full_cycles", "contexts of completion queues of adapter "},
    {"pcie.dma.gather.full_cycles", "payload reads of adapter "},
    {"pcie.dma.read_generator.full_cycles", "payload reads of adapter "},
}};

/// Of all priorities of both ports.
std::uint64_t longest_pause(const sim::statistics& statistics, const std::string& adapter) {
  std::uint64_t longest = 0;
  for (unsigned port = 1; port <= 2; ++port)
    for (unsigned p = 0; p < 8; ++p)
      longest = std::max(longest, statistics.value(adapter + ".port" + std::to_string(port) + ".pause.prio" +
                                                   std::to_string(p) + ".rx_duration_ps"));
  return longest;
}

/// What a host has beside engines and memories.
void add_buses(utilisation& u, const sim::statistics& statistics, const std::string& own) {
  const auto add = [&](const std::string& name, const std::string& statistic) {
    u.resources.push_back({name, statistics.value(statistic)});
  };
  add("PCIe, adapter " + own + " to host", own + ".adapter.pcie.link.busy_ps");
  add("PCIe, host " + own + " to adapter", own + ".root_complex.link.busy_ps");
}
/// The root complex writes memory once in a cycle.
void add_memory_writes(utilisation& u, hosts::node& n, const sim::statistics& statistics) {
  const std::string root = n.name() + std::string(".root_complex");
  const std::uint64_t writes = statistics.value(root + ".writes") + statistics.value(root + ".interrupt_messages");
  const sim::clock_domain& clock = n.root().domain();
  u.resources.push_back(
      {"memory writes of host " + std::string(n.name()), clock.edge_time(writes) - clock.edge_time(0)});
}
/// That of the host's own programs, and one of each guest with a virtual function.
void add_processors(utilisation& u, const sim::statistics& statistics, const hosts::node& n) {
  const std::string own = n.name();
  u.resources.push_back({"processor " + own, statistics.value(own + "_bus.busy_ps")});
  for (unsigned f = 1; f <= n.functions(); ++f) {
    const std::string number = std::to_string(f);
    u.resources.push_back(
        {"processor of function " + number + ", " + own, statistics.value(own + "_bus_vf" + number + ".busy_ps")});
  }
}
/// All of them as one: in use for what is theirs, blocked while they wait for contexts or descriptors.
void add_units(utilisation& u, hosts::node& n, const sim::statistics& statistics, unsigned units) {
  const std::string own = n.name();
  const auto part = [&](const char* counter) {
    const std::uint64_t cycles = statistics.value(own + ".adapter.requester." + counter) / units;
    return n.nic().clock().edge_time(cycles) - n.nic().clock().edge_time(0);
  };
  const std::uint64_t in_use = part("unit_busy_cycles"), contexts = part("unit_context_cycles"),
                      descriptors = part("unit_descriptor_cycles");
  u.resources.push_back({processing_units + own,
                         in_use - std::min(in_use, contexts + descriptors),
                         {{"contexts", contexts}, {"descriptors", descriptors}}});
}
void add_adapter(utilisation& u, hosts::node& n, const sim::statistics& statistics, unsigned units) {
  for (const sim::clock_domain* clock : n.nic().clocks()) add_counted(u, *clock);
  add_units(u, n, statistics, units);
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
  const std::string adapter = std::string(n.name()) + ".adapter";
  u.pauses.emplace_back("adapter " + std::string(n.name()), longest_pause(statistics, adapter));
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
  for (hosts::node* n : {&system.node_a(), &system.node_b()}) add_processors(u, system.statistics(), *n);
  for (unsigned side = 0; side < 2; ++side)
    add_adapter(u, side == 0 ? system.node_a() : system.node_b(), system.statistics(),
                system.built_from(side).adapter.requester.processing_units);
  for (hosts::node* n : {&system.node_a(), &system.node_b()}) {
    add_counted(u, n->root().domain());
    add_memory_writes(u, *n, system.statistics());
  }
  for (unsigned side = 0; side < 2; ++side) {
    const sim::clock_domain& clock = (side == 0 ? system.node_a() : system.node_b()).nic().clock();
    const std::string own = system.name(side), peer = system.name(1 - side);
    const auto of = [&](const std::string& counter) {
      return clock.edge_time(system.statistics().value(own + ".adapter." + counter)) - clock.edge_time(0);
    };
    u.units_ps[side] = of("requester.unit_busy_cycles");
    u.unit_contexts_ps[side] = of("requester.unit_context_cycles");
    u.unit_descriptors_ps[side] = of("requester.unit_descriptor_cycles");
    u.wqes[side] = system.statistics().value(own + ".adapter.requester.wqes");
    u.grants[side] = system.statistics().value(own + ".adapter.scheduler.grants");
    u.acks[side] = system.statistics().value(own + ".adapter.responder.acks");
    u.unit_empty_ps[side] = of("requester.unit_empty_cycles");
    for (const all_taken& t : taken_places) u.taken.emplace_back(t.name + own, of(t.counter));
    u.paused_ps[side] = longest_pause(system.statistics(), own + ".adapter");
    for (const char* port : {".adapter.port1", ".adapter.port2"})
      u.dropped[side] += system.statistics().value(own + port + ".drop_overflow");
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
  for (const fabric::network_link& l : shape.links())
    for (unsigned end = 0; end < 2; ++end) {
      const fabric::plug_place &at = l.ends[end], &behind = l.ends[1 - end];
      std::string name = "wire, " + system.name_of(at) + " to " + system.name_of(behind);
      const auto same = [&name](const utilisation::resource& r) { return r.name == name; };
      if (std::any_of(u.resources.begin(), u.resources.end(), same)) name += " at port " + std::to_string(at.port);
      u.resources.push_back({name, hosts::line_busy_ps(system, at, behind)});
    }
  for (unsigned i = 0; i < system.hosts(); ++i) {
    hosts::node& n = system.host(i);
    const std::string own = n.name();
    add_buses(u, system.statistics(), own);
    add_processors(u, system.statistics(), n);
    add_adapter(u, n, system.statistics(), system.built_from(i).adapter.requester.processing_units);
    add_counted(u, n.root().domain());
    add_memory_writes(u, n, system.statistics());
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
    // Frames and operations count when they begin, and the last ones end behind the time.
    shares.push_back({after.resources[i].name,
                      std::min(1.0, part_of(after.resources[i].busy_ps - before.resources[i].busy_ps, elapsed)),
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
    if (part == 0) continue;
    const std::size_t host = i / lacks.size();
    const bool paused = after.pauses[host].second != before.pauses[host].second;
    const bool of_port = lacks[i % lacks.size()].at == whose::neighbours && !paused;
    all.emplace_back(of_port ? "the port of " + after.pauses[host].first : after.standstills[i].first, part);
  }
  return all;
}

}  // namespace

std::vector<std::pair<std::string, double>> standstills_between(const utilisation& before, const utilisation& after) {
  std::vector<std::pair<std::string, double>> all = parts_of_standstills(before, after);
  longest_first(all);
  return all;
}

}  // namespace rnic::bench
