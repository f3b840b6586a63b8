// SPDX-License-Identifier: Apache-2.0
// What flows and switches of a network did.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "host_driver/hosts/network.h"
#include "model/sim/types.h"
#include "testbenches/bench/flow_set.h"

namespace rnic::program {

/// Each flow with its completed messages, times and goodput. `begin`: when all hosts were ready; a flow that has no end
/// of its own is measured until `end`. With "completion_us" where all of its messages are complete, with "failure"
/// where it has failed.
nlohmann::json flows_json(const bench::flow_set& flows, const fabric::topology& shape, sim::time_ps begin,
                          sim::time_ps end);
/// Of the bytes of all, in the time from when the first of them began to when the last one ended, or to `end`. Gb/s.
double goodput_of_all(const bench::flow_set& flows, sim::time_ps end);
void print_flows(const nlohmann::json& flows);

/// Rings of pauses that stood still, "since_us" of `begin`.
nlohmann::json deadlocks_json(const std::vector<hosts::standstill>& found, sim::time_ps begin);
void print_deadlocks(const std::vector<hosts::standstill>& found, sim::time_ps begin);

/// Each port of a switch, by what counters have `increased` in the time `took`, with the longest of its queues ever.
nlohmann::json ports_json(hosts::network& network, const nlohmann::json& increased, sim::time_ps took);
/// The same of one switch.
nlohmann::json ports_of(const fabric::topology& shape, unsigned number, const fabric::network_switch& of,
                        const nlohmann::json& increased, sim::time_ps took);
void print_ports(const nlohmann::json& ports);
/// Of a row of ports_json(), all reasons.
std::uint64_t dropped_at(const nlohmann::json& port);

}  // namespace rnic::program
