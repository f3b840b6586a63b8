// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/star.h"

#include <string>
#include <systemc>

#include "host_driver/hosts/meeting.h"
#include "host_driver/hosts/programs.h"

namespace rnic::hosts {

star::star(const star_config& config) : base_(config.timing), meeting_(std::make_unique<meeting>()) {
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  constexpr sim::clock_period resolution{1000, 1, 0};
  clock_ = std::make_unique<sim::clock_domain>("switch_clock", base_, resolution);
  fabric::switch_config middle;
  middle.ports.assign(config.leaves + 1, {config.node.adapter.port.rate_mbps, config.cable_metres, {}});
  middle.hop_ps = config.hop_ps;
  middle.buffer.flow_control = fabric::lossless_by::pause;  // as the hosts' drivers have it
  // Low thresholds: who sends more than the hub takes is soon stopped, and a short run is soon in its steady state.
  middle.buffer.bytes = 2u << 20;
  middle.buffer.lossless_alpha = 1;
  middle.buffer.xon_gap_bytes = 4'200;
  switch_ = std::make_unique<fabric::network_switch>("switch", *clock_, middle, frames_, statistics_);
  fabric::cable::config cable;
  cable.metres = config.cable_metres;
  ends_.resize(middle.ports.size());
  for (unsigned i = 0; i < ends_.size(); ++i) {
    base_.parts().begin();
    nodes_.push_back(
        std::make_unique<node>((i == 0 ? "hub" : "leaf" + std::to_string(i)).c_str(), env, config.node, i + 1));
    cables_.push_back(std::make_unique<fabric::cable>(nodes_[i]->connector(), switch_->port(i), cable));
    ends_[i].device = &nodes_[i]->device();
    ends_[i].bus = &nodes_[i]->bus();
  }
}

star::~star() = default;

void star::meet() { meeting_->arrive(nodes_.size()); }

void star::run(const std::function<void(endpoint&)>& program) {
  sole_.begin_run();
  const run_state state{running_, failure_};
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    spawn_program(
        *nodes_[i], "program" + std::to_string(i), [this, i, &program] { program(ends_[i]); }, state);
  run_programs(base_, state);
  expect_all_ended(state);
}

}  // namespace rnic::hosts
