// SPDX-License-Identifier: Apache-2.0
#include "host_driver/lacp/lacp_port.h"

#include <algorithm>

namespace rnic::host_driver::lacp {

namespace {

namespace bit = wire::lacp_state;

constexpr std::uint64_t ps_per_s = 1'000'000'000'000;
// 802.1AX 6.4.4
constexpr std::uint64_t fast_periodic = 1 * ps_per_s, slow_periodic = 30 * ps_per_s;
constexpr std::uint64_t short_timeout = 3 * ps_per_s, long_timeout = 90 * ps_per_s;
constexpr std::uint64_t aggregate_wait = 2 * ps_per_s;
constexpr std::uint64_t churn_detection = 60 * ps_per_s;

/// What is taken for true of a partner that says nothing: nobody, at the end of an individual link that is in use
/// (6.4.9: recordDefault has Synchronization set).
wire::lacp_end nobody() {
  wire::lacp_end e;
  e.state = bit::synchronization | bit::collecting | bit::distributing;
  return e;
}

bool same_port(const wire::lacp_end& a, const wire::lacp_end& b) {
  return a.port == b.port && a.port_priority == b.port_priority && a.system == b.system &&
         a.system_priority == b.system_priority && a.key == b.key;
}
bool differs(const wire::lacp_end& a, const wire::lacp_end& b, std::uint8_t bits) {
  return ((a.state ^ b.state) & bits) != 0;
}

}  // namespace

const char* to_string(lacp_port::receive_state s) {
  static constexpr const char* names[] = {"disabled", "expired", "defaulted", "current"};
  return names[static_cast<std::size_t>(s)];
}
const char* to_string(lacp_port::mux_state s) {
  static constexpr const char* names[] = {"detached", "waiting", "attached", "collecting", "distributing"};
  return names[static_cast<std::size_t>(s)];
}

const char* to_string(churn_machine::state s) {
  static constexpr const char* names[] = {"monitoring", "none", "churned"};  // as /proc/net/bonding has them
  return names[static_cast<std::size_t>(s)];
}

bool lag_id::has_partner() const { return partner.system != wire::mac_address{}; }

bool lag_id::operator==(const lag_id& o) const {
  return key == o.key && individual == o.individual && partner.system == o.partner.system &&
         partner.system_priority == o.partner.system_priority && partner.key == o.partner.key;
}

lacp_port::lacp_port(const wire::lacp_end& actor) : actor_(actor) { initialize(); }

lag_id lacp_port::lag() const {
  lag_id id;
  id.key = actor_.key;
  if (!has(bit::aggregation) || !partner_has(bit::aggregation)) id.individual = static_cast<std::uint8_t>(actor_.port);
  id.partner = partner_;
  return id;
}

void lacp_port::set(std::uint8_t bits, bool on) {
  actor_.state = static_cast<std::uint8_t>(on ? actor_.state | bits : actor_.state & ~bits);
}
void lacp_port::set_partner(std::uint8_t bits, bool on) {
  partner_.state = static_cast<std::uint8_t>(on ? partner_.state | bits : partner_.state & ~bits);
}

// ---------------------------------------------------------------- receive machine (figure 6-18)

void lacp_port::initialize() {
  selection_ = selection::unselected;
  record_default();
  set(bit::expired, false);
}

void lacp_port::record_default() {
  partner_ = nobody();
  set(bit::defaulted, true);
}

void lacp_port::set_enabled(bool up, std::uint16_t key, std::uint64_t now_ps) {
  if (up && key != actor_.key) {
    actor_.key = key;
    receive_ = receive_state::port_disabled;
    initialize();
    ntt_ = true;
  }
  if (up == enabled()) return;
  actor_churn_.begin(up, now_ps);
  partner_churn_.begin(up, now_ps);
  if (up) {
    expire(now_ps);
  } else {
    receive_ = receive_state::port_disabled;
    current_while_ = never;
    set_partner(bit::synchronization, false);
  }
  run_periodic(now_ps);
}

void lacp_port::expire(std::uint64_t now_ps) {
  receive_ = receive_state::expired;
  set_partner(bit::synchronization, false);
  set_partner(bit::timeout, true);
  current_while_ = now_ps + short_timeout;
  set(bit::expired, true);
}

void lacp_port::receive(const wire::lacp_unit& unit, std::uint64_t now_ps) {
  if (!enabled()) return;
  receive_ = receive_state::current;
  // update_Selected
  if (!same_port(unit.actor, partner_) || differs(unit.actor, partner_, bit::aggregation))
    selection_ = selection::unselected;
  // update_NTT
  const bool is_known = same_port(unit.partner, actor_);
  if (!is_known ||
      differs(unit.partner, actor_, bit::activity | bit::timeout | bit::synchronization | bit::aggregation))
    ntt_ = true;
  // recordPDU
  const bool matches =
      (is_known && !differs(unit.partner, actor_, bit::aggregation)) || (unit.actor.state & bit::aggregation) == 0;
  const bool maintained =
      (unit.actor.state & bit::activity) != 0 || (has(bit::activity) && (unit.partner.state & bit::activity) != 0);
  partner_ = unit.actor;
  if (!matches || !maintained) set_partner(bit::synchronization, false);
  set(bit::defaulted, false);
  set(bit::expired, false);
  current_while_ = now_ps + (has(bit::timeout) ? short_timeout : long_timeout);
  run_periodic(now_ps);
  watch_churn(now_ps);
}

void lacp_port::tick(std::uint64_t now_ps) {
  if (now_ps >= current_while_) {
    if (receive_ == receive_state::current) {
      expire(now_ps);
    } else {
      receive_ = receive_state::defaulted;
      current_while_ = never;
      // update_Default_Selected
      const wire::lacp_end admin = nobody();
      if (!same_port(admin, partner_) || differs(admin, partner_, bit::aggregation)) selection_ = selection::unselected;
      record_default();
      set(bit::expired, false);
    }
  }
  if (now_ps >= wait_while_) {
    waited_ = true;
    wait_while_ = never;
  }
  run_periodic(now_ps);
  watch_churn(now_ps);
}

// ---------------------------------------------------------------- periodic machine (figure 6-19)

void lacp_port::run_periodic(std::uint64_t now_ps) {
  if (!enabled() || (!has(bit::activity) && !partner_has(bit::activity))) {
    periodic_ = never;
    return;
  }
  if (periodic_ == never) {  // NO_PERIODIC, then FAST_PERIODIC
    slow_ = false;
    periodic_ = now_ps + fast_periodic;
  }
  const bool wants_slow = !partner_has(bit::timeout);
  if (now_ps >= periodic_ || (slow_ && !wants_slow)) {  // PERIODIC_TX
    ntt_ = true;
    slow_ = wants_slow;
    periodic_ = now_ps + (slow_ ? slow_periodic : fast_periodic);
  } else if (!slow_ && wants_slow) {
    slow_ = true;
    periodic_ = now_ps + slow_periodic;
  }
}

// ---------------------------------------------------------------- mux machine (figure 6-21)

lacp_port::mux_state lacp_port::next_mux(bool ready) const {
  const bool in_sync = selection_ == selection::selected && partner_has(bit::synchronization);
  switch (mux_) {
    case mux_state::detached:
      return selection_ != selection::unselected ? mux_state::waiting : mux_;
    case mux_state::waiting:
      if (selection_ == selection::unselected) return mux_state::detached;
      return selection_ == selection::selected && ready ? mux_state::attached : mux_;
    case mux_state::attached:
      if (selection_ != selection::selected) return mux_state::detached;
      return in_sync ? mux_state::collecting : mux_;
    case mux_state::collecting:
      if (!in_sync) return mux_state::attached;
      return partner_has(bit::collecting) ? mux_state::distributing : mux_;
    case mux_state::distributing:
      return in_sync && partner_has(bit::collecting) ? mux_ : mux_state::collecting;
  }
  return mux_;
}

void lacp_port::enter(mux_state to, std::uint64_t now_ps) {
  const mux_state from = mux_;
  mux_ = to;
  wait_while_ = never;
  set(bit::synchronization, to > mux_state::waiting);
  set(bit::collecting, to > mux_state::attached);
  set(bit::distributing, to == mux_state::distributing);
  if (to == mux_state::waiting) {
    waited_ = false;
    wait_while_ = now_ps + aggregate_wait;
  } else if (to != mux_state::distributing || from != mux_state::collecting) {
    ntt_ = true;
  }
  watch_churn(now_ps);
}

bool lacp_port::step_mux(bool ready, std::uint64_t now_ps) {
  const mux_state to = next_mux(ready);
  if (to == mux_) return false;
  enter(to, now_ps);
  return true;
}

// ---------------------------------------------------------------- churn machines (6.4.17)

void lacp_port::watch_churn(std::uint64_t now_ps) {
  if (!enabled()) return;
  actor_churn_.look(has(bit::synchronization), now_ps);
  partner_churn_.look(partner_has(bit::synchronization), now_ps);
}

void churn_machine::begin(bool enabled, std::uint64_t now_ps) {
  state_ = state::monitor;
  until_ = enabled ? now_ps + churn_detection : never;
}

void churn_machine::look(bool in_sync, std::uint64_t now_ps) {
  if (in_sync) {
    state_ = state::no_churn;
    until_ = never;
  } else if (state_ == state::no_churn) {
    begin(true, now_ps);
  } else if (state_ == state::monitor && now_ps >= until_) {
    state_ = state::churn;
    until_ = never;
    ++churned_;
  }
}

// ---------------------------------------------------------------- transmit machine (6.4.16)

bool lacp_port::take_transmission(wire::lacp_unit* to, std::uint64_t now_ps) {
  if (!ntt_ || !enabled()) return false;
  if (sent_.front() != never && now_ps < sent_.front() + fast_periodic) return false;
  ntt_ = false;
  std::move(sent_.begin() + 1, sent_.end(), sent_.begin());
  sent_.back() = now_ps;
  *to = {actor_, partner_, 0};
  return true;
}

std::uint64_t lacp_port::next_ps() const {
  std::uint64_t next =
      std::min({current_while_, periodic_, wait_while_, actor_churn_.next_ps(), partner_churn_.next_ps()});
  if (ntt_ && enabled() && sent_.front() != never) next = std::min(next, sent_.front() + fast_periodic);
  return next;
}

}  // namespace rnic::host_driver::lacp
