// SPDX-License-Identifier: Apache-2.0
// What the slot of a host calls of an adapter's end of the PCIe link.
#pragma once

#include <cstdint>

#include "model/payload/tlp.h"
#include "model/pcie/tlp_link_if.h"

namespace rnic::pcie {

/// The adapter's end of a link.
class endpoint_if : public tlp_link_if {
 public:
  /// Link-up: packets go to `peer` from now on, which is told the buffers of this end. Once, before time starts.
  virtual void connect(tlp_link_if& peer) = 0;
  virtual bool connected() const = 0;
  /// For debuggers: fills in the data of a read packet without simulated time, counters or effects. Returns the number
  /// of bytes; 0 for what cannot be read so.
  virtual std::uint32_t look(payload::tlp& request) const = 0;
};

}  // namespace rnic::pcie
