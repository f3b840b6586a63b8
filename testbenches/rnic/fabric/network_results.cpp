// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/fabric/network_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

double gbps(std::uint64_t bytes, sim::time_ps begin, sim::time_ps end) {
  return end > begin ? static_cast<double>(bytes) * 8e3 / static_cast<double>(end - begin) : 0;
}

/// What of a flow is measured: what has arrived where that is told, else what has completed. A flow that goes on until
/// the end is measured until then.
struct measured_part {
  measured_part(const bench::flow& f, sim::time_ps end)
      : told(f.unreliable() && f.receives()),
        whole(f.config().messages != 0 && (told ? f.result().arrived : f.result().completed) == f.config().messages),
        last(told ? f.result().last_arrival : f.result().end),
        until(whole ? last : end),
        bytes(told ? f.result().arrived_bytes : f.result().bytes) {}
  bool told, whole;
  sim::time_ps last, until;
  std::uint64_t bytes;
};

nlohmann::json to_json(const bench::flow& f, const fabric::topology& shape, sim::time_ps begin, sim::time_ps end) {
  const bench::flow_config& c = f.config();
  const bench::flow_result& r = f.result();
  const measured_part m(f, end);
  nlohmann::json j = {{"name", c.name},
                      {"from", shape.hosts()[c.from]},
                      {"to", shape.hosts()[c.to]},
                      {"verb", c.what->name},
                      {"size", c.size},
                      {"posted", r.posted},
                      {"completed", r.completed},
                      {"start_us", to_us(r.begin - std::min(begin, r.begin))},
                      {"goodput_gbps", gbps(m.bytes, r.begin, m.until)}};
  if (m.told) j["arrived"] = r.arrived;
  if (f.unreliable() && !m.told) j["goodput_is_of"] = "sent";
  if (m.whole) j["completion_us"] = to_us(m.last - r.begin);
  if (!r.failure.empty()) j["failure"] = r.failure;
  if (r.times.empty()) return j;
  const sample_summary s = summarise(r.times);
  j["message_us"] = {{"min", to_us(s.minimum)},
                     {"typical", to_us(s.typical)},
                     {"average", s.average_ps() / 1e6},
                     {"p99", to_us(s.p99)},
                     {"max", to_us(s.maximum)}};
  return j;
}

/// What a line ends with: how a flow ended, or what its numbers do not say.
std::string remark(const nlohmann::json& f) {
  if (f.contains("failure")) return "  failed: " + f["failure"].get<std::string>();
  if (f.contains("goodput_is_of")) return "  as sent";
  const auto sent = f["completed"].get<std::uint64_t>();
  if (f.contains("arrived") && f["arrived"] != sent)
    return fmt::format("  {} arrived", f["arrived"].get<std::uint64_t>());
  return {};
}

double us_of(const nlohmann::json& flow, const char* what) {
  return flow.contains("message_us") ? flow["message_us"][what].get<double>() : 0;
}

}  // namespace

nlohmann::json flows_json(const bench::flow_set& flows, const fabric::topology& shape, sim::time_ps begin,
                          sim::time_ps end) {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < flows.size(); ++i) all.push_back(to_json(flows[i], shape, begin, end));
  return all;
}

double goodput_of_all(const bench::flow_set& flows, sim::time_ps end) {
  std::uint64_t bytes = 0;
  sim::time_ps first = ~sim::time_ps{0}, last = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const measured_part m(flows[i], end);
    bytes += m.bytes;
    first = std::min(first, flows[i].result().begin);
    last = std::max(last, m.until);
  }
  return gbps(bytes, first, last);
}

void print_flows(const nlohmann::json& flows) {
  fmt::print("{:<12} {:<6} {:<6} {:<10} {:>9} {:>10} {:>10} {:>12} {:>9} {:>11} {:>9} {:>9}\n", "flow", "from", "to",
             "verb", "bytes", "completed", "start us", "complete us", "Gb/s", "typical us", "99 %", "max");
  for (const nlohmann::json& f : flows)
    fmt::print("{:<12} {:<6} {:<6} {:<10} {:>9} {:>10} {:>10.3f} {:>12} {:>9.3f} {:>11.3f} {:>9.3f} {:>9.3f}{}\n",
               f["name"].get<std::string>(), f["from"].get<std::string>(), f["to"].get<std::string>(),
               f["verb"].get<std::string>(), f["size"].get<std::uint64_t>(), f["completed"].get<std::uint64_t>(),
               f["start_us"].get<double>(),
               f.contains("completion_us") ? fmt::format("{:.3f}", f["completion_us"].get<double>()) : "-",
               f["goodput_gbps"].get<double>(), us_of(f, "typical"), us_of(f, "p99"), us_of(f, "max"), remark(f));
}

