// SPDX-License-Identifier: Apache-2.0
// How long the messages of a workload are.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rnic::workloads {

/// Distribution of sizes: a number, a list with weights, or a cumulative distribution function.
class message_sizes {
 public:
  /// Each message has `bytes`.
  explicit message_sizes(std::uint32_t bytes = 65'536) : points_{{bytes, 1}} {}
  struct point {
    std::uint32_t bytes = 0;
    double part = 0;  ///< of the messages, 0 to 1: list: they have this size; CDF: they have this size at most
  };
  /// Weights above 0; they need not sum to 1. Throws std::invalid_argument for an empty list.
  static message_sizes list(std::vector<point> weighted);
  /// By parts that rise, and sizes that do; the last part is 1. Between two points sizes are equally likely, in whole
  /// bytes, none is 0. Throws std::invalid_argument that says what is wrong.
  static message_sizes cdf(std::vector<point> points);
  /// The published distribution of this name. Throws std::invalid_argument that names those that there are.
  static message_sizes published(const std::string& name);
  /// "websearch, hadoop, storage".
  static std::string published_names();

  std::uint32_t next(std::mt19937_64& random) const;
  std::uint32_t largest() const { return points_.back().bytes; }
  std::uint32_t smallest() const;
  /// Bytes of a message on average.
  double mean() const;

 private:
  std::vector<point> points_;  // list: parts are cumulative, sizes rise
  bool continuous_ = false;
};

/// Equally distributed, 0 <= x < 1, the same on every machine.
inline double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace rnic::workloads
