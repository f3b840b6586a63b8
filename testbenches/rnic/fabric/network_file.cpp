// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/fabric/network_file.h"

#include <algorithm>
#include <cctype>

namespace rnic::program {

using section = sim::toml_section;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "" : ", ") + n;
  return text;
}

const toml::table* table_at(const section& s, const char* key) {
  const toml::node* n = s.find(key);
  if (n == nullptr) return nullptr;
  if (!n->is_table()) s.fail(*n, std::string(key) + ": expected a table, [" + key + "]");
  return n->as_table();
}

namespace {

constexpr std::uint64_t most_hosts = 64, most_switches = 64, most_ports = 64, most_metres = 100'000;

unsigned index_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<unsigned>(std::find(names.begin(), names.end(), name) - names.begin());
}

void read_cable(const section& s, const char* metres, const char* rate, fabric::cable_kind& c) {
  s.number(metres, 0, most_metres, c.metres);
  s.number(rate, 1000, 400'000, c.rate_mbps);
}

unsigned count_of(const section& s, const toml::node& at, const char* key, std::uint64_t least, std::uint64_t most) {
  unsigned n = 0;
  if (!s.number(key, least, most, n))
    s.fail(at, std::string(key) + ": is missing, expected " + std::to_string(least) + " to " + std::to_string(most));
  return n;
}

/// Hosts and switches named in the cables' ends: "h1", "h1.2" for port 2; what begins with s is a switch.
void read_cables(const section& file, const std::string& name, fabric::topology& shape) {
  const toml::node* cables = file.find("cable");
  const toml::array* list = cables == nullptr ? nullptr : cables->as_array();
  if (list == nullptr)
    throw sim::config_error(name + ": cable: is missing, expected a list of tables, [[cable]], for kind = \"custom\"");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const toml::node& node = *list->get(i);
    const std::string title = "cable " + std::to_string(i + 1) + ": ";
    if (!node.is_table()) file.fail(node, title + "not a table");
    const section s(name, title, *node.as_table());
    s.allow({"ends", "metres", "rate_mbps"});
    const toml::node* ends = s.find("ends");
    const toml::array* both = ends == nullptr ? nullptr : ends->as_array();
    if (both == nullptr || both->size() != 2 || !both->get(0)->is_string() || !both->get(1)->is_string())
      s.fail(node, "ends: expected two names, as in [\"h1\", \"s1\"]");
    std::string of[2] = {both->get(0)->as_string()->get(), both->get(1)->as_string()->get()};
    const auto check_name = [&](const std::string& n) {
      const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
      if (n.empty() || !std::all_of(n.begin(), n.end(), is_part))
        s.fail(node, "ends: \"" + n +
                         "\" is no name, expected letters, digits, - and _, and of a host .1 or .2 for its port");
    };
    const auto is_switch = [](const std::string& n) { return !n.empty() && n[0] == 's'; };
    if (is_switch(of[0]) && !is_switch(of[1])) std::swap(of[0], of[1]);
    if (!is_switch(of[1])) s.fail(node, "ends: one of them must be a switch, whose name begins with s");
    check_name(of[1]);
    if (is_switch(of[0])) check_name(of[0]);
    fabric::cable_kind kind;
    read_cable(s, "metres", "rate_mbps", kind);
    const auto switch_number = [&](const std::string& n) {
      const unsigned known = index_of(shape.switches(), n);
      return known < shape.switches().size() ? known : shape.add_switch(n);
    };
    if (is_switch(of[0])) {
      const unsigned a = switch_number(of[0]), b = switch_number(of[1]);
      if (a == b) s.fail(node, "ends: both are " + of[0]);
      shape.join_switches(a, b, kind);
      continue;
    }
    unsigned port = 1;
    if (const auto dot = of[0].find('.'); dot != std::string::npos) {
      const std::string text = of[0].substr(dot + 1);
      if (text != "1" && text != "2") s.fail(node, "ends: " + of[0] + ": expected port 1 or 2 behind the dot");
      port = text == "2" ? 2 : 1;
      of[0].resize(dot);
    }
    check_name(of[0]);
    const unsigned known = index_of(shape.hosts(), of[0]);
    const unsigned host = known < shape.hosts().size() ? known : shape.add_host(of[0]);
    if ((shape.cabled(host) >> (port - 1) & 1) != 0)
      s.fail(node, "ends: port " + std::to_string(port) + " of " + of[0] + " has a cable");
    shape.join_host(host, port, switch_number(of[1]), kind);
  }
  if (shape.hosts().size() > most_hosts || shape.switches().size() > most_switches)
    throw sim::config_error(name + ": cable: more than " + std::to_string(most_hosts) + " hosts or switches");
}

