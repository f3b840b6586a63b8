// SPDX-License-Identifier: Apache-2.0
// Who takes the device's requests between the link and memory.
#pragma once

#include "model/payload/tlp.h"
#include "model/sim/types.h"

namespace rnic::host {

/// Takes the device's requests in the place of host_memory (platform_bridge.h), or before it (iommu.h).
class device_traffic_if {
 public:
  virtual ~device_traffic_if() = default;
  /// A memory read or write of the device, which is here at `arrival`. In the place of memory each goes back once: a
  /// read to root_complex::answer, a write to root_complex::done_with.
  virtual void request(payload::tlp_ptr packet, sim::time_ps arrival) = 0;
};

}  // namespace rnic::host
