// SPDX-License-Identifier: Apache-2.0
// Memory on chip: descriptors as they were read from send queues.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace rnic::transport {

/// A part for each processing unit. One write port, descriptor fetch's: the DMA engine writes what memory answers. One
/// read port a unit, to its own part: bytes of which descriptor fetch has told the unit that they are there.
///
/// Approximation: a unit reads a whole descriptor, and follows the headers of all that it holds, in one cycle.
class descriptor_memory {
 public:
  static constexpr std::uint32_t unit_bytes = 2048;

  explicit descriptor_memory(unsigned units) : parts_(units) {}
  unsigned units() const { return static_cast<unsigned>(parts_.size()); }

  // ---- descriptor fetch's port
  std::uint8_t* write(unsigned unit, std::uint32_t place) { return parts_[unit].data() + place; }

  // ---- the unit's port
  const std::uint8_t* read(unsigned unit) const { return parts_[unit].data(); }

 private:
  std::vector<std::array<std::uint8_t, unit_bytes>> parts_;
};

}  // namespace rnic::transport