nlohmann::json deadlocks_json(const std::vector<hosts::standstill>& found, sim::time_ps begin) {
  nlohmann::json all = nlohmann::json::array();
  for (const hosts::standstill& s : found)
    all.push_back(
        {{"ways", s.ways}, {"priority", s.priority}, {"since_us", to_us(s.since - std::min(s.since, begin))}});
  return all;
}

void print_deadlocks(const std::vector<hosts::standstill>& found, sim::time_ps begin) {
  for (const hosts::standstill& s : found)
    fmt::print("\ndeadlock: {} wait for each other in priority {} since {} us\n", fmt::join(s.ways, ", "), s.priority,
               microseconds(s.since - std::min(s.since, begin)));
}

nlohmann::json ports_of(const fabric::topology& shape, unsigned number, const fabric::network_switch& of,
                        const nlohmann::json& increased, sim::time_ps took) {
  nlohmann::json all = nlohmann::json::array();
  const std::string& name = shape.switches()[number];
  for (unsigned p = 0; p < of.num_ports(); ++p) {
    const fabric::plug_place to = shape.beyond(number, p);
    const std::string port = name + ".port" + std::to_string(p) + ".";
    const auto counted = [&](const char* counter) { return increased.value(port + counter, std::uint64_t{0}); };
    nlohmann::json j = {
        {"switch", name},
        {"port", p},
        {"to", (to.is_switch ? shape.switches() : shape.hosts())[to.number]},
        {"tx_gbps", took > 0 ? static_cast<double>(counted("tx_bytes")) * 8e3 / static_cast<double>(took) : 0}};
    std::uint32_t most = 0, queued = 0;
    for (unsigned q = 0; q < fabric::priorities; ++q) {
      most = std::max(most, of.buffer().most_queued(p, q));
      queued += of.buffer().queued(p, q);
    }
    j["most_queued_bytes"] = most;
    j["queued_bytes"] = queued;
    for (const char* counter : {"rx_pause", "tx_pause", "marked", "drop_queue", "drop_headroom", "drop_vlan",
                                "drop_unknown", "drop_fcs", "drop_no_line"})
      j[counter] = counted(counter);
    for (const char* counter : {"ended", "qcn_sampled", "qcn_cnms"}) j[counter] = counted(counter);
    j["qcn_queue_bytes"] = counted("qcn_sampled_bytes") / std::max<std::uint64_t>(1, counted("qcn_sampled"));
    all.push_back(j);
  }
  return all;
}

nlohmann::json ports_json(hosts::network& network, const nlohmann::json& increased, sim::time_ps took) {
  nlohmann::json all = nlohmann::json::array();
  for (unsigned s = 0; s < network.switches(); ++s)
    for (nlohmann::json& port : ports_of(network.config().shape, s, network.middle(s), increased, took))
      all.push_back(std::move(port));
  return all;
}

std::uint64_t dropped_at(const nlohmann::json& port) {
  std::uint64_t dropped = 0;
  for (const auto& [name, value] : port.items())
    if (name.rfind("drop_", 0) == 0) dropped += value.get<std::uint64_t>();
  return dropped;
}

void print_ports(const nlohmann::json& ports) {
  fmt::print("{:<10} {:>4} {:<8} {:>9} {:>12} {:>9} {:>9} {:>9} {:>9}\n", "switch", "port", "to", "tx Gb/s",
             "most queued", "pauses rx", "tx", "marked", "dropped");
  for (const nlohmann::json& p : ports)
    fmt::print("{:<10} {:>4} {:<8} {:>9.3f} {:>12} {:>9} {:>9} {:>9} {:>9}\n", p["switch"].get<std::string>(),
               p["port"].get<unsigned>(), p["to"].get<std::string>(), p["tx_gbps"].get<double>(),
               p["most_queued_bytes"].get<std::uint64_t>(), p["rx_pause"].get<std::uint64_t>(),
               p["tx_pause"].get<std::uint64_t>(), p["marked"].get<std::uint64_t>(), dropped_at(p));
  for (const nlohmann::json& p : ports)
    if (p["qcn_cnms"].get<std::uint64_t>() != 0)
      fmt::print("congestion points of {} to {}: {} CNMs, {} samples, queue {} bytes on average\n",
                 p["switch"].get<std::string>(), p["to"].get<std::string>(), p["qcn_cnms"].get<std::uint64_t>(),
                 p["qcn_sampled"].get<std::uint64_t>(), p["qcn_queue_bytes"].get<std::uint64_t>());
}

}  // namespace rnic::program
