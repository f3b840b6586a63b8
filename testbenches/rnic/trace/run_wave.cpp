// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/trace/run_wave.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "testbenches/rnic/results.h"

namespace rnic::program {

std::unique_ptr<bench::network_wave> wave_of(const bench::watched_system& system, const trace_options& trace) {
  if (trace.wave.empty()) return nullptr;
  const auto picoseconds = [](double us) { return static_cast<sim::time_ps>(std::llround(us * sim::ps_per_us)); };
  bench::wave_config c;
  c.file = trace.wave;
  c.of = trace.wave_of;
  c.from = picoseconds(trace.from_us);
  if (trace.until_us != 0) c.until = picoseconds(trace.until_us);
  return std::make_unique<bench::network_wave>(system, c);
}

void check_wave(const common_options& common, const trace_options& trace) {
  if (trace.wave.empty() && !trace.wave_of.empty()) throw usage_error("--wave-of: needs --wave FILE");
  check_writable(common, trace.wave);
}

nlohmann::json wave_json(const trace_options& trace, bench::network_wave& wave) {
  const bench::wave_counts counts = wave.finish();
  return {{"file", trace.wave},
          {"begin_ps", wave.begin_ps()},
          {"channels", counts.channels},
          {"memories", counts.memories},
          {"engines", counts.engines},
          {"pipelines", counts.pipelines},
          {"clocks", counts.clocks},
          {"rtl_blocks", counts.rtl_blocks},
          {"signals", counts.signals},
          {"changes", counts.changes},
          {"use", counts.use}};
}

void print_wave(const nlohmann::json& wave) {
  const auto count = [&wave](const char* of) { return wave[of].get<std::uint64_t>(); };
  fmt::print("\nwave: {} channels, {} memories, {} engines, {} pipelines, {} clocks, {} blocks of RTL in {}\n",
             count("channels"), count("memories"), count("engines"), count("pipelines"), count("clocks"),
             count("rtl_blocks"), wave["file"].get<std::string>());
}

}  // namespace rnic::program
