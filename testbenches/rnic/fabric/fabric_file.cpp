// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/fabric/fabric_file.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "testbenches/rnic/fabric/networks.h"
#include "testbenches/rnic/named_files.h"

namespace rnic::program {

namespace {

using section = sim::toml_section;

void read_verb(const section& s, bench::flow_config& f) {
  std::string verb = f.what->name;
  if (s.text("verb", verb)) {
    f.what = workloads::find_verb(verb);
    std::string legal;
    for (const workloads::verb& v : workloads::verbs())
      if (!v.masked) legal += (legal.empty() ? "" : ", ") + std::string(v.name);
    if (f.what == nullptr || f.what->masked)
      s.fail(*s.find("verb"), "verb: " + verb + " is not legal, expected one of " + legal);
  }
  if (!workloads::carries(f.connection.type, *f.what))
    s.fail(*s.find(s.has("transport") ? "transport" : "verb"), "verb: " + verb + " is not in this transport");
  s.number("size", 0, 1u << 30, f.size);
  if (const toml::node* sizes = s.find("sizes")) {
    const toml::array* list = sizes->as_array();
    if (list == nullptr || list->empty() || s.has("size"))
      s.fail(*sizes, "sizes: expected a list of sizes, and no size beside it");
    f.size = 0;
    for (const toml::node& each : *list) {
      const auto* v = each.as_integer();
      if (v == nullptr || v->get() < 0 || v->get() > (1 << 30))
        s.fail(each, "sizes: " + section::shown(each) + " is not legal, expected 0 to 1073741824");
      f.sizes.push_back(static_cast<std::uint32_t>(v->get()));
      f.size = std::max(f.size, f.sizes.back());
    }
  }
  const bool datagrams = f.connection.type == IBV_QPT_UD;
  if (f.what->atomic && ((s.has("size") && f.size != hosts::atomic_bytes) || s.has("sizes")))
    s.fail(*s.find(s.has("size") ? "size" : "sizes"), "size: " + std::to_string(f.size) + " is not legal, expected " +
                                                          std::to_string(hosts::atomic_bytes) + ", all that " + verb +
                                                          " has");
  if (f.what->atomic) f.size = hosts::atomic_bytes;
  if (datagrams && !s.has("size") && f.sizes.empty()) f.size = f.connection.mtu;
  check_datagram(s, f.sizes.empty() ? "size" : "sizes", f.size, f.connection);
}

void read_flow(const std::string& name, const toml::node& node, std::size_t number, flows_in_file rule,
               fabric_file& f) {
  const section s(name, "flow " + std::to_string(number) + ": ", *node.as_table());
  s.allow({"name", "from", "to", "verb", "size", "qps", "depth", "messages", "rate_mbps", "start_us", "spread_us",
           "sizes", "ports", "transport", "priority", "traffic_class", "ack_timeout", "mtu"});
  bench::flow_config c;
  c.connection = f.common;
  read_packets(s, c.connection);
  read_verb(s, c);
  s.number("qps", 1, 4096, c.qps);
  c.ports = read_ports(s);
  s.number("depth", 1, 4096, c.depth);
  s.number("messages", 1, 1'000'000'000'000, c.messages);
  std::uint64_t n = 0;
  if (s.number("rate_mbps", 1, 400'000, n)) c.rate_kbps = n * 1000;
  c.start = read_start(s, f.duration_us) * sim::ps_per_us;
  if (s.number("spread_us", 0, longest_us, n)) c.spread = n * sim::ps_per_us;
  if (rule == flows_in_file::needed && c.messages == 0 && f.duration_us == 0)
    s.fail(node, "messages: is missing, and so is duration_us of the file: one of them ends the flow");
  check_priority(s, node, c.connection);
  std::string given = std::to_string(number);
  s.text("name", given);
  const auto from = read_hosts(s, node, "from", f.shape), to = read_hosts(s, node, "to", f.shape);
  const std::size_t before = f.flows.size();
  for (const unsigned a : from)
    for (const unsigned b : to) {
      if (a == b) continue;  // of two lists
      c.from = a;
      c.to = b;
      c.name = given;
      check_ports(s, c.ports, {a, b}, f.shape);
      check_way(s, node, c.ports, a, b, f.shape);
      f.flows.push_back(c);
    }
  if (f.flows.size() == before)
    s.fail(node, "to: " + f.shape.hosts()[to.front()] + " is where it comes from, expected another host");
}

}  // namespace

std::string network_names() {
  std::string names;
  for (const network_text& n : networks) names += (names.empty() ? "" : ", ") + std::string(n.name);
  return names;
}

std::string fabric_text(const std::string& file) {
  for (const network_text& n : networks)
    if (file == n.name) return n.text;
  name_input(file);
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw sim::config_error(file + ": cannot be read, and is none of " + network_names());
  return text.str();
}

fabric_file parse_fabric_file(const std::string& text, const std::string& name, flows_in_file flows) {
  const toml::table root = sim::read_toml(name, [&] { return toml::parse(text, name); });
  const section s(name, "", root);
  std::vector<const char*> fields = network_fields();
  fields.insert(fields.end(), {"duration_us", "flow"});
  s.allow(fields);
  fabric_file f;
  read_network(s, name, f);
  s.number("duration_us", 1, longest_us, f.duration_us);
  const bool needed = flows == flows_in_file::needed;
  if (needed && !s.has("flow"))
    throw sim::config_error(name + ": flow: is missing, expected a list of tables, [[flow]]");
  read_list(s, "flow", [&](const toml::node& n, std::size_t i) { read_flow(name, n, i, flows, f); });
  return f;
}

fabric_file load_fabric_file(const std::string& file, flows_in_file flows) {
  return parse_fabric_file(fabric_text(file), file, flows);
}

}  // namespace rnic::program