void read_topology(const section& file, const std::string& name, network_file& f) {
  const toml::table* table = table_at(file, "topology");
  if (table == nullptr) throw sim::config_error(name + ": topology: is missing, expected a table with kind");
  const section s(name, "topology: ", *table);
  unsigned w = 0;
  if (!s.word("kind", {"pair", "star", "incast", "dumbbell", "leaf-spine", "ring", "custom"}, w))
    s.fail(*table, "kind: is missing, expected one of pair, star, incast, dumbbell, leaf-spine, ring, custom");
  s.text("kind", f.kind);
  fabric::cable_kind edge;
  if (f.kind == "custom") {
    s.allow({"kind"});
    return read_cables(file, name, f.shape);
  }
  if (const toml::node* cables = file.find("cable"))
    file.fail(*cables, "cable: only with kind = \"custom\", and it is " + f.kind);
  read_cable(s, "metres", "rate_mbps", edge);
  if (f.kind == "pair") {
    s.allow({"kind", "metres", "rate_mbps", "ports"});
    unsigned ports = 1;
    s.number("ports", 1, 2, ports);
    f.shape = fabric::make_pair(ports, edge);
    return;
  }
  fabric::cable_kind trunk = edge;
  if (f.kind == "star" || f.kind == "incast") {
    s.allow({"kind", "metres", "rate_mbps", "hosts"});
    f.shape = fabric::make_star(count_of(s, *table, "hosts", 2, most_hosts), edge);
    return;
  }
  read_cable(s, "trunk_metres", "trunk_rate_mbps", trunk);
  if (f.kind == "dumbbell") {
    s.allow({"kind", "metres", "rate_mbps", "trunk_metres", "trunk_rate_mbps", "left", "right"});
    f.shape = fabric::make_dumbbell(count_of(s, *table, "left", 1, most_hosts / 2),
                                    count_of(s, *table, "right", 1, most_hosts / 2), edge, trunk);
  } else if (f.kind == "leaf-spine") {
    s.allow({"kind", "metres", "rate_mbps", "trunk_metres", "trunk_rate_mbps", "leaves", "spines", "hosts_per_leaf",
             "ports_per_host"});
    const unsigned leaves = count_of(s, *table, "leaves", 1, 32), spines = count_of(s, *table, "spines", 1, 32);
    unsigned ports = 1;
    s.number("ports_per_host", 1, 2, ports);
    if (ports == 2 && leaves == 1)
      s.fail(*s.find("ports_per_host"), "ports_per_host: 2 ports are on a leaf each, expected 2 or more leaves");
    f.shape = fabric::make_leaf_spine(leaves, spines, count_of(s, *table, "hosts_per_leaf", 1, most_hosts / leaves),
                                      edge, trunk, ports);
  } else {
    s.allow({"kind", "metres", "rate_mbps", "trunk_metres", "trunk_rate_mbps", "switches", "hosts_per_switch",
             "clockwise"});
    const unsigned switches = count_of(s, *table, "switches", 3, 32);
    f.shape =
        fabric::make_ring(switches, count_of(s, *table, "hosts_per_switch", 1, most_hosts / switches), edge, trunk);
    bool clockwise = false;
    s.boolean("clockwise", clockwise);
    if (clockwise) f.shape.go_clockwise();
  }
}

/// What a port of a switch does with tags: `at` is the switch and what is at the other end of the cable.
void read_vlan_port(const section& file, const std::string& name, const toml::node& node, std::size_t number,
                    network_file& f) {
  const std::string title = "port " + std::to_string(number) + ": ";
  if (!node.is_table()) file.fail(node, title + "not a table");
  const section s(name, title, *node.as_table());
  s.allow({"at", "access", "trunk", "native"});
  const toml::node* at = s.find("at");
  const toml::array* both = at == nullptr ? nullptr : at->as_array();
  if (both == nullptr || both->size() != 2 || !both->get(0)->is_string() || !both->get(1)->is_string())
    s.fail(node, "at: expected a switch and its neighbour, as in [\"s1\", \"h1\"]");
  const std::string of = both->get(0)->as_string()->get(), to = both->get(1)->as_string()->get();
  hosts::network_config::vlan_setting v;
  v.of_switch = index_of(f.shape.switches(), of);
  if (v.of_switch == f.shape.switches().size())
    s.fail(node, "at: there is no switch " + of + ", expected one of " + listed(f.shape.switches()));
  std::vector<unsigned> ports;  // several cables may lead there
  for (unsigned p = 0; p < f.shape.ports_of(v.of_switch); ++p) {
    const fabric::plug_place behind = f.shape.beyond(v.of_switch, p);
    if ((behind.is_switch ? f.shape.switches() : f.shape.hosts())[behind.number] == to) ports.push_back(p);
  }
  if (ports.empty()) s.fail(node, "at: " + of + " has no cable to " + to);
  for (const hosts::network_config::vlan_setting& known : f.vlans)
    if (known.of_switch == v.of_switch && known.port == ports.front())
      s.fail(node, "at: there is a table for " + of + " and " + to + " already");
  const toml::node* trunk = s.find("trunk");
  if (s.has("access") == (trunk != nullptr)) s.fail(node, "access: expected that or trunk");
  if (trunk == nullptr) {
    v.vlan.is = fabric::vlan_port::kind::access;
    s.number("access", 1, 4094, v.vlan.vlan);
    if (s.has("native")) s.fail(node, "native: only with trunk");
  } else {
    v.vlan.is = fabric::vlan_port::kind::trunk;
    const toml::array* list = trunk->as_array();
    if (list == nullptr) s.fail(*trunk, "trunk: expected a list of VLANs");
    for (const toml::node& each : *list) {
      const auto* vid = each.as_integer();
      if (vid == nullptr || vid->get() < 1 || vid->get() > 4094)
        s.fail(each, "trunk: " + section::shown(each) + " is not legal, expected 1 to 4094");
      v.vlan.allowed.set(static_cast<std::size_t>(vid->get()));
    }
    s.number("native", 1, 4094, v.vlan.vlan);
  }
  for (const unsigned p : ports) {
    v.port = p;
    f.vlans.push_back(v);
  }
}

