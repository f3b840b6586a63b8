// SPDX-License-Identifier: Apache-2.0
// Two hosts with both cables, whose functions have one port or both.
#pragma once

#include <string>

#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {

/// As num_vfs=port_1,port_2,both.
inline hosts::two_nodes_config divided_cards(unsigned port_1, unsigned port_2, unsigned both) {
  hosts::two_nodes_config c = shared_cards(port_1 + port_2 + both);
  c.ports = {1, 2};
  c.node.driver.functions_port_1 = port_1;
  c.node.driver.functions_port_2 = port_2;
  return c;
}

inline std::uint64_t of_port(hosts::two_nodes& system, char host, unsigned port, const std::string& counter) {
  return system.statistics().value(std::string(1, host) + ".adapter.port" + std::to_string(port) + "." + counter);
}

/// Frames that host a has sent by a port.
inline std::uint64_t sent_by(hosts::two_nodes& system, unsigned port) {
  return of_port(system, 'a', port, "tx_frames");
}

}  // namespace rnic::system_test
