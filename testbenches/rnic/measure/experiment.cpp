// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/measure/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "model/abi/queue_entries.h"
#include "model/sim/use.h"
#include "testbenches/rnic/named_files.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

unsigned log2_up(std::uint64_t n) {
  unsigned log = 0;
  while (log < 63 && (std::uint64_t{1} << log) < n) ++log;
  return log;
}

}  // namespace

void fit(host_driver::config& driver, const demand& d) {
  // Of a queue pair and its share of a completion queue: a message has less than 512 bytes of them.
  const std::uint64_t pages_of_queues = std::max<std::uint64_t>(8, d.depth / 8);
  const std::uint64_t pages = (d.bytes >> driver.mr_page_shift) + pages_of_queues * d.queue_pairs;
  driver.log_num_qp = std::max(driver.log_num_qp, std::min(18u, log2_up(2 * d.queue_pairs + 256)));
  driver.log_num_mtt = std::max(driver.log_num_mtt, std::min(24u, log2_up(2 * pages)));
}

namespace {

/// Which ports have a cable, and how fast they are.
void set_ports(hosts::two_nodes_config& c, const traffic_options& traffic) {
  const std::vector<unsigned>& rates = traffic.rate_mbps;
  if (traffic.ports.size() > 2 || (traffic.ports.size() == 2 && traffic.ports[0] == traffic.ports[1]))
    throw usage_error(fmt::format("--port: {}: expected 1, 2, 1,2 or 2,1", fmt::join(traffic.ports, ",")));
  if (rates.size() > 1 && rates.size() != traffic.ports.size())
    throw usage_error(fmt::format("--rate: {} of them: expected one, or one for each of --port {}", rates.size(),
                                  fmt::join(traffic.ports, ",")));
  c.ports = traffic.ports;
  adapter::config& nic = c.node.adapter;
  if (rates.size() == 1) nic.port.rate_mbps = rates[0];
  for (std::size_t i = 0; rates.size() > 1 && i < rates.size(); ++i)
    (traffic.ports[i] == 1 ? nic.port.rate_mbps : nic.port2.rate_mbps) = rates[i];
}

}  // namespace

void force_paths(host_driver::config& driver, const common_options& common) {
  for (host_driver::forced_path& port : driver.forced) {
    for (const std::string& text : common.traffic_classes)
      if (const int error = port.write_traffic_class(text))
        throw usage_error(fmt::format(
            error == -ENOENT
                ? "--traffic-class: '{}': there is no such rule to take away"
                : "--traffic-class: '{}': expected -1 to 255, with or without tclass= in front, then ,src_ip=ADDRESS "
                  "and ,dst_ip=ADDRESS of a rule, the latter with /0 to /32 if it is IPv4",
            text));
    if (!common.ttl.empty() && port.write_ttl(common.ttl) != 0)
      throw usage_error(fmt::format("--ttl: '{}': expected 0 to 255, or -1 for what each queue pair has", common.ttl));
  }
}

namespace {

std::vector<hosts::node_config*> nodes_of(hosts::two_nodes_config& c) {
  std::vector<hosts::node_config*> all{&c.node};
  if (c.node_b) all.push_back(&*c.node_b);
  return all;
}

/// Of the hosts as they will be built.
std::vector<std::string> warnings_of(hosts::two_nodes_config c) {
  std::vector<std::string> all;
  for (hosts::node_config* n : nodes_of(c)) {
    n->adapter.port.metres = c.cable_metres;
    n->cabled = 0;
    for (const unsigned p : c.ports) n->cabled |= 1u << (p - 1);
    for (const std::string& w : hosts::warnings(*n)) all.push_back((c.node_b ? n == &c.node ? "a " : "b " : "") + w);
  }
  return all;
}

}  // namespace

hosts::two_nodes_config system_from(const common_options& common, const traffic_options& traffic, const demand& d,
                                    std::string* effective, const side_refusals& refused) {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config(common.profile);
  set_ports(c, traffic);
  c.cable_metres = traffic.cable_metres;
  fit(c.node.driver, d);
  sim::parameter_set parameters;
  hosts::announce(parameters, c);
  side_parameters given(parameters, c.node, refused);
  if (!common.config_file.empty()) given.load_toml(common.config_file);
  for (const std::string& a : common.assignments) given.set_assignment(a);
  c.capture = common.pcap_file;
  c.capture_options.overwrite = common.overwrite;
  c.capture_options.fcs = common.pcap_fcs;
  if (effective != nullptr) *effective = given.to_toml();
  if (given.differ()) {
    c.node_b = given.of(1);
    c.node = given.of(0);
  }
  for (hosts::node_config* n : nodes_of(c)) {
    if (n->driver.bond != host_driver::config::bond_mode::none) c.ports = {1, 2};
    force_paths(n->driver, common);
  }
  if (!common.quiet) print_warnings(warnings_of(c));
  return c;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& w : warnings) fmt::print(stderr, "rnic: warning: {}\n", w);
}

