// SPDX-License-Identifier: Apache-2.0
// One event queue as the driver reads it.
#pragma once

#include <cstdint>

#include "host_driver/bus_if.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

/// Buffer, consumer index and doorbell of an EQ (net/eq.c). Fields are set by the device when it creates the queue.
struct event_queue {
  std::uint32_t eqn = 0;
  unsigned vector = 0;
  std::uint32_t entries = 0;       ///< power of two
  std::uint32_t entry_bytes = 32;  ///< 32 or 64
  std::uint32_t consumer = 0;
  std::uint32_t mtt_first = 0;
  unsigned mtt_order = 0;
  bus_if::dma_memory buffer{};
  bool in_hardware = false;

  /// The next event when software owns it (its 32 published bytes), else nullptr.
  const std::uint8_t* next() const {
    const std::uint8_t* entry =
        buffer.pointer + std::size_t{consumer & (entries - 1)} * entry_bytes + (entry_bytes - 32);
    const bool parity = (consumer & entries) != 0;
    return ((abi::get(entry, abi::eqe::owner) & abi::eqe::owner_bit) != 0) == parity ? entry : nullptr;
  }
  /// Tells the device how far software has read, and asks for an interrupt at the next event when `arm`.
  void ring(bus_if& bus, bool arm) const;
};

}  // namespace rnic::host_driver
