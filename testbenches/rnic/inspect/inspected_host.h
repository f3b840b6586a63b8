// SPDX-License-Identifier: Apache-2.0
// The host that a command of an administrator is run on.
#pragma once

#include <functional>
#include <string>

#include "host_driver/hosts/two_nodes.h"
#include "testbenches/rnic/inspect/inspect.h"

namespace rnic::program {

/// The device's name among those of a host: the physical function is the first one.
std::string device_name(const hosts::two_nodes& system);

/// Two bytes of a GID at a time, as sysfs and show_gids have it.
std::string in_groups(const host_driver::gid_bytes& id);
/// The IPv4 address that a GID is made of.
std::string in_dots(const host_driver::gid_bytes& id);

/// Brings a host up, gives it the addresses in their order, and lets `look` at its device. Throws usage_error for an
/// address that the device does not take.
void inspect(const inspect_options& o, const std::function<void(hosts::two_nodes&, host_driver::device&)>& look);

/// A line of show_gids, with its newline.
std::string gid_line(const std::string& name, const host_driver::device& d, unsigned port, unsigned index);

}  // namespace rnic::program
