// SPDX-License-Identifier: Apache-2.0
// What the workloads of an experiment did.
#pragma once

#include <nlohmann/json.hpp>

#include "host_driver/workloads/workload_set.h"
#include "model/sim/types.h"
#include "testbenches/rnic/fabric/network_file.h"

namespace rnic::program {

/// {count, min, mean, p50, p90, p99, p999, p9999, max} in microseconds and "histogram": [{from_us, to_us, count}].
nlohmann::json latency_json(const workloads::latency_record& record);

/// For each workload its sum, "flows" for each pair of its hosts, and where it has them "failure" and "most_waiting".
nlohmann::json workloads_json(const workloads::workload_set& workloads, const fabric::topology& shape,
                              const workloads::workload_times& times);
/// The sum over all workloads that are no background.
nlohmann::json sum_json(const workloads::workload_set& workloads, const workloads::workload_times& times);

void print_workloads(const nlohmann::json& workloads, const nlohmann::json& sum);

}  // namespace rnic::program
