// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/network.h"

#include <algorithm>
#include <systemc>

#include "host_driver/hosts/meeting.h"
#include "host_driver/hosts/pair_if.h"
#include "host_driver/hosts/programs.h"

namespace rnic::hosts {

void announce(sim::parameter_set& to, network_config& c) {
  announce(to, c.node);
  to.add("switch", c.middle);
  to.add("sim", c.timing);
}

node_config of_host(const network_config& c, unsigned host) {
  node_config n = c.node;
  if (const auto is_own = [host](const network_config::host_setting& s) { return s.host == host; };
      std::any_of(c.settings.begin(), c.settings.end(), is_own)) {
    sim::parameter_set own;
    announce(own, n);
    for (const network_config::host_setting& s : c.settings)
      if (is_own(s)) own.set(s.path, s.value, s.where);
  }
  n.cabled = c.shape.cabled(host);
  if (n.cabled == 0) throw sim::config_error(c.shape.hosts()[host] + ": has no cable");
  if (n.driver.bond != host_driver::config::bond_mode::none)  // switches find a host's address at one port only
    throw sim::config_error("driver.bond: " + c.shape.hosts()[host] + " is at switches, bonds are for hosts at cables");
  for (const fabric::network_link& w : c.shape.links())
    for (const fabric::plug_place& e : w.ends) {
      if (e.is_switch || e.number != host) continue;
      (e.port == 1 ? n.adapter.port.rate_mbps : n.adapter.port2.rate_mbps) = w.rate_mbps;
      n.adapter.port.metres = std::max(n.adapter.port.metres, w.metres);
    }
  for (unsigned side = 0; c.sides && side < 2; ++side)
    if ((*c.sides)[side] == host) n = of_side(n, side);
  return n;
}

/// What a switch's stop takes until `peer` obeys, besides line and cable.
static sim::time_ps stop_ps(const network_config& network, const fabric::plug_place& peer) {
  const sim::time_ps choice = network.middle.hop_ps / 2;
  if (peer.is_switch) return 2 * choice;
  const adapter::config a = of_host(network, peer.number).adapter;
  mac::port_config port = a.port;
  port.rate_mbps = a.rate_mbps(peer.port - 1);
  return choice + mac::obey_ps(port);
}

std::unique_ptr<fabric::network_switch> make_switch(const network_config& network, unsigned number, bool floods,
                                                    sim::clock_domain& clock, payload::frame_pool& frames,
                                                    sim::statistics& statistics) {
  const fabric::topology& shape = network.shape;
  fabric::switch_config c = network.middle;
  c.ports.resize(shape.ports_of(number));
  c.floods = floods;
  c.seed = network.middle.seed * 0x10001 + number;
  for (const fabric::network_link& w : shape.links())
    for (unsigned i = 0; i < 2; ++i)
      if (const fabric::plug_place& e = w.ends[i]; e.is_switch && e.number == number)
        c.ports[e.port] = {w.rate_mbps, w.metres, {}, network.ps_per_metre, stop_ps(network, w.ends[1 - i])};
  for (const network_config::vlan_setting& v : network.vlans)
    if (v.of_switch == number) c.ports[v.port].vlan = v.vlan;
  return std::make_unique<fabric::network_switch>(shape.switches()[number], clock, c, frames, statistics);
}

network::network(const network_config& config)
    : config_(config),
      base_(config.timing),
      capture_(config.capture, config.capture_options),
      meeting_(std::make_unique<meeting>()) {
  if (config_.shape.hosts().empty()) throw sim::config_error("topology: has no hosts");
  for (const network_config::host_setting& s : config_.settings)
    one_of(("settings: " + s.path + " of host").c_str(), s.host, config_.shape.hosts().size());
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  for (unsigned i = 0; i < config_.shape.hosts().size(); ++i) {
    built_from_.push_back(of_host(config_, i));
    base_.parts().begin();
    nodes_.push_back(std::make_unique<node>(config_.shape.hosts()[i].c_str(), env, built_from_.back(), i + 1));
  }
  make_switches();
  make_cables();
  route();
  for (unsigned i = 0; i < nodes_.size(); ++i) {
    std::vector<unsigned> ports;
    for (const unsigned p : {1u, 2u})
      if ((config_.shape.cabled(i) >> (p - 1) & 1) != 0) ports.push_back(p);
    ends_.push_back(make_ends(*nodes_[i], ports));
  }
}

network::~network() = default;

void network::make_switches() {
  base_.parts().begin();
  clock_ = std::make_unique<sim::clock_domain>("fabric_clock", base_, fabric_clock);
  for (unsigned s = 0; s < config_.shape.switches().size(); ++s) {
    switches_.push_back(make_switch(config_, s, false, *clock_, frames_, statistics_));  // there may be loops
    if (config_.sides) switches_.back()->follow(spans_);
  }
}

void network::make_cables() {
  for (const fabric::network_link& w : config_.shape.links()) make_cable(w);
}

void network::make_cable(const fabric::network_link& w) {
  const auto connector = [this](const fabric::plug_place& e) -> payload::frame_port_if& {
    return e.is_switch ? switches_[e.number]->port(e.port) : nodes_[e.number]->connector(e.port);
  };
  fault_cable_config c;
  c.cable.metres = w.metres;
  c.cable.ps_per_metre = config_.ps_per_metre;
  const bool at_host = std::any_of(w.ends.begin(), w.ends.end(), [this](const fabric::plug_place& e) {
    return !e.is_switch && e.number == config_.capture_at;
  });
  fabric::cable* made = nullptr;
  if (is_measured(w.ends[0])) {
    c.port = w.ends[0].port;
    c.faults = config_.faults;
    c.fault_seed = config_.fault_seed;
    fault_cables_.push_back(std::make_unique<fault_cable>(
        connector(w.ends[0]), connector(w.ends[1]), c,
        adapter::environment{base_, spans_, statistics_, frames_, packets_}, at_host ? capture_.of_cable() : nullptr));
    made = &fault_cables_.back()->cable();
  } else {
    cables_.push_back(std::make_unique<fabric::cable>(connector(w.ends[0]), connector(w.ends[1]), c.cable));
    made = cables_.back().get();
    cable_ends_.push_back({w.ends[0], w.ends[1]});
    if (at_host && capture_.of_cable() != nullptr) made->add_observer(*capture_.of_cable());
  }
  if (at_host || !config_.capture_one) capture_.add(*made, port_name(w.ends[0]), port_name(w.ends[1]));
  if (config_.sides) made->follow(spans_, name_of(w.ends[0]), name_of(w.ends[1]));
  if (!w.ends[0].is_switch) return;
  for (unsigned i = 0; i < 2; ++i)
    ways_.push_back({w.ends[i].number, w.ends[i].port, w.ends[1 - i].number, w.ends[1 - i].port, {}, {}});
}

void network::follow() {
  if (config_.sides) return;
  for (const auto& s : switches_) s->follow(spans_);
  for (std::size_t i = 0; i < cables_.size(); ++i)
    cables_[i]->follow(spans_, name_of(cable_ends_[i][0]), name_of(cable_ends_[i][1]));
}

void network::warn_of_short_pauses(std::vector<std::string>& all) const {
  for (unsigned s = 0; s < switches_.size(); ++s)
    for (unsigned p = 0; p < switches_[s]->num_ports(); ++p) {
      const fabric::switch_config& c = config_.middle;
      const mac::refresh_margin m{switches_[s]->config_of(p).rate_mbps, c.pause_quanta, c.pause_refresh_percent,
                                  c.buffer.frame_bytes, c.hop_ps / 2};
      if (!m.is_enough())
        all.push_back(short_pauses(config_.shape.switches()[s] + " port " + std::to_string(p), c.pause_quanta, m));
    }
}

/// A port without rules takes what access ports send, and they nothing of what it sends without a tag.
void network::warn_of_one_way_ports(std::vector<std::string>& all) const {
  using kind = fabric::vlan_port::kind;
  for (unsigned s = 0; s < switches_.size(); ++s) {
    int access = -1, without = -1;
    for (unsigned p = switches_[s]->num_ports(); p-- != 0;) {
      const kind is = switches_[s]->config_of(p).vlan.is;
      if (is == kind::access) access = static_cast<int>(p);
      if (is == kind::transparent) without = static_cast<int>(p);
    }
    if (access >= 0 && without >= 0)
      all.push_back(config_.shape.switches()[s] + " port " + std::to_string(without) +
                    ": has no VLAN rules, and port " + std::to_string(access) +
                    " is an access port: untagged frames go one way only");
  }
}

std::vector<std::string> network::warnings() const {
  std::vector<std::string> all;
  for (unsigned i = 0; i < nodes_.size(); ++i)
    for (const std::string& w : hosts::warnings(built_from_[i])) all.push_back(config_.shape.hosts()[i] + " " + w);
  warn_of_one_way_ports(all);
  const fabric::buffer_config& b = config_.middle.buffer;
  if (b.flow_control == fabric::lossless_by::nothing) return all;
  for (unsigned s = 0; s < switches_.size(); ++s)
    for (unsigned p = 0; p < switches_[s]->num_ports(); ++p) {
      const fabric::switch_config::port& port = switches_[s]->config_of(p);
      const std::uint32_t needed = fabric::bytes_after_stop(port, b.frame_bytes);
      if (switches_[s]->buffer().headroom(p) >= needed) continue;
      all.push_back(config_.shape.switches()[s] + " port " + std::to_string(p) + ": " +
                    std::to_string(switches_[s]->buffer().headroom(p)) + " bytes of headroom; " +
                    std::to_string(needed) + " can still come over " + std::to_string(port.metres) + " m at " +
                    std::to_string(port.rate_mbps) + " Mb/s: pauses come too late");
    }
  warn_of_short_pauses(all);
  return all;
}

namespace {

/// What a host does now the other end of its cable notices after `out` at the earliest, and the reverse after `in`.
struct shortest_ways {
  sim::time_ps out = ~sim::time_ps{0}, in = ~sim::time_ps{0};
  bool by_switches = true;  // no host has a cable to another one

