// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/network.h"

#include <algorithm>
#include <bitset>
#include <systemc>

#include "firmware/bus/network_card.h"
#include "host_driver/hosts/meeting.h"
#include "host_driver/hosts/programs.h"
#include "model/wire/ethernet.h"

namespace rnic::hosts {

void announce(sim::parameter_set& to, network_config& c) {
  announce(to, c.node);
  to.add("switch", c.middle);
  to.add("sim", c.timing);
}

namespace {

/// A host's adapter: the ports have the rates of their cables.
node_config of_host(const network_config& c, unsigned host) {
  node_config n = c.node;
  n.cabled = c.shape.cabled(host);
  if (n.cabled == 0) throw sim::config_error(c.shape.hosts()[host] + ": has no cable");
  for (const fabric::network_link& w : c.shape.links()) {
    const fabric::plug_place& e = w.ends[0];
    if (e.is_switch || e.number != host) continue;
    (e.port == 1 ? n.adapter.port.rate_mbps : n.adapter.port2.rate_mbps) = w.rate_mbps;
    n.adapter.port.metres = std::max(n.adapter.port.metres, w.metres);
  }
  return n;
}

}  // namespace

network::network(const network_config& config)
    : config_(config), base_(config.timing), meeting_(std::make_unique<meeting>()) {
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  for (unsigned i = 0; i < config_.shape.hosts().size(); ++i)
    nodes_.push_back(std::make_unique<node>(config_.shape.hosts()[i].c_str(), env, of_host(config_, i), i + 1));
  make_switches();
  make_cables();
  route();
  ends_.resize(nodes_.size());
  for (unsigned i = 0; i < ends_.size(); ++i) {
    ends_[i].device = &nodes_[i]->device();
    ends_[i].bus = &nodes_[i]->bus();
    ends_[i].port = (config_.shape.cabled(i) & 1) != 0 ? 1 : 2;
  }
}

network::~network() = default;

void network::make_switches() {
  constexpr sim::clock_period resolution{1000, 1, 0};
  clock_ = std::make_unique<sim::clock_domain>("fabric_clock", base_, resolution);
  for (unsigned s = 0; s < config_.shape.switches().size(); ++s) {
    fabric::switch_config c = config_.middle;
    c.ports.resize(config_.shape.ports_of(s));
    c.floods = false;  // there may be loops
    c.seed = config_.middle.seed * 0x10001 + s;
    for (const fabric::network_link& w : config_.shape.links())
      for (const fabric::plug_place& e : w.ends)
        if (e.is_switch && e.number == s) c.ports[e.port] = {w.rate_mbps, w.metres, {}};
    for (const network_config::vlan_setting& v : config_.vlans)
      if (v.of_switch == s) c.ports[v.port].vlan = v.vlan;
    switches_.push_back(
        std::make_unique<fabric::network_switch>(config_.shape.switches()[s], *clock_, c, frames_, statistics_));
  }
}

void network::make_cables() {
  if (!config_.capture.empty())
    capture_ = std::make_unique<tlm::capture_writer>(config_.capture, config_.capture_options);
  const auto connector = [this](const fabric::plug_place& e) -> payload::frame_port_if& {
    return e.is_switch ? switches_[e.number]->port(e.port) : nodes_[e.number]->connector(e.port);
  };
  for (const fabric::network_link& w : config_.shape.links()) {
    fabric::cable::config c;
    c.metres = w.metres;
    c.ps_per_metre = config_.ps_per_metre;
    cables_.push_back(std::make_unique<fabric::cable>(connector(w.ends[0]), connector(w.ends[1]), c));
    if (capture_ && !w.ends[0].is_switch && w.ends[0].number == config_.capture_at)
      cables_.back()->add_observer(*capture_);
    if (!w.ends[0].is_switch) continue;
    for (unsigned i = 0; i < 2; ++i)
      ways_.push_back({w.ends[i].number, w.ends[i].port, w.ends[1 - i].number, w.ends[1 - i].port, {}, {}});
  }
}

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
    const auto macs = firmware::config_of(of_host(config_, host).adapter, config_.node.firmware, host + 1).mac;
    for (unsigned port = 1; port <= 2; ++port) {
      const ports_by_switch& ways = routes_[host][port - 1] = config_.shape.ways_to(host, port);
      for (unsigned s = 0; s < switches_.size(); ++s)
        for (const std::uint16_t vlan : vlans_of(s))
          if (!ways[s].empty()) switches_[s]->route(vlan, wire::mac_from_u64(macs[port - 1]), ways[s]);
    }
  }
}

