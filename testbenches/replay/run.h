// SPDX-License-Identifier: Apache-2.0
// Runs a replay: the order and the moments at which captured frames are injected and work requests posted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host_driver/hosts/two_nodes.h"
#include "testbenches/replay/compare.h"
#include "testbenches/replay/host.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Told how many frames of the capture have been injected.
using progress = std::function<void(std::uint64_t)>;

struct replay_settings {
  hosts::two_nodes_config system;  ///< of which the first node is used, at the first of its ports
  bool captured_timing = true;
  std::vector<std::string> outputs;  ///< capture files, in simulated time
  /// Capture file in the capture's own time, so that the two can be merged; a name that ends in .pcapng gets one with
  /// comments on the frames that differ. Empty: none.
  std::string merged_output;
  std::set<difference_kind> ignored;  ///< of compared_fields()
  /// How long the adapter may be at rest before the replay goes on without what the capture shows next, and after the
  /// last frame before the run ends. Longer than any answer takes.
  sim::time_ps rest_ps = 200 * sim::ps_per_us;
};

struct replay_result {
  std::uint64_t injected = 0;
  std::vector<sim::time_ps> injected_at;  ///< by frame of the capture; ~0: not injected
  sim::time_ps started_at = 0;            ///< simulated time of the capture's time 0
  sim::time_ps ended_at = 0;
  std::vector<std::pair<int, std::string>> left_out;  ///< connections that could not be set up
  std::uint64_t posted = 0;
  std::vector<delivered> deliveries;  ///< by connection
  std::uint64_t pauses = 0;           ///< PAUSE and PFC frames of the adapter, which were obeyed
};

/// Injects and posts in the order of each connection, and compares. Removes connections that cannot be set up from
/// the plan, counting their frames as rejected.
replay_result run_plan(plan& p, const replay_settings& settings, std::unique_ptr<comparison>& compared,
                       const progress& shown);

}  // namespace rnic::replay