fabric::fault_plan faults_from(const fault_options& faults) {
  using fabric::fault_action;
  fabric::fault_plan plan;
  if (!faults.file.empty()) {
    name_input(faults.file);
    plan = fabric::load_fault_plan(faults.file);
  }
  plan.capture_before |= faults.pcap_before;
  const std::pair<fault_action, double> rates[] = {{fault_action::drop, faults.drop},
                                                   {fault_action::duplicate, faults.duplicate},
                                                   {fault_action::reorder, faults.reorder},
                                                   {fault_action::corrupt, faults.corrupt}};
  for (const auto& [action, percent] : rates)
    if (percent > 0) plan.rules.push_back(fabric::rate_rule(action, percent));
  return plan;
}

nlohmann::json faults_json(const fabric::fault_injector& injector, sim::time_ps now) {
  nlohmann::json out = nlohmann::json::object();
  for (unsigned from = 0; from < 2; ++from) {
    const fabric::fault_injector::counts& c = injector.counted(from);
    nlohmann::json& way = out[from == 0 ? "a_to_b" : "b_to_a"];
    way["frames"] = c.frames;
    for (unsigned a = 0; a < fabric::fault_actions; ++a)
      way[fabric::to_string(static_cast<fabric::fault_action>(a))] = c.done[a];
    way["hold_ended"] = c.hold_ended;
    way["not_possible"] = c.not_possible;
  }
  out["rules"] = nlohmann::json::array();
  for (std::size_t i = 0; i < injector.plan().rules.size(); ++i) {
    const fabric::fault_rule& r = injector.plan().rules[i];
    out["rules"].push_back({{"name", r.name},
                            {"action", fabric::to_string(r.action)},
                            {"meant", injector.meant(i)},
                            {"hits", injector.hits(i)}});
  }
  out["outages"] = nlohmann::json::array();
  for (const fabric::outage& o : injector.plan().outages) {
    const std::uint64_t due = now < o.down_ps ? 0 : o.every_ps == 0 ? 1 : (now - o.down_ps) / o.every_ps + 1;
    out["outages"].push_back({{"port", o.port}, {"down_us", to_us(o.down_ps)}, {"begun", std::min(due, o.times)}});
  }
  out["ended_us"] = to_us(now);
  return out;
}

void print_faults(const nlohmann::json& faults, const std::string& where) {
  if (faults.empty() || (faults["rules"].empty() && faults["outages"].empty())) return;
  fmt::print("\nfaults{}\n", where.empty() ? "" : " on " + where);
  for (const nlohmann::json& r : faults["rules"]) {
    const auto meant = r["meant"].get<std::uint64_t>(), hits = r["hits"].get<std::uint64_t>();
    fmt::print("    {}: {} of {} frames{}\n", r["name"].get<std::string>(), hits, meant,
               meant == 0 ? "; none was of the kind that it means" : "");
  }
  for (const nlohmann::json& o : faults["outages"]) {
    const auto port = o["port"].get<unsigned>();
    const auto begun = o["begun"].get<std::uint64_t>();
    fmt::print("    outage of {}: {}{}\n", port == 0 ? "every port" : fmt::format("port {}", port),
               begun == 0 ? "" : fmt::format("{} times", begun),
               begun == 0 ? fmt::format("did not begin, it is due at {:.3f} us and the run ended at {:.3f} us",
                                        o["down_us"].get<double>(), faults["ended_us"].get<double>())
                          : "");
  }
}

nlohmann::json statistics_json(const sim::statistics& statistics) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, counter] : statistics.all())
    if (!out.emplace(name, *counter).second) throw std::logic_error(name + ": two counters have this name");
  return out;
}

nlohmann::json use_json(hosts::pair_if& system) {
  nlohmann::json out = nlohmann::json::object();
  for (hosts::node* n : {&system.node_a(), &system.node_b()})
    for (const sim::clock_domain* clock : n->nic().clocks())
      sim::for_each_use(*clock, [&](const std::string& name, std::uint64_t value) { out[name] = value; });
  return out;
}

nlohmann::json increase(const nlohmann::json& before, const nlohmann::json& after) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, value] : after.items()) {
    const std::uint64_t more = value.get<std::uint64_t>() - before.at(name).get<std::uint64_t>();
    if (more != 0) out[name] = more;
  }
  return out;
}

namespace {

ibv_qp_type transport_of(const traffic_options& traffic) {
  return traffic.transport == "uc"    ? IBV_QPT_UC
         : traffic.transport == "ud"  ? IBV_QPT_UD
         : traffic.transport == "xrc" ? IBV_QPT_XRC_SEND
                                      : IBV_QPT_RC;
}

void check_verb(const traffic_options& traffic) {
  const ibv_qp_type transport = transport_of(traffic);
  if (workloads::carries(transport, verb_of(traffic))) return;
  std::string legal;
  for (const workloads::verb& v : workloads::verbs())
    if (workloads::carries(transport, v)) legal += (legal.empty() ? "" : ", ") + std::string(v.name);
  throw usage_error(
      fmt::format("--verb: {} is not in --transport {}, expected one of {}", traffic.verb, traffic.transport, legal));
}

/// Of a datagram: its address takes 48 bytes of a descriptor, where others have one of 16.
unsigned longest_inline_datagram() {
  namespace wqe = abi::wqe;
  constexpr std::size_t room = wqe::max_bytes - wqe::control::bytes - wqe::datagram::bytes;
  constexpr std::size_t segments = (room + wqe::inline_data::boundary - 1) / wqe::inline_data::boundary;
  return static_cast<unsigned>(room - segments * wqe::inline_data::header);
}

}  // namespace

