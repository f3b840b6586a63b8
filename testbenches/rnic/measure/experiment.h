// SPDX-License-Identifier: Apache-2.0
// What latency and bandwidth share: the system from the options, buffers with known content, spans of messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "host_driver/hosts/two_nodes.h"
#include "host_driver/workloads/verb.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/side_parameters.h"

namespace rnic::program {

/// What the driver's tables must hold, on each host.
struct demand {
  std::uint64_t queue_pairs = 1;
  std::uint64_t bytes = 0;  ///< of registered memory
  std::uint64_t depth = 0;  ///< messages in the longest queue; 0: as usual
};
/// What is enough for either.
inline demand larger_of(const demand& a, const demand& b) {
  return {std::max(a.queue_pairs, b.queue_pairs), std::max(a.bytes, b.bytes), std::max(a.depth, b.depth)};
}
/// Sizes the driver's tables as an administrator would for `d`, never smaller than they are; what the device cannot
/// hold is refused later, by the driver.
void fit(host_driver::config& driver, const demand& d);

/// System and connection of an experiment. Throws usage_error or sim::config_error for what the user got wrong;
/// `refused`: for parameters of a side that the command has not.
hosts::two_nodes_config system_from(const common_options& common, const traffic_options& traffic, const demand& d,
                                    std::string* effective, const side_refusals& refused = two_sides);
/// What of the options an administrator writes into the driver's files. Throws usage_error.
void force_paths(host_driver::config& driver, const common_options& common);
/// Says on standard error what of a configuration cannot work as it is meant.
void print_warnings(const std::vector<std::string>& warnings);
/// What the cable does to frames. Throws sim::config_error for a bad file.
fabric::fault_plan faults_from(const fault_options& faults);
/// What was done to frames by direction, how often each rule has acted, of how many frames that it meant, and which
/// outages have begun until `now`.
nlohmann::json faults_json(const fabric::fault_injector& injector, sim::time_ps now);
/// A line for each rule and outage of faults_json(): how often it acted, and why it did not. `where`: which cable.
void print_faults(const nlohmann::json& faults, const std::string& where);
/// Every counter of a system by its name: "a.adapter.requester.packets". To be asked for when the programs have ended.
nlohmann::json statistics_json(const sim::statistics& statistics);
/// What each engine and channel of both adapters did (sim::for_each_use); to be asked for like statistics_json().
nlohmann::json use_json(hosts::pair_if& system);
/// Those of statistics_json() that have changed, and by how much.
nlohmann::json increase(const nlohmann::json& before, const nlohmann::json& after);
/// Throws usage_error for a verb that the transport has not.
hosts::connection_options connection_from(const traffic_options& traffic);
const workloads::verb& verb_of(const traffic_options& traffic);
/// UC and UD: what is lost stays lost.
bool is_unreliable(const traffic_options& traffic);
/// Throws usage_error for a size that the verb or the transport has not.
std::vector<std::uint32_t> sizes_from(const traffic_options& traffic);
/// "RDMA write_imm latency, uc RoCE v2 over IPv4, MTU 2048": how results begin.
std::string title(const char* command, const traffic_options& traffic);

/// Content that differs by message, direction and position; the last byte is never the one of the message before.
void fill_pattern(std::uint8_t* to, std::size_t bytes, std::uint64_t message, std::uint64_t salt);
/// Throws with the first wrong offset.
void check_pattern(const std::uint8_t* data, std::size_t bytes, std::uint64_t message, std::uint64_t salt);
std::uint8_t last_pattern_byte(std::size_t bytes, std::uint64_t message, std::uint64_t salt);

/// What `rnic latency` and `rnic bandwidth` give for the first of the sizes. One call in a process.
double typical_latency_us(const latency_options& options);
struct bandwidth_figures {
  double rate_mpps = 0, goodput_gbps = 0;
};
bandwidth_figures measure_bandwidth(const bandwidth_options& options);

}  // namespace rnic::program