  /// `edge`: of the switches' clock.
  shortest_ways(const network_config& network, const std::vector<node_config>& hosts, sim::time_ps edge) {
    for (const fabric::network_link& w : network.shape.links()) {
      by_switches = by_switches && (w.ends[0].is_switch || w.ends[1].is_switch);
      for (const fabric::plug_place& e : w.ends) {
        if (e.is_switch) continue;
        const mac::port_config& port = hosts[e.number].adapter.port;
        const sim::time_ps cable = sim::time_ps{w.metres} * network.ps_per_metre;
        out = std::min(out, cable + mac::transmit_ps(port));
        in = std::min(in, cable + mac::receive_path(port).mac);
      }
    }
    // From a switch's choice of a frame, at the edge behind what made it possible; its pauses have no such delay.
    if (by_switches && network.middle.buffer.flow_control == fabric::lossless_by::nothing)
      in += std::max<sim::time_ps>(network.middle.hop_ps / 2, edge) - edge;
  }
};

}  // namespace

sim::time_ps network::lookahead() const {
  const shortest_ways w(config_, built_from_, clock_->longest_cycle());
  return w.by_switches ? w.out + w.in : std::min(w.out, w.in);
}

void network::run_apart() {
  const shortest_ways w(config_, built_from_, clock_->longest_cycle());
  if (w.by_switches)
    base_.parts().set_hub(w.out, w.in);
  else
    base_.parts().set_lookahead(std::min(w.out, w.in));
  base_.apart().serve_with(threads_to_use());
}

/// A window is worth the meeting of threads behind it where each has several hosts.
unsigned network::threads_to_use() const {
  constexpr std::size_t hosts_each = 4;
  const bool is_alone =
      std::any_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return !n->rtl().empty() || n->has_sockets(); });
  if (is_alone || spans_.enabled() || spans_.followed() != nullptr) return 1;
  if (config_.threads != 0) return config_.threads;
  return static_cast<unsigned>(std::min<std::size_t>(sim::thread_team::processors(), nodes_.size() / hosts_each));
}

