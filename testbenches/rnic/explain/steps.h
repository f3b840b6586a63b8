// SPDX-License-Identifier: Apache-2.0
// Where the time goes that a longer message takes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rnic::program {

/// From one size of `rnic latency` to the next: the stages that take more or less time.
struct latency_step {
  std::uint64_t from = 0, to = 0;  ///< bytes
  double more_ns = 0;              ///< end to end
  struct stage {
    std::string block, name, wait;
    double more_ns = 0;
    bool is_new = false, is_gone = false;
  };
  std::vector<stage> stages;         ///< those that make up a twentieth of the difference at least, largest first
  std::vector<std::string> reasons;  ///< "inline data ends at 220 bytes"
};

/// `rows` are those of the result. `inline_bytes`, `mtu`: of the run.
std::vector<latency_step> latency_steps(const nlohmann::json& rows, std::uint64_t inline_bytes, std::uint64_t mtu);

nlohmann::json steps_json(const std::vector<latency_step>& steps);
void print_steps(const std::vector<latency_step>& steps);

}  // namespace rnic::program
