// SPDX-License-Identifier: Apache-2.0
// Link modes of a port, as ethtool shows and sets them (net/en_ethtool.c).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host_driver/device.h"

namespace rnic::host_driver {

/// What `ethtool eth1` prints of a port. Modes by ethtool's names, "40000baseCR4/Full".
struct link_settings {
  enum class connector : std::uint8_t { twisted_pair, fibre, direct_attach, none, other };
  std::vector<std::string> supported, advertised, partner;
  connector port = connector::other;
  std::uint32_t speed_mbps = 0;  ///< 0: unknown, the link is down
};

/// 0 or a negative errno: EINVAL, there is no such port; EOPNOTSUPP, the device has no ETH_PROT_CTRL, or it is a
/// virtual function; EIO, the register could not be read.
int query_link_settings(device& d, unsigned port, link_settings* out);

/// `ethtool -s eth1 speed N`: modes of this speed alone, 0: all that there are. EINVAL: the port has no such mode, and
/// nothing was asked of the device; EIO: the register refuses it.
int set_link_speed(device& d, unsigned port, std::uint32_t speed_mbps);

}  // namespace rnic::host_driver
