// SPDX-License-Identifier: Apache-2.0
#include "model/sim/parameters.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/edit_distance.h"
#include "model/sim/toml_text.h"

namespace rnic::sim {

namespace {

bool parse(const parameter_set::info& i, const std::string& text, std::uint64_t& out) {
  if (i.type == parameter_set::info::kind::boolean) {
    if (text == "true" || text == "1") return out = 1, true;
    if (text == "false" || text == "0") return out = 0, true;
    return false;
  }
  if (i.type == parameter_set::info::kind::choice) {
    for (const std::vector<std::string>& names : {i.names(), i.synonyms}) {
      const auto name = std::find(names.begin(), names.end(), text);
      out = static_cast<std::uint64_t>(name - names.begin());
      if (name != names.end()) return true;
    }
    return false;
  }
  const bool hex = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  const char* first = text.data() + (hex ? 2 : 0);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, out, hex ? 16 : 10);
  return error == std::errc{} && end == last && first != last;
}

}  // namespace

void parameter_set::insert(const field& f) {
  const bool is_new = by_path_.try_emplace(f.path, info{f, f.declared->source}).second;
  RNIC_ASSERT(is_new, "parameter announced twice: " + f.path);
}

const parameter_set::info& parameter_set::find(const std::string& path, const std::string& where) const {
  const auto it = by_path_.find(path);
  if (it != by_path_.end()) return it->second;
  const std::string near = nearest(path);
  throw config_error(where + ": no parameter " + path + (near.empty() ? "" : "; the nearest is " + near));
}

/// Of the innermost section of the path that there is; of a path without a known one, by its last name alone.
std::string parameter_set::nearest(const std::string& path) const {
  std::string section = path;
  for (auto dot = section.rfind('.'); dot != std::string::npos; dot = section.rfind('.')) {
    section.resize(dot);
    if (!of(section).empty()) break;
    if (section.find('.') == std::string::npos) section.clear();
  }
  const bool known = section != path && !section.empty();
  const auto last_name = [](const std::string& p) { return p.substr(p.rfind('.') + 1); };
  std::string best;
  std::size_t least = ~std::size_t{0};
  for (const auto& [candidate, is] : by_path_) {
    if (known && candidate.compare(0, section.size() + 1, section + ".") != 0) continue;
    const std::size_t d = known ? edit_distance(candidate, path) : edit_distance(last_name(candidate), last_name(path));
    if (d >= least) continue;
    least = d;
    best = candidate;
  }
  return best;
}

void parameter_set::set(const std::string& path, const std::string& text, const std::string& where) {
  const info& i = find(path, where);
  std::uint64_t v = 0;
  if (!parse(i, text, v) || !i.legal(v)) throw config_error(where + ": " + i.refusal(text));
  i.store(v);
}

void parameter_set::check() const {
  for (const auto& [path, i] : by_path_) sim::check({i});
}

void parameter_set::add_synonyms(const std::string& path, std::vector<std::string> names) {
  find(path, "parameters");
  by_path_.find(path)->second.synonyms = std::move(names);
}

void parameter_set::set_source(const std::string& path, std::string source) {
  find(path, "parameters");
  by_path_.find(path)->second.source = std::move(source);
}

void parameter_set::set_assignment(const std::string& assignment, const std::string& where) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos) throw config_error(where + ": '" + assignment + "' is not of the form path=value");
  // As `rnic parameters` prints it, "path = value", with texts in quotes.
  const auto trimmed = [](std::string text) {
    const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
  };
  std::string value = trimmed(assignment.substr(equals + 1));
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  set(trimmed(assignment.substr(0, equals)), value, where);
}

void parameter_set::load_toml(const std::string& file) {
  if (!std::ifstream(file)) throw config_error(file + ": cannot be read");
  const toml::table root = read_toml(file, [&] { return toml::parse_file(file); });
  for (const auto& [path, value] : settings_in(root, file)) set(path, value, file);
}

std::vector<const parameter_set::info*> parameter_set::of(const std::string& path) const {
  std::vector<const info*> found;
  const std::string prefix = path + ".";
  for (auto i = by_path_.lower_bound(prefix); i != by_path_.end() && i->first.compare(0, prefix.size(), prefix) == 0;
       ++i)
    found.push_back(&i->second);
  return found;
}

std::string parameter_set::value(const std::string& path) const {
  const info& i = find(path, "parameters");
  return i.text(i.load());
}

std::string parameter_set::to_toml() const {
  std::string out;
  for (const auto& [path, i] : by_path_) {
    const std::string unit = i.declared->unit;
    const char* quote = i.type == info::kind::choice ? "\"" : "";
    out += path + " = " + quote + value(path) + quote + "  # " + (unit.empty() ? "" : unit + "; ") + i.source +
           (i.type == info::kind::choice ? ": " + i.expected() : "") + "\n";
  }
  return out;
}

}  // namespace rnic::sim
