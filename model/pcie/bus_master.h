// SPDX-License-Identifier: Apache-2.0
// Which functions may send requests, and in whose name.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/pcie/config_space.h"

namespace rnic::pcie {

/// A function masters the bus when software lets the device (Bus Master Enable), the firmware lets the DMA engine
/// (pcie_cr.h) and the function exists.
class bus_master {
 public:
  explicit bus_master(const config_space& space) : space_(space) {}

  bool allowed(std::uint16_t function) const {
    const config_space::state& s = space_.now();
    return enabled_ && s.bus_master && function <= s.enabled_vfs;
  }
  /// The firmware's part of it.
  void enable(bool on) { enabled_ = on; }
  bool enabled() const { return enabled_; }

  void set_requester(std::uint16_t id) { requester_ = id; }
  std::uint16_t requester_of(std::uint16_t function) const {
    return static_cast<std::uint16_t>(requester_ + function);  // VF offset and stride are 1
  }

 private:
  const config_space& space_;
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
