// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/topology.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "model/sim/check.h"

namespace rnic::fabric {

unsigned topology::add_host(const std::string& name) {
  expect_new(name);
  hosts_.push_back(name);
  return static_cast<unsigned>(hosts_.size() - 1);
}

unsigned topology::add_switch(const std::string& name) {
  expect_new(name);
  switches_.push_back(name);
  ports_.push_back(0);
  return static_cast<unsigned>(switches_.size() - 1);
}

namespace {
void expect(bool holds, const std::string& what) {
  if (!holds) throw sim::config_error("topology: " + what);
}
std::string numbered(const char* what, unsigned number, std::size_t there_are) {
  return what + (" " + std::to_string(number)) + ": there are " + std::to_string(there_are) + ", numbered from 0";
}
}  // namespace

void topology::expect_new(const std::string& name) const {
  for (const std::vector<std::string>* names : {&hosts_, &switches_})
    expect(std::find(names->begin(), names->end(), name) == names->end(), "there are two " + name);
}

void topology::expect_free(unsigned host, unsigned port) const {
  expect(host < hosts_.size(), numbered("host", host, hosts_.size()));
  expect(port == 1 || port == 2, hosts_[host] + ": port " + std::to_string(port) + ": expected 1 or 2");
  expect((cabled(host) >> (port - 1) & 1) == 0,
         hosts_[host] + ": port " + std::to_string(port) + " has a cable already");
}

void topology::expect_switch(unsigned number) const {
  expect(number < switches_.size(), numbered("switch", number, switches_.size()));
}

void topology::join_host(unsigned host, unsigned port, unsigned to_switch, const cable_kind& cable) {
  expect_free(host, port);
  expect_switch(to_switch);
  links_.push_back({{{{false, host, port}, {true, to_switch, ports_[to_switch]++}}}, cable.metres, cable.rate_mbps});
}

void topology::join_hosts(unsigned a, unsigned b, unsigned port, const cable_kind& cable) {
  expect_free(a, port);
  expect_free(b, port);
  expect(a != b, hosts_[a] + ": a cable has two ends");
  links_.push_back({{{{false, a, port}, {false, b, port}}}, cable.metres, cable.rate_mbps});
}

void topology::join_switches(unsigned a, unsigned b, const cable_kind& cable) {
  expect_switch(a);
  expect_switch(b);
  const unsigned port_a = ports_[a]++, port_b = ports_[b]++;
  links_.push_back({{{{true, a, port_a}, {true, b, port_b}}}, cable.metres, cable.rate_mbps});
}

unsigned topology::cabled(unsigned host) const {
  unsigned mask = 0;
  for (const network_link& w : links_)
    for (const plug_place& e : w.ends)
      if (!e.is_switch && e.number == host) mask |= 1u << (e.port - 1);
  return mask;
}

plug_place topology::other_end(bool of_switch, unsigned number, unsigned port) const {
  for (const network_link& w : links_)
    for (unsigned i = 0; i < 2; ++i) {
      const plug_place& e = w.ends[i];
      if (e.is_switch == of_switch && e.number == number && e.port == port) return w.ends[1 - i];
    }
  RNIC_ASSERT(false, "no cable at port " + std::to_string(port));
  return {};
}

bool topology::is_tree() const {
  std::vector<unsigned> group(switches_.size());
  for (unsigned s = 0; s < group.size(); ++s) group[s] = s;
  for (const network_link& w : links_) {
    if (!w.ends[0].is_switch || !w.ends[1].is_switch) continue;
    const unsigned one = group[w.ends[0].number], other = group[w.ends[1].number];
    if (one == other) return false;
    std::replace(group.begin(), group.end(), other, one);
  }
  return true;
}

plug_place topology::beyond(unsigned of_switch, unsigned port) const { return other_end(true, of_switch, port); }
plug_place topology::beyond_host(unsigned host, unsigned port) const { return other_end(false, host, port); }

std::vector<std::vector<unsigned>> topology::ways_to(unsigned host, unsigned port) const {
  std::vector<std::vector<unsigned>> ways(switches_.size());
  for (const network_link& w : links_) {
    if (w.ends[0].is_switch || w.ends[0].number != host || w.ends[0].port != port || !w.ends[1].is_switch) continue;
    const plug_place& last = w.ends[1];
    if (clockwise_) return clockwise_to(last.number, last.port);
    constexpr unsigned far = std::numeric_limits<unsigned>::max();
    std::vector<unsigned> hops(switches_.size(), far);
    hops[last.number] = 0;
    ways[last.number] = {last.port};
    std::deque<unsigned> open{last.number};
    while (!open.empty()) {
      const unsigned s = open.front();
      open.pop_front();
      for (unsigned p = 0; p < ports_[s]; ++p) {
        const plug_place from = beyond(s, p);
        if (!from.is_switch || hops[from.number] < hops[s] + 1) continue;
        if (hops[from.number] == far) {
          hops[from.number] = hops[s] + 1;
          open.push_back(from.number);
        }
        ways[from.number].push_back(from.port);
      }
    }
    for (auto& equal : ways) std::sort(equal.begin(), equal.end());
    return ways;
  }
  return ways;
}

std::vector<std::vector<unsigned>> topology::clockwise_to(unsigned last_switch, unsigned last_port) const {
  std::vector<std::vector<unsigned>> ways(switches_.size());
  for (unsigned s = 0; s < ways.size(); ++s)
    for (unsigned p = 0; p < ports_[s] && s != last_switch; ++p) {
      const plug_place next = beyond(s, p);
      if (next.is_switch && next.number == (s + 1) % ways.size()) {
        ways[s] = {p};
        break;
      }
    }
  ways[last_switch] = {last_port};
  return ways;
}

namespace {
void add_hosts(topology& t, unsigned count, unsigned at, const cable_kind& edge) {
  for (unsigned i = 0; i < count; ++i) t.join_host(t.add_host("h" + std::to_string(t.hosts().size() + 1)), 1, at, edge);
}
}  // namespace

topology make_pair(unsigned ports, const cable_kind& edge) {
  topology t;
  const unsigned a = t.add_host("h1"), b = t.add_host("h2");
  for (unsigned port = 1; port <= ports; ++port) t.join_hosts(a, b, port, edge);
  return t;
}

topology make_star(unsigned hosts, const cable_kind& edge) {
  topology t;
  add_hosts(t, hosts, t.add_switch("s1"), edge);
  return t;
}

topology make_dumbbell(unsigned left, unsigned right, const cable_kind& edge, const cable_kind& trunk) {
  topology t;
  const unsigned l = t.add_switch("left"), r = t.add_switch("right");
  add_hosts(t, left, l, edge);
  add_hosts(t, right, r, edge);
  t.join_switches(l, r, trunk);
  return t;
}

topology make_leaf_spine(unsigned leaves, unsigned spines, unsigned hosts_of_leaf, const cable_kind& edge,
                         const cable_kind& trunk, unsigned ports) {
  topology t;
  for (unsigned i = 1; i <= leaves; ++i) t.add_switch("leaf" + std::to_string(i));
  for (unsigned i = 1; i <= spines; ++i) t.add_switch("spine" + std::to_string(i));
  for (unsigned i = 0; i < leaves; ++i) add_hosts(t, hosts_of_leaf, i, edge);
  for (unsigned h = 0; ports == 2 && h < t.hosts().size(); ++h)
    t.join_host(h, 2, (h / hosts_of_leaf + 1) % leaves, edge);
  for (unsigned i = 0; i < leaves; ++i)
    for (unsigned k = 0; k < spines; ++k) t.join_switches(i, leaves + k, trunk);
  return t;
}

topology make_ring(unsigned switches, unsigned hosts_of_switch, const cable_kind& edge, const cable_kind& trunk) {
  topology t;
  for (unsigned i = 1; i <= switches; ++i) t.add_switch("s" + std::to_string(i));
  for (unsigned i = 0; i < switches; ++i) add_hosts(t, hosts_of_switch, i, edge);
  for (unsigned i = 0; i < switches; ++i) t.join_switches(i, (i + 1) % switches, trunk);
  return t;
}

}  // namespace rnic::fabric
