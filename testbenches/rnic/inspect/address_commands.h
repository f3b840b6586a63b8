// SPDX-License-Identifier: Apache-2.0
// What an administrator sets of addresses and connections: compat-gid, cma-roce-mode, cma-roce-tos.
#pragma once

#include <cstdint>
#include <string>

#include "testbenches/rnic/command_line.h"
#include "testbenches/rnic/inspect/inspect.h"

namespace rnic::program {

/// compat_gid_gen of the vendor's distribution.
struct compat_gid_options {
  inspect_options host;
  std::string interface;        ///< of a port: eth1 or eth2
  std::uint16_t vlan = 0;       ///< of the remote interface, 0: none
  bool vlan_interface = false;  ///< the address goes to the interface of this VLAN, not to that of the port
  bool dry = false;             ///< only says what would be done
};

/// Its cma_roce_mode and cma_roce_tos.
struct cma_options {
  inspect_options host;
  std::string device;  ///< empty: that of the host
  unsigned port = 1;
  int value = -1;  ///< 1 or 2; ToS; -1: is not changed
};

/// compat-gid, cma-roce-mode and cma-roce-tos on the command line.
void add_address_commands(command_line& line);

}  // namespace rnic::program
