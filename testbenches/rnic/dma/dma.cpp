// SPDX-License-Identifier: Apache-2.0
// `rnic dma`: each measurement in a slot, and a process, of its own.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

#include "testbenches/bench/child.h"
#include "testbenches/bench/dma_bench.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

/// Parts of the transfers that a row's quantiles are of.
constexpr std::pair<const char*, double> dma_quantiles[] = {{"min_ns", 0},    {"median_ns", 0.5}, {"p95_ns", 0.95},
                                                            {"p99_ns", 0.99}, {"p999_ns", 0.999}, {"max_ns", 1}};

bool is_latency_test(const std::string& test) { return test.compare(0, 3, "lat") == 0; }

hosts::node_config dma_host(const dma_options& o) {
  hosts::node_config c = system_from(o.common, traffic_options{}, demand{}, nullptr, one_adapter).node;
  if (o.card == "pcie-bench") c.adapter.pcie = bench::measuring_card(c.adapter.pcie);
  // As the adapter does it.
  if (c.adapter.pcie.core.interface_bytes == 0) c.adapter.pcie.core.interface_bytes = c.adapter.datapath_bytes;
  return c;
}

bench::dma_load dma_load_of(const dma_options& o, const std::string& test, std::uint32_t bytes) {
  bench::dma_load l;
  const std::vector<std::string>& names = bench::dma_test_names();
  const auto at = std::find(names.begin(), names.end(), test);
  if (at == names.end())
    throw usage_error("--test: " + test + ": expected one of " + fmt::format("{}", fmt::join(names, ", ")));
  l.test = static_cast<bench::dma_test>(at - names.begin());
  l.bytes = bytes;
  l.offset = o.offset;
  l.window = o.window;
  l.sequential = o.pattern == "sequential";
  l.cache = o.cache == "host"     ? bench::cache_state::host_warm
            : o.cache == "device" ? bench::cache_state::device_warm
                                  : bench::cache_state::cold;
  l.remote = o.node == "remote";
  l.llc_bytes = o.llc;
  l.count = o.count != 0 ? o.count : is_latency_test(test) ? 2000 : 20'000;
  l.seed = o.common.seed;
  if (o.card == "pcie-bench") l.fetch = bench::card_fetch{};
  return l;
}

nlohmann::json dma_row(const dma_options& o, const std::string& test, std::uint32_t bytes) {
  const bench::dma_load load = dma_load_of(o, test, bytes);
  const bench::dma_outcome outcome = bench::run_dma(dma_host(o), load);
  nlohmann::json row{{"test", test}, {"bytes", bytes}, {"count", load.count}, {"failed", outcome.failed}};
  if (is_latency_test(test)) {
    const unsigned times = o.card != "pcie-bench" ? 0 : load.test == bench::dma_test::lat_wrrd ? 2 : 1;
    const sim::time_ps engine = times * bench::card_engine_ps;
    for (const auto& [name, part] : dma_quantiles)
      row[name] = static_cast<double>(outcome.latencies.quantile(part) + engine) / 1000;
    row["mean_ns"] = (outcome.latencies.mean_ps() + static_cast<double>(engine)) / 1000;
  } else {
    row["gbps"] = outcome.gbps;
    row["mtps"] = outcome.mtps;
  }
  for (const auto& [name, value] : outcome.counters) row["counters"][name] = value;
  return row;
}

/// What the slot refuses is told by the process that was asked.
nlohmann::json dma_row_or_refusal(const dma_options& o, const std::string& test, std::uint32_t bytes) {
  try {
    return dma_row(o, test, bytes);
  } catch (const sim::config_error& e) {
    return {{"refused", e.what()}};
  }
}

nlohmann::json dma_rows(const dma_options& o) {
  std::vector<std::pair<std::string, std::uint32_t>> all;
  for (const std::string& test : o.tests)
    for (const std::uint32_t bytes : o.sizes) all.emplace_back(test, bytes);
  progress shown(o.common, "dma", all.size());
  std::vector<nlohmann::json> rows(all.size());
  std::size_t done = 0;
  bench::run_children(
      all.size(), o.jobs, [&](std::size_t i) { return dma_row_or_refusal(o, all[i].first, all[i].second).dump(); },
      [&](std::size_t i, bench::child& process) {
        rows[i] = nlohmann::json::parse(process.finish());
        if (rows[i].contains("refused")) throw sim::config_error(rows[i]["refused"].get<std::string>());
        shown.at(++done);
      });
  return rows;
}

