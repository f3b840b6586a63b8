// SPDX-License-Identifier: Apache-2.0
// A cable that is dead at given times.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/fabric/cable.h"
#include "model/fabric/fault_plan.h"
#include "model/sim/clocked_block.h"

namespace rnic::fabric {

/// Pulls a cable out and plugs it in again as a plan's outages say. Where they overlap it is dead until the last one
/// ends; one that ends at the instant at which another begins is one outage with it.
class carrier_schedule : public sim::clocked_block {
 public:
  /// `port`: which of the outages are this cable's. Times are whole edges of the domain, rounded up.
  carrier_schedule(const std::string& name, sim::clock_domain& domain, cable& on, const std::vector<outage>& outages,
                   unsigned port);

 private:
  struct change {
    sim::time_ps at = 0;
    bool live = false;
  };
  void tick() override;

  cable& cable_;
  std::vector<change> changes_;  // in order of time
  std::size_t next_ = 0;
};

}  // namespace rnic::fabric
