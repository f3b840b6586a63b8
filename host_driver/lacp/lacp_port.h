// SPDX-License-Identifier: Apache-2.0
// LACP on one port: its state machines (IEEE 802.1AX-2014, 6.4).
#pragma once

#include <array>
#include <cstdint>

#include "model/wire/lacp.h"

namespace rnic::host_driver::lacp {

inline constexpr std::uint64_t never = ~std::uint64_t{0};

/// Who may be aggregated with whom (6.3.6): the ports of both systems whose group is the same.
struct lag_id {
  std::uint16_t key = 0;        ///< of the own ports
  std::uint8_t individual = 0;  ///< number of a port that is alone in its group, else 0
  wire::lacp_end partner;       ///< its system and key

  bool has_partner() const;
  bool operator==(const lag_id& o) const;
};

/// Churn machine of one end of a port (6.4.17, figures 6-23 and 6-24): an end that is not in sync with its aggregator
/// for a minute churns, which is for the administrator to look at; nothing else follows from it.
class churn_machine {
 public:
  enum class state : std::uint8_t { monitor, no_churn, churn };

  /// Link is down, or up from now on: it is looked at anew.
  void begin(bool enabled, std::uint64_t now_ps);
  /// What the end's Synchronization is, as often as time passes or it may have changed.
  void look(bool in_sync, std::uint64_t now_ps);
  state is() const { return state_; }
  std::uint64_t churned() const { return churned_; }  ///< times that it entered `churn` (7.3.4: ChurnCount)
  std::uint64_t next_ps() const { return until_; }

 private:
  state state_ = state::monitor;
  std::uint64_t until_ = never, churned_ = 0;
};

/// Receive, periodic, mux, transmit and churn machines of a port. They have no time of their own: who calls says what
/// time it is, and calls tick() when next_ps() comes. Selection goes across ports and is the agent's.
///
/// The mux machine is that of independent control (figure 6-21): a port that collects waits for its partner to collect
/// before it distributes, so that nothing is sent to who does not listen. A partner with coupled control (Linux) sees
/// no difference.
class lacp_port {
 public:
  enum class selection : std::uint8_t { unselected, standby, selected };
  enum class receive_state : std::uint8_t { port_disabled, expired, defaulted, current };
  enum class mux_state : std::uint8_t { detached, waiting, attached, collecting, distributing };

  /// `actor`: what is said of the own end; of its state activity, timeout, aggregation.
  explicit lacp_port(const wire::lacp_end& actor);

  /// The link came or went. `key`: that of its speed; another one than before begins anew.
  void set_enabled(bool up, std::uint16_t key, std::uint64_t now_ps);
  /// A unit of the partner has come in.
  void receive(const wire::lacp_unit& unit, std::uint64_t now_ps);
  /// Does what is due in the receive and periodic machines.
  void tick(std::uint64_t now_ps);
  /// One transition of the mux machine. `ready`: the ports of the group that wait have waited long enough.
  bool step_mux(bool ready, std::uint64_t now_ps);
  void select(selection to) { selection_ = to; }
  /// There is something to say, and the limit of three units a second permits it (6.4.16): the unit is `to`.
  bool take_transmission(wire::lacp_unit* to, std::uint64_t now_ps);
  std::uint64_t next_ps() const;

  bool enabled() const { return receive_ != receive_state::port_disabled; }
  selection selected() const { return selection_; }
  receive_state receiving() const { return receive_; }
  mux_state mux() const { return mux_; }
  /// It waits to be attached, and has waited for aggregate_wait (Ready_N).
  bool waits() const { return mux_ == mux_state::waiting; }
  bool has_waited() const { return waits() && waited_; }
  bool distributes() const { return mux_ == mux_state::distributing; }
  lag_id lag() const;
  const wire::lacp_end& actor() const { return actor_; }
  const wire::lacp_end& partner() const { return partner_; }
  const churn_machine& actor_churn() const { return actor_churn_; }
  const churn_machine& partner_churn() const { return partner_churn_; }

 private:
  static constexpr unsigned most_in_a_second = 3;
  bool has(std::uint8_t bit) const { return (actor_.state & bit) != 0; }
  bool partner_has(std::uint8_t bit) const { return (partner_.state & bit) != 0; }
  void set(std::uint8_t bits, bool on);
  void set_partner(std::uint8_t bits, bool on);
  void initialize();
  void expire(std::uint64_t now_ps);
  void record_default();
  void run_periodic(std::uint64_t now_ps);
  mux_state next_mux(bool ready) const;
  void enter(mux_state to, std::uint64_t now_ps);
  void watch_churn(std::uint64_t now_ps);

  wire::lacp_end actor_, partner_;
  selection selection_ = selection::unselected;
  receive_state receive_ = receive_state::port_disabled;
  mux_state mux_ = mux_state::detached;
  bool waited_ = false;
  bool ntt_ = true;    // something is to be sent
  bool slow_ = false;  // of the periodic machine
  std::uint64_t current_while_ = never, periodic_ = never, wait_while_ = never;
  std::array<std::uint64_t, most_in_a_second> sent_{never, never, never};  // the last ones, the oldest first
  churn_machine actor_churn_, partner_churn_;
};

const char* to_string(lacp_port::receive_state s);
const char* to_string(lacp_port::mux_state s);
const char* to_string(churn_machine::state s);

}  // namespace rnic::host_driver::lacp
