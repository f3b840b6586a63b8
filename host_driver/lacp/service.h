// SPDX-License-Identifier: Apache-2.0
// LACP of a bond as a host runs it: frames of both ports through queue pairs of their own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "host_driver/control_frames.h"
#include "host_driver/device.h"
#include "host_driver/lacp/lacp_agent.h"

namespace rnic::host_driver::lacp {

/// What the ports were before they were bonded.
struct member {
  mac_address mac{};
  unsigned rate_mbps = 0;
};

/// The bonding driver's part below a bonded device (bond.h). One process runs it; another one says when links change.
class service : private port_output_if {
 public:
  service(device& dev, bus_if& bus, const settings& s, const std::array<member, 2>& members);

  /// Makes the queue pairs and their rules for the group address, and begins with the links (device::links()) that are
  /// up. 0 or a negative errno.
  int start();
  /// Receives and keeps the time until stop(). In a process.
  void run();
  /// The same until the agent has settled, for `longest_ps` at most.
  void run_until_settled(std::uint64_t longest_ps);
  /// Ends run(); from any process, before the device is closed or reset.
  void stop();
  /// As stop(), and what start() has made goes: in run() at its end, or here if no process is in it. Then `left` is
  /// called, in that process.
  void leave(std::function<void()> left);
  bool has_left() const { return has_left_; }
  /// Links are these (bit n: port n + 1). From any process.
  void set_links(unsigned links);

  const lacp_agent& agent() const { return agent_; }
  /// Called after each change of agent().distributing(), in the process that found it.
  void when_changed(std::function<void()> tell) { tell_ = std::move(tell); }

 private:
  static constexpr unsigned ports = lacp_agent::ports;
  void transmit(unsigned port, const std::uint8_t* frame, std::size_t length) override;
  void take_received();
  bool apply_links(unsigned links);
  void turn(std::uint64_t until_ps);
  void finish();

  device& dev_;
  bus_if& bus_;
  const std::array<member, 2> members_;
  lacp_agent agent_;
  bool stopping_ = false, runs_ = false, has_left_ = false;
  std::function<void()> left_;
  std::function<void()> tell_;
  control_frames frames_;
};

}  // namespace rnic::host_driver::lacp