/// Of the lookups of a row, in per cent; a dash without an IOMMU.
std::string iotlb_hits(const nlohmann::json& row) {
  const auto of = [&](const char* name) {
    return static_cast<double>(row["counters"].value(std::string("root.iommu.") + name, std::uint64_t{0}));
  };
  const double all = of("hits") + of("misses");
  return all == 0 ? "-" : fmt::format("{:.1f}", 100 * of("hits") / all);
}

void print_dma_rows(const nlohmann::json& rows, bool latencies) {
  const auto of_kind = [=](const nlohmann::json& r) { return is_latency_test(r["test"]) == latencies; };
  if (std::none_of(rows.begin(), rows.end(), of_kind)) return;
  if (latencies)
    fmt::print("\n{:<9} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>11}   {}\n", "latency", "bytes", "transfers",
               "min ns", "median", "95 %", "99 %", "99.9 %", "max", "IOTLB hits, %");
  else
    fmt::print("\n{:<9} {:>8} {:>9} {:>9} {:>12}   {}\n", "bandwidth", "bytes", "transfers", "Gb/s", "Mtransfers/s",
               "IOTLB hits, %");
  for (const nlohmann::json& r : rows) {
    if (!of_kind(r)) continue;
    fmt::print("{:<9} {:>8} {:>9}", r["test"].get<std::string>(), r["bytes"].get<std::uint32_t>(),
               r["count"].get<std::uint64_t>());
    if (latencies) {
      for (const auto& [name, part] : dma_quantiles)
        fmt::print(part < 0.999 ? " {:>9.0f}" : " {:>11.0f}", r[name].get<double>());
      fmt::print("   {}\n", iotlb_hits(r));
    } else {
      fmt::print(" {:>9.3f} {:>12.3f}   {}\n", r["gbps"].get<double>(), r["mtps"].get<double>(), iotlb_hits(r));
    }
    if (const auto failed = r["failed"].get<std::uint64_t>(); failed != 0)
      fmt::print("          {} transfers failed\n", failed);
  }
}

/// What is wrong with it, before anything runs.
void check_dma(const dma_options& o) {
  check_writable(o.common, o.common.json_file);
  if (!o.common.pcap_file.empty()) throw usage_error("--pcap: no frame is on a cable");
  if (o.tests.empty() || o.sizes.empty()) throw usage_error("--test, --sizes: expected at least one");
  for (const std::uint32_t bytes : o.sizes)
    if (bench::dma_places(dma_load_of(o, o.tests.front(), bytes)) == 0)
      throw usage_error(fmt::format("--window: {} bytes do not hold a transfer of {} bytes, {} behind a line", o.window,
                                    bytes, o.offset));
  dma_host(o);  // refuses what is not a parameter, once
}

}  // namespace

int run_dma(const dma_options& given) {
  dma_options o = given;
  for (std::string& test : o.tests)
    std::transform(test.begin(), test.end(), test.begin(), [](unsigned char c) { return std::tolower(c); });
  check_dma(o);
  const nlohmann::json rows = dma_rows(o);
  fmt::print("DMA through {}, window of {} bytes, {} places, {} node, {}\n",
             o.card == "pcie-bench" ? "pcie-bench's card" : "the adapter of " + o.common.profile, o.window, o.pattern,
             o.node,
             o.cache == "host"     ? "touched by the host"
             : o.cache == "device" ? "written by the device"
                                   : "not in a cache");
  print_dma_rows(rows, true);
  print_dma_rows(rows, false);
  if (!o.common.json_file.empty()) {
    nlohmann::json result = run_header("dma", o.common);
    result["card"] = o.card;
    result["offset"] = o.offset;
    result["window"] = o.window;
    result["pattern"] = o.pattern;
    result["cache"] = o.cache;
    result["node"] = o.node;
    result["llc"] = o.llc;
    result["rows"] = rows;
    write_json(o.common.json_file, result);
  }
  return 0;
}

}  // namespace rnic::program
