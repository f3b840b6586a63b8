// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/report/collect.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "testbenches/bench/usage_error.h"
#include "testbenches/rnic/named_files.h"
#include "testbenches/rnic/report/packed_file.h"
#include "testbenches/rnic/report/trace_counters.h"

namespace rnic::program {

namespace {

namespace fs = std::filesystem;

bool is_result(const nlohmann::json& j) {
  return j.is_object() && j.contains("command") && j["command"].is_string() && !j["command"].get<std::string>().empty();
}

/// What no page shows: every counter of every block, and packet by packet what a replay did.
void leave_out_details(nlohmann::json& result) {
  for (const char* key : {"counters", "statistics", "use", "packets"}) result.erase(key);
  const auto rows = result.find("rows");
  if (rows == result.end() || !rows->is_array()) return;
  for (nlohmann::json& row : *rows)
    if (row.is_object()) row.erase("statistics");
}

nlohmann::json parsed(packed_file& file) {
  std::string text;
  for (std::string_view piece = file.next(); !piece.empty(); piece = file.next()) text += piece;
  return nlohmann::json::parse(text, nullptr, false);
}

class result_collector {
 public:
  /// A file that the user has named, or one that was found below a folder.
  void take(const fs::path& path, const std::string& name) try {
    packed_file file(path.string());
    if (is_trace(file)) {
      keep(name, counters_of_trace(file));
      return;
    }
    nlohmann::json content = parsed(file);
    if (content.is_discarded()) return skip(name, "no JSON");
    if (is_result(content)) return keep(name, std::move(content));
    // Several in one file, by their names, as scripts/demo leaves them.
    bool any = false;
    if (content.is_object())
      for (auto& [key, value] : content.items())
        if (is_result(value)) {
          keep(name + ": " + key, std::move(value));
          any = true;
        }
    if (!any) skip(name, "no result: it has no \"command\"");
  } catch (const usage_error& e) {
    const std::string why = e.what(), file = path.string() + ": ";
    skip(name, why.compare(0, file.size(), file) == 0 ? why.substr(file.size()) : why);
  }

  void take_folder(const fs::path& folder, const std::string& before) {
    std::vector<fs::path> files;
    std::error_code error;
    fs::recursive_directory_iterator at(folder, error), end;
    if (error) throw usage_error(folder.string() + ": cannot be read: " + error.message());
    for (; at != end; at.increment(error)) {
      const fs::path& p = at->path();
      const std::string leaf = p.filename().string();
      std::error_code of_file;
      if (leaf.rfind('.', 0) == 0 || is_points_of_sweep(p)) {
        if (at->is_directory(of_file)) at.disable_recursion_pending();
      } else if (at->is_regular_file(of_file) && has_ending(leaf)) {
        files.push_back(p);
      }
    }
    if (error) throw usage_error(folder.string() + ": cannot be read: " + error.message());
    std::sort(files.begin(), files.end());
    for (const fs::path& p : files) {
      name_input(p.string());
      take(p, before + p.lexically_relative(folder).string());
    }
  }

  collected_results found() && { return std::move(found_); }

 private:
  /// Their table stands for them.
  static bool is_points_of_sweep(const fs::path& p) {
    return p.filename() == "points" && fs::exists(p.parent_path() / "sweep.json");
  }

  static bool has_ending(const std::string& name) {
    for (const std::string ending : {".json", ".json.gz"})
      if (name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
        return true;
    return false;
  }

  void keep(std::string name, nlohmann::json result) {
    leave_out_details(result);
    found_.results.push_back({std::move(name), std::move(result)});
  }
  void skip(const std::string& name, std::string why) { found_.skipped.push_back({name, std::move(why)}); }

  collected_results found_;
};

}  // namespace

collected_results collect_results(const std::vector<std::string>& places) {
  result_collector all;
  for (const std::string& place : places) {
    const fs::path path(place);
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) throw usage_error(place + ": there is no such file or folder");
    if (fs::is_directory(status)) {
      all.take_folder(path, places.size() == 1 ? "" : (path / "").string());
      continue;
    }
    name_input(place);
    all.take(path, places.size() == 1 ? path.filename().string() : place);
  }
  return std::move(all).found();
}

}  // namespace rnic::program
