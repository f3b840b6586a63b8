// SPDX-License-Identifier: Apache-2.0
// Where frames of a network go, and where they stand still.
#include <algorithm>
#include <bitset>
#include <exception>
#include <string>
#include <systemc>

#include "firmware/bus/network_card.h"
#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/network.h"
#include "model/wire/ethernet.h"

namespace rnic::hosts {

/// Those that its ports know, and 0 for what transparent ones take.
std::vector<std::uint16_t> network::vlans_of(unsigned of_switch) const {
  std::bitset<4096> used;
  used.set(0);
  for (const network_config::vlan_setting& v : config_.vlans)
    if (v.of_switch == of_switch) used |= std::bitset<4096>(v.vlan.allowed).set(v.vlan.vlan);
  std::vector<std::uint16_t> all;
  for (std::size_t v = 0; v < used.size(); ++v)
    if (used[v]) all.push_back(static_cast<std::uint16_t>(v));
  return all;
}

/// As a control plane would, before there is traffic.
void network::route() {
  routes_.resize(nodes_.size());
  for (unsigned host = 0; host < nodes_.size(); ++host) {
    const node_config& n = built_from_[host];
    const auto macs = firmware::config_of(n.adapter, config_.node.firmware, host + 1).mac;
    for (unsigned port = 1; port <= 2; ++port) {
      const ports_by_switch& ways = routes_[host][port - 1] = config_.shape.ways_to(host, port);
      std::vector<std::uint64_t> all{macs[port - 1]};
      for (unsigned f = 1; f <= n.functions; ++f) {
        const auto settings =
            f <= n.function_settings.size() ? n.function_settings[f - 1] : host_driver::function_settings{};
        all.push_back(host_driver::function_master::mac_of(settings, macs[port - 1], f, port));
      }
      for (unsigned s = 0; s < switches_.size(); ++s)
        for (const std::uint16_t vlan : vlans_of(s))
          for (const std::uint64_t mac : all)
            if (!ways[s].empty()) switches_[s]->route(vlan, wire::mac_from_u64(mac), ways[s]);
    }
  }
}

// ---------------------------------------------------------------- standstills

std::string network::name_of(const way& w) const {
  return config_.shape.switches()[w.from] + " to " + config_.shape.switches()[w.to];
}

/// It is paused, has frames, and has sent none since the last look.
bool network::is_stuck(way& w, unsigned priority) {
  const fabric::network_switch& from = *switches_[w.from];
  const bool held = (from.held(w.out) >> priority & 1) != 0;
  const std::uint64_t sent = from.sent(w.out, priority);
  constexpr sim::time_ps for_long = 10 * sim::ps_per_us;  // callers look at times of their own
  const bool still = held && w.sent[priority] == sent && w.since[priority] != 0;
  if (!still) w.since[priority] = held ? now_ps() : 0;
  w.sent[priority] = sent;
  return still && now_ps() - w.since[priority] >= for_long;
}

/// What comes in by `one` waits in the queue of `next`.
bool network::holds_up(const way& one, const way& next, unsigned priority) const {
  return one.to == next.from && switches_[one.to]->buffer().between(one.in, next.out, priority) != 0;
}

std::string network::blocked_by(unsigned from, unsigned to, unsigned priority) const {
  const fabric::topology& shape = config_.shape;
  const ports_by_switch& ways = routes_[to][ends_[to].front().port - 1];
  fabric::plug_place at = shape.beyond_host(from, ends_[from].front().port);
  for (unsigned hop = 0; hop < switches_.size() && at.is_switch; ++hop) {
    const fabric::network_switch& s = *switches_[at.number];
    if (ways[at.number].size() != 1) return {};
    const unsigned own = ways[at.number].front();
    if ((s.stopped(at.port) >> priority & 1) != 0) {
      const auto bytes = [&](unsigned out) { return s.buffer().between(at.port, out, priority); };
      unsigned most = own;
      for (unsigned out = 0; out < s.num_ports(); ++out)
        if (bytes(out) > bytes(most)) most = out;
      constexpr std::uint32_t clearly = 4;  // times as much as of its own
      if (bytes(most) > clearly * bytes(own)) {
        const fabric::plug_place behind = shape.beyond(at.number, most);
        return shape.switches()[at.number] + " port " + std::to_string(most) + " to " +
               (behind.is_switch ? shape.switches() : shape.hosts())[behind.number];
      }
    }
    at = shape.beyond(at.number, own);
  }
  return {};
}

std::vector<standstill> network::look_for_standstills() {
  std::vector<standstill> found;
  for (unsigned p = 0; p < fabric::priorities; ++p) {
    std::vector<way*> stuck;
    for (way& w : ways_)
      if (is_stuck(w, p)) stuck.push_back(&w);
    // From one to one that holds it up, until one comes again: what lies between is a ring.
    std::vector<const way*> seen;
    for (const way* begin : stuck) {
      std::vector<const way*> path;
      const way* at = begin;
      while (at != nullptr && std::find(seen.begin(), seen.end(), at) == seen.end() &&
             std::find(path.begin(), path.end(), at) == path.end()) {
        path.push_back(at);
        const auto next = std::find_if(stuck.begin(), stuck.end(), [&](const way* w) { return holds_up(*at, *w, p); });
        at = next == stuck.end() ? nullptr : *next;
      }
      const auto ring = std::find(path.begin(), path.end(), at);
      if (at != nullptr && ring != path.end()) {
        standstill s;
        s.priority = p;
        for (auto w = ring; w != path.end(); ++w) {
          s.ways.push_back(name_of(**w));
          s.since = std::max(s.since, (*w)->since[p]);
        }
        const auto same = [&s](const standstill& known) {
          return known.priority == s.priority && known.ways == s.ways;
        };
        if (std::none_of(standstills_.begin(), standstills_.end(), same)) standstills_.push_back(s);
        found.push_back(std::move(s));
      }
      seen.insert(seen.end(), path.begin(), path.end());
    }
  }
  return found;
}

void network::watch_for_standstills(const std::vector<const std::uint64_t*>& received) {
  constexpr sim::time_ps interval = stuck_for / 100;
  std::uint64_t seen = 0;
  sim::time_ps since = now_ps();
  while (running_ != 0 && !failure_) {
    wait_until(now_ps() + interval);
    if (!sc_core::sc_pending_activity()) return;  // the kernel comes to rest, which run() says
    std::uint64_t all = 0;
    for (const std::uint64_t* counter : received) all += *counter;
    if (all != seen) since = now_ps();
    seen = all;
    const std::vector<standstill> found = look_for_standstills();
    if (found.empty() || failure_ || now_ps() - std::max(since, found.front().since) < stuck_for) continue;
    std::string ways;
    for (const std::string& w : found.front().ways) ways += (ways.empty() ? "" : ", ") + w;
    failure_ = std::make_exception_ptr(message_failed("the network stands still: " + ways +
                                                      " wait for each other in priority " +
                                                      std::to_string(found.front().priority) + " (deadlock)"));
    sc_core::sc_stop();
  }
}

void network::end_when_stuck(const std::vector<unsigned>& hosts) {
  std::vector<const std::uint64_t*> received;
  for (unsigned host = 0; host < nodes_.size(); ++host) {
    if (!hosts.empty() && std::find(hosts.begin(), hosts.end(), host) == hosts.end()) continue;
    const std::string check = std::string(nodes_[host]->name()) + ".adapter.icrc_check";
    for (const auto& [name, counter] : statistics_.of(check))
      if (name == check + ".frames_passed") received.push_back(counter);
  }
  sc_core::sc_spawn([this, received] { watch_for_standstills(received); }, "watch_for_standstills");
}

}  // namespace rnic::hosts
