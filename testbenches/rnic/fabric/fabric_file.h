// SPDX-License-Identifier: Apache-2.0
// A network and its flows, as a TOML file says them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbenches/bench/flow.h"
#include "testbenches/rnic/fabric/network_file.h"

namespace rnic::program {

struct fabric_file : network_file {
  std::vector<bench::flow_config> flows;
  std::uint64_t duration_us = 0;  ///< since all hosts are ready; 0: until all flows are over
};

/// Whether a network without flows is refused; where it is not, a flow needs no end either.
enum class flows_in_file : std::uint8_t { needed, may_be_missing };

/// Reads a network from a file, or the one that comes with the program under this name (network_names()). Throws
/// sim::config_error: one line with file, line, field and what is legal.
fabric_file load_fabric_file(const std::string& file, flows_in_file flows = flows_in_file::needed);
/// The same from text; `name` is what errors call it.
fabric_file parse_fabric_file(const std::string& text, const std::string& name,
                              flows_in_file flows = flows_in_file::needed);

/// "star, incast, ..."
std::string network_names();
/// Text of the network of this name, or of this file.
std::string fabric_text(const std::string& file);

}  // namespace rnic::program
