// SPDX-License-Identifier: Apache-2.0
// `rnic explain`: what limited a run, and what more of each resource gives, measured by running it again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/version/version.h"
#include "testbenches/rnic/children.h"
#include "testbenches/rnic/compare/result_fields.h"
#include "testbenches/rnic/explain/explained_run.h"
#include "testbenches/rnic/explain/metric.h"
#include "testbenches/rnic/explain/resources.h"
#include "testbenches/rnic/explain/steps.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

namespace fs = std::filesystem;

constexpr double least_gain = 0.1;  // per cent, of what is printed

/// A change of some knobs of one resource.
struct change {
  const resource* of = nullptr;
  variation made;
  std::vector<std::string> words;  ///< "adapter.requester.wqe_cycles 78 to 71"
  double more = 0;                 ///< of the knob that has changed most, in per cent
  std::optional<double> value;     ///< the metric
  std::string limited_by, error;
};

class explanation {
 public:
  explicit explanation(const explain_options& o) : options_(o), run_(o) {}

  int run();

 private:
  void look_at(const nlohmann::json& base);
  std::vector<change> changes(double percent) const;
  void measure(std::vector<change>& all);
  bool add(const resource_knob& k, double percent, change& c) const;
  void read_metric(change& c, std::size_t number) const;
  void print(const std::vector<change>& all, const std::vector<change>& named) const;
  void print_in_vain(const std::vector<std::string>& resources) const;
  void keep(const std::vector<change>& all, const std::vector<change>& named) const;
  double gain(const change& c) const { return metric_.gain(*c.value); }
  bool tells(const change& c) const { return std::abs(gain(c)) >= std::max(least_gain, metric_.step() * (1 - 1e-9)); }

  const explain_options& options_;
  explained_run run_;
  metric metric_;
  std::string limited_by_;
  std::vector<latency_step> steps_;
};

/// What limited the run, of those that say it.
std::string limit_in(const named_fields& fields) {
  for (const auto& [name, value] : fields)
    if (matches("rows.*.limited_by", name)) return value.get<std::string>();
  return {};
}

/// What the run gives as it is.
void explanation::look_at(const nlohmann::json& base) {
  const named_fields fields = fields_of(base);
  const char* const usual = run_.has_latencies() ? "rows.*.typical_us"
                            : run_.is_short()    ? "rows.*.rate_mpps"
                                                 : "all.rate_mpps";
  metric_ = metric(fields, options_.metric, usual, run_.ends_by_time());
  limited_by_ = limit_in(fields);
  if (!run_.has_latencies()) return;
  const traffic_options traffic;
  steps_ = latency_steps(base.at("rows"), run_.option("inline", traffic.inline_bytes), run_.option("mtu", traffic.mtu));
}

/// False: the experiment has not got this knob, or there is no more of it.
bool explanation::add(const resource_knob& k, double percent, change& c) const {
  bool any = false;
  for (const knob_place& place : run_.places_of(k.path)) {
    const auto next = with_more(k, place.now, percent);
    const bool parameter = place.field.empty();
    if (!next && any && parameter) c.made.set.push_back(fmt::format("{}={}", place.name, place.now));  // stays
    if (!next) continue;
    any = true;
    c.words.push_back(fmt::format("{} {} to {}", place.name, place.now, *next));
    const double a = static_cast<double>(place.now), b = static_cast<double>(*next);
    c.more = std::max(c.more, 100 * (k.how == resource_knob::way::less ? a / b - 1 : b / a - 1));
    if (parameter)
      c.made.set.push_back(fmt::format("{}={}", place.name, *next));
    else
      c.made.fields.emplace_back(place.field, *next);
  }
  return any;
}

std::vector<change> explanation::changes(double percent) const {
  std::vector<change> all;
  for (const resource& r : known_resources()) {
    change c;
    c.of = &r;
    bool any = false;
    for (const resource_knob& k : r.knobs) any |= add(k, percent, c);
    if (any) all.push_back(std::move(c));
  }
  return all;
}

void explanation::read_metric(change& c, std::size_t number) const {
  if (!fs::exists(run_.result_of(number))) {
    c.error = run_.error_of(c.made, number);
    return;
  }
  const named_fields fields = fields_of(read_result(run_.result_of(number)));
  c.value = metric_.value_in(fields);
  c.limited_by = limit_in(fields);
}

void explanation::measure(std::vector<change>& all) {
  common_options quiet;
  quiet.quiet = options_.quiet;
  progress shown(quiet, "explain", all.size());
  std::uint64_t done = 0;
  run_all(
      all.size(), options_.jobs, [&](std::size_t i) { return run_.run_of(all[i].made, i + 1); },
      [&](std::size_t i, int) {
        read_metric(all[i], i + 1);
        shown.at(++done);
      });
}

