// SPDX-License-Identifier: Apache-2.0
// A table [[workload]] of an experiment.
#pragma once

#include <cstddef>

#include "host_driver/workloads/workload.h"
#include "model/sim/toml_section.h"
#include "testbenches/rnic/run/experiment_file.h"

namespace rnic::program {

/// The table `node`, which `s` reads; `number` from 1. Throws sim::config_error.
workloads::workload_config read_workload(const sim::toml_section& s, const toml::node& node, std::size_t number,
                                         const experiment_file& e);

}  // namespace rnic::program
