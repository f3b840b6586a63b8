// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

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
  s.p99 = samples[order[(s.count - 1) * 99 / 100]];
  s.maximum = samples[order.back()];
  s.sum = std::accumulate(samples.begin(), samples.end(), std::uint64_t{0});
  return s;
}

std::string microseconds(sim::time_ps t) { return fmt::format("{}.{:03}", t / sim::ps_per_us, t / 1000 % 1000); }

double to_us(sim::time_ps t) { return static_cast<double>(t) / 1e6; }

nlohmann::json stages_json(const sim::span& s) {
  nlohmann::json stages = nlohmann::json::array();
  sim::time_ps before = s.start();
  for (unsigned i = 0; i < s.count(); ++i) {
    stages.push_back({{"name", s[i].stage}, {"wait", sim::to_string(s[i].waited)}, {"ps", s[i].at - before}});
    before = s[i].at;
  }
  return stages;
}

std::string stages_text(const sim::span& s) {
  std::string text;
  sim::time_ps before = s.start();
  for (unsigned i = 0; i < s.count(); ++i) {
    const bool waited = s[i].waited != sim::wait::none;
    text += fmt::format("      {:<22} {:>10.3f} ns{}\n", s[i].stage, static_cast<double>(s[i].at - before) / 1e3,
                        waited ? std::string("  waiting: ") + sim::to_string(s[i].waited) : "");
    before = s[i].at;
  }
  text += fmt::format("      {:<22} {:>10.3f} ns\n", "end to end", static_cast<double>(s.end() - s.start()) / 1e3);
  return text;
}

void check_writable(const common_options& options, const std::string& file) {
  if (file.empty()) return;
  if (!options.overwrite && std::filesystem::exists(file))
    throw usage_error(file + ": exists already; give another name or --overwrite");
  std::ofstream probe(file, std::ios::app);
  if (!probe) throw usage_error(file + ": cannot be written");
  probe.close();
  if (std::filesystem::is_regular_file(file) && std::filesystem::file_size(file) == 0) std::filesystem::remove(file);
}

void write_text(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw usage_error(file + ": writing failed");
}

nlohmann::json run_header(const char* command, const common_options& options) {
  return {{"command", command}, {"profile", options.profile}, {"seed", options.seed}, {"set", options.assignments}};
}

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
  std::fprintf(stderr, "\r%s: %3llu %%", what_.c_str(), static_cast<unsigned long long>(percent));
  std::fflush(stderr);
}

}  // namespace rnic::program
