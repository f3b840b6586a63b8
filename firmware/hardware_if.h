// SPDX-License-Identifier: Apache-2.0
// All that firmware has: the internal bus, the DMA engine, the ICM window, its command registers and time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::firmware {

/// The firmware's view of the chip. Calls take simulated time (the bus adaptor's business) and return when done, as
/// the instructions of an embedded processor would. Host addresses are bus addresses; `function` 0 is the physical
/// function. A failed DMA returns false and leaves the buffer undefined.
class hardware_if {
 public:
  virtual ~hardware_if() = default;

  virtual std::uint32_t cr_read(std::uint32_t address) = 0;
  virtual void cr_write(std::uint32_t address, std::uint32_t value) = 0;

  virtual bool dma_read(std::uint16_t function, std::uint64_t address, void* to, std::size_t bytes) = 0;
  virtual bool dma_write(std::uint16_t function, std::uint64_t address, const void* from, std::size_t bytes) = 0;

  /// Access to contexts by ICM virtual address, through the hardware's ICM mapping, to host memory. The caches on
  /// chip are not looked at: flush or invalidate them first (registers of the icm block). False: not mapped.
  virtual bool icm_read(std::uint64_t icm_address, void* to, std::size_t bytes) = 0;
  virtual bool icm_write(std::uint64_t icm_address, const void* from, std::size_t bytes) = 0;

  /// Firmware execution time of `cycles` core clock cycles.
  virtual void spend(std::uint64_t cycles) = 0;
};

}  // namespace rnic::firmware
