// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/run/run_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

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

/// What is measured of one workload between two hosts, or of several.
struct measured {
  std::uint64_t offered = 0, unfinished = 0, completed = 0, lost = 0;
  double mpps = 0, gbps = 0;

  void add(const measured& m) {
    offered += m.offered;
    unfinished += m.unfinished;
    completed += m.completed;
    lost += m.lost;
    mpps += m.mpps;
    gbps += m.gbps;
  }
};

/// Its receives tell what has come of what was sent.
bool is_told(const bench::workload& w) { return w.unreliable() && w.takes_receives(); }

/// Rates are over the measured part of the time in which the workload may send; where the number of its messages ends
/// it, up to its last completion.
measured measure(const bench::workload& w, const bench::workload_result& r, const bench::workload_times& t) {
  const bench::workload_config& c = w.config();
  measured m;
  m.offered = r.offered;
  m.unfinished = r.unfinished;
  m.completed = r.completed;
  const bool told = is_told(w);
  if (told) m.lost = r.offered - r.unfinished - r.received;
  sim::time_ps begin = std::max(t.begin + c.start, t.measure_from), end = c.end != 0 ? t.begin + c.end : t.end;
  end = std::min(end, t.end);
  if (c.messages != 0) {
    begin = std::max(begin, r.first_post);
    end = std::min(end, r.last_completion);
  }
  const double took = end > begin ? static_cast<double>(end - begin) : 0;
  if (took == 0) return m;
  m.mpps = static_cast<double>(told ? r.received_in_time : r.completed) * 1e6 / took;
  m.gbps = static_cast<double>(told ? r.received_bytes : r.bytes) * 8e3 / took;
  return m;
}

nlohmann::json to_json(const measured& m, const bench::latency_record& latencies, bool told) {
  nlohmann::json j = {{"offered", m.offered}, {"completed", m.completed}, {"unfinished", m.unfinished},
                      {"rate_mpps", m.mpps},  {"goodput_gbps", m.gbps},   {"latency", latency_json(latencies)}};
  if (told) j["lost"] = m.lost;
  return j;
}

std::string verbs_of(const bench::workload_config& c) {
  std::string text;
  for (const bench::workload_config::verb_part& v : c.verbs)
    text += (text.empty() ? "" : "+") + std::string(v.what->name);
  return text;
}

void print_row(const std::string& name, const std::string& from, const std::string& to, const nlohmann::json& m) {
  fmt::print("{:<12} {:<6} {:<6} {:>9} {:>9.3f} {:>9.3f}", name, from, to, m["completed"].get<std::uint64_t>(),
             m["rate_mpps"].get<double>(), m["goodput_gbps"].get<double>());
  const nlohmann::json& l = m["latency"];
  if (l["count"] == 0) {
    fmt::print("  no latencies\n");
    return;
  }
  for (const char* key : {"min", "mean", "p50", "p90", "p99", "p999", "p9999", "max"})
    fmt::print(" {:>9.3f}", l[key].get<double>());
  std::string rest;
  if (m.contains("lost") && m["lost"] != 0) rest += fmt::format("  {} lost", m["lost"].get<std::uint64_t>());
  if (m["unfinished"] != 0) rest += fmt::format("  {} unfinished", m["unfinished"].get<std::uint64_t>());
  fmt::print("{}\n", rest);
}

}  // namespace

nlohmann::json latency_json(const bench::latency_record& record) {
  nlohmann::json j = {{"count", record.count()}};
  if (record.empty()) return j;
  j["min"] = to_us(record.quantile(0));
  j["mean"] = record.mean_ps() / 1e6;
  for (const quantile_name& q : quantiles) j[q.key] = to_us(record.quantile(q.part));
  j["max"] = to_us(record.quantile(1));
  j["histogram"] = nlohmann::json::array();
  for (const bench::latency_record::bin& b : record.histogram())
    j["histogram"].push_back({{"from_us", b.from_ps / 1e6}, {"to_us", b.to_ps / 1e6}, {"count", b.count}});
  return j;
}

nlohmann::json workloads_json(const bench::workload_set& workloads, const fabric::topology& shape,
                              const bench::workload_times& times) {
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const bench::workload& w = workloads[i];
    measured sum;
    bench::latency_record latencies;
    nlohmann::json flows = nlohmann::json::array();
    for (const bench::workload_result& r : w.results()) {
      const measured m = measure(w, r, times);
      sum.add(m);
      latencies.add(r.latencies);
      nlohmann::json flow = {{"from", shape.hosts()[r.from]}, {"to", shape.hosts()[r.to]}};
      flow.update(to_json(m, r.latencies, is_told(w)));
      flows.push_back(std::move(flow));
    }
    nlohmann::json j = {{"name", w.config().name},
                        {"verbs", verbs_of(w.config())},
                        {"loop", w.config().open ? "open" : "closed"},
                        {"background", w.config().background}};
    j.update(to_json(sum, latencies, is_told(w)));
    if (w.config().open) j["most_waiting"] = w.most_waiting();
    if (!w.failure().empty()) j["failure"] = w.failure();
    j["flows"] = std::move(flows);
    all.push_back(std::move(j));
  }
  return all;
}

nlohmann::json sum_json(const bench::workload_set& workloads, const bench::workload_times& times) {
  measured sum;
  bench::latency_record latencies;
  bool told = false;
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const bench::workload& w = workloads[i];
    if (w.config().background) continue;
    told |= is_told(w);
    for (const bench::workload_result& r : w.results()) {
      sum.add(measure(w, r, times));
      latencies.add(r.latencies);
    }
  }
  return to_json(sum, latencies, told);
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
}

}  // namespace rnic::program
