// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/run/run_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "host_driver/workloads/measured.h"
#include "testbenches/bench/latency_histogram.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

struct quantile_name {
  const char *key, *title;
  double part;
};
constexpr quantile_name quantiles[] = {{"p50", "50 %", 0.5},
                                       {"p90", "90 %", 0.9},
                                       {"p99", "99 %", 0.99},
                                       {"p999", "99.9 %", 0.999},
                                       {"p9999", "99.99 %", 0.9999}};

using workloads::is_told_by_receives;
using workloads::measure;
using workloads::measured;

/// What is known of the messages of a workload, or of several.
struct knowledge {
  bool losses = false;  ///< receives tell of them
  bool sent = false;    ///< of some nobody knows what came
  void add(const workloads::workload& w) {
    losses |= is_told_by_receives(w);
    sent |= w.unreliable() && !is_told_by_receives(w);
  }
};
knowledge known_of(const workloads::workload& w) {
  knowledge k;
  k.add(w);
  return k;
}

nlohmann::json to_json(const measured& m, const workloads::latency_record& latencies, const knowledge& known) {
  nlohmann::json j = {{"offered", m.offered},  {"completed", m.completed}, {"unfinished", m.unfinished},
                      {"rate_mpps", m.mpps()}, {"goodput_gbps", m.gbps()}, {"latency", latency_json(latencies)}};
  if (known.losses) j["lost"] = m.lost;
  if (known.sent) j["goodput_is_of"] = "sent";
  return j;
}

std::string verbs_of(const workloads::workload_config& c) {
  std::string text;
  for (const workloads::workload_config::verb_part& v : c.verbs)
    text += (text.empty() ? "" : "+") + std::string(v.what->name);
  return text;
}

void print_row(const std::string& name, const std::string& from, const std::string& to, const nlohmann::json& m) {
  fmt::print("{:<12} {:<6} {:<6} {:>9} {:>9.3f} {:>9.3f}", name, from, to, m["completed"].get<std::uint64_t>(),
             m["rate_mpps"].get<double>(), m["goodput_gbps"].get<double>());
  const nlohmann::json& l = m["latency"];
  std::string rest;
  if (l["count"] == 0)
    rest = "  no latencies";
  else
    for (const char* key : {"min", "mean", "p50", "p90", "p99", "p999", "p9999", "max"})
      fmt::print(" {:>9.3f}", l[key].get<double>());
  if (m.contains("goodput_is_of")) rest += "  as sent";
  if (m.contains("lost") && m["lost"] != 0) rest += fmt::format("  {} lost", m["lost"].get<std::uint64_t>());
  if (m["unfinished"] != 0) rest += fmt::format("  {} unfinished", m["unfinished"].get<std::uint64_t>());
  fmt::print("{}\n", rest);
}

}  // namespace

nlohmann::json latency_json(const workloads::latency_record& record) {
  nlohmann::json j = {{"count", record.count()}};
  if (record.empty()) return j;
  j["min"] = to_us(record.quantile(0));
  j["mean"] = record.mean_ps() / 1e6;
  for (const quantile_name& q : quantiles) j[q.key] = to_us(record.quantile(q.part));
  j["max"] = to_us(record.quantile(1));
  j["histogram"] = nlohmann::json::array();
  for (const bench::latency_bin& b : bench::histogram_of(record))
    j["histogram"].push_back({{"from_us", b.from_ps / 1e6}, {"to_us", b.to_ps / 1e6}, {"count", b.count}});
  return j;
}

nlohmann::json workloads_json(const workloads::workload_set& workloads, const fabric::topology& shape,
                              const workloads::workload_times& times) {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const workloads::workload& w = workloads[i];
    measured sum;
    workloads::latency_record latencies;
    nlohmann::json flows = nlohmann::json::array();
    for (const workloads::workload_result& r : w.results()) {
      const measured m = measure(w, r, times);
      sum.add(m);
      latencies.add(r.latencies);
      nlohmann::json flow = {{"from", shape.hosts()[r.from]}, {"to", shape.hosts()[r.to]}};
      flow.update(to_json(m, r.latencies, known_of(w)));
      flows.push_back(std::move(flow));
    }
    nlohmann::json j = {{"name", w.config().name},
                        {"verbs", verbs_of(w.config())},
                        {"loop", w.config().open        ? "open"
                                 : w.config().ping_pong ? "ping-pong"
                                                        : "closed"},
                        {"background", w.config().background}};
    j.update(to_json(sum, latencies, known_of(w)));
    if (w.config().open) j["most_waiting"] = w.most_waiting();
    if (!w.failure().empty()) j["failure"] = w.failure();
    j["flows"] = std::move(flows);
    all.push_back(std::move(j));
  }
  return all;
}

nlohmann::json sum_json(const workloads::workload_set& workloads, const workloads::workload_times& times) {
  measured sum;
  workloads::latency_record latencies;
  knowledge known;
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const workloads::workload& w = workloads[i];
    if (w.config().background) continue;
    known.add(w);
    for (const workloads::workload_result& r : w.results()) {
      sum.add(measure(w, r, times));
      latencies.add(r.latencies);
    }
  }
  return to_json(sum, latencies, known);
}

void print_workloads(const nlohmann::json& workloads, const nlohmann::json& sum) {
  constexpr std::size_t most_rows = 16;  // of a workload
  fmt::print("{:<12} {:<6} {:<6} {:>9} {:>9} {:>9} {:>9} {:>9}", "workload", "from", "to", "messages", "Mpps", "Gb/s",
             "min us", "mean");
  for (const quantile_name& q : quantiles) fmt::print(" {:>9}", q.title);
  fmt::print(" {:>9}\n", "max");
  for (const nlohmann::json& w : workloads) {
    const auto name = w["name"].get<std::string>();
    const nlohmann::json& flows = w["flows"];
    if (flows.size() <= most_rows)
      for (const nlohmann::json& f : flows)
        print_row(name, f["from"].get<std::string>(), f["to"].get<std::string>(), f);
    if (flows.size() > 1) print_row(name, fmt::format("{} flows", flows.size()), "", w);
    if (w.contains("failure")) fmt::print("{:<12} failed: {}\n", name, w["failure"].get<std::string>());
  }
  if (workloads.size() > 1) print_row("all", "", "", sum);
  for (const nlohmann::json& w : workloads)
    if (w["loop"] == "ping-pong")
      fmt::print("\n{}: each message is answered, and latencies are halves of round trips\n",
                 w["name"].get<std::string>());
}

}  // namespace rnic::program
