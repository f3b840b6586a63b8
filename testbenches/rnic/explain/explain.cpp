// SPDX-License-Identifier: Apache-2.0
// `rnic explain`: what limited a run, and what more of each resource gives, measured by running it again.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/workloads/workload.h"
#include "model/fabric/topology.h"
#include "model/version/version.h"
#include "testbenches/rnic/children.h"
#include "testbenches/rnic/compare/result_fields.h"
#include "testbenches/rnic/explain/resources.h"
#include "testbenches/rnic/explain/steps.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/run/experiment_file.h"
#include "testbenches/rnic/sweep/sweep_file.h"

namespace rnic::program {

namespace {

namespace fs = std::filesystem;

constexpr double least_gain = 0.1;  // per cent, of what is printed

/// A folder that goes when its user does.
class working_folder {
 public:
  working_folder() {
    std::string name = (fs::temp_directory_path() / "rnic-explain-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw usage_error(name + ": cannot be made");
    path_ = name;
  }
  ~working_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  working_folder(const working_folder&) = delete;
  working_folder& operator=(const working_folder&) = delete;
  fs::path file(std::size_t run, const char* ending) const { return path_ / (std::to_string(run) + ending); }

 private:
  fs::path path_;
};

/// A change of some knobs of one resource.
struct change {
  const resource* of = nullptr;
  std::vector<std::string> set;                               ///< "path=value" of parameters
  std::vector<std::pair<std::string, std::uint64_t>> fields;  ///< of the experiment
  std::vector<std::string> words;                             ///< "adapter.requester.wqe_cycles 78 to 71"
  double more = 0;                                            ///< of the knob that has changed most, in per cent
  std::optional<double> value;                                ///< the metric
  std::string limited_by, error;
};

/// Where a knob is.
struct knob_place {
  std::string name;   ///< for reports
  std::string field;  ///< of the experiment; empty: it is the parameter of that name
  std::uint64_t now = 0;
};

class explanation {
 public:
  explicit explanation(const explain_options& o) : options_(o) { read_experiment(); }

  int run();

 private:
  void read_experiment();
  void look_at(const nlohmann::json& base);
  std::vector<change> changes(double percent) const;
  void measure(std::vector<change>& all);
  own_run run_of(const toml::table& experiment, const std::vector<std::string>& set, std::size_t number) const;
  std::vector<knob_place> places_of(const std::string& path) const;
  bool add(const resource_knob& k, double percent, change& c) const;
  void read_metric(change& c, std::size_t number) const;
  void print(const std::vector<change>& all, const std::vector<change>& named) const;
  void keep(const std::vector<change>& all, const std::vector<change>& named) const;
  double gain(const change& c) const;
  bool is_short() const { return experiment_.contains("bandwidth") || experiment_.contains("latency"); }

