// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/two_nodes.h"

#include <algorithm>
#include <stdexcept>
#include <systemc>

#include "host_driver/hosts/meeting.h"
#include "host_driver/hosts/programs.h"

namespace rnic::hosts {

void announce(sim::parameter_set& to, two_nodes_config& c) {
  announce(to, c.node);
  to.add("cable", c);
  to.add("sim", c.timing);
}

namespace {
void check_ports(const std::vector<unsigned>& ports) {
  std::string text;
  for (const unsigned p : ports) text += (text.empty() ? "" : ",") + std::to_string(p);
  if (text != "1" && text != "2" && text != "1,2" && text != "2,1")
    throw sim::config_error("cabled ports: " + text + ": expected 1, 2, 1,2 or 2,1");
}

unsigned mask_of(const std::vector<unsigned>& ports) {
  unsigned mask = 0;
  for (const unsigned p : ports) mask |= 1u << (p - 1);
  return mask;
}
}  // namespace

two_nodes::two_nodes(const two_nodes_config& config)
    : config_(config),
      base_(config.timing),
      capture_(config.capture, config.capture_options),
      meeting_(std::make_unique<meeting>()) {
  check_ports(config.ports);
  sim::checked(config, "cable");
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  const auto of = [&](unsigned side) {
    node_config c = of_side(side == 1 && config.node_b ? *config.node_b : config.node, side);
    c.cabled = mask_of(config.ports);
    c.adapter.port.metres = config.cable_metres;
    return c;
  };
  node_a_ = std::make_unique<node>("a", env, of(0), 1);
  node_b_ = std::make_unique<node>("b", env, of(1), 2);
  for (const unsigned port : config.ports) make_link(port, env);
  capture_.add_counters(statistics_, "cable.capture");
  ends_ = {make_ends(*node_a_, config.ports), make_ends(*node_b_, config.ports)};
}

void two_nodes::make_link(unsigned port, const adapter::environment& env) {
  fault_cable_config c;
  c.port = port;
  c.cable.metres = config_.cable_metres;
  c.cable.hop_ps = config_.hop_ps;
  c.faults = config_.faults;
  c.fault_seed = config_.fault_seed;
  links_.push_back(
      std::make_unique<fault_cable>(node_a_->connector(port), node_b_->connector(port), c, env, capture_.of_cable()));
  const std::string at = ".port" + std::to_string(port);
  capture_.add(links_.back()->cable(), "a" + at, "b" + at);
}

std::vector<pair_if::line> two_nodes::lines() const {
  std::vector<line> all;
  for (const unsigned port : config_.ports) {
    const std::string of = config_.ports.size() > 1 ? " of port " + std::to_string(port) : "";
    const std::uint32_t rate_mbps = config_.node.adapter.rate_mbps(port - 1);
    const auto add = [&](const char* way, const std::string& from, const std::string& to) {
      all.push_back({"wire" + of + way, std::max(line_busy_ps(statistics_, from, port, line_end::sent, rate_mbps),
                                                 line_busy_ps(statistics_, to, port, line_end::received, rate_mbps))});
    };
    add(", a to b", node_a_->name(), node_b_->name());
    add(", b to a", node_b_->name(), node_a_->name());
  }
  return all;
}

two_nodes::~two_nodes() = default;

void two_nodes::meet() { meeting_->arrive(2); }

void two_nodes::run(const std::function<void()>& program_a, const std::function<void()>& program_b) {
  sole_.begin_run();
  const run_state state{running_, failure_};
  spawn_program(*node_a_, "program_a", program_a, state);
  spawn_program(*node_b_, "program_b", program_b, state);
  run_programs(base_, state);
  capture_.close();
  expect_all_ended(state);
}

void two_nodes::pass(sim::time_ps duration) {
  base_.run_ahead_until(now_ps() + duration);
  sc_core::sc_start(sc_core::sc_time::from_value(duration));
}

}  // namespace rnic::hosts
