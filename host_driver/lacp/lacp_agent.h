// SPDX-License-Identifier: Apache-2.0
// LACP on both ports of a bond: selection, and what comes in and goes out (IEEE 802.1AX-2014, 6.3.6, 6.4.14, 6.5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "host_driver/gid_rules.h"
#include "host_driver/lacp/lacp_port.h"
#include "host_driver/lacp/settings.h"

namespace rnic::host_driver::lacp {

/// Where frames go: those of port 1 or 2, from the DMAC to before the FCS.
class port_output_if {
 public:
  virtual ~port_output_if() = default;
  virtual void transmit(unsigned port, const std::uint8_t* frame, std::size_t length) = 0;
};

/// Statistics of a port (802.1AX 7.3.3).
struct lacp_counters {
  std::uint64_t lacpdus_in = 0, lacpdus_out = 0;
  std::uint64_t markers_in = 0, marker_responses_in = 0, marker_responses_out = 0;
  std::uint64_t unknown_in = 0;   ///< of other slow protocols
  std::uint64_t illegal_in = 0;   ///< cut short, or not made as the protocol says
  std::uint64_t loopback_in = 0;  ///< units that say they are of this system
};

/// Aggregates up to two ports with one partner. It has no time of its own: every call says what time it is, and tick()
/// is to be called when next_ps() comes. Everything that comes in is taken as hostile.
///
/// One group of ports at a time is the bond's: the one that it was while a port of it has a link and a partner; else
/// the one with a partner, with the higher rate, of port 1 (net/bonding/bond_3ad.c: ad_agg_selection_logic with
/// ad_select stable). The ports of others are on standby. Without any partner that is port 1 alone, or the one that
/// has a link.
class lacp_agent {
 public:
  static constexpr unsigned ports = 2;

  /// `system`: the bond's MAC address; `own`: those that the ports have by themselves, which frames come from.
  lacp_agent(const mac_address& system, const std::array<mac_address, ports>& own, const settings& s,
             port_output_if& out);

  /// The link of port 1 or 2 came or went; its rate. True when distributing() has changed, as for the calls below.
  bool set_link(unsigned port, bool up, unsigned rate_mbps, std::uint64_t now_ps);
  /// A received frame from the DMAC on.
  bool receive(unsigned port, const std::uint8_t* frame, std::size_t length, std::uint64_t now_ps);
  /// Does what is due.
  bool tick(std::uint64_t now_ps);
  std::uint64_t next_ps() const;

  /// Ports that may send: bit n is port n + 1.
  unsigned distributing() const;
  /// Every port with a link knows whether it has a partner, and those of the bond's group distribute.
  bool settled() const;
  const lacp_port& port(unsigned number) const { return machines_[number - 1]; }
  const lacp_counters& count(unsigned port) const { return counters_[port - 1]; }

 private:
  bool settle(std::uint64_t now_ps);
  bool ready() const;
  bool select();
  void choose_group();
  unsigned rate_of(const lag_id& group) const;
  void take_marker(unsigned port, wire::marker_unit marker);
  void send(unsigned port, const std::vector<std::uint8_t>& body);

  mac_address system_;
  std::array<mac_address, ports> own_;
  settings settings_;
  port_output_if& out_;
  std::array<lacp_port, ports> machines_;
  std::array<unsigned, ports> rate_mbps_{};
  lag_id group_;  // the bond's
  std::array<lacp_counters, ports> counters_;
};

}  // namespace rnic::host_driver::lacp