std::vector<std::string> network::warnings() const {
  std::vector<std::string> all;
  for (unsigned i = 0; i < nodes_.size(); ++i)
    for (const std::string& w : hosts::warnings(of_host(config_, i))) all.push_back(config_.shape.hosts()[i] + " " + w);
  const fabric::buffer_config& b = config_.middle.buffer;
  if (b.flow_control == fabric::lossless_by::nothing) return all;
  for (unsigned s = 0; s < switches_.size(); ++s)
    for (unsigned p = 0; p < switches_[s]->num_ports(); ++p) {
      const fabric::switch_config::port& port = switches_[s]->config_of(p);
      const std::uint32_t needed = fabric::bytes_after_stop(port, b.frame_bytes, config_.ps_per_metre);
      if (switches_[s]->buffer().headroom(p) >= needed) continue;
      all.push_back(config_.shape.switches()[s] + " port " + std::to_string(p) + ": " +
                    std::to_string(switches_[s]->buffer().headroom(p)) + " bytes of headroom; " +
                    std::to_string(needed) + " can still come over " + std::to_string(port.metres) + " m at " +
                    std::to_string(port.rate_mbps) + " Mb/s: pauses come too late");
    }
  return all;
}

void network::meet() { meeting_->arrive(nodes_.size()); }

void network::wait_until(sim::time_ps when) {
  base_.leave();
  const sim::time_ps now = sc_core::sc_time_stamp().value();
  if (when > now) sc_core::wait(sc_core::sc_time::from_value(when - now));
}

void network::run(const std::function<void(unsigned)>& program) {
  const run_state state{running_, failure_};
  for (unsigned i = 0; i < nodes_.size(); ++i)
    spawn_program(
        *nodes_[i], "program" + std::to_string(i + 1), [i, &program] { program(i); }, state);
  run_programs(base_, state);
  if (capture_) capture_->close();
  expect_all_ended(state);
}

// ---------------------------------------------------------------- standstills

std::string network::name_of(const way& w) const {
  return config_.shape.switches()[w.from] + " to " + config_.shape.switches()[w.to];
}

/// It is paused, has frames, and has sent none since the last look.
bool network::is_stuck(way& w, unsigned priority) {
  fabric::network_switch& from = *switches_[w.from];
  const bool held = (from.held(w.out) >> priority & 1) != 0;
  const std::uint64_t sent = from.count(w.out).tx_frames;
  const bool still = held && w.sent[priority] == sent && w.since[priority] != 0;
  if (!still) w.since[priority] = held ? now_ps() : 0;
  w.sent[priority] = sent;
  return still;
}

/// What comes in by `one` waits in the queue of `next`.
bool network::holds_up(const way& one, const way& next, unsigned priority) const {
  return one.to == next.from && switches_[one.to]->buffer().between(one.in, next.out, priority) != 0;
}

std::string network::blocked_by(unsigned from, unsigned to, unsigned priority) const {
  const fabric::topology& shape = config_.shape;
  const ports_by_switch& ways = routes_[to][ends_[to].port - 1];
  fabric::plug_place at = shape.beyond_host(from, ends_[from].port);
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
        found.push_back(s);
      }
      seen.insert(seen.end(), path.begin(), path.end());
    }
  }
  return found;
}

}  // namespace rnic::hosts
