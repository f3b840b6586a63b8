// SPDX-License-Identifier: Apache-2.0
// A network with the parameters of its file and of the command line.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "host_driver/hosts/network.h"
#include "testbenches/rnic/fabric/fabric_file.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

/// That of the command line; where it gives none, that of the file; without one, the default.
std::uint64_t seed_of(const common_options& common, const network_file& file);

/// Parameters of --config come first, then those of the network's file, `name`, then --set, then those of single hosts.
/// `most`: what a host's driver must hold; `effective`: all parameters, unless it is nullptr; `sides`: the hosts that
/// are a and b, whose own parameters come last. Throws sim::config_error.
hosts::network_config network_from(const common_options& common, const network_file& file, const std::string& name,
                                   const demand& most, std::string* effective,
                                   const std::array<unsigned, 2>* sides = nullptr);
/// With flows. `beside`: what a host's driver must hold besides these.
hosts::network_config network_from(const common_options& common, const fabric_file& file, const std::string& name,
                                   const demand& beside, std::string* effective,
                                   const std::array<unsigned, 2>* sides = nullptr);

/// --pcap-at: captures look at the cable of this host; empty: of the first, or at all ports. Throws usage_error.
void capture_at(hosts::network_config& c, const std::string& host);

}  // namespace rnic::program
