// SPDX-License-Identifier: Apache-2.0
// `rnic replay`: re-enacts a capture with the adapter in the place of one of its hosts, and reports how it differs.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "testbenches/replay/compare.h"
#include "testbenches/replay/plan.h"
#include "testbenches/replay/run.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/replay/replay_report.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

using namespace replay;  // this file is its face

namespace {

/// The user's captures are there and not among the files to be written, which are different ones.
void check_files(const replay_options& options) {
  std::error_code ignored;
  for (const std::string& capture : {options.capture, options.also}) {
    if (capture.empty() || capture == "-") continue;
    const std::filesystem::file_status status = std::filesystem::status(capture, ignored);
    if (!std::filesystem::exists(status)) throw usage_error(capture + ": no such file");
    if (std::filesystem::is_directory(status)) throw usage_error(capture + ": is a directory");
  }
  if (options.capture == "-" && options.also == "-") throw usage_error("--also -: standard input is the first capture");
  std::vector<std::string> results;
  for (const std::string& file : {options.output, options.common.pcap_file, options.common.json_file}) {
    if (file.empty()) continue;
    for (const std::string& capture : {options.capture, options.also})
      if (std::filesystem::equivalent(file, capture, ignored))
        throw usage_error(file + ": is the capture to be replayed");
    for (const std::string& other : results)
      if (std::filesystem::weakly_canonical(file, ignored) == std::filesystem::weakly_canonical(other, ignored))
        throw usage_error(file + ": is named for two results");
    results.push_back(file);
  }
}

}  // namespace

int run_replay(const replay_options& options) {
  check_files(options);
  replay_settings settings;
  if (!options.common.pcap_file.empty()) settings.outputs.push_back(options.common.pcap_file);
  settings.merged_output = options.output;
  reading_options reading;
  reading.ignore_icrc = options.ignore_icrc;
  reading.also = options.also;
  plan p = make_plan(options.capture, options.hold, reading);
  for (const std::string& file : {options.output, options.common.pcap_file, options.common.json_file})
    check_writable(options.common, file);
  traffic_options traffic;
  traffic.ports = {options.port};
  settings.system = system_from(options.common, traffic, demand{}, nullptr, one_adapter);
  if (settings.system.node.function != 0u)
    throw usage_error(
        "--function: a capture is replayed by the physical function, 0: queue pairs have the capture's numbers, of "
        "which "
        "a virtual function owns few");
  settings.captured_timing = options.timing == "captured";
  for (const compared_field& field : compared_fields())
    if (std::count(options.ignore.begin(), options.ignore.end(), field.name) != 0) settings.ignored.insert(field.kind);
  std::unique_ptr<comparison> compared;
  replay_result result;
  {
    progress shown(options.common, "replay", p.frames.size());
    result = run_plan(p, settings, compared, [&shown](std::uint64_t done) { shown.at(done); });
  }
  const replay_report r(options, p, *compared, result);
  print(r);
  if (!options.common.json_file.empty()) write_json(options.common.json_file, to_json(r));
  return r.agrees() ? 0 : 1;
}

}  // namespace rnic::program
