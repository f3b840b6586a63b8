// SPDX-License-Identifier: Apache-2.0
// An experiment, as a TOML file says it: a network, workloads on it, and for how long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host_driver/workloads/workload.h"
#include "model/fabric/fault_plan.h"
#include "testbenches/rnic/fabric/network_file.h"

namespace rnic::program {

struct experiment_file : network_file {
  std::vector<workloads::workload_config> workloads;
  std::uint64_t duration_us = 0;  ///< since all hosts are ready; 0: until all workloads have sent their messages
  std::uint64_t warm_up_us = 0;   ///< at the beginning, not measured
  std::uint64_t drain_us = 0;     ///< behind the end, for what is under way
  int faults_at = -1;             ///< host on whose cables `faults` are; -1: none
  fabric::fault_plan faults;
};

/// Throws sim::config_error: one line with file, line, field and what is legal.
experiment_file parse_experiment(const std::string& text, const std::string& name);

/// Text of the file. Throws sim::config_error.
std::string experiment_text(const std::string& file);

}  // namespace rnic::program
