// SPDX-License-Identifier: Apache-2.0
#include "host_driver/dcb/lldp_agent.h"

#include <algorithm>
#include <utility>

#include "model/wire/bytes.h"

namespace rnic::host_driver::dcb {

namespace {

constexpr std::uint64_t ps_per_s = 1'000'000'000'000;
constexpr std::size_t ethernet_bytes = 14;

bool same_values(const wire::lldp_unit& a, const wire::lldp_unit& b) {
  return wire::encode_lldp(a) == wire::encode_lldp(b);
}

}  // namespace

std::uint16_t lldp_agent::ttl_s() const {
  return static_cast<std::uint16_t>(std::min(timers_.tx_interval_s * timers_.tx_hold + 1, 65'535u));
}

void lldp_agent::start(wire::lldp_unit unit, std::uint64_t now_ps) {
  unit_ = std::move(unit);
  running_ = true;
  begin(now_ps);
  tick(now_ps);
}

/// Figure 9-3, TX_TIMER_INITIALIZE: txTTR is 0.
void lldp_agent::begin(std::uint64_t now_ps) {
  wanted_ = false;
  fast_left_ = 0;
  credit_ = timers_.credit_max;
  send_ps_ = std::max(now_ps, not_before_ps_);
  credit_ps_ = send_ps_;
}

bool lldp_agent::set_link(bool up, std::uint64_t now_ps) {
  if (up == link_) return false;
  link_ = up;
  if (!running_) return false;
  const bool knew = up && !neighbours_.empty();
  if (up) neighbours_.clear();
  begin(now_ps);
  return tick(now_ps) || knew;
}

void lldp_agent::stop(std::uint64_t now_ps) {
  if (!running_) return;
  if (link_ && now_ps >= not_before_ps_) send(0);
  running_ = false;
  send_ps_ = never;
  neighbours_.clear();
  not_before_ps_ = now_ps + timers_.reinit_s * ps_per_s;
}

void lldp_agent::change(wire::lldp_unit unit, std::uint64_t now_ps) {
  unit_ = std::move(unit);
  if (running_ && link_ && now_ps >= not_before_ps_) signal(now_ps);
  tick(now_ps);
}

/// There is a reason to send: the time until the next one without a reason begins (figure 9-3, SIGNAL_TX).
void lldp_agent::signal(std::uint64_t now_ps) {
  wanted_ = true;
  send_ps_ = now_ps + (fast_left_ != 0 ? timers_.fast_tx_s : timers_.tx_interval_s) * ps_per_s;
}

/// One a second (txTick), up to the most.
void lldp_agent::earn_credit(std::uint64_t now_ps) {
  if (now_ps < credit_ps_) return;
  const std::uint64_t earned = (now_ps - credit_ps_) / ps_per_s;
  credit_ = static_cast<unsigned>(std::min<std::uint64_t>(credit_ + earned, timers_.credit_max));
  credit_ps_ += earned * ps_per_s;
}

/// Figure 9-3: a unit at the end of the interval, which is short while a neighbour is new, and one for each change.
void lldp_agent::transmit_if_due(std::uint64_t now_ps) {
  if (!running_ || !link_ || now_ps < not_before_ps_) return;
  earn_credit(now_ps);
  if (now_ps >= send_ps_) {
    if (fast_left_ != 0) --fast_left_;
    signal(now_ps);
  }
  if (!wanted_) return;
  if (credit_ == 0) return;
  --credit_;
  wanted_ = false;
  send(ttl_s());
}

void lldp_agent::send(std::uint16_t ttl_s) {
  wire::lldp_unit unit = unit_;
  unit.ttl_s = ttl_s;
  const std::vector<std::uint8_t> body = wire::encode_lldp(unit);
  std::vector<std::uint8_t> frame(ethernet_bytes);
  std::copy(wire::lldp_nearest_bridge.begin(), wire::lldp_nearest_bridge.end(), frame.begin());
  std::copy(own_.begin(), own_.end(), frame.begin() + 6);
  wire::store_be16(&frame[12], wire::lldp_ethertype);
  frame.insert(frame.end(), body.begin(), body.end());
  ++counters_.frames_out;
  out_.transmit(frame.data(), frame.size());
}

bool lldp_agent::receive(const std::uint8_t* frame, std::size_t length, std::uint64_t now_ps) {
  // What is sent to a group comes back to the members of the own port.
  if (length >= ethernet_bytes && std::equal(own_.begin(), own_.end(), frame + 6)) return false;
  bool changed = tick(now_ps);
  if (!running_) return changed;
  ++counters_.frames_in;
  wire::lldp_faults faults;
  std::optional<wire::lldp_unit> unit;
  if (length >= ethernet_bytes && wire::load_be16(frame + 12) == wire::lldp_ethertype)
    unit = wire::decode_lldp(frame + ethernet_bytes, length - ethernet_bytes, faults);
  counters_.tlvs_discarded += faults.tlvs_discarded;
  counters_.tlvs_unrecognized += faults.tlvs_unrecognized;
  if (!unit || faults.tlvs_discarded != 0) ++counters_.frames_in_errors;
  if (!unit) {
    ++counters_.frames_discarded;
    return changed;
  }
  if (unit->ttl_s == 0) return forget(*unit) || changed;
  mac_address from;
  std::copy_n(frame + 6, from.size(), from.begin());
  return remember(from, std::move(*unit), now_ps) || changed;
}

bool lldp_agent::remember(const mac_address& from, wire::lldp_unit unit, std::uint64_t now_ps) {
  const std::uint64_t expires = now_ps + unit.ttl_s * ps_per_s;
  const auto at = std::find_if(neighbours_.begin(), neighbours_.end(), [&](const lldp_neighbour& n) {
    return n.unit.chassis == unit.chassis && n.unit.port == unit.port;
  });
  if (at != neighbours_.end()) {
    const bool changed = at->mac != from || !same_values(at->unit, unit);
    *at = {from, std::move(unit), expires};
    return changed;
  }
  if (neighbours_.size() >= most_neighbours) {
    ++counters_.too_many;
    return false;
  }
  neighbours_.push_back({from, std::move(unit), expires});
  ++counters_.inserts;
  if (fast_left_ == 0) fast_left_ = timers_.fast_init;  // it knows us soon
  send_ps_ = now_ps;
  transmit_if_due(now_ps);
  return true;
}

bool lldp_agent::forget(const wire::lldp_unit& of) {
  const auto at = std::find_if(neighbours_.begin(), neighbours_.end(), [&](const lldp_neighbour& n) {
    return n.unit.chassis == of.chassis && n.unit.port == of.port;
  });
  if (at == neighbours_.end()) return false;
  neighbours_.erase(at);
  ++counters_.deletes;
  return true;
}

bool lldp_agent::tick(std::uint64_t now_ps) {
  const auto gone = std::remove_if(neighbours_.begin(), neighbours_.end(),
                                   [now_ps](const lldp_neighbour& n) { return now_ps >= n.expires_ps; });
  const auto aged = static_cast<std::uint64_t>(neighbours_.end() - gone);
  counters_.ageouts += aged;
  neighbours_.erase(gone, neighbours_.end());
  transmit_if_due(now_ps);
  return aged != 0;
}

std::uint64_t lldp_agent::next_ps() const {
  if (!running_) return never;
  std::uint64_t next = link_ ? std::max(send_ps_, not_before_ps_) : never;
  if (link_ && wanted_) next = std::min(next, std::max(credit_ps_ + ps_per_s, not_before_ps_));
  for (const lldp_neighbour& n : neighbours_) next = std::min(next, n.expires_ps);
  return next;
}

}  // namespace rnic::host_driver::dcb
