// SPDX-License-Identifier: Apache-2.0
// What `rnic serve` says of its surroundings while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace rnic::program {

/// Lines on the output, behind the one that says that it serves. Not more than a person reads: of a burst the rest is
/// counted instead, and said so. Nobody needs to read them: a pipe that is half full is left to the program's results.
class serve_notices {
 public:
  explicit serve_notices(bool quiet) : quiet_(quiet) {}

  void say(const std::string& line);
  /// So much simulated time was lost just now: a line at once, then one from time to time while it goes on.
  void lost_time(std::uint64_t us);
  /// Until then lines are kept.
  void begin();
  /// How many were left out since the last one, if any were.
  void end();

 private:
  using clock = std::chrono::steady_clock;
  static constexpr unsigned burst = 10;               // lines
  static constexpr std::chrono::seconds one_more{1};  // line after a burst
  static constexpr std::chrono::seconds between_losses{10};
  bool may_print();
  void print(const std::string& line);

  bool quiet_, begun_ = false;
  std::vector<std::string> early_;
  unsigned tokens_ = burst;
  clock::time_point refilled_ = clock::now();
  std::uint64_t left_out_ = 0;
  std::uint64_t lost_us_ = 0;  // since the last line about it
  clock::time_point loss_said_{};
};

}  // namespace rnic::program
