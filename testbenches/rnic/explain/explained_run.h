// SPDX-License-Identifier: Apache-2.0
// The run that `rnic explain` is asked for, as it is and with more of something.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/toml_text.h"
#include "testbenches/rnic/children.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

/// A folder that goes when its user does.
class working_folder {
 public:
  working_folder();
  ~working_folder();
  working_folder(const working_folder&) = delete;
  working_folder& operator=(const working_folder&) = delete;
  std::filesystem::path file(std::size_t run, const char* ending) const;
  std::filesystem::path file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Where a knob is.
struct knob_place {
  std::string name;   ///< for reports
  std::string field;  ///< of the experiment or of its network's file; empty: it is the parameter of that name
  std::uint64_t now = 0;
};

/// What is otherwise than in the run as it is.
struct variation {
  std::vector<std::string> set;                               ///< "path=value" of parameters
  std::vector<std::pair<std::string, std::uint64_t>> fields;  ///< of the experiment or of its network's file
};

/// From a file of `rnic run`, or from a result, which has that file and what was given beside it.
class explained_run {
 public:
  /// Throws sim::config_error and usage_error: one line with the user's file.
  explicit explained_run(const explain_options& options);

  /// The result of the run as it is. Throws usage_error where it has none, or is not the one that the result is of.
  nlohmann::json base();
  /// One that has something else, of a number from 1.
  own_run run_of(const variation& v, std::size_t number) const;
  /// Of that number: the file of its result, and where there is none, why.
  std::filesystem::path result_of(std::size_t number) const { return folder_.file(number, ".json"); }
  std::string error_of(const variation& v, std::size_t number) const;

  /// What the knob stands for here, with the values that there are now; none: the experiment has not got it.
  std::vector<knob_place> places_of(const std::string& path) const;
  /// Of `rnic latency` or `rnic bandwidth`.
  bool is_short() const { return experiment_.contains("bandwidth") || experiment_.contains("latency"); }
  bool has_latencies() const { return experiment_.contains("latency"); }
  /// An option of `rnic latency`.
  std::uint64_t option(const char* name, std::uint64_t usual) const;
  /// Some of its rates count the messages of a given time.
  bool ends_by_time() const;

 private:
  void take_from(const nlohmann::json& result);
  void read_network();
  std::string name_of_text() const;
  void write(const std::filesystem::path& file, const std::string& text) const;
  nlohmann::json run_base() const;
  bool take_parameters_of_result(const nlohmann::json& base);
  void check_repeats(const nlohmann::json& base) const;
  const toml::table* network() const;
  std::vector<knob_place> place_of_option(const std::string& path) const;
  std::vector<knob_place> depths() const;
  std::vector<knob_place> rates_of_cables() const;
  std::vector<knob_place> places_of_hosts(const std::string& path) const;

  const explain_options& options_;
  working_folder folder_;
  std::string text_;              ///< of the experiment
  toml::table experiment_;        ///< the same
  std::string topology_;          ///< --topology of a short form
  toml::table network_;           ///< its file
  std::vector<std::string> own_;  ///< arguments of the run besides its file
  std::vector<std::string> set_;  ///< those of the result, then those of explain
  nlohmann::json result_;         ///< that is explained; null: a file is
  toml::table parameters_;        ///< all of the run as it is
};

}  // namespace rnic::program
