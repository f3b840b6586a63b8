// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

#include "model/version/version.h"
#include "testbenches/bench/link_target.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/named_files.h"

namespace rnic::program {

sample_summary summarise(const std::vector<sim::time_ps>& samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
  sample_summary s;
  s.count = samples.size();
  s.typical_sample = order[(s.count - 1) / 2];
  s.minimum = samples[order.front()];
  s.typical = samples[s.typical_sample];
  s.p99 = samples[order[(s.count * 99 + 99) / 100 - 1]];  // the nearest rank, as latency_record::quantile()
  s.maximum = samples[order.back()];
  s.sum = std::accumulate(samples.begin(), samples.end(), std::uint64_t{0});
  return s;
}

std::string microseconds(sim::time_ps t) { return fmt::format("{}.{:03}", t / sim::ps_per_us, t / 1000 % 1000); }

double to_us(sim::time_ps t) { return static_cast<double>(t) / 1e6; }

namespace {

struct stage_time {
  std::string_view block, stage;
  sim::wait waited = sim::wait::none;
  sim::time_ps spent = 0;
};

/// Each stage of each block once, in the order in which the message came there first: a stage that it went through
/// more than once (lines of a store, a repetition) has the sum.
std::vector<stage_time> stages_of(const sim::span& s) {
  std::vector<stage_time> stages;
  sim::time_ps before = s.start();
  for (unsigned i = 0; i < s.count(); ++i) {
    const sim::span::mark& m = s[i];
    auto at = std::find_if(stages.begin(), stages.end(),
                           [&](const stage_time& t) { return t.block == m.block && t.stage == m.stage; });
    if (at == stages.end()) at = stages.insert(at, {m.block, m.stage, sim::wait::none, 0});
    if (m.waited != sim::wait::none) at->waited = m.waited;
    at->spent += m.at - before;
    before = m.at;
  }
  return stages;
}

}  // namespace

nlohmann::json stages_json(const sim::span& s) {
  nlohmann::json stages = nlohmann::json::array();
  for (const stage_time& t : stages_of(s))
    stages.push_back({{"block", t.block}, {"stage", t.stage}, {"wait", sim::to_string(t.waited)}, {"ps", t.spent}});
  return stages;
}

std::string stages_text(const sim::span& s) {
  const std::vector<stage_time> stages = stages_of(s);
  std::size_t width = 24;
  for (const stage_time& t : stages) width = std::max(width, t.block.size());
  std::string text;
  for (const stage_time& t : stages)
    text +=
        fmt::format("      {:<{}} {:<22} {:>10.3f} ns{}\n", t.block, width, t.stage, static_cast<double>(t.spent) / 1e3,
                    t.waited != sim::wait::none ? std::string("  waiting: ") + sim::to_string(t.waited) : "");
  text += fmt::format("      {:<{}} {:>10.3f} ns\n", "end to end", width + 23,
                      static_cast<double>(s.end() - s.start()) / 1e3);
  return text;
}

namespace {

/// Each name once, in the order in which they come.
void note(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// part(column), 0 to 1, in per cent.
template <class Part>
void print_row(const std::string& label, const std::vector<usage_column>& columns, Part part) {
  fmt::print("    {:<44}", label);
  for (const usage_column& c : columns) fmt::print("{:>11.1f}", 100 * part(c));
  fmt::print("\n");
}

double part_of(const std::vector<std::pair<std::string, double>>& parts, const std::string& name) {
  for (const auto& [whom, part] : parts)
    if (whom == name) return part;
  return 0;
}

void print_standstills(const std::vector<usage_column>& columns, double least) {
  std::vector<std::string> names;
  for (const usage_column& c : columns)
    for (const auto& [name, part] : c.standstills)
      if (part >= least) note(names, name);
  if (names.empty()) return;
  fmt::print("\n    {:<44}\n", "a queue pair stood still for, % of the time");
  for (const std::string& name : names)
    print_row(name, columns, [&](const usage_column& c) { return part_of(c.standstills, name); });
}

}  // namespace

void print_utilisation(const std::vector<usage_column>& columns, double least) {
  const bench::share nothing{};
  const auto of = [&](const usage_column& c, const std::string& name) -> const bench::share& {
    const auto found = std::find_if(c.shares.begin(), c.shares.end(), [&](const auto& s) { return s.name == name; });
    return found == c.shares.end() ? nothing : *found;
  };
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::string>> blockers;
  std::set<std::string> memories;
  for (const usage_column& c : columns) {
    for (const bench::share& s : c.shares) {
      if (s.busy >= least) note(names, s.name);
      if (s.memory) memories.insert(s.name);
      for (const auto& [by, part] : s.blocked) {
        if (part < least) continue;
        note(names, s.name);
        note(blockers[s.name], by);
      }
    }
  }
  fmt::print("\n    {:<44}", "in use, % of the time");
  for (const usage_column& c : columns) fmt::print("{:>9} B", c.size);
  fmt::print("\n");
  for (const std::string& name : names) {
    print_row(name, columns, [&](const usage_column& c) { return of(c, name).busy; });
    for (const std::string& by : blockers[name])
      print_row((memories.count(name) != 0 ? "  kept waiting: " : "  blocked by: ") + by, columns,
                [&](const usage_column& c) { return part_of(of(c, name).blocked, by); });
  }
  print_standstills(columns, least);
}

void print_busiest(const usage_column& usage, double least, std::size_t most) {
  fmt::print("\nin use, % of the time\n");
  std::size_t rows = 0, more = 0;
  const auto waits = [](const bench::share& s) { return s.memory || s.blocked.empty() ? 0 : s.blocked.front().second; };
  for (const bench::share& s : usage.shares) {  // the most busy first
    if (s.busy < least && waits(s) < least) continue;
    if (++rows > most) {
      ++more;
      continue;
    }
    fmt::print("  {:<46}{:>6.1f}", s.name, 100 * s.busy);
    if (!s.blocked.empty() && s.blocked.front().second >= least)
      fmt::print("   {}{}: {:.1f}", s.memory ? "kept waiting: " : "blocked by ", s.blocked.front().first,
                 100 * s.blocked.front().second);
    fmt::print("\n");
  }
  if (rows == 0) fmt::print("  nothing for {:.0f} % or more\n", 100 * least);
  if (more != 0) fmt::print("  and {} more (--json has all)\n", more);
  bool titled = false;
  rows = 0;
  for (const auto& [name, part] : usage.standstills) {
    if (part < least || ++rows > most) break;
    if (!std::exchange(titled, true)) fmt::print("a queue pair stood still for, % of the time\n");
    fmt::print("  {:<46}{:>6.1f}\n", name, 100 * part);
  }
}

nlohmann::json utilisation_json(const std::vector<bench::share>& shares) {
  nlohmann::json all = nlohmann::json::object();
  for (const bench::share& s : shares) all[s.name] = s.busy;
  return all;
}

namespace {

nlohmann::json waits_json(const std::vector<bench::share>& shares, bool memories) {
  nlohmann::json all = nlohmann::json::object();
  for (const bench::share& s : shares)
    if (s.memory == memories)
      for (const auto& [by, part] : s.blocked) all[s.name][by] = part;
  return all;
}

}  // namespace

void put_usage(nlohmann::json& to, const usage_column& usage) {
  to["utilisation"] = utilisation_json(usage.shares);
  to["blocked"] = blocked_json(usage.shares);
  to["kept_waiting"] = kept_waiting_json(usage.shares);
  to["stood_still"] = standstills_json(usage.standstills);
}

nlohmann::json blocked_json(const std::vector<bench::share>& shares) { return waits_json(shares, false); }
nlohmann::json kept_waiting_json(const std::vector<bench::share>& shares) { return waits_json(shares, true); }

nlohmann::json standstills_json(const std::vector<std::pair<std::string, double>>& standstills) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [name, part] : standstills) all[name] = part;
  return all;
}

