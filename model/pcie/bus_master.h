// SPDX-License-Identifier: Apache-2.0
// Which functions may send requests, and in whose name.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/pcie/functions.h"

namespace rnic::pcie {

/// A function masters the bus when software lets it (Bus Master Enable), the firmware lets the DMA engine and does not
/// hold the function (pcie_cr.h), and the function exists.
class bus_master {
 public:
  explicit bus_master(const functions& all) : functions_(all) {}

  bool allowed(std::uint16_t function) const { return enabled_ && functions_.masters_bus(function); }
  /// The firmware's part of it.
  void enable(bool on) { enabled_ = on; }
  bool enabled() const { return enabled_; }

  /// Routing ID of the physical function.
  void set_requester(std::uint16_t id) { requester_ = id; }
  std::uint16_t requester_of(std::uint16_t function) const {
    return static_cast<std::uint16_t>(requester_ + function);  // VF offset and stride are 1
  }

 private:
  const functions& functions_;
  bool enabled_ = true;
  std::uint16_t requester_ = 0;
};

/// Bytes from `address` on that one packet may carry, of `left` and at most `limit`: none crosses a page of 4 KiB (Base
/// Specification 3.0, 2.2.7).
inline std::uint32_t to_boundary(std::uint64_t address, std::uint32_t left, std::uint32_t limit) {
  constexpr std::uint32_t page = 4096;
  return std::min({left, limit, page - static_cast<std::uint32_t>(address % page)});
}

}  // namespace rnic::pcie