/// Of generated shapes and of cables.
void check_ports_of_switches(const std::string& name, const fabric::topology& shape) {
  for (unsigned i = 0; i < shape.switches().size(); ++i)
    if (shape.ports_of(i) > most_ports)
      throw sim::config_error(name + ": topology: " + shape.switches()[i] + " has " +
                              std::to_string(shape.ports_of(i)) + " cables, expected " + std::to_string(most_ports) +
                              " at most");
}

}  // namespace

std::vector<unsigned> read_hosts(const section& s, const toml::node& flow, const char* key,
                                 const fabric::topology& shape) {
  std::vector<unsigned> hosts;
  const auto add = [&](const toml::node& n) {
    const std::string name = n.is_string() ? n.as_string()->get() : section::shown(n);
    const unsigned number = index_of(shape.hosts(), name);
    if (number == shape.hosts().size())
      s.fail(n, std::string(key) + ": there is no host " + name + ", expected one of " + listed(shape.hosts()));
    hosts.push_back(number);
  };
  const toml::node* n = s.find(key);
  if (n == nullptr) s.fail(flow, std::string(key) + ": is missing, expected a host or a list of hosts");
  if (const toml::array* list = n->as_array())
    for (const toml::node& each : *list) add(each);
  else
    add(*n);
  if (hosts.empty()) s.fail(*n, std::string(key) + ": the list is empty, expected a host or a list of hosts");
  return hosts;
}

std::vector<unsigned> read_ports(const section& s) {
  std::vector<unsigned> ports;
  const toml::node* n = s.find("ports");
  if (n == nullptr) return ports;
  const auto add = [&](const toml::node& each) {
    const auto* p = each.as_integer();
    if (p == nullptr || p->get() < 1 || p->get() > 2 || (!ports.empty() && ports.front() == p->get()))
      s.fail(each, "ports: " + section::shown(each) + " is not legal, expected 1, 2 or both in a list");
    ports.push_back(static_cast<unsigned>(p->get()));
  };
  if (const toml::array* list = n->as_array())
    for (const toml::node& each : *list) add(each);
  else
    add(*n);
  if (ports.empty()) s.fail(*n, "ports: the list is empty, expected 1, 2 or both in a list");
  return ports;
}

void check_ports(const section& s, const std::vector<unsigned>& ports, const std::vector<unsigned>& hosts,
                 const fabric::topology& shape) {
  for (const unsigned host : hosts)
    for (const unsigned p : ports)
      if ((shape.cabled(host) >> (p - 1) & 1) == 0)
        s.fail(*s.find("ports"), "ports: port " + std::to_string(p) + " of " + shape.hosts()[host] + " has no cable");
}

std::uint64_t read_start(const section& s, std::uint64_t duration_us) {
  std::uint64_t start = 0;
  s.number("start_us", 0, duration_us != 0 ? duration_us - 1 : longest_us, start);
  return start;
}

void check_way(const section& s, const toml::node& of, const std::vector<unsigned>& ports, unsigned from, unsigned to,
               const fabric::topology& shape) {
  const auto first = [&](unsigned host) { return (shape.cabled(host) & 1) != 0 ? 1u : 2u; };
  for (const unsigned p : ports.empty() ? std::vector<unsigned>{0} : ports) {
    const unsigned out = p != 0 ? p : first(from), in = p != 0 ? p : first(to);
    const fabric::plug_place next = shape.beyond_host(from, out);
    if (next.is_switch ? shape.ways_to(to, in)[next.number].empty() : next.number != to)
      s.fail(of, "to: no way leads from port " + std::to_string(out) + " of " + shape.hosts()[from] + " to port " +
                     std::to_string(in) + " of " + shape.hosts()[to]);
  }
}