/// In a network as many knobs may change as it has cables.
std::string words_of(const change& c) {
  constexpr std::size_t most = 8;
  if (c.words.size() <= most) return fmt::format("{}", fmt::join(c.words, ", "));
  return fmt::format("{} and {} more", fmt::join(c.words.begin(), c.words.begin() + most, ", "), c.words.size() - most);
}

void explanation::print(const std::vector<change>& all, const std::vector<change>& named) const {
  const std::string& name = metric_.name();
  fmt::print("{}: {} {:g}{}\n\n", options_.file, name, metric_.value(),
             limited_by_.empty() ? "" : ", limited by " + limited_by_);
  fmt::print("{:<28} {:>8} {:>12} {:>8}\n", "with more of", "by", name.substr(name.rfind('.') + 1), "gain");
  std::vector<std::string> in_vain;
  for (const change& c : all) {
    if (!c.value) {
      fmt::print("{:<28} {:>+7.1f}% {:>12} {:>8}  {}\n", c.of->name, c.more, "none", "", c.error);
      continue;
    }
    if (!tells(c)) {
      in_vain.push_back(c.of->name);
      continue;
    }
    fmt::print("{:<28} {:>+7.1f}% {:>12.4g} {:>+7.2f}%  {}\n", c.of->name, c.more, *c.value, gain(c), words_of(c));
  }
  print_in_vain(in_vain);
  for (const change& c : named) {
    if (!c.value) continue;
    fmt::print("\nwith {:+.0f} % of {} the run gives {:g} ({:+.1f} %)", c.more, c.of->name, *c.value, gain(c));
    fmt::print(c.limited_by.empty() ? "\n" : ", and is limited by {}\n", c.limited_by);
  }
  print_steps(steps_);
}

/// Few messages cannot tell of a small gain.
void explanation::print_in_vain(const std::vector<std::string>& resources) const {
  const bool coarse = metric_.step() > least_gain;
  const double least = coarse ? std::ceil(10 * metric_.step()) / 10 : least_gain;
  if (!resources.empty()) fmt::print("less than {:g} % with more of: {}\n", least, fmt::join(resources, ", "));
  if (coarse)
    fmt::print("a step of this metric is {:.2f} % ({:g} messages); a longer run tells smaller gains\n", metric_.step(),
               metric_.messages());
}

void explanation::keep(const std::vector<change>& all, const std::vector<change>& named) const {
  if (options_.json_file.empty()) return;
  const auto rows = [this](const std::vector<change>& some) {
    nlohmann::json j = nlohmann::json::array();
    for (const change& c : some) {
      nlohmann::json row = {{"resource", c.of->name}, {"changed", c.words}, {"more_percent", c.more}};
      if (c.value) {
        row["value"] = *c.value;
        row["gain_percent"] = gain(c);
      }
      if (!c.limited_by.empty()) row["limited_by"] = c.limited_by;
      if (!c.error.empty()) row["error"] = c.error;
      j.push_back(std::move(row));
    }
    return j;
  };
  nlohmann::json j = {{"command", "explain"},     {"version", version()},   {"metric", metric_.name()},
                      {"value", metric_.value()}, {"with_more", rows(all)}, {"next", rows(named)}};
  if (metric_.step() > 0) j["step_percent"] = metric_.step();
  if (!limited_by_.empty()) j["limited_by"] = limited_by_;
  if (!steps_.empty()) j["steps"] = steps_json(steps_);
  write_json(options_.json_file, j);
}

int explanation::run() {
  look_at(run_.base());
  std::vector<change> all = changes(options_.more);
  measure(all);
  // What gives most for what it takes comes first; what gives nothing in the order of the way through the adapter.
  const auto worth = [this](const change& c) { return c.value ? std::round(1e4 * gain(c) / c.more) : -1e9; };
  std::stable_sort(all.begin(), all.end(), [&](const change& a, const change& b) { return worth(a) > worth(b); });
  // What comes behind the one that gives most: twice of it.
  std::vector<change> named;
  if (!all.empty() && all.front().value && gain(all.front()) > 0.5)
    for (change& c : changes(100))
      if (c.of == all.front().of) named.push_back(std::move(c));
  measure(named);
  print(all, named);
  keep(all, named);
  return 0;
}

}  // namespace

int run_explain(const explain_options& o) {
  common_options written;
  written.overwrite = o.overwrite;
  check_writable(written, o.json_file);
  return explanation(o).run();
}

}  // namespace rnic::program
