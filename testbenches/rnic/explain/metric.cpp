// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/explain/metric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "testbenches/bench/usage_error.h"

namespace rnic::program {

namespace {

using named_field = named_fields::value_type;

bool ends_with(const std::string& text, const std::string& with) {
  return text.size() >= with.size() && text.compare(text.size() - with.size(), with.size(), with) == 0;
}

std::string last_name(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool is_rate(const std::string& name) { return ends_with(name, "_mpps") || ends_with(name, "_gbps"); }

/// Of messages that went well.
bool is_count(const std::string& name) {
  constexpr std::array counts{"count", "completed", "offered", "messages"};
  return std::find(counts.begin(), counts.end(), last_name(name)) != counts.end();
}

/// Latencies, waits and losses, but not "all.latency.count".
bool is_better_smaller(const std::string& name) {
  constexpr std::array costs{"latency",    "_us",  "_ps",  "_ns",     "wait", "blocked", "stood_still",
                             "unfinished", "lost", "drop", "discard", "retr", "overflow"};
  if (is_rate(name) || is_count(name)) return false;
  return std::any_of(costs.begin(), costs.end(), [&](const char* c) { return name.find(c) != std::string::npos; });
}

std::optional<double> number_at(const named_fields& fields, const std::string& name) {
  for (const named_field& f : fields)
    if (f.first == name && f.second.is_number()) return f.second.get<double>();
  return std::nullopt;
}

std::vector<const named_field*> numbers_of(const named_fields& fields, const std::string& pattern) {
  std::vector<const named_field*> all;
  for (const named_field& f : fields)
    if (matches(pattern, f.first) && f.second.is_number()) all.push_back(&f);
  return all;
}

/// Which one is meant only the user knows. The shortest names are told, which are of no bin of a histogram.
void check_is_one(std::vector<const named_field*> found, const std::string& pattern) {
  constexpr std::size_t most_named = 4;
  if (found.size() < 2) return;
  std::stable_sort(found.begin(), found.end(),
                   [](const named_field* a, const named_field* b) { return a->first.size() < b->first.size(); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(found.size(), most_named); ++i) names.push_back(found[i]->first);
  throw usage_error(fmt::format("--metric: {}: {} numbers of the result have such a name, expected one of {}{}",
                                pattern, found.size(), fmt::join(names, ", "),
                                found.size() > most_named ? ", ..." : ""));
}

}  // namespace

metric::metric(const named_fields& fields, const std::string& asked, const std::string& usual, bool by_time) {
  const std::string& pattern = asked.empty() ? usual : asked;
  const auto found = numbers_of(fields, pattern);
  if (found.empty()) throw usage_error("--metric: the result has no number " + pattern);
  if (!asked.empty()) check_is_one(found, pattern);
  name_ = found.front()->first;
  value_ = found.front()->second.get<double>();
  if (value_ == 0) throw usage_error("--metric: " + name_ + " is 0");
  smaller_is_better_ = is_better_smaller(name_);
  if (is_count(name_))
    counted_ = value_;
  else if (by_time && is_rate(name_))
    counted_ = number_at(fields, name_.substr(0, name_.rfind('.') + 1) + "completed").value_or(0);
}

std::optional<double> metric::value_in(const named_fields& fields) const { return number_at(fields, name_); }

double metric::gain(double other) const { return 100 * (smaller_is_better_ ? value_ / other - 1 : other / value_ - 1); }

}  // namespace rnic::program
