// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/side_parameters.h"

#include <algorithm>
#include <sstream>

#include "model/sim/check.h"
#include "model/sim/toml_text.h"
#include "testbenches/rnic/named_files.h"

namespace rnic::program {

namespace {

constexpr const char* side_prefixes[] = {"a.", "b."};
constexpr const char* rtl_default = "as_both";  // of a.rtl.*

/// Of a path of one side its number, else 2.
unsigned side_in(const std::string& path) {
  for (unsigned side = 0; side < 2; ++side)
    if (path.rfind(side_prefixes[side], 0) == 0) return side;
  return 2;
}

/// What both ends of a cable must have alike.
bool is_of_the_cable(const std::string& path) {
  constexpr const char* paths[] = {"adapter.port.rate_mbps", "adapter.port2.rate_mbps", "adapter.port.fec"};
  return std::any_of(std::begin(paths), std::end(paths), [&](const char* p) { return path == p; });
}

/// "a.x.y = 5" from "  a.x.y = 5": what is before the first equals sign.
std::string path_in(const std::string& assignment) {
  const std::string path = assignment.substr(0, assignment.find('='));
  const auto first = path.find_first_not_of(" \t"), last = path.find_last_not_of(" \t");
  return first == std::string::npos ? std::string() : path.substr(first, last - first + 1);
}

}  // namespace

struct side_parameters::one_side {
  explicit one_side(const hosts::node_config& c) : node(c) { hosts::announce(parameters, node); }
  hosts::node_config node;
  sim::parameter_set parameters;
};

side_parameters::side_parameters(sim::parameter_set& all, hosts::node_config& both, const side_refusals& refused)
    : all_(all), both_(both), refused_(refused) {}

side_parameters::~side_parameters() = default;

side_parameters::one_side& side_parameters::make(unsigned number) {
  if (!sides_[number]) sides_[number] = std::make_unique<one_side>(both_);
  return *sides_[number];
}

/// nullptr: nothing has been said of this side.
sim::parameter_set* side_parameters::parameters_of(unsigned number) {
  return sides_[number] ? &sides_[number]->parameters : nullptr;
}

void side_parameters::set_assignment(const std::string& assignment) {
  set_one(path_in(assignment), assignment, "--set");
}

void side_parameters::set(const std::vector<setting>& settings, const std::string& where) {
  for (const bool of_sides : {false, true})
    for (const auto& [path, value] : settings)
      if ((side_in(path) != 2) == of_sides) set_one(path, path + "=" + value, where);
}

void side_parameters::load_toml(const std::string& file) {
  name_input(file);
  const toml::table root = sim::read_toml(file, [&] { return toml::parse_file(file); });
  set(sim::settings_in(root, file), file);
}

void side_parameters::set_one(const std::string& path, const std::string& assignment, const std::string& where) {
  const unsigned side = side_in(path);
  if (side == 2) return set_of_both(path, assignment, where);
  if (all_.all().count(path) == 0) return set_of_side(side, path.substr(2), assignment, where);
  set_of_both(path, assignment, where);  // a.rtl.*
  if (all_.value(path) != rtl_default) check_side(side, path, where);
}

void side_parameters::check_side(unsigned side, const std::string& path, const std::string& where) const {
  if (refused_[side] != nullptr) throw sim::config_error(where + ": " + path + ": " + refused_[side]);
}

void side_parameters::set_of_both(const std::string& path, const std::string& assignment, const std::string& where) {
  all_.set_assignment(assignment, where);
  for (auto& paths : said_) paths.erase(path);
  for (sim::parameter_set* own : {&all_, parameters_of(0), parameters_of(1)}) {
    if (own == nullptr || own->all().count(path) == 0) continue;
    if (own != &all_) own->set_assignment(assignment, where);
    for (const char* prefix : side_prefixes)  // a.rtl.*
      if (own->all().count(prefix + path) != 0) own->set(prefix + path, rtl_default, where);
  }
}

void side_parameters::set_of_side(unsigned number, const std::string& path, const std::string& assignment,
                                  const std::string& where) {
  const std::string full = side_prefixes[number] + path;
  check_side(number, full, where);
  one_side& of = make(number);
  if (const bool known = all_.all().count(path) != 0;
      known && (of.parameters.all().count(path) == 0 || is_of_the_cable(path) || side_in(path) != 2))
    throw sim::config_error(where + ": " + full + ": sides cannot differ in it, expected " + path);
  of.parameters.set_assignment(assignment.substr(assignment.find(full) + 2), where + ": side " + full[0]);
  said_[number].insert(path);
}

const hosts::node_config& side_parameters::of(unsigned side) const { return sides_[side] ? sides_[side]->node : both_; }

std::vector<hosts::network_config::host_setting> side_parameters::settings(const std::array<unsigned, 2>& hosts) const {
  std::vector<hosts::network_config::host_setting> all;
  for (unsigned i = 0; i < 2; ++i)
    for (const std::string& path : said_[i])
      all.push_back({hosts[i], path, sides_[i]->parameters.value(path), std::string("side ") + side_prefixes[i][0]});
  return all;
}

std::string side_parameters::to_toml() const {
  std::string text = all_.to_toml();
  for (unsigned i = 0; i < 2; ++i) {
    if (said_[i].empty()) continue;
    std::istringstream lines(sides_[i]->parameters.to_toml());
    for (std::string line; std::getline(lines, line);)
      if (said_[i].count(path_in(line)) != 0) text += side_prefixes[i] + line + "\n";
  }
  return text;
}

}  // namespace rnic::program