  const explain_options& options_;
  working_folder folder_;
  toml::table experiment_;
  std::vector<std::string> set_;
  toml::table parameters_;
  std::string metric_, limited_by_;
  double base_ = 0;
  std::vector<latency_step> steps_;
  bool lower_is_better_ = false;
};

/// From a file of `rnic run`, or from a result, which has that file and what was set beside it.
void explanation::read_experiment() {
  std::string text = experiment_text(options_.file);
  if (const auto first = text.find_first_not_of(" \t\r\n"); first != std::string::npos && text[first] == '{') {
    const nlohmann::json result = read_result(options_.file);
    const auto file = result.find("file");
    if (file == result.end() || !file->is_string())
      throw usage_error(options_.file + ": is no result of run, latency or bandwidth, which have \"file\"");
    text = file->get<std::string>();
    if (text.rfind("[latency]", 0) != 0 && text.rfind("[bandwidth]", 0) != 0)
      for (const nlohmann::json& s : result.value("set", nlohmann::json::array())) set_.push_back(s.get<std::string>());
  }
  set_.insert(set_.end(), options_.assignments.begin(), options_.assignments.end());
  experiment_ = sim::read_toml(options_.file, [&] { return toml::parse(text, options_.file); });
}

own_run explanation::run_of(const toml::table& experiment, const std::vector<std::string>& set,
                            std::size_t number) const {
  std::ofstream out(folder_.file(number, ".toml"));
  out << experiment << '\n';
  if (!out.flush()) throw usage_error(folder_.file(number, ".toml").string() + ": writing failed");
  own_run run{{"run", folder_.file(number, ".toml"), "--quiet", "--json", folder_.file(number, ".json")},
              folder_.file(number, ".txt"),
              folder_.file(number, ".log")};
  for (const auto* some : {&set_, &set})
    for (const std::string& s : *some) run.arguments.insert(run.arguments.end(), {"--set", s});
  return run;
}

using result_fields = std::vector<std::pair<std::string, nlohmann::json>>;

/// The first number whose name matches, in the order of the result; nullptr: there is none.
const result_fields::value_type* find(const result_fields& fields, const std::string& pattern) {
  for (const auto& field : fields)
    if (matches(pattern, field.first) && field.second.is_number()) return &field;
  return nullptr;
}

/// What limited the run, of those that say it.
std::string limit_in(const result_fields& fields) {
  for (const auto& [name, value] : fields)
    if (matches("rows.*.limited_by", name)) return value.get<std::string>();
  return {};
}

/// What the run gives as it is.
void explanation::look_at(const nlohmann::json& base) {
  const auto fields = fields_of(base);
  metric_ = options_.metric;
  if (metric_.empty())
    metric_ = experiment_.contains("latency") ? "rows.*.typical_us" : is_short() ? "rows.*.rate_mpps" : "all.rate_mpps";
  limited_by_ = limit_in(fields);
  const auto* const found = find(fields, metric_);
  if (found == nullptr) throw usage_error("--metric: the result has no number " + metric_);
  metric_ = found->first;
  base_ = found->second.get<double>();
  if (base_ == 0) throw usage_error("--metric: " + metric_ + " is 0");
  lower_is_better_ = metric_.find("_us") != std::string::npos || metric_.find("latency") != std::string::npos;
  if (experiment_.contains("latency")) {
    const auto option = [&](const char* name, std::uint64_t usual) {
      return static_cast<std::uint64_t>(experiment_["latency"][name].value_or(static_cast<std::int64_t>(usual)));
    };
    const traffic_options usual;
    steps_ = latency_steps(base.at("rows"), option("inline", usual.inline_bytes), option("mtu", usual.mtu));
  }
  parameters_ = sim::read_toml(
      "parameters", [&] { return toml::parse(base.at("parameters").get<std::string>(), std::string("parameters")); });
}

/// What the knob stands for in this experiment, with the values that there are now; none: it has not got it.
std::vector<knob_place> explanation::places_of(const std::string& path) const {
  const auto number_at = [](const toml::table& t, const std::string& at) -> std::optional<std::uint64_t> {
    const auto v = t.at_path(at).value<std::int64_t>();
    return v && *v >= 0 ? std::optional(static_cast<std::uint64_t>(*v)) : std::nullopt;
  };
  if (path.rfind("--", 0) == 0) {
    if (!experiment_.contains("bandwidth")) return {};
    const bandwidth_options usual;
    const std::uint64_t otherwise = path == "--depth"  ? usual.depth
                                    : path == "--outs" ? usual.reads
                                                       : usual.receive_depth;
    const std::string field = "bandwidth." + path.substr(2);
    return {{path, field, number_at(experiment_, field).value_or(otherwise)}};
  }
  if (path == "workload.depth") {
    const workloads::workload_config usual;
    std::vector<knob_place> all;
    const toml::array* list = is_short() ? nullptr : experiment_["workload"].as_array();
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const std::string field = fmt::format("workload.{}.depth", i + 1);
      all.push_back({field, field, number_at(*list->get(i)->as_table(), "depth").value_or(usual.depth)});
    }
    return all;
  }
  if (path.rfind("topology.", 0) == 0) {
    if (is_short() || !experiment_.contains("topology")) return {};
    return {{path, path, number_at(experiment_, path).value_or(fabric::cable_kind{}.rate_mbps)}};
  }
  if (path == "adapter.port.rate_mbps" && !is_short()) return {};  // a cable of the topology says it
  std::vector<knob_place> all;
  for (const char* side : {"", "a.", "b."})  // the sides' own behind what both have, which would be theirs otherwise
    if (const auto now = number_at(parameters_, side + path)) all.push_back({side + path, "", *now});
  return all;
}

/// False: the experiment has not got this knob, or there is no more of it.
bool explanation::add(const resource_knob& k, double percent, change& c) const {
  bool any = false;
  for (const knob_place& place : places_of(k.path)) {
    const auto next = with_more(k, place.now, percent);
    if (!next && any && place.field.empty()) c.set.push_back(fmt::format("{}={}", place.name, place.now));  // stays
    if (!next) continue;
    any = true;
    c.words.push_back(fmt::format("{} {} to {}", place.name, place.now, *next));
    const double a = static_cast<double>(place.now), b = static_cast<double>(*next);
    c.more = std::max(c.more, 100 * (k.how == resource_knob::way::less ? a / b - 1 : b / a - 1));
    if (place.field.empty())
      c.set.push_back(fmt::format("{}={}", place.name, *next));
    else
      c.fields.emplace_back(place.field, *next);
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
  if (!fs::exists(folder_.file(number, ".json"))) {
    c.error = last_line(folder_.file(number, ".log"));
    return;
  }
  const auto fields = fields_of(read_result(folder_.file(number, ".json")));
  if (const auto* const found = find(fields, metric_)) c.value = found->second.get<double>();
  c.limited_by = limit_in(fields);
}

void explanation::measure(std::vector<change>& all) {
  common_options quiet;
  quiet.quiet = options_.quiet;
  progress shown(quiet, "explain", all.size());
  std::uint64_t done = 0;
  run_all(
      all.size(), options_.jobs,
      [&](std::size_t i) {
        toml::table own = experiment_;
        for (const auto& [path, value] : all[i].fields)
          assign(own, path, toml::value<std::int64_t>(static_cast<std::int64_t>(value)), options_.file);
        fs::remove(folder_.file(i + 1, ".json"));
        return run_of(own, all[i].set, i + 1);
      },
      [&](std::size_t i, int) {
        read_metric(all[i], i + 1);
        shown.at(++done);
      });
}

/// In per cent: more of what is wanted, for a latency less.
double explanation::gain(const change& c) const {
  return 100 * (lower_is_better_ ? base_ / *c.value - 1 : *c.value / base_ - 1);
}

void explanation::print(const std::vector<change>& all, const std::vector<change>& named) const {
  fmt::print("{}: {} {:g}{}\n\n", options_.file, metric_, base_,
             limited_by_.empty() ? "" : ", limited by " + limited_by_);
  fmt::print("{:<28} {:>8} {:>12} {:>8}\n", "with more of", "by", metric_.substr(metric_.rfind('.') + 1), "gain");
  std::vector<std::string> in_vain;
  for (const change& c : all) {
    if (!c.value) {
      fmt::print("{:<28} {:>+7.1f}% {:>12} {:>8}  {}\n", c.of->name, c.more, "none", "", c.error);
      continue;
    }
    if (std::abs(gain(c)) < least_gain) {
      in_vain.push_back(c.of->name);
      continue;
    }
    fmt::print("{:<28} {:>+7.1f}% {:>12.4g} {:>+7.2f}%  {}\n", c.of->name, c.more, *c.value, gain(c),
               fmt::join(c.words, ", "));
  }
  if (!in_vain.empty()) fmt::print("less than {} % with more of: {}\n", least_gain, fmt::join(in_vain, ", "));
  for (const change& c : named) {
    if (!c.value) continue;
    fmt::print("\nwith {:+.0f} % of {} the run gives {:g} ({:+.1f} %)", c.more, c.of->name, *c.value, gain(c));
    fmt::print(c.limited_by.empty() ? "\n" : ", and is limited by {}\n", c.limited_by);
  }
  print_steps(steps_);
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
  nlohmann::json j = {{"command", "explain"}, {"version", version()},   {"metric", metric_},
                      {"value", base_},       {"with_more", rows(all)}, {"next", rows(named)}};
  if (!limited_by_.empty()) j["limited_by"] = limited_by_;
  if (!steps_.empty()) j["steps"] = steps_json(steps_);
  write_json(options_.json_file, j);
}

int explanation::run() {
  const own_run base = run_of(experiment_, {}, 0);
  const int status = wait_for(begin(base));
  if (verdict_of(status) == "refused" || !fs::exists(folder_.file(0, ".json"))) {
    std::string why = last_line(base.errors);
    if (why.rfind("rnic: ", 0) == 0) why.erase(0, 6);
    throw usage_error(why);
  }
  look_at(read_result(folder_.file(0, ".json")));
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
