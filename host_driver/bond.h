// SPDX-License-Identifier: Apache-2.0
// Link aggregation: both ports as one device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "host_driver/config.h"
#include "host_driver/device.h"

namespace rnic::host_driver {

/// What the bonding driver of a host and mlx4's drivers do below a bond that has the interfaces of both ports (product
/// documents: RoCE LAG; adapter control plane 9; net/en_netdev.c: mlx4_en_netdev_event): the device shows one port; the
/// addresses of port 1 are in the tables of both; packets may come in by either; queue pairs are bound to virtual ports
/// in turn, or by queue_pair::flow_entropy; and the map of virtual ports follows the links.
///
///   active_backup  both virtual ports stand for the active port: port 1 at first, the other one when its link is down;
///                  there is no primary, so the active one stays active when the other link comes back
///   balance_xor    each stands for its own port while that has a link, else for the other
///   ecmp           the same without a bond: each port sends with its own MAC address, half of the GID table is left
class bond {
 public:
  /// The device is open; `c.bond` is one of the modes.
  bond(device& of, bus_if& bus, const config& c) : device_(of), bus_(bus), config_(c) {}

  /// What keeps the device from being bonded, in the order in which drivers ask; empty: nothing (net/main.c:
  /// mlx4_mf_bond, which knows functions of one port; here each has both).
  static std::string obstacle(const device& of);
  /// Before any other object of the device is made: its end and beginning, as drivers see it. 0, -EOPNOTSUPP with an
  /// obstacle, -EBUSY when there are objects, or what a command said.
  int enslave();
  /// Follows the links until the device is closed.
  void run();

  /// A change of the map: when the driver saw the link change, and when the adapter had the new one.
  struct change {
    std::uint64_t seen_ps = 0, done_ps = 0;
    unsigned links = 0;  ///< that were up: bit n is port n + 1
    std::array<unsigned, 2> map{1, 2};
  };
  /// The first one is that of enslave().
  const std::vector<change>& changes() const { return changes_; }
  const config& settings() const { return config_; }

 private:
  std::array<unsigned, 2> map_for(unsigned links);
  int follow(unsigned links);

  device& device_;
  bus_if& bus_;
  const config config_;
  unsigned active_ = 1;
  std::vector<change> changes_;
};

const char* to_string(config::bond_mode mode);

}  // namespace rnic::host_driver
