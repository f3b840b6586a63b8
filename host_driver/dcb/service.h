// SPDX-License-Identifier: Apache-2.0
// The agent of data centre bridging on one port of a host: LLDP frames through a queue pair of its own, and what it
// agrees on with the peer in the port's registers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/control_frames.h"
#include "host_driver/dcb/dcbx.h"
#include "host_driver/dcb/lldp_agent.h"
#include "host_driver/device.h"

namespace rnic::host_driver::dcb {

/// As lldpad is for a port that its driver leaves to the host (DCB_CAP_DCBX_HOST). One process runs it.
class service : private frame_output_if {
 public:
  /// What a user is told: what is in force, and with whom it was agreed.
  struct state {
    operational now;
    wire::dcbx_values local;             ///< what the administrator has said
    std::optional<lldp_neighbour> peer;  ///< who takes part; nobody, or several, do not
    bool several = false;                ///< more than one: nothing is agreed
    std::vector<lldp_neighbour> neighbours;
    lldp_counters lldp;
    std::uint64_t changes = 0;         ///< of what is in force, after the first
    std::uint64_t command_errors = 0;  ///< the port was not told
  };

  /// `settings`: those of config::dcb, and config::pfc_mask.
  service(device& dev, bus_if& bus, unsigned port);

  /// Makes the queue pair, puts the local configuration in force and begins to speak. The device is open. 0 or a
  /// negative errno.
  int start();
  /// Receives and keeps the time until stop(). In a process.
  void run();
  /// Says good-bye to the neighbours, has the local configuration in force again, and ends run(). From any process.
  void stop();
  /// The port's link came or went. From any process.
  void set_link(bool up);
  /// The priority that RoCE of this version has by what is in force: of its EtherType or its UDP port; none: nobody has
  /// said.
  std::optional<std::uint8_t> roce_priority(roce_types version) const;
  /// run() has ended.
  bool stopped() const { return ended_; }

  state current() const;
  unsigned port() const { return port_; }
  /// Called in the process of run() after each change of the neighbours or of what is in force; may be empty.
  void when_changed(std::function<void()> tell) { tell_ = std::move(tell); }

 private:
  void transmit(const std::uint8_t* frame, std::size_t length) override;
  bool follow_link();
  bool take_received();
  void settle();
  void apply(const operational& to);
  wire::lldp_unit unit() const;

  device& dev_;
  bus_if& bus_;
  unsigned port_;
  mac_address own_;
  wire::dcbx_values local_;
  lldp_agent agent_;
  operational now_;
  bool applied_ = false, stopping_ = false, ended_ = false;
  std::uint64_t changes_ = 0, command_errors_ = 0;
  std::deque<bool> link_changes_;
  std::function<void()> tell_;
  control_frames frames_;
};

}  // namespace rnic::host_driver::dcb
