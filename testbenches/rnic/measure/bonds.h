// SPDX-License-Identifier: Apache-2.0
// What bonds did in a run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "host_driver/hosts/pair_if.h"

namespace rnic::program {

/// Of each host its bond's mode, the packets that each port has sent, and each change of the port map: what links there
/// were, when the driver saw that, when the adapter had the new map. Empty without bonds.
nlohmann::json bonds_json(hosts::pair_if& system);
void print_bonds(const nlohmann::json& bonds);
/// Of one host, without the packets.
nlohmann::json bond_json(const host_driver::bond& bond);
/// "bond: 802.3ad, ports 1 and 2 are active"
std::string bond_text(const host_driver::bond& bond);

}  // namespace rnic::program
