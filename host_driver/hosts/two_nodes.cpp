// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/two_nodes.h"

#include <stdexcept>
#include <systemc>

#include "host_driver/hosts/meeting.h"

namespace rnic::hosts {

void announce(sim::parameter_set& to, two_nodes_config& c) {
  announce(to, c.node);
  to.add("cable", c);
  to.add("sim", c.timing);
}

two_nodes::two_nodes(const two_nodes_config& config)
    : config_(config), base_(config.timing), meeting_(std::make_unique<meeting>()) {
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  node_a_ = std::make_unique<node>("a", env, of_side(config.node, 0), 1);
  node_b_ = std::make_unique<node>("b", env, of_side(config.node_b ? *config.node_b : config.node, 1), 2);
  fabric::cable::config cable;
  cable.metres = config.cable_metres;
  cable.hop_ps = config.hop_ps;
  cable_place_ = std::make_unique<sim::hierarchy_module>("cable", "cable");
  cable_ = std::make_unique<fabric::cable>(node_a_->connector(), node_b_->connector(), cable);
  for (unsigned from = 0; from < 2; ++from) {
    const std::string way = from == 0 ? "cable.a_to_b" : "cable.b_to_a";
    statistics_.add(way + ".frames", cable_->frames(from));
    statistics_.add(way + ".lost", cable_->lost(from));
  }
  if (!config.faults.empty()) {
    constexpr sim::clock_period resolution{1000, 1, 0};  // frames that are held back go on at whole nanoseconds
    cable_clock_ = std::make_unique<sim::clock_domain>("cable.clock", base_, resolution);
    faults_ = std::make_unique<fabric::fault_injector>("cable.faults", *cable_clock_, config.faults, config.fault_seed,
                                                       frames_, statistics_);
    cable_->insert(*faults_);
  }
  if (!config.capture.empty()) {
    capture_ = std::make_unique<tlm::capture_writer>(config.capture, config.capture_options);
    cable_->add_observer(*capture_,
                         config.faults.capture_before ? fabric::cable::tap::before : fabric::cable::tap::behind);
    statistics_.add("cable.capture.frames", capture_->frames());
    statistics_.add("cable.capture.wrong_fcs", capture_->wrong_fcs());
  }
  a_.device = &node_a_->device();
  a_.bus = &node_a_->bus();
  b_.device = &node_b_->device();
  b_.bus = &node_b_->bus();
}

two_nodes::~two_nodes() = default;

void two_nodes::meet() { meeting_->arrive(2); }

void two_nodes::run(const std::function<void()>& program_a, const std::function<void()>& program_b) {
  running_ = 2;
  const auto start = [this](endpoint& e, const std::function<void()>& program, const char* name) {
    sc_core::sc_spawn(
        [this, &e, program] {
          try {
            require((&e == &a_ ? node_a_ : node_b_)->start(), "open device");
            program();
          } catch (...) {
            if (!failure_) {  // the kernel warns of a second stop
              failure_ = std::current_exception();
              sc_core::sc_stop();
            }
          }
          if (--running_ == 0) sc_core::sc_pause();
        },
        name);
  };
  start(a_, program_a, "program_a");
  start(b_, program_b, "program_b");
  base_.run_ahead_until(~sim::time_ps{0});
  try {
    sc_core::sc_start();
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  if (capture_) capture_->close();
  if (failure_) std::rethrow_exception(failure_);
  if (running_ != 0) throw std::runtime_error("the simulation came to rest before both programs had ended");
}

void two_nodes::pass(sim::time_ps duration) {
  base_.run_ahead_until(now_ps() + duration);
  sc_core::sc_start(sc_core::sc_time::from_value(duration));
}

}  // namespace rnic::hosts
