// SPDX-License-Identifier: Apache-2.0
// Options that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "testbenches/rnic/options.h"

namespace rnic::program {

/// Profile, parameters, functions, results and progress, of every command that runs the model.
void add_common(CLI::App& command, common_options& o);

// Each with the command's own words.
void add_roce(CLI::App& command, std::string& to, const char* what = "RoCE version");
void add_ip_version(CLI::App& command, unsigned& to);
void add_mtu(CLI::App& command, unsigned& to, const char* what = "Path MTU in bytes");
void add_vlan(CLI::App& command, unsigned& to, const char* what = "VLAN ID, 0 for untagged");
void add_priority(CLI::App& command, unsigned& to, const char* what);

/// Addresses and packets, for two adapters of ours.
void add_packets(CLI::App& command, traffic_options& o);
/// Verb, transport, packets, sizes, cable and rate of an experiment of two adapters.
void add_traffic(CLI::App& command, traffic_options& o);
/// `what` is said of the case of both.
void add_port(CLI::App& command, traffic_options& o, const char* what);
void add_bond(CLI::App& command, common_options& o);
void add_topology(CLI::App& command, traffic_options& o);
/// Of commands with networks: whose cable --pcap looks at.
void add_capture_at(CLI::App& command, std::string& host);
void add_threads(CLI::App& command, unsigned& threads);
/// --trace and what of the run it shows; `flows`: it may be that of single ones.
void add_trace(CLI::App& command, trace_options& o, bool flows);
/// `rates`: with those of all frames beside the file.
void add_faults(CLI::App& command, fault_options& o, bool rates);

/// Names of the options that the user has given.
std::vector<std::string> given(const CLI::App& command);

}  // namespace rnic::program
