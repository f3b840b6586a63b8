// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/two_nodes.h"

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
    : config_(config), base_(config.timing), meeting_(std::make_unique<meeting>()) {
  check_ports(config.ports);
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  const auto of = [&](unsigned side) {
    node_config c = of_side(side == 1 && config.node_b ? *config.node_b : config.node, side);
    c.cabled = mask_of(config.ports);
    c.adapter.port.metres = config.cable_metres;
    return c;
  };
  node_a_ = std::make_unique<node>("a", env, of(0), 1);
  node_b_ = std::make_unique<node>("b", env, of(1), 2);
  if (!config.capture.empty()) capture_ = std::make_unique<tlm::capture_writer>(config.capture, config.capture_options);
  for (const unsigned port : config.ports) links_.push_back(make_link(port));
  if (capture_) {
    statistics_.add("cable.capture.frames", capture_->frames());
    statistics_.add("cable.capture.wrong_fcs", capture_->wrong_fcs());
  }
  make_ends(0, *node_a_);
  make_ends(1, *node_b_);
}

two_nodes::link two_nodes::make_link(unsigned port) {
  const std::string name = port == 1 ? "cable" : "cable2";
  fabric::cable::config cable;
  cable.metres = config_.cable_metres;
  cable.hop_ps = config_.hop_ps;
  link l;
  l.place = std::make_unique<sim::hierarchy_module>(name, "cable");
  l.cable = std::make_unique<fabric::cable>(node_a_->connector(port), node_b_->connector(port), cable);
  for (unsigned from = 0; from < 2; ++from) {
    const std::string way = name + (from == 0 ? ".a_to_b" : ".b_to_a");
    statistics_.add(way + ".frames", l.cable->frames(from));
    statistics_.add(way + ".lost", l.cable->lost(from));
  }
  if (!config_.faults.empty()) {
    constexpr sim::clock_period resolution{1000, 1, 0};  // what is held back or late goes on at whole nanoseconds
    l.clock = std::make_unique<sim::clock_domain>(name + ".clock", base_, resolution);
    l.faults = std::make_unique<fabric::fault_injector>(name + ".faults", *l.clock, config_.faults, config_.fault_seed,
                                                        frames_, statistics_);
    l.cable->insert(*l.faults);
    l.carrier =
        std::make_unique<fabric::carrier_schedule>(name + ".carrier", *l.clock, *l.cable, config_.faults.outages, port);
  }
  if (capture_)
    l.cable->add_observer(*capture_,
                          config_.faults.capture_before ? fabric::cable::tap::before : fabric::cable::tap::behind);
  return l;
}

void two_nodes::make_ends(unsigned side, node& n) {
  std::vector<endpoint>& ends = ends_[side];
  const bool bonded = n.bond() != nullptr;  // one port to programs
  ends.resize(bonded ? 1 : config_.ports.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i].device = &n.device();
    ends[i].bus = &n.bus();
    ends[i].port = bonded ? 1 : config_.ports[i];
    if (ends.size() == 2) ends[i].other = &ends[1 - i];
  }
}

two_nodes::~two_nodes() = default;

void two_nodes::meet() { meeting_->arrive(2); }

void two_nodes::run(const std::function<void()>& program_a, const std::function<void()>& program_b) {
  const run_state state{running_, failure_};
  spawn_program(*node_a_, "program_a", program_a, state);
  spawn_program(*node_b_, "program_b", program_b, state);
  run_programs(base_, state);
  if (capture_) capture_->close();
  expect_all_ended(state);
}

void two_nodes::pass(sim::time_ps duration) {
  base_.run_ahead_until(now_ps() + duration);
  sc_core::sc_start(sc_core::sc_time::from_value(duration));
}

}  // namespace rnic::hosts
