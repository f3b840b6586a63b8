// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/wave_names.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace rnic::bench {

bool is_name_in(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0 || fnmatch((pattern + ".*").c_str(), name.c_str(), 0) == 0;
}

namespace {

/// Letters to change, to put in or to take out.
std::size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string no_such_name(const std::string& pattern, const std::set<std::string>& names) {
  constexpr std::size_t shown = 3;
  std::vector<std::pair<std::size_t, std::string>> by_distance;
  for (const std::string& n : names) by_distance.emplace_back(edits_between(pattern, n), n);
  std::sort(by_distance.begin(), by_distance.end());
  if (by_distance.size() > shown) by_distance.resize(shown);
  std::string text = "no block or channel " + pattern;
  for (std::size_t i = 0; i < by_distance.size(); ++i)
    text += (i == 0 ? "; the nearest are " : ", ") + by_distance[i].second;
  return text;
}

}  // namespace rnic::bench
