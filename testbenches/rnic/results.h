// SPDX-License-Identifier: Apache-2.0
// Numbers of a run, and the files they go into.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/sim/span.h"
#include "model/sim/types.h"
#include "testbenches/bench/utilisation.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

/// Order statistics of samples, as perftest prints them.
struct sample_summary {
  sim::time_ps minimum = 0, typical = 0, p99 = 0, maximum = 0;
  std::uint64_t sum = 0;
  std::size_t count = 0;
  std::size_t typical_sample = 0;  ///< index of a sample that has the typical value
  double average_ps() const { return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count); }
};
/// `samples` in order of the run; not changed. At least one.
sample_summary summarise(const std::vector<sim::time_ps>& samples);

/// Microseconds with three decimals of a whole number of picoseconds.
std::string microseconds(sim::time_ps t);
double to_us(sim::time_ps t);

/// The stages of a span, each once: {block, stage, wait, ps}, of which the sum is end - start.
nlohmann::json stages_json(const sim::span& s);
std::string stages_text(const sim::span& s);

/// Share of the time in which each resource was in use while messages of a size were under way.
struct usage_column {
  std::uint32_t size = 0;
  std::vector<bench::share> shares;
  std::vector<std::pair<std::string, double>> standstills{};  ///< bench::standstills_between
};
/// A line for each resource that was in use, was blocked or kept a user waiting for at least `least` (0 to 1) of the
/// time of one column; and what queue pairs stood still for at least as long.
void print_utilisation(const std::vector<usage_column>& columns, double least);
/// The `most` resources that were most in use, those that were for at least `least` of the time, each with whom it was
/// blocked by for longest; and what queue pairs stood still for at least as long.
void print_busiest(const usage_column& usage, double least = 0.5, std::size_t most = 12);
/// "utilisation", "blocked", "kept_waiting" and "stood_still", each by name, 0 to 1.
void put_usage(nlohmann::json& to, const usage_column& usage);
nlohmann::json utilisation_json(const std::vector<bench::share>& shares);
/// For each engine that was: by whom, and for which part of the time.
nlohmann::json blocked_json(const std::vector<bench::share>& shares);
/// For each memory whose ports somebody waited for: who, and for which part of the time.
nlohmann::json kept_waiting_json(const std::vector<bench::share>& shares);
/// For which part of the time at least one queue pair stood still for it.
nlohmann::json standstills_json(const std::vector<std::pair<std::string, double>>& standstills);

/// Refuses, before a long run, to write over a file of the user's (usage_error).
void check_writable(const common_options& options, const std::string& file);
/// What every result has: command, version, profile, seed, parameters that differ from the profile's.
nlohmann::json run_header(const char* command, const common_options& options);

/// Progress on standard error, with the time that is left: one line, rewritten, only on a terminal and not with
/// --quiet.
class progress {
 public:
  progress(const common_options& options, std::string what, std::uint64_t total);
  ~progress();
  void at(std::uint64_t done);

 private:
  std::string what_;
  std::uint64_t total_;
  std::uint64_t last_percent_ = ~std::uint64_t{0};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool shown_;
};

}  // namespace rnic::program