hosts::connection_options connection_from(const traffic_options& traffic) {
  constexpr unsigned masked_room = 64;  // inline data for which a descriptor is long enough for a masked atomic
  check_verb(traffic);
  if (traffic.transport == "xrc" && traffic.inline_receive != 0)
    throw usage_error(fmt::format(
        "--inline-receive: {} bytes: --transport xrc takes its receives from a shared receive queue, which has 0",
        traffic.inline_receive));
  if (traffic.transport == "ud" && traffic.inline_bytes > longest_inline_datagram())
    throw usage_error(fmt::format("--inline: {} bytes: a descriptor of --transport ud has room for 0 to {}",
                                  traffic.inline_bytes, longest_inline_datagram()));
  hosts::connection_options c;
  c.type = transport_of(traffic);
  c.roce = traffic.roce == "v1" ? host_driver::roce_types::v1 : host_driver::roce_types::v2;
  c.ip = traffic.ip;
  c.vlan = traffic.vlan == 0 ? host_driver::no_vlan : static_cast<std::uint16_t>(traffic.vlan);
  c.priority = traffic.priority;
  c.priority_is_given =
      std::find(traffic.given.begin(), traffic.given.end(), std::string("--priority")) != traffic.given.end();
  c.mtu = traffic.mtu;
  c.inline_bytes = traffic.inline_bytes;
  c.inline_receive = traffic.inline_receive;
  c.kernel = verb_of(traffic).masked;
  if (c.kernel) c.inline_bytes = std::max(c.inline_bytes, masked_room);
  return c;
}

const workloads::verb& verb_of(const traffic_options& traffic) {
  const workloads::verb* v = workloads::find_verb(traffic.verb);
  if (v == nullptr) throw usage_error("--verb: " + traffic.verb + " is none");
  return *v;
}

bool is_unreliable(const traffic_options& traffic) { return traffic.transport == "uc" || traffic.transport == "ud"; }

std::vector<std::uint32_t> sizes_from(const traffic_options& traffic) {
  const bool atomic = verb_of(traffic).atomic, datagrams = traffic.transport == "ud";
  for (const std::uint32_t s : traffic.sizes) {
    if (atomic && s != hosts::atomic_bytes)
      throw usage_error(fmt::format("--sizes: {} bytes: --verb {} has 8 bytes and no other size", s, traffic.verb));
    if (datagrams && s > traffic.mtu)
      throw usage_error(fmt::format(
          "--sizes: {} bytes: --transport ud has messages of one packet, 0 to {} bytes by --mtu", s, traffic.mtu));
  }
  if (!traffic.sizes.empty()) return traffic.sizes;
  if (atomic) return {hosts::atomic_bytes};
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t s = 2; s <= (datagrams ? traffic.mtu : 65536); s *= 2) sizes.push_back(s);
  return sizes;
}

std::string title(const char* command, const traffic_options& traffic) {
  return fmt::format("RDMA {} {}, {} RoCE {} over IPv{}, MTU {}", traffic.verb, command, traffic.transport,
                     traffic.roce, traffic.ip, traffic.mtu);
}

namespace {

std::uint8_t pattern_byte(std::size_t i, std::uint64_t message, std::uint64_t salt) {
  return static_cast<std::uint8_t>((i * 131 + (i >> 8) * 17 + message * 29 + salt) ^ (message >> 3));
}

}  // namespace

std::uint8_t last_pattern_byte(std::size_t, std::uint64_t message, std::uint64_t) {
  return static_cast<std::uint8_t>(message % 255 + 1);  // never 0, never that of the message before
}

void fill_pattern(std::uint8_t* to, std::size_t bytes, std::uint64_t message, std::uint64_t salt) {
  if (bytes == 0) return;
  for (std::size_t i = 0; i + 1 < bytes; ++i) to[i] = pattern_byte(i, message, salt);
  to[bytes - 1] = last_pattern_byte(bytes, message, salt);
}

void check_pattern(const std::uint8_t* data, std::size_t bytes, std::uint64_t message, std::uint64_t salt) {
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::uint8_t expected =
        i + 1 == bytes ? last_pattern_byte(bytes, message, salt) : pattern_byte(i, message, salt);
    if (data[i] != expected)
      throw hosts::content_differs(fmt::format("message {}: byte {} of {} arrived as {:#04x} instead of {:#04x}",
                                               message, i, bytes, data[i], expected));
  }
}

}  // namespace rnic::program
