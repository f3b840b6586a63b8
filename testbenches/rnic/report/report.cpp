// SPDX-License-Identifier: Apache-2.0
// `rnic report`: results as one page.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <ostream>
#include <utility>

#include "model/sim/check.h"
#include "model/version/version.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/report/collect.h"
#include "testbenches/rnic/report/page.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/whole_file.h"

namespace rnic::program {

namespace {

/// Every parameter of a profile that nobody has changed. Empty: this program has no such profile.
std::string default_parameters(const std::string& profile) {
  common_options common;
  common.profile = profile;
  std::string effective;
  try {
    system_from(common, traffic_options{}, demand{}, &effective);
  } catch (const std::runtime_error&) {
    effective.clear();
  }
  return effective;
}

/// Texts of parameters, some 35 kB each, of which most results have the same: each once.
class parameter_texts {
 public:
  /// Puts a number in the place of the text.
  void take_from(nlohmann::json& result) {
    const auto text = result.find("parameters");
    if (text == result.end() || !text->is_string()) return;
    *text = number_of(text->get<std::string>());
    const auto profile = result.find("profile");
    if (profile == result.end() || !profile->is_string() || defaults_.contains(profile->get<std::string>())) return;
    const std::string unchanged = default_parameters(profile->get<std::string>());
    if (!unchanged.empty()) defaults_[profile->get<std::string>()] = number_of(unchanged);
  }
  const nlohmann::json& texts() const { return texts_; }
  const nlohmann::json& defaults() const { return defaults_; }

 private:
  std::size_t number_of(const std::string& text) {
    const auto [at, is_new] = numbers_.emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return at->second;
  }

  std::map<std::string, std::size_t> numbers_;
  nlohmann::json texts_ = nlohmann::json::array(), defaults_ = nlohmann::json::object();
};

std::string usual_title(const std::vector<std::string>& places) {
  namespace fs = std::filesystem;
  if (places.size() != 1) return "rnic: results";
  fs::path place = fs::path(places.front()).lexically_normal();
  if (place.filename().empty()) place = place.parent_path();
  return place.filename() == "." ? "rnic: results" : "rnic: " + place.filename().string();
}

nlohmann::json content_of(collected_results&& found, const report_options& o) {
  nlohmann::json page = {{"title", o.title.empty() ? usual_title(o.places) : o.title},
                         {"rnic", version()},
                         {"results", nlohmann::json::array()},
                         {"skipped", nlohmann::json::array()}};
  parameter_texts parameters;
  for (collected_result& r : found.results) {
    parameters.take_from(r.result);
    page["results"].push_back({{"name", std::move(r.name)}, {"result", std::move(r.result)}});
  }
  for (const skipped_file& s : found.skipped) page["skipped"].push_back({{"name", s.name}, {"why", s.why}});
  page["parameters"] = parameters.texts();
  page["defaults"] = parameters.defaults();
  return page;
}

}  // namespace

std::string json_in_script(std::string json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')  // only inside of texts: no number and no sign of JSON has one
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

int run_report(const report_options& o) {
  common_options written;
  written.overwrite = o.overwrite;
  check_writable(written, o.output);
  collected_results found = collect_results(o.places);
  for (const skipped_file& s : found.skipped) fmt::print(stderr, "rnic: skipped: {}: {}\n", s.name, s.why);
  if (found.results.empty())
    throw usage_error(fmt::format("{}: no results of --json or --trace", fmt::join(o.places, ", ")));
  const std::size_t number = found.results.size();
  const nlohmann::json content = content_of(std::move(found), o);
  write_whole(o.output, [&content](std::ostream& out) {
    for (const std::string_view piece : page_before_data()) out << piece;
    // Text in ASCII, with U+FFFD for bytes that are no UTF-8: names of files may be anything.
    out << json_in_script(content.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
    for (const std::string_view piece : page_behind_data()) out << piece;
  });
  fmt::print("{}: {} result{}\n", o.output, number, number == 1 ? "" : "s");
  return 0;
}

}  // namespace rnic::program
