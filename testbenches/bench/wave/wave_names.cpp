// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/wave_names.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>
#include <vector>

#include "model/sim/edit_distance.h"

namespace rnic::bench {

bool is_name_in(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0 || fnmatch((pattern + ".*").c_str(), name.c_str(), 0) == 0;
}

std::string name_in_wave(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::string no_such_name(const std::string& pattern, const std::set<std::string>& names) {
  constexpr std::size_t shown = 3;
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  for (const std::string& n : names) by_distance.emplace_back(sim::edit_distance(pattern, n), n);
  std::sort(by_distance.begin(), by_distance.end());
  if (by_distance.size() > shown) by_distance.resize(shown);
  std::string text = "no block or channel " + pattern;
  for (std::size_t i = 0; i < by_distance.size(); ++i)
    text += (i == 0 ? "; the nearest are " : ", ") + by_distance[i].second;
  return text;
}

}  // namespace rnic::bench
