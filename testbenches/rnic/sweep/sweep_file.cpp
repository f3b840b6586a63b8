// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/sweep/sweep_file.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "model/sim/toml_section.h"
#include "testbenches/rnic/run/experiment_file.h"

namespace rnic::program {

namespace {

using section = sim::toml_section;

constexpr std::uint64_t most_points = 1'000'000;

/// { from = 1, to = 100, steps = 5, scale = "log" }: whole numbers where both ends are.
void read_range(const section& s, const std::string& title, const toml::node& node, bool needs_steps, sweep_axis& a) {
  const section r(title, "axes: " + a.path + ": ", *node.as_table());
  const toml::node *from = r.find("from"), *to = r.find("to");
  if (from == nullptr || to == nullptr || !from->is_number() || !to->is_number())
    s.fail(
        node,
        "axes: " + a.path +
            ": expected a list or { from = NUMBER, to = NUMBER, steps = NUMBER }; a path with dots stands in quotes");
  r.allow({"from", "to", "steps", "scale"});
  const double low = *from->value<double>(), high = *to->value<double>();
  unsigned scale = 0;
  r.word("scale", {"linear", "log"}, scale);
  a.logarithmic = scale == 1;
  if (!(low < high) || (a.logarithmic && low <= 0))
    s.fail(node, a.path + ": from must be below to" + (a.logarithmic ? ", and above 0" : ""));
  std::uint64_t steps = 2;
  if (!r.number("steps", 2, most_points, steps) && needs_steps) s.fail(node, a.path + ": steps: is missing, from 2");
  const bool whole = from->is_integer() && to->is_integer();
  a.is_range = true;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(steps - 1);
    double v = a.logarithmic ? low * std::pow(high / low, part) : low + (high - low) * part;
    if (i + 1 == steps) v = high;
    if (whole)
      a.values.push_back(static_cast<std::int64_t>(std::llround(v)));
    else
      a.values.push_back(v);
  }
}

void read_axes(const section& s, const std::string& name, sweep_file& f) {
  const toml::table* axes = s.has("axes") ? s.find("axes")->as_table() : nullptr;
  if (axes == nullptr || axes->empty())
    throw sim::config_error(name + R"(: axes: is missing, expected a table, as in "workload.1.size" = [64, 4096])");
  for (const auto& [key, node] : *axes) {
    sweep_axis a;
    a.path = std::string(key.str());
    if (node.is_table()) {
      read_range(s, name, node, f.how != sweep_file::plan::latin_hypercube, a);
    } else {
      const toml::array* list = node.as_array();
      if (list == nullptr || list->empty())
        s.fail(node, "axes: " + a.path + ": expected a list of values, or { from, to, steps }");
      a.values = *list;
    }
    if (f.how == sweep_file::plan::list && !f.axes.empty() && a.values.size() != f.axes.front().values.size())
      s.fail(node, "axes: " + a.path + ": " + std::to_string(a.values.size()) + " values, expected " +
                       std::to_string(f.axes.front().values.size()) + " as " + f.axes.front().path + " has, in a list");
    f.axes.push_back(std::move(a));
  }
}

void check_number_of_points(const std::string& name, const sweep_file& f) {
  double points = 1;
  for (const sweep_axis& a : f.axes) points *= static_cast<double>(a.values.size());
  if (f.how == sweep_file::plan::grid && points > static_cast<double>(most_points))
    throw sim::config_error(name + ": axes: the grid has " + std::to_string(points) + " points, expected " +
                            std::to_string(most_points) + " at most");
}

}  // namespace

sweep_file load_sweep(const std::string& file) {
  sweep_file f;
  f.text = experiment_text(file);
  const toml::table root = sim::read_toml(file, [&] { return toml::parse(f.text, file); });
  const section s(file, "", root);
  s.allow({"experiment", "plan", "count", "seed", "columns", "axes"});
  std::string experiment;
  if (!s.text("experiment", experiment))
    throw sim::config_error(file + ": experiment: is missing, expected a file of rnic run");
  const std::filesystem::path named = std::filesystem::path(file).parent_path() / experiment;
  f.folder = named.parent_path().string();
  f.experiment = experiment_text(named.string());
  unsigned w = 0;
  s.word("plan", {"grid", "list", "latin-hypercube"}, w);
  f.how = static_cast<sweep_file::plan>(w);
  const bool by_chance = f.how == sweep_file::plan::latin_hypercube;
  for (const char* key : {"count", "seed"})
    if (!by_chance && s.has(key)) s.fail(*s.find(key), std::string(key) + R"(: only with plan = "latin-hypercube")");
  if (!s.number("count", 1, most_points, f.count) && by_chance)
    throw sim::config_error(file + ": count: is missing, the number of points, from 1");
  s.number("seed", 0, ~std::uint64_t{0} >> 1, f.seed);
  if (const toml::node* columns = s.find("columns")) {
    f.has_columns = true;
    const toml::array* list = columns->as_array();
    if (list == nullptr || list->empty()) s.fail(*columns, "columns: expected a list of result fields");
    for (const toml::node& each : *list) {
      if (!each.is_string()) s.fail(each, "columns: expected texts, as in \"all.latency.p99\"");
      f.columns.push_back(each.as_string()->get());
    }
  } else {
    f.columns = {"all.goodput_gbps", "all.rate_mpps", "all.unfinished", "all.latency.m*",   "all.latency.p*",
                 "rows.*_us",        "rows.*_gbps",   "rows.*_mpps",    "rows.*.limited_by"};
  }
  read_axes(s, file, f);
  check_number_of_points(file, f);
  return f;
}

}  // namespace rnic::program
