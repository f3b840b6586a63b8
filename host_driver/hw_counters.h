// SPDX-License-Identifier: Apache-2.0
// Diagnostic counters of the device and of its ports, as the kernel shows them (sysfs hw_counters, rdma statistic).
#pragma once

#include <cstdint>
#include <vector>

#include "host_driver/device.h"

namespace rnic::host_driver {

/// A counter of DIAG_RPRT (adapter control plane 10.3) by its name in the kernel (ib/main.c: diag_basic, diag_ext,
/// diag_device_only).
struct hw_counter {
  const char* name;
  std::uint32_t value;
};

/// Those of `port`, or of the whole device for 0. A port has none where the device does not count by port
/// (DIAG_PER_PORT), and some are the device's alone. 0 or a negative errno: EINVAL, there is no such port; EOPNOTSUPP,
/// a virtual function, which may not ask.
int query_hw_counters(device& d, unsigned port, std::vector<hw_counter>* out);

}  // namespace rnic::host_driver
