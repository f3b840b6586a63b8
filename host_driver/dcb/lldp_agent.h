// SPDX-License-Identifier: Apache-2.0
// LLDP on one port (IEEE 802.1AB-2016, clause 9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host_driver/dcb/settings.h"
#include "host_driver/neighbours.h"
#include "model/wire/lldp.h"

namespace rnic::host_driver::dcb {

/// Who was heard on the port: one sender, by Chassis ID and Port ID.
struct lldp_neighbour {
  mac_address mac{};  ///< source of its frames
  wire::lldp_unit unit;
  std::uint64_t expires_ps = 0;
};

/// Statistics of 802.1AB 9.2.6, and what a run shows beside them.
struct lldp_counters {
  std::uint64_t frames_out = 0;
  std::uint64_t frames_in = 0;
  std::uint64_t frames_discarded = 0;  ///< no LLDP, or a unit without what it must have
  std::uint64_t frames_in_errors = 0;  ///< those, and those of which a TLV was discarded
  std::uint64_t tlvs_discarded = 0, tlvs_unrecognized = 0;
  std::uint64_t inserts = 0, deletes = 0;  ///< neighbours that came, and that went by themselves
  std::uint64_t ageouts = 0;               ///< neighbours that went silent
  std::uint64_t too_many = 0;              ///< units of senders for whom there was no room
};

/// Transmits the own data unit and remembers those of others. It has no time of its own: every call says what time it
/// is, and tick() is to be called when next_ps() comes. Everything that comes in is taken as hostile.
class lldp_agent {
 public:
  static constexpr std::size_t most_neighbours = 8;
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  /// `own`: the port's MAC address. Frames go to `out` from the DMAC on, without FCS.
  lldp_agent(const mac_address& own, const lldp_timers& timers, frame_output_if& out)
      : own_(own), timers_(timers), out_(out) {}

  /// Begins, after reinitDelay when it has stopped before. `unit`: what is said; its time to live is the agent's.
  void start(wire::lldp_unit unit, std::uint64_t now_ps);
  /// Tells the neighbours that it goes (time to live 0) and forgets them.
  void stop(std::uint64_t now_ps);
  /// The port's link came or went (portEnabled). Without one nothing is sent, and neighbours go when their time to live
  /// is over; one that is back begins anew: nobody is known, and the own unit goes out at once (figures 9-3 and 9-4).
  /// True as for receive().
  bool set_link(bool up, std::uint64_t now_ps);
  /// Says something else from now on, and says so at once.
  void change(wire::lldp_unit unit, std::uint64_t now_ps);
  /// A received frame from the DMAC on. True when the neighbours, or what one of them says, are others now.
  bool receive(const std::uint8_t* frame, std::size_t length, std::uint64_t now_ps);
  /// Does what is due. True as for receive().
  bool tick(std::uint64_t now_ps);
  std::uint64_t next_ps() const;

  const std::vector<lldp_neighbour>& neighbours() const { return neighbours_; }
  const lldp_counters& count() const { return counters_; }
  /// Of the units that are sent: interval times hold and one second (9.2.5.22).
  std::uint16_t ttl_s() const;

 private:
  void begin(std::uint64_t now_ps);
  void signal(std::uint64_t now_ps);
  void transmit_if_due(std::uint64_t now_ps);
  void send(std::uint16_t ttl_s);
  bool remember(const mac_address& from, wire::lldp_unit unit, std::uint64_t now_ps);
  bool forget(const wire::lldp_unit& of);
  void earn_credit(std::uint64_t now_ps);

  mac_address own_;
  lldp_timers timers_;
  frame_output_if& out_;
  wire::lldp_unit unit_;
  bool running_ = false, link_ = true;
  bool wanted_ = false;                     // something is to be sent, as soon as there is credit
  std::uint64_t send_ps_ = never;           // txTTR: of the next unit without a reason
  unsigned fast_left_ = 0;                  // txFast
  unsigned credit_ = 0;                     // txCredit
  std::uint64_t credit_ps_ = 0;             // when the last one was earned
  std::uint64_t not_before_ps_ = 0;         // reinitDelay
  std::vector<lldp_neighbour> neighbours_;  // in the order in which they came
  lldp_counters counters_;
};

}  // namespace rnic::host_driver::dcb
