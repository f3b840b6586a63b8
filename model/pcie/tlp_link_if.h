// SPDX-License-Identifier: Apache-2.0
// What one end of a PCIe link does to the other, as plain calls: the TLM sockets carry the same two
// (model/payload/pcie_socket.h).
#pragma once

#include <cstdint>

#include "model/payload/tlp.h"
#include "model/sim/types.h"

namespace rnic::pcie {

/// Flow-control classes (PCI Express Base Specification 3.0, 2.6.1).
enum class credit_class : std::uint8_t { posted, non_posted, completion };

/// Credits: one header each, data in units of 16 bytes.
struct credit_amount {
  credit_class type = credit_class::posted;
  std::uint32_t headers = 0;
  std::uint32_t data = 0;
};
/// Advertised at link-up as "never runs out", as endpoints and root complexes must for completions.
inline constexpr std::uint32_t infinite_credits = 0xffff'ffff;

/// The receiving side of a link. Arrivals of packets do not decrease and lie in the future of the call.
class tlp_link_if {
 public:
  virtual ~tlp_link_if() = default;
  /// The last byte of the packet is here at `arrival`.
  virtual void deliver(payload::tlp_ptr packet, sim::time_ps arrival) = 0;
  /// The peer has room for that much more from `arrival` on.
  virtual void credit(const credit_amount& amount, sim::time_ps arrival) = 0;
};

}  // namespace rnic::pcie