void read_packets(const section& s, hosts::connection_options& c) {
  unsigned w = 0, vlan = 0;
  if (s.word("roce", {"v1", "v2"}, w)) c.roce = w == 0 ? host_driver::roce_types::v1 : host_driver::roce_types::v2;
  if (s.word("transport", {"rc", "uc", "ud", "xrc"}, w)) {
    constexpr ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND};
    c.type = types[w];
  }
  s.number("ip", 4, 6, c.ip);
  if (c.ip == 5) s.fail(*s.find("ip"), "ip: 5 is not legal, expected 4 or 6");
  if (s.number("vlan", 0, 4094, vlan)) c.vlan = vlan == 0 ? host_driver::no_vlan : static_cast<std::uint16_t>(vlan);
  if (s.number("priority", 0, 7, c.priority)) c.priority_is_given = true;
  s.number("traffic_class", 0, 255, c.traffic_class);
  s.number("ack_timeout", 1, 31, c.ack_timeout);
  if (s.number("mtu", 256, 4096, c.mtu) && (c.mtu & (c.mtu - 1)) != 0)
    s.fail(*s.find("mtu"), "mtu: " + std::to_string(c.mtu) + " is not legal, expected 256, 512, 1024, 2048 or 4096");
}

void check_priority(const section& s, const toml::node& of, const hosts::connection_options& c) {
  if (c.priority != 0 && c.vlan == host_driver::no_vlan)
    s.fail(of, "priority: " + std::to_string(c.priority) + " is in a VLAN's tag, and the file's vlan is missing or 0");
}

void check_datagram(const section& s, const char* key, std::uint32_t bytes, const hosts::connection_options& c) {
  if (c.type == IBV_QPT_UD && bytes > c.mtu)
    s.fail(*s.find(key), "size: " + std::to_string(bytes) + " is not legal, expected 0 to " + std::to_string(c.mtu) +
                             ", a datagram's packet");
}

namespace {

/// What a host cannot have of its own though --set or other tables know it: why, and where it belongs; else empty.
std::string place_elsewhere(const std::string& path) {
  const auto below = [&path](const char* section) { return path.rfind(section, 0) == 0; };
  if (below("a.") || below("b.")) return "this table is of one host, expected " + path.substr(2);
  if (below("switch.")) return "is of every switch, expected it in [parameters]";
  if (below("sim.")) return "is of the simulation, expected it in [parameters]";
  if (below("cable.")) return "cables of a network are in [topology] or [[cable]]";
  if (path == "adapter.port.rate_mbps" || path == "adapter.port2.rate_mbps") return port_has_rate_of_cable;
  return {};
}

/// Tables [hosts.h1]: parameters of one host.
void read_host_parameters(const section& file, const std::string& name, network_file& f) {
  const toml::table* hosts = table_at(file, "hosts");
  if (hosts == nullptr) return;
  for (const auto& [key, node] : *hosts) {
    const std::string of(key.str());
    const unsigned number = index_of(f.shape.hosts(), of);
    if (number == f.shape.hosts().size())
      file.fail(node, "hosts: there is no host " + of + ", expected one of " + listed(f.shape.hosts()));
    if (!node.is_table()) file.fail(node, "hosts: " + of + ": expected a table, [hosts." + of + "]");
    for (auto& [path, value] : sim::settings_in(*node.as_table(), name)) {
      if (const std::string why = place_elsewhere(path); !why.empty())
        throw sim::config_error(name + ": hosts." + of + ": " + path + ": " + why);
      f.host_parameters.push_back({number, path, value, name + ": hosts." + of});
    }
  }
}

}  // namespace

std::vector<const char*> network_fields() {
  return {"seed", "vlan", "priority", "mtu", "roce", "ip", "topology", "cable", "port", "parameters", "hosts"};
}

void read_network(const section& file, const std::string& name, network_file& f, topology_in_file rule) {
  std::uint64_t seed = 0;
  if (file.number("seed", 0, ~std::uint64_t{0} >> 1, seed)) f.seed = seed;
  read_packets(file, f.common);
  if (rule == topology_in_file::may_be_missing && !file.has("topology")) {
    f.kind = "pair";
    f.shape = fabric::make_pair(1, {});
  } else {
    read_topology(file, name, f);
  }
  check_ports_of_switches(name, f.shape);
  if (const toml::table* parameters = table_at(file, "parameters")) f.parameters = sim::settings_in(*parameters, name);
  read_host_parameters(file, name, f);
  read_list(file, "port", [&](const toml::node& n, std::size_t i) { read_vlan_port(file, name, n, i, f); });
}

}  // namespace rnic::program
