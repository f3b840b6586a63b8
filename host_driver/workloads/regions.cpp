// SPDX-License-Identifier: Apache-2.0
#include "host_driver/workloads/regions.h"

#include <algorithm>

namespace rnic::workloads {

constexpr std::uint64_t line_of_place = 64;

host_regions::host_regions(hosts::endpoint& at, const region_config& config) : config_(config) {
  for (unsigned i = 0; i < config.number; ++i) all_.push_back(hosts::make_buffer(at, config.bytes));
}

host_regions::place host_regions::next(std::uint32_t bytes, std::uint64_t& turn, std::mt19937_64& random) const {
  const std::uint64_t lines = std::max<std::uint64_t>(1, (std::uint64_t{bytes} + line_of_place - 1) / line_of_place);
  std::uint64_t region = 0, line = 0;
  if (config_.random_addresses) {
    region = random() % all_.size();
    line = random() % ((config_.bytes - bytes) / line_of_place + 1);
  } else {
    // `turn` counts lines over all regions; a message that a region has no room for begins at the next one.
    const std::uint64_t each = config_.bytes / line_of_place + (config_.bytes % line_of_place != 0 ? 1 : 0);
    if (turn % each * line_of_place + bytes > config_.bytes) turn = (turn / each + 1) * each;
    region = turn / each % all_.size();
    line = turn % each;
    turn += lines;
  }
  const hosts::buffer& b = all_[region];
  return {b.address(line * line_of_place), b.region->lkey, b.region->rkey};
}

}  // namespace rnic::workloads
