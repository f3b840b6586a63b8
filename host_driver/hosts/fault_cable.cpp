// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/fault_cable.h"

namespace rnic::hosts {

fault_cable::fault_cable(payload::frame_port_if& first, payload::frame_port_if& second,
                         const fault_cable_config& config, const adapter::environment& env,
                         tlm::capture_writer* capture)
    : port_(config.port), place_(config.port == 1 ? "cable" : "cable2", "cable"), cable_(first, second, config.cable) {
  const std::string name = config.port == 1 ? "cable" : "cable2";
  for (unsigned from = 0; from < 2; ++from) {
    const std::string way = name + (from == 0 ? ".a_to_b" : ".b_to_a");
    env.statistics.add(way + ".frames", cable_.frames(from));
    env.statistics.add(way + ".lost", cable_.lost(from));
  }
  if (!config.faults.empty()) {
    constexpr sim::clock_period resolution{1000, 1, 0};  // what is held back or late goes on at whole nanoseconds
    clock_ = std::make_unique<sim::clock_domain>(name + ".clock", env.base, resolution);
    faults_ = std::make_unique<fabric::fault_injector>(name + ".faults", *clock_, config.faults, config.fault_seed,
                                                       env.frames, env.statistics);
    cable_.insert(*faults_);
    carrier_ = std::make_unique<fabric::carrier_schedule>(name + ".carrier", *clock_, cable_, config.faults.outages,
                                                          config.port);
  }
  if (capture != nullptr)
    cable_.add_observer(*capture,
                        config.faults.capture_before ? fabric::cable::tap::before : fabric::cable::tap::behind);
}

}  // namespace rnic::hosts
