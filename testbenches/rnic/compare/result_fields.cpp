// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/compare/result_fields.h"

#include <fnmatch.h>

#include <fstream>
#include <set>

#include "testbenches/bench/usage_error.h"
#include "testbenches/rnic/named_files.h"

namespace rnic::program {

namespace {

/// What tells an element of a list from the others; empty: nothing does.
std::string key_of(const nlohmann::json& element) {
  if (!element.is_object()) return {};
  const auto text = [&](const char* key) {
    const auto at = element.find(key);
    if (at == element.end()) return std::string();
    return at->is_string() ? at->get<std::string>() : at->is_number() ? at->dump() : std::string();
  };
  for (const char* key : {"name", "id"})
    if (std::string name = text(key); !name.empty()) return name;
  for (const auto& [first, second] : {std::pair{"from", "to"}, {"block", "stage"}, {"switch", "port"}})
    if (element.contains(first) && element.contains(second)) return text(first) + "-" + text(second);
  for (const char* key : {"size", "bytes"})
    if (std::string size = text(key); !size.empty()) return size;
  return {};
}

void collect(const nlohmann::json& of, const std::string& name, named_fields& all) {
  const std::string before = name.empty() ? name : name + ".";
  if (of.is_object()) {
    for (const auto& [key, value] : of.items()) collect(value, before + key, all);
  } else if (of.is_array()) {
    std::set<std::string> known;
    std::size_t number = 0;
    for (const nlohmann::json& element : of) {
      std::string key = key_of(element);
      if (key.empty()) key = std::to_string(number);
      if (!known.insert(key).second) key += "#" + std::to_string(number);
      collect(element, before + key, all);
      ++number;
    }
  } else {
    all.emplace_back(name, of);
  }
}

}  // namespace

named_fields fields_of(const nlohmann::json& result) {
  named_fields all;
  collect(result, "", all);
  return all;
}

bool matches(const std::string& pattern, const std::string& field) {
  return fnmatch(pattern.c_str(), field.c_str(), 0) == 0;
}

nlohmann::json read_result(const std::string& file) {
  name_input(file);
  std::ifstream in(file);
  if (!in) throw usage_error(file + ": cannot be read");
  const nlohmann::json result = nlohmann::json::parse(in, nullptr, false);
  if (result.is_discarded() || !result.is_object()) throw usage_error(file + ": is no result in JSON");
  return result;
}

}  // namespace rnic::program
