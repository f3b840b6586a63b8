// SPDX-License-Identifier: Apache-2.0
// What an administrator says of the Link Aggregation Control Protocol on a host's bond.
#pragma once

#include <array>
#include <cstdint>

namespace rnic::host_driver::lacp {

/// Of both ports (config::bond is ieee_802_3ad). Names and defaults are those of the bonding driver's options.
struct settings {
  enum class speed : std::uint8_t { slow, fast };
  /// What is asked of the partner: a unit each 30 s, who is silent for 90 s is gone; or each second, and 3 s
  /// (lacp_rate).
  speed rate = speed::slow;
  bool active = true;                      ///< speaks first (lacp_active); two passive ends never aggregate
  std::uint16_t system_priority = 65'535;  ///< ad_actor_sys_prio, 1 to 65535; the lower one goes first
  std::uint16_t user_key = 0;              ///< ad_user_port_key, 0 to 1023: bits 15:6 of the ports' key
  std::array<std::uint16_t, 2> port_priority{255, 255};  ///< AD_PORT_PRIORITY of 802.3ad ports
};

}  // namespace rnic::host_driver::lacp
