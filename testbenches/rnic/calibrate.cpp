// SPDX-License-Identifier: Apache-2.0
// `rnic calibrate`: published figures beside the model's. Each point is measured in a process of its own, because a
// SystemC kernel serves one system.
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "testbenches/rnic/calibration.h"
#include "testbenches/rnic/experiment.h"
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

/// What a child writes into its pipe: a figure, or why there is none.
struct child_result {
  bool ok = false;
  double value = 0;
  std::array<char, 240> failure{};
};

struct child {
  measurement* of = nullptr;
  pid_t process = -1;
  int pipe = -1;
};

child start(measurement& m, const common_options& common) {
  std::array<int, 2> ends{};
  child c;
  c.of = &m;
  if (::pipe(ends.data()) != 0) return c;
  std::fflush(nullptr);
  c.process = ::fork();
  if (c.process == 0) {
    child_result r;
    try {
      r.value = m.point->measure(common);
      r.ok = true;
    } catch (const std::exception& e) {
      std::snprintf(r.failure.data(), r.failure.size(), "%s", e.what());
    }
    const bool written = ::write(ends[1], &r, sizeof r) == static_cast<ssize_t>(sizeof r);
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  c.pipe = ends[0];
  return c;
}

void finish(const child& c) {
  child_result r;
  if (::read(c.pipe, &r, sizeof r) != static_cast<ssize_t>(sizeof r))
    c.of->failure = "the process that measured it came to an end";
  else if (r.ok)
    c.of->obtained = r.value;
  else
    c.of->failure = r.failure.data();
  ::close(c.pipe);
  int status = 0;
  ::waitpid(c.process, &status, 0);
}

void measure_all(std::vector<measurement>& all, const calibrate_options& options) {
  const unsigned jobs = options.jobs != 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  progress shown(options.common, "calibrate", all.size());
  std::vector<child> running;
  std::size_t next = 0, done = 0;
  while (done < all.size()) {
    while (running.size() < jobs && next < all.size()) {
      running.push_back(start(all[next++], options.common));
      if (running.back().process < 0) throw std::runtime_error("no process can be started");
    }
    std::vector<pollfd> waits;
    for (const child& c : running) waits.push_back({c.pipe, POLLIN, 0});
    ::poll(waits.data(), waits.size(), -1);
    for (std::size_t i = running.size(); i-- != 0;) {
      if (waits[i].revents == 0) continue;
      finish(running[i]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      shown.at(++done);
    }
  }
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

}  // namespace

int run_calibrate(const calibrate_options& options) {
  check_writable(options.common, options.common.json_file);
  if (!options.common.pcap_file.empty())
    throw usage_error("--pcap: calibrate runs many systems, none of them captured");
  system_from(options.common, traffic_options{}, demand{}, nullptr);  // refuses what the user got wrong, once
  std::vector<measurement> all;
  for (const calibration_point& p : options.held_out ? held_out_points() : calibration_points()) {
    const auto asked = [&p](const std::string& id) { return std::string(p.id).compare(0, id.size(), id) == 0; };
    if (options.only.empty() || std::any_of(options.only.begin(), options.only.end(), asked))
      all.push_back({&p, std::nullopt, {}});
  }
  if (all.empty())
    throw usage_error(std::string("--only: no such point; there are ") +
                      (options.held_out ? "V01 to V12" : "C01 to C10"));
  measure_all(all, options);
  print(all);
  if (!options.common.json_file.empty()) {
    nlohmann::json result = run_header("calibrate", options.common);
    result["points_are"] = options.held_out ? "held out" : "calibration set";
    result["points"] = nlohmann::json::array();
    for (const measurement& m : all) result["points"].push_back(to_json(m));
    write_text(options.common.json_file, result.dump(2) + "\n");
  }
  return std::all_of(all.begin(), all.end(), [](const measurement& m) { return m.in_band(); }) ? 0 : 1;
}

}  // namespace rnic::program
