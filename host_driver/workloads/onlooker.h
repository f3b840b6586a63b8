// SPDX-License-Identifier: Apache-2.0
// Who looks on at what programs send, and is told what the hardware does not know.
#pragma once

#include <cstdint>
#include <string>

#include "model/sim/types.h"

namespace rnic::workloads {

class onlooker_if {
 public:
  virtual ~onlooker_if() = default;
  /// Flow or workload `name` of a host sends on this queue pair.
  virtual void sends(unsigned host, std::uint32_t qpn, const std::string& name) = 0;
  /// The next request that is posted there, of those that were not told of, is of a message that has waited since then.
  virtual void waited(unsigned host, std::uint32_t qpn, sim::time_ps since) = 0;
};

}  // namespace rnic::workloads
