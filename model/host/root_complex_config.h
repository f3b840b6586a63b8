// SPDX-License-Identifier: Apache-2.0
// Parameters of the slot.
#pragma once

#include <cstdint>

#include "model/host/iommu_config.h"
#include "model/host/memory_timing.h"
#include "model/pcie/link.h"
#include "model/sim/parameter.h"

namespace rnic::host {

/// Latencies are chosen such that with the link (model/pcie/link.h) the sums of calibration section 5 come out.
struct root_complex_config {
  pcie::link_config link;
  memory_timing_config memory;
  iommu_config iommu;
  /// Processor to link, of a store to the device.
  sim::parameter<sim::time_ps> store_to_link_ps{48'000, {1, slow_ps, "ps", "calibration 5: 120 ns in all"}};
  /// Completion to processor register.
  sim::parameter<sim::time_ps> link_to_processor_ps{48'000, {1, slow_ps, "ps", "calibration 5"}};
  /// Completions end at multiples of it: 64, 128 or 256.
  sim::parameter<std::uint32_t> completion_bytes{256, {64, 256, "bytes", "calibration 5: 256 on IVB and later"}};
  sim::parameter<std::uint32_t> posted_headers{64, {1, 127, "packets", "design: credits given to the device"}};
  sim::parameter<std::uint32_t> posted_data{1024,
                                            {32, 2047, "units of 16 bytes", "design: credits given to the device"}};
  /// Reads of the device under way.
  sim::parameter<std::uint32_t> non_posted_headers{64, {1, 127, "packets", "design: credits given to the device"}};
  /// Processor operations between processor and link.
  sim::parameter<unsigned> store_buffer{32, {1, 1024, "stores", "design"}};
  unsigned processor_tags = 32;  ///< processor reads under way
  unsigned sends_per_cycle = 4;  ///< width of the transmit buffer: packets into it in a cycle (design)
  sim::time_ps completion_timeout_ps = 50'000'000'000;  ///< 50 ms (Base Specification 3.0, 2.8)
  std::uint16_t device_id = 0x0100;                     ///< bus 1, device 0: where the adapter is

  /// The link has one set of parameters for both of its ends, which are the adapter's.
  void list(sim::fields& are) {
    are("", memory);
    are("iommu", iommu);
    are("store_to_link_ps", store_to_link_ps);
    are("link_to_processor_ps", link_to_processor_ps);
    are("completion_bytes", completion_bytes);
    are("posted_headers", posted_headers);
    are("posted_data", posted_data);
    are("non_posted_headers", non_posted_headers);
    are("store_buffer", store_buffer);
  }
};

}  // namespace rnic::host