void check_writable(const common_options& options, const std::string& file) {
  if (file.empty()) return;
  name_result(file);
  if (is_standard_output(file)) return;
  const bool is_there = std::filesystem::exists(file);
  if (!options.overwrite && is_there) throw usage_error(file + ": exists already; give another name or --overwrite");
  if (std::filesystem::is_fifo(file)) return;  // to open it is to begin: who reads would find its end
  std::ofstream probe(file, std::ios::app);
  if (!probe) throw usage_error(file + ": cannot be written");
  probe.close();
  if (!is_there) std::filesystem::remove(bench::link_target(file));
}

nlohmann::json run_header(const char* command, const common_options& options) {
  nlohmann::json header = {{"command", command},
                           {"version", rnic::version()},
                           {"profile", options.profile},
                           {"seed", options.seed},
                           {"set", options.assignments}};
  if (!options.traffic_classes.empty()) header["traffic_class"] = options.traffic_classes;
  if (!options.ttl.empty()) header["ttl"] = options.ttl;
  return header;
}

namespace {
double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
}  // namespace

progress::progress(const common_options& options, std::string what, std::uint64_t total)
    : what_(std::move(what)), total_(total), shown_(!options.quiet && isatty(STDERR_FILENO) != 0) {}

progress::~progress() {
  if (shown_ && last_percent_ != ~std::uint64_t{0}) std::fprintf(stderr, "\r%*s\r", 60, "");
}

void progress::at(std::uint64_t done) {
  if (!shown_ || total_ == 0) return;
  const std::uint64_t percent = done * 100 / total_;
  if (percent == last_percent_) return;
  last_percent_ = percent;
  std::string left;
  if (const double passed = seconds_since(begin_); done != 0 && percent < 100 && passed > 1) {
    const double rest = passed * static_cast<double>(total_ - std::min(done, total_)) / static_cast<double>(done);
    left = rest < 100 ? fmt::format(", {:.0f} s left", rest) : fmt::format(", {:.0f} min left", rest / 60);
  }
  std::fprintf(stderr, "\r%s: %3llu %%%-16s", what_.c_str(), static_cast<unsigned long long>(percent), left.c_str());
  std::fflush(stderr);
}

}  // namespace rnic::program
