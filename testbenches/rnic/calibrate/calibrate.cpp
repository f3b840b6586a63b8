// SPDX-License-Identifier: Apache-2.0
// `rnic calibrate`: published figures beside the model's. Each point is measured in a process of its own, because a
// SystemC kernel serves one system.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "testbenches/bench/child.h"
#include "testbenches/rnic/calibrate/calibration.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

struct measurement {
  const calibration_point* point = nullptr;
  std::optional<double> obtained;
  std::string failure;

  double error_pct() const { return obtained ? (*obtained / point->expected - 1) * 100 : 0; }
  bool in_band() const { return obtained && std::abs(error_pct()) <= point->band_pct; }
};

void measure_all(std::vector<measurement>& all, const calibrate_options& options) {
  progress shown(options.common, "calibrate", all.size());
  std::size_t done = 0;
  bench::run_children(
      all.size(), options.jobs,
      [&](std::size_t i) { return fmt::format("{:a}", all[i].point->measure(options.common)); },
      [&](std::size_t i, bench::child& process) {
        try {
          all[i].obtained = std::stod(process.finish());
        } catch (const std::exception& e) {
          all[i].failure = e.what();
        }
        shown.at(++done);
      });
}

void print(const std::vector<measurement>& all) {
  fmt::print("{:<5} {:>9} {:>10} {:>10} {:>8} {:>7}  {}\n", "point", "at", "expected", "obtained", "error", "band", "");
  for (const measurement& m : all) {
    const calibration_point& p = *m.point;
    if (!m.obtained) {
      fmt::print("{:<5} {:>9} {:>10.2f} {:>10} {}: {}\n", p.id, p.x, p.expected, "none", p.what, m.failure);
      continue;
    }
    fmt::print("{:<5} {:>9} {:>10.2f} {:>10.2f} {:>+7.1f}% {:>6}%  {} {}, {} ({})\n", p.id, p.x, p.expected,
               *m.obtained, m.error_pct(), p.band_pct, m.in_band() ? "   " : "OUT", p.unit, p.what, p.source);
  }
  const auto inside = std::count_if(all.begin(), all.end(), [](const measurement& m) { return m.in_band(); });
  fmt::print("\n{} of {} points inside their bands\n", inside, all.size());
}

nlohmann::json to_json(const measurement& m) {
  nlohmann::json j{{"id", m.point->id},
                   {"x", m.point->x},
                   {"what", m.point->what},
                   {"unit", m.point->unit},
                   {"source", m.point->source},
                   {"expected", m.point->expected},
                   {"band_pct", m.point->band_pct},
                   {"in_band", m.in_band()}};
  if (m.obtained) {
    j["obtained"] = *m.obtained;
    j["error_pct"] = m.error_pct();
  } else {
    j["failure"] = m.failure;
  }
  return j;
}

/// Of the profile that is asked for.
const std::vector<calibration_point>& points_of(const calibrate_options& options) {
  const std::string& profile = options.common.profile;
  static const std::vector<calibration_point> none;
  const auto& points = profile == "connectx3pro_40g" ? (options.held_out ? held_out_points() : calibration_points())
                       : profile == "connectx5_100g" && !options.held_out ? connectx5_points()
                                                                          : none;
  if (points.empty())
    throw usage_error(
        "--profile " + profile + ": there are no " + (options.held_out ? "held-out" : "published") + " points of it; " +
        (options.held_out ? "of connectx3pro_40g there are V01 to V16" : "of connectx3pro_40g there are C01 to C11"));
  return points;
}

/// What was not asked for: the points of the other profiles.
void print_others(const calibrate_options& options) {
  if (options.common.profile != "connectx3pro_40g")
    fmt::print("connectx3pro_40g has points of its own: C01 to C11, V01 to V16\n");
  if (options.common.profile != "connectx5_100g")
    fmt::print("connectx5_100g has points of its own: K01 to K05, none held out\n");
}

}  // namespace

int run_calibrate(const calibrate_options& options) {
  check_writable(options.common, options.common.json_file);
  if (!options.common.pcap_file.empty())
    throw usage_error("--pcap: calibrate runs many systems, none of them captured");
  constexpr const char* all_alike =
      "calibrate has points of more hosts than a and b, expected parameters of all of them";
  // Refuses what the user got wrong, once.
  system_from(options.common, traffic_options{}, demand{}, nullptr, {all_alike, all_alike});
  std::vector<measurement> all;
  const std::vector<calibration_point>& points = points_of(options);
  for (const calibration_point& p : points) {
    const auto asked = [&p](const std::string& id) { return std::string(p.id).compare(0, id.size(), id) == 0; };
    if (options.only.empty() || std::any_of(options.only.begin(), options.only.end(), asked))
      all.push_back({&p, std::nullopt, {}});
  }
  if (all.empty())
    throw usage_error(std::string("--only: no such point; there are ") + points.front().id + " to " + points.back().id);
  measure_all(all, options);
  print(all);
  print_others(options);
  if (!options.common.json_file.empty()) {
    nlohmann::json result = run_header("calibrate", options.common);
    result["points_are"] = options.held_out ? "held out" : "calibration set";
    result["points"] = nlohmann::json::array();
    for (const measurement& m : all) result["points"].push_back(to_json(m));
    write_json(options.common.json_file, result);
  }
  return std::all_of(all.begin(), all.end(), [](const measurement& m) { return m.in_band(); }) ? 0 : 1;
}

}  // namespace rnic::program
