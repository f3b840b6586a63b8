// SPDX-License-Identifier: Apache-2.0
#include "host_driver/lacp/lacp_agent.h"

#include <algorithm>
#include <vector>

#include "model/wire/bytes.h"

namespace rnic::host_driver::lacp {

namespace {

namespace bit = wire::lacp_state;

constexpr std::size_t ethernet_bytes = 14;

/// Speed code and duplex bit of a port's key (net/bonding/bond_3ad.c: enum ad_link_speed_type, AD_DUPLEX_KEY_MASKS).
std::uint16_t key_of(std::uint16_t user_key, unsigned rate_mbps) {
  static constexpr unsigned rates[] = {1,      10,     100,    1000,   2500,   5000,    10'000,  14'000,
                                       20'000, 25'000, 40'000, 50'000, 56'000, 100'000, 200'000, 400'000};
  unsigned speed = 0;
  for (unsigned i = 0; i < std::size(rates); ++i)
    if (rates[i] == rate_mbps) speed = i + 1;
  return static_cast<std::uint16_t>(unsigned{user_key} << 6 | speed << 1 | 1);
}

wire::lacp_end actor_of(const mac_address& system, const settings& s, unsigned port) {
  wire::lacp_end e;
  e.system_priority = s.system_priority;
  e.system = system;
  e.key = key_of(s.user_key, 0);
  e.port_priority = s.port_priority[port - 1];
  e.port = static_cast<std::uint16_t>(port);
  e.state = bit::aggregation;
  if (s.active) e.state |= bit::activity;
  if (s.rate == settings::speed::fast) e.state |= bit::timeout;
  return e;
}

}  // namespace

lacp_agent::lacp_agent(const mac_address& system, const std::array<mac_address, ports>& own, const settings& s,
                       port_output_if& out)
    : system_(system),
      own_(own),
      settings_(s),
      out_(out),
      machines_{lacp_port(actor_of(system, s, 1)), lacp_port(actor_of(system, s, 2))} {}

bool lacp_agent::set_link(unsigned port, bool up, unsigned rate_mbps, std::uint64_t now_ps) {
  rate_mbps_[port - 1] = rate_mbps;
  machines_[port - 1].set_enabled(up, key_of(settings_.user_key, rate_mbps), now_ps);
  return settle(now_ps);
}

bool lacp_agent::receive(unsigned port, const std::uint8_t* frame, std::size_t length, std::uint64_t now_ps) {
  // What is sent to a group comes back to the members of the own port.
  const mac_address& own = own_[port - 1];
  if (length >= ethernet_bytes && std::equal(own.begin(), own.end(), frame + 6)) return false;
  if (!machines_[port - 1].enabled()) return false;
  lacp_counters& c = counters_[port - 1];
  wire::lacp_unit unit;
  wire::marker_unit marker;
  auto what = wire::slow_protocol::illegal;
  if (length >= ethernet_bytes && wire::load_be16(frame + 12) == wire::slow_protocols_ethertype)
    what = wire::decode_slow_protocol(frame + ethernet_bytes, length - ethernet_bytes, unit, marker);
  switch (what) {
    case wire::slow_protocol::unknown:
      ++c.unknown_in;
      return false;
    case wire::slow_protocol::illegal:
      ++c.illegal_in;
      return false;
    case wire::slow_protocol::marker:
      take_marker(port, marker);
      return false;
    case wire::slow_protocol::lacp:
      break;
  }
  ++c.lacpdus_in;
  if (unit.actor.system == system_) {
    ++c.loopback_in;
    return false;
  }
  machines_[port - 1].receive(unit, now_ps);
  return settle(now_ps);
}

/// A marker is answered at once: what was received before it has been (6.5.4.3).
void lacp_agent::take_marker(unsigned port, wire::marker_unit marker) {
  lacp_counters& c = counters_[port - 1];
  if (marker.response) {
    ++c.marker_responses_in;
    return;
  }
  ++c.markers_in;
  ++c.marker_responses_out;
  marker.response = true;
  send(port, wire::encode_marker(marker));
}

bool lacp_agent::tick(std::uint64_t now_ps) {
  for (lacp_port& m : machines_) m.tick(now_ps);
  return settle(now_ps);
}

/// Selection and mux machines until nothing moves any more, then what is to be said of it.
bool lacp_agent::settle(std::uint64_t now_ps) {
  const unsigned before = distributing();
  bool moves = true;
  while (moves) {
    moves = false;
    for (lacp_port& m : machines_)
      while (m.step_mux(ready(), now_ps)) moves = true;
    moves |= select();
  }
  for (unsigned port = 1; port <= ports; ++port) {
    wire::lacp_unit unit;
    if (!machines_[port - 1].take_transmission(&unit, now_ps)) continue;
    ++counters_[port - 1].lacpdus_out;
    send(port, wire::encode_lacp(unit));
  }
  return distributing() != before;
}

/// All ports of the group that wait have waited (6.4.14: Ready).
bool lacp_agent::ready() const {
  return std::all_of(machines_.begin(), machines_.end(), [](const lacp_port& m) {
    return m.selected() != lacp_port::selection::selected || !m.waits() || m.has_waited();
  });
}

unsigned lacp_agent::rate_of(const lag_id& group) const {
  unsigned sum = 0;
  for (unsigned i = 0; i < ports; ++i)
    if (machines_[i].enabled() && machines_[i].lag() == group) sum += rate_mbps_[i];
  return sum;
}

void lacp_agent::choose_group() {
  const lag_id* best = nullptr;
  std::array<lag_id, ports> groups;
  for (unsigned i = 0; i < ports; ++i) {
    if (!machines_[i].enabled()) continue;
    groups[i] = machines_[i].lag();
    const lag_id& g = groups[i];
    if (best == nullptr || g.has_partner() != best->has_partner()) {
      if (best == nullptr || g.has_partner()) best = &g;
    } else if (!(*best == group_) && (g == group_ || rate_of(g) > rate_of(*best))) {
      best = &g;
    }
  }
  if (best != nullptr) group_ = *best;
}

/// True when a port was given another place. One that was unselected has to be detached before.
bool lacp_agent::select() {
  using selection = lacp_port::selection;
  choose_group();
  bool changed = false;
  for (lacp_port& m : machines_) {
    if (!m.enabled()) continue;
    if (m.selected() == selection::unselected && m.mux() != lacp_port::mux_state::detached) continue;
    const selection to = m.lag() == group_ ? selection::selected : selection::standby;
    if (to == m.selected()) continue;
    m.select(to);
    changed = true;
  }
  return changed;
}

void lacp_agent::send(unsigned port, const std::vector<std::uint8_t>& body) {
  std::vector<std::uint8_t> frame(ethernet_bytes);
  std::copy(wire::slow_protocols_address.begin(), wire::slow_protocols_address.end(), frame.begin());
  std::copy(own_[port - 1].begin(), own_[port - 1].end(), frame.begin() + 6);
  wire::store_be16(&frame[12], wire::slow_protocols_ethertype);
  frame.insert(frame.end(), body.begin(), body.end());
  out_.transmit(port, frame.data(), frame.size());
}

std::uint64_t lacp_agent::next_ps() const { return std::min(machines_[0].next_ps(), machines_[1].next_ps()); }

unsigned lacp_agent::distributing() const {
  unsigned mask = 0;
  for (unsigned i = 0; i < ports; ++i)
    if (machines_[i].distributes()) mask |= 1u << i;
  return mask;
}

bool lacp_agent::settled() const {
  return std::all_of(machines_.begin(), machines_.end(), [](const lacp_port& m) {
    if (!m.enabled()) return true;
    if (m.receiving() == lacp_port::receive_state::expired) return false;
    return m.selected() == lacp_port::selection::standby || m.distributes();
  });
}

}  // namespace rnic::host_driver::lacp