endpoint& network::end(unsigned i, unsigned port) {
  endpoint& first = end(i);
  if (first.port == port) return first;
  if (first.other == nullptr || first.other->port != port)
    throw sim::config_error("end: " + config_.shape.hosts()[i] + " has no cable at port " + std::to_string(port));
  return *first.other;
}

void network::meet() { meeting_->arrive(nodes_.size()); }

void network::wait_until(sim::time_ps when) {
  base_.leave();
  const sim::time_ps now = sc_core::sc_time_stamp().value();
  if (when > now) sc_core::wait(sc_core::sc_time::from_value(when - now));
}

void network::wait_until(sim::time_ps when, unsigned host, turn::rank rank,
                         host_driver::program_turns::alarm* or_until) {
  base_.leave();
  if (when > now_ps()) turn(nodes_[host]->turns(), or_until, rank).wait(when);
}

void network::run(const std::function<void(unsigned)>& program) {
  if (!program) throw sim::config_error("run: program is not given");
  sole_.begin_run();
  const run_state state{running_, failure_};
  for (unsigned i = 0; i < nodes_.size(); ++i)
    spawn_program(
        *nodes_[i], "program" + std::to_string(i + 1), [i, &program] { program(i); }, state);
  run_programs(base_, state);
  capture_.close();
  expect_all_ended(state);
}

std::uint64_t line_busy_ps(network& n, const fabric::plug_place& from, const fabric::plug_place& to) {
  const std::uint32_t rate_mbps = from.is_switch ? n.middle(from.number).config_of(from.port).rate_mbps
                                                 : n.built_from(from.number).adapter.rate_mbps(from.port - 1);
  const auto at = [&](const fabric::plug_place& place, line_end end) {
    if (!place.is_switch) return line_busy_ps(n.statistics(), n.host(place.number).name(), place.port, end, rate_mbps);
    const fabric::network_switch::port_counters& c = n.middle(place.number).count(place.port);
    return end == line_end::sent ? line_busy_ps(c.tx_frames, c.tx_bytes, c.tx_pause, rate_mbps)
                                 : line_busy_ps(c.rx_frames, c.rx_bytes, c.rx_pause, rate_mbps);
  };
  return std::max(at(from, line_end::sent), at(to, line_end::received));
}

}  // namespace rnic::hosts
