// SPDX-License-Identifier: Apache-2.0
// A cable with counters, and what a fault plan does on it.
#pragma once

#include <memory>
#include <string>

#include "model/adapter/adapter.h"
#include "model/fabric/cable.h"
#include "model/fabric/carrier_schedule.h"
#include "model/fabric/fault_injector.h"
#include "tlm/capture.h"

namespace rnic::hosts {

struct fault_cable_config {
  unsigned port = 1;  ///< of the first host: its name is "cable" or "cable2", and outages are for it
  fabric::cable::config cable;
  fabric::fault_plan faults;
  std::uint64_t fault_seed = 1;  ///< for plans without a seed of their own
};

/// Counters are NAME.a_to_b.frames, NAME.a_to_b.lost and the same of b_to_a, where a is the first connector's host, and
/// those of the injector below NAME.faults.
class fault_cable {
 public:
  /// `capture` may be nullptr; it looks where the plan says.
  fault_cable(payload::frame_port_if& first, payload::frame_port_if& second, const fault_cable_config& config,
              const adapter::environment& env, tlm::capture_writer* capture);

  unsigned port() const { return port_; }
  fabric::cable& cable() { return cable_; }
  /// nullptr when the plan is empty.
  const fabric::fault_injector* faults() const { return faults_.get(); }

 private:
  unsigned port_;
  sim::hierarchy_module place_;  // its parts are below it
  fabric::cable cable_;
  std::unique_ptr<sim::clock_domain> clock_;
  std::unique_ptr<fabric::fault_injector> faults_;
  std::unique_ptr<fabric::carrier_schedule> carrier_;
};

}  // namespace rnic::hosts
