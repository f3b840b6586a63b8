// SPDX-License-Identifier: Apache-2.0
// EQ doorbell (adapter control plane 1.4, 7.4).
#include "host_driver/event_queue.h"

#include "model/abi/bar_layout.h"

namespace rnic::host_driver {

void event_queue::ring(bus_if& bus, bool arm) const {
  bus.mmio_write32(2, abi::uar::eq_doorbell_offset(eqn), abi::uar::eq_doorbell_value(consumer, arm));
}

}  // namespace rnic::host_driver
