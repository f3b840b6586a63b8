// SPDX-License-Identifier: Apache-2.0
// Registered memory of a host that the messages of a workload lie in.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "host_driver/hosts/connection.h"

namespace rnic::workloads {

struct region_config {
  unsigned number = 1;
  std::uint64_t bytes = 0;        ///< of each; at least the longest message
  bool random_addresses = false;  ///< of places, which begin at cache lines; else one behind the other, and round again
};

/// Memory regions, each with a key of its own.
class host_regions {
 public:
  host_regions(hosts::endpoint& at, const region_config& config);

  struct place {
    std::uint64_t address = 0;
    std::uint32_t lkey = 0, rkey = 0;
  };
  /// The next one for a message; `turn` is the user's, from 0, and goes on.
  place next(std::uint32_t bytes, std::uint64_t& turn, std::mt19937_64& random) const;

 private:
  region_config config_;
  std::vector<hosts::buffer> all_;
};

}  // namespace rnic::workloads
