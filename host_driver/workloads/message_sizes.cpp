// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/message_sizes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace rnic::workloads {

namespace {

struct published_sizes {
  const char* name;
  std::vector<std::pair<std::uint32_t, double>> percent;  // bytes, and per cent of the messages up to them
};

/// As the congestion control HPCC was evaluated with them (Li et al., HPCC: High Precision Congestion Control, SIGCOMM
/// 2019; points of the authors' traffic generator).
const std::vector<published_sizes>& all_published() {
  static const std::vector<published_sizes> all{
      // Web search: Alizadeh et al., Data Center TCP, SIGCOMM 2010.
      {"websearch",
       {{0, 0},
        {10'000, 15},
        {20'000, 20},
        {30'000, 30},
        {50'000, 40},
        {80'000, 53},
        {200'000, 60},
        {1'000'000, 70},
        {2'000'000, 80},
        {5'000'000, 90},
        {10'000'000, 97},
        {30'000'000, 100}}},
      // Hadoop at Facebook: Roy et al., Inside the Social Network's (Datacenter) Network, SIGCOMM 2015.
      {"hadoop",
       {{0, 0},       {100, 1},      {200, 2},      {300, 5},          {350, 15},       {400, 20},        {500, 30},
        {600, 40},    {700, 50},     {1000, 60},    {2000, 67},        {7000, 70},      {30'000, 72},     {50'000, 82},
        {80'000, 87}, {120'000, 90}, {300'000, 95}, {1'000'000, 97.5}, {2'000'000, 99}, {10'000'000, 100}}},
      // Distributed storage at Alibaba, 2019.
      {"storage",
       {{0, 0},
        {4000, 22.93},
        {8000, 69.21},
        {16'000, 80.61},
        {32'000, 90.47},
        {64'000, 93.53},
        {128'000, 96.77},
        {256'000, 97.53},
        {2'000'000, 100}}},
  };
  return all;
}

}  // namespace

message_sizes message_sizes::list(std::vector<point> weighted) {
  if (weighted.empty()) throw std::invalid_argument("the list is empty");
  double sum = 0;
  for (const point& p : weighted) {
    if (!(p.part > 0)) throw std::invalid_argument("a weight is not above 0");
    sum += p.part;
  }
  std::stable_sort(weighted.begin(), weighted.end(), [](const point& a, const point& b) { return a.bytes < b.bytes; });
  double reached = 0;
  for (point& p : weighted) p.part = reached += p.part / sum;
  weighted.back().part = 1;
  message_sizes made;
  made.points_ = std::move(weighted);
  return made;
}

message_sizes message_sizes::cdf(std::vector<point> points) {
  if (points.size() < 2) throw std::invalid_argument("a distribution has two points or more");
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!(points[i].part >= 0 && points[i].part <= 1)) throw std::invalid_argument("a part is not within 0 to 1");
    if (i != 0 && points[i].part < points[i - 1].part) throw std::invalid_argument("parts do not rise");
    if (i != 0 && points[i].bytes <= points[i - 1].bytes) throw std::invalid_argument("sizes do not rise");
  }
  if (points.back().part != 1) throw std::invalid_argument("the last part is not that of all messages");
  message_sizes made;
  made.points_ = std::move(points);
  made.continuous_ = true;
  return made;
}

message_sizes message_sizes::published(const std::string& name) {
  for (const published_sizes& p : all_published()) {
    if (p.name != name) continue;
    std::vector<point> points;
    for (const auto& [bytes, percent] : p.percent) points.push_back({bytes, percent / 100});
    return cdf(std::move(points));
  }
  throw std::invalid_argument("is no file that can be read, and none of " + published_names());
}

std::string message_sizes::published_names() {
  std::string names;
  for (const published_sizes& p : all_published()) names += (names.empty() ? "" : ", ") + std::string(p.name);
  return names;
}

std::uint32_t message_sizes::next(std::mt19937_64& random) const {
  if (points_.size() == 1) return points_.front().bytes;
  const double x = uniform(random);
  const auto above =
      std::upper_bound(points_.begin(), points_.end(), x, [](double value, const point& p) { return value < p.part; });
  if (above == points_.begin() || !continuous_) return std::max(above->bytes, continuous_ ? 1u : 0u);
  const point &high = *above, &low = *(above - 1);
  const double within = (x - low.part) / (high.part - low.part);
  return low.bytes + 1 + static_cast<std::uint32_t>(within * (high.bytes - low.bytes));
}

std::uint32_t message_sizes::smallest() const {
  return continuous_ ? (points_.front().part > 0 ? std::max(points_.front().bytes, 1u) : points_.front().bytes + 1)
                     : points_.front().bytes;
}

double message_sizes::mean() const {
  double sum = points_.front().part * std::max<std::uint32_t>(points_.front().bytes, continuous_ ? 1 : 0);
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const point &low = points_[i - 1], &high = points_[i];
    const double bytes = continuous_ ? (1.0 + low.bytes + high.bytes) / 2 : high.bytes;  // low + 1 to high
    sum += (high.part - low.part) * bytes;
  }
  return sum;
}

}  // namespace rnic::workloads
