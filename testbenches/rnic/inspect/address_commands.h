// SPDX-License-Identifier: Apache-2.0
// What an administrator sets of addresses and connections: compat-gid, cma-roce-mode, cma-roce-tos.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

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
  std::string device = "mlx4_0";
  unsigned port = 1;
  int value = -1;  ///< 1 or 2; ToS; -1: is not changed
};

/// The commands on a command line. `add` makes one about host a's device.
class address_commands {
 public:
  using adder = std::function<CLI::App*(const char* name, const char* what, inspect_options& options)>;

  explicit address_commands(const adder& add);
  address_commands(const address_commands&) = delete;
  address_commands& operator=(const address_commands&) = delete;

  /// The exit status of the one that was asked for. Throws usage_error.
  std::optional<int> run() const;

 private:
  void add_compat_gid(const adder& add);
  CLI::App* add_connections(const adder& add, const char* name, const char* what, cma_options& options);

  compat_gid_options compat_;
  cma_options roce_mode_, roce_tos_;
  CLI::App *compat_command_ = nullptr, *roce_mode_command_ = nullptr, *roce_tos_command_ = nullptr;
};

}  // namespace rnic::program
