// SPDX-License-Identifier: Apache-2.0
// Network interfaces of a host by their names, and the addresses that a user gives them.
#pragma once

#include <cstdint>
#include <string>

#include "host_driver/device.h"

namespace rnic::program {

/// An interface above a port: "eth1" and "eth2" are the ports' own, "eth1.100" is VLAN 100 of port 1, "eth1:2" another
/// address of eth1 (an alias, which is no interface of its own). "bond0" is the bond's, whose device has port 1 only.
struct interface_name {
  unsigned port = 1;
  std::uint16_t vlan = host_driver::no_vlan;
  bool of_bond = false;

  std::string text() const;
};

/// An address and where it is: "eth1=192.168.1.10", "eth2.7=2001:db8::1" or "bond0.7=10.0.0.1".
struct interface_address {
  interface_name at;
  host_driver::gid_bytes ip{};
};

/// Throws usage_error, which names `option`, for what is none, of a port that the adapter has not, or a VLAN ID that
/// is not 1 to 4094.
interface_address parse_address(const std::string& option, const std::string& text);

/// Whether addresses are those of an interface of the bonding driver, and not of the ports' own (without a bond, or
/// with routing over equal ways, where it is eth1 whose addresses count).
bool has_bond(const host_driver::device& d);
/// The interface that stands for a port of the device.
interface_name port_interface(const host_driver::device& d, unsigned port);
/// The interface whose address a row of a port's GID table is.
std::string interface_of(const host_driver::device& d, unsigned port, const host_driver::gid_row& row);
/// Throws usage_error, which names `option`, for an interface that the device has not.
void check_interface(const host_driver::device& d, const std::string& option, const interface_name& at);

}  // namespace rnic::program
