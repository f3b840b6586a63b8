// SPDX-License-Identifier: Apache-2.0
// One whole adapter with its driver, and a peer at the other end of the cable that follows a script.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/node.h"
#include "model/fabric/cable.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"
#include "model/wire/packet.h"
#include "testbenches/bench/cable_player.h"
#include "tlm/capture.h"

namespace rnic::conformance {

inline constexpr std::uint64_t us = sim::ps_per_us;

/// A frame of the adapter, as the peer got it.
struct heard_frame {
  wire::packet packet;
  std::vector<std::uint8_t> payload;
};

/// What counters say of faults: names without the adapter's, and those of the firmware's diagnostics as "diag.*".
using fault_counts = std::map<std::string, std::uint64_t>;

/// The simulation of a test process. Every row of every table runs in it, one after the other.
///
/// RNIC_CONFORMANCE_OUT names a folder for the capture (frames.pcap) and what the tables expect in it (rows.json, one
/// object a line); RNIC_CONFORMANCE_TICK=1 ticks every block at every edge; RNIC_CONFORMANCE_NETWORK is roce_v2_ipv4
/// (default), roce_v2_ipv6 or roce_v1.
class rig final : public bench::player_listener_if {
 public:
  static rig& instance();
  /// Before instance(): the host has other numbers than the profile's.
  static void configure(const std::function<void(hosts::node_config&)>& change);
  /// Closes the capture and ends the simulation.
  static void finish();

  /// Runs `body` as a program of the host; an exception of it comes out here.
  void run(const std::function<void()>& body);

  hosts::endpoint& at() { return at_; }
  const hosts::endpoint& peer() const { return peer_; }
  hosts::node& host() { return *node_; }
  /// Frames under way, of the peer too.
  const payload::frame_pool& frames() const { return frames_; }
  host_driver::device& dev() { return *at_.device; }
  hosts::connection_options options() const;
  wire::encapsulation network() const { return network_; }
  void rest(std::uint64_t ps) { at_.bus->spend_ps(ps); }

  /// Puts a frame on the line (from DMAC, without FCS).
  void inject(const std::vector<std::uint8_t>& frame);
  /// The next RoCE frame of the adapter that was not taken yet; false when there is none within `timeout_ps`.
  bool hear(heard_frame& out, std::uint64_t timeout_ps);
  void forget_frames() { heard_.clear(); }

  fault_counts faults();
  std::vector<ibv_async_event> events();
  /// A number for the peer's queue pair that no other row has.
  std::uint32_t new_peer_qpn() { return next_peer_qpn_++; }
  /// A line for rows.json.
  void note(const std::string& json);

  void injected(std::size_t, sim::span_id, sim::time_ps) override {}
  void received(const payload::frame& f, sim::time_ps arrival) override;

  ~rig() override;

 private:
  struct program;
  rig();
  void open();

  sim::timebase base_;
  sim::span_recorder spans_{2};
  sim::statistics statistics_;
  payload::frame_pool frames_;
  payload::tlp_pool packets_;
  std::unique_ptr<hosts::node> node_;
  std::unique_ptr<sim::clock_domain> clock_;
  std::unique_ptr<bench::cable_player> player_;
  std::unique_ptr<fabric::cable> cable_;
  std::unique_ptr<tlm::capture_writer> capture_;
  std::unique_ptr<program> program_;
  std::string folder_;
  std::vector<std::string> notes_;
  hosts::endpoint at_, peer_;
  wire::encapsulation network_;
  std::deque<heard_frame> heard_;
  std::uint32_t next_peer_qpn_ = 0x100001;
};

}  // namespace rnic::conformance
