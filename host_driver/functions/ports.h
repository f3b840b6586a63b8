// SPDX-License-Identifier: Apache-2.0
// Which ports a virtual function has, and by which numbers it knows them.
#pragma once

namespace rnic::host_driver {

/// Numbers of virtual functions with port 1 alone, with port 2 alone and with both (module parameter num_vfs of
/// mlx4_core: port1,port2,port1+2).
struct functions_by_port {
  unsigned port_1 = 0, port_2 = 0, both = 0;
};

/// Functions are numbered in that order, from 1; 0 is the physical one, which has all ports. A function numbers its
/// ports from 1, whichever they are (net/cmd.c: mlx4_get_active_ports, mlx4_slave_convert_port,
/// mlx4_phys_to_slave_port). Ports are 1 or 2; 0 stands for none.
class function_ports {
 public:
  function_ports() = default;
  /// On a device of one port all functions have that.
  function_ports(const functions_by_port& functions, unsigned device_ports);

  /// How many ports the function has: 0 of a function that does not exist.
  unsigned count(unsigned function) const;
  /// The port that the function calls `own`.
  unsigned physical_of(unsigned function, unsigned own) const;
  /// What the function calls the port `physical`.
  unsigned own_of(unsigned function, unsigned physical) const;
  bool has(unsigned function, unsigned physical) const { return own_of(function, physical) != 0; }
  /// Virtual functions that have the port.
  unsigned functions_on(unsigned physical) const;
  /// Whether there are functions with both of two ports.
  bool any_dual() const { return device_ports_ == 2 && by_port_.both != 0; }
  const functions_by_port& numbers() const { return by_port_; }

  /// Rows of the port's GID table that are the function's: 16 of the physical one, and the other 112 divided among the
  /// functions that have this port (adapter control plane 8.6; net/port.c: mlx4_get_base_gid_ix).
  struct window {
    unsigned first = 0, count = 0;
  };
  window gids_of(unsigned function, unsigned physical) const;

 private:
  unsigned first_port(unsigned function) const;

  functions_by_port by_port_;
  unsigned device_ports_ = 0;
};

}  // namespace rnic::host_driver
