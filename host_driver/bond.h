// SPDX-License-Identifier: Apache-2.0
// Link aggregation: both ports as one device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host_driver/config.h"
#include "host_driver/device.h"
#include "host_driver/lacp/service.h"

namespace rnic::host_driver {

class function_master;

/// What the bonding driver of a host and mlx4's drivers do below a bond that has the interfaces of both ports (product
/// documents: RoCE LAG; adapter control plane 9; net/en_netdev.c: mlx4_en_netdev_event): the device shows one port; the
/// addresses of port 1 are in the tables of both; packets may come in by either; queue pairs are bound to virtual ports
/// in turn, or by queue_pair::flow_entropy; and the map of virtual ports follows the links.
///
///   active_backup  both virtual ports stand for the active port: port 1 at first, the other one when its link is down;
///                  there is no primary, so the active one stays active when the other link comes back
///   balance_xor    each stands for its own port while that has a link, else for the other
///   ecmp           the same without a bond: each port sends with its own MAC address, half of the GID table is left
///   ieee_802_3ad   as balance_xor, of the ports on which LACP has agreed with the partner that they distribute: one
///                  whose partner is silent goes although its link is up. While there is none the map stays. (The
///                  kernel's mlx4_en goes by the link alone in this mode too.)
///
/// With virtual functions it is high availability: the device keeps its two ports, and what is open stays open. A
/// virtual port stands for its own port or for the other one as above; functions have one port each, whose addresses,
/// VLANs and rules are on the other one too (device::mirror_ports, function_master::mirror_ports).
class bond {
 public:
  /// The device is open; `c.bond` is one of the modes. `functions`: who serves its virtual functions, if it has any.
  bond(device& of, bus_if& bus, const config& c, function_master* functions = nullptr)
      : device_(of), bus_(bus), config_(c), functions_(functions) {}

  /// What keeps the device from being bonded, in the order in which drivers ask, one line that names what is not met;
  /// empty: nothing (net/main.c: mlx4_mf_bond; product documents: Link Aggregation for Virtual Functions).
  static std::string obstacle(const device& of);
  /// Without virtual functions before any other object of the device is made: its end and beginning, as drivers see it.
  /// 0, -EOPNOTSUPP with an obstacle, -EBUSY when there are objects or it is bonded, or what a command said.
  int enslave();
  /// Follows the links until release(), or until the device is closed.
  void run();
  /// Ends the bond (net/main.c: mlx4_unbond): both ports are what they were. Virtual functions go on amid their work.
  /// Without them programs find a device of two ports again (device::leave_bond), and have no objects of the one of one
  /// port any more. Returns when processes are out of run() and of lacp(), whose queue pairs are destroyed. enslave()
  /// may follow, after which both are to be run again. 0 or a negative errno; -EINVAL: there is no bond; -EBUSY: there
  /// are such objects, and nothing has changed.
  int release();

  /// A change of the links, of the active ports, or of the map: when the driver saw it, and when the adapter had the
  /// map that follows.
  struct change {
    std::uint64_t seen_ps = 0, done_ps = 0;
    unsigned links = 0;   ///< that were up: bit n is port n + 1
    unsigned active = 0;  ///< ports that may send; the links, except of ieee_802_3ad
    std::array<unsigned, 2> map{1, 2};
  };
  /// The first one is that of enslave().
  const std::vector<change>& changes() const { return changes_; }
  const config& settings() const { return config_; }
  /// Of ieee_802_3ad, between enslave() and release(), else nullptr. A process of its own runs it; before it does,
  /// bring_up() waits.
  lacp::service* lacp() { return lacp_.get(); }
  const lacp::service* lacp() const { return lacp_.get(); }
  /// Of ieee_802_3ad, beside run(): returns when LACP has settled, 10 s later at most (three until a partner counts as
  /// silent, two that ports wait for each other, and the periods of both).
  void bring_up();

 private:
  unsigned active_ports() const;
  std::array<unsigned, 2> map_for(unsigned active);
  void follow_links();
  int settle();
  int follow();
  int join_ports();
  int part_ports();
  int end_processes();
  void ring();
  int start_lacp(const std::array<lacp::member, 2>& members);

  device& device_;
  bus_if& bus_;
  const config config_;
  function_master* const functions_;
  unsigned active_ = 1;  // of active_backup
  bool bonded_ = false;
  std::vector<change> changes_;
  std::unique_ptr<lacp::service> lacp_;
  bool settling_ = false, again_ = false;  // one process after the other
  unsigned followers_ = 0, times_ = 0;     // processes in run(); releases
  bus_if::dma_memory word_{};              // what release() waits at
};

const char* to_string(config::bond_mode mode);

}  // namespace rnic::host_driver
