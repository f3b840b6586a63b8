// SPDX-License-Identifier: Apache-2.0
// The processor's side of the root complex: configuration cycles, loads from and stores to BARs, interrupts.
//
// How to use it (implemented by root_complex, no <systemc> in it):
//   * Call from anywhere, at any simulated time; nothing blocks. Every operation leaves the processor at the time of
//   the
//     call, in the order of the calls.
//   * Reads and configuration cycles are split: start_... takes a `reader`, whose read_completed() is called once, in
//   the
//     root complex's tick, at the time at which the processor has the value. An SC_THREAD wraps that with an sc_event:
//     start, wait(event); read_completed() stores the bytes and calls event.notify(sc_core::SC_ZERO_TIME).
//   * Stores are posted: mmio_store returns at once. When it returns false the store buffer is full (the device's
//   posted
//     credits are used up); wait_for_space() then calls the waiter once when the store can be repeated.
//   * Polling memory: host_memory::watch. Interrupts: interrupt_controller_if, given to the root complex.
// Bus setup (BAR addresses, payload size, memory and bus master enable) is done with configuration cycles;
// model/host/bus_setup.h has it ready-made as firmware of a PC does it before the driver sees the device.
#pragma once

#include <cstdint>

#include "model/payload/tlp.h"
#include "model/sim/span.h"
#include "model/sim/types.h"

namespace rnic::host {

class processor_port {
 public:
  class reader {
   public:
    virtual ~reader() = default;
    /// `data` has `bytes` bytes in address order, valid during the call; all ones when status is not success (as a PC
    /// reads from nobody), 0 bytes for configuration writes.
    virtual void read_completed(std::uint64_t token, payload::tlp_status status, const std::uint8_t* data,
                                std::uint32_t bytes) = 0;
  };
  class space_waiter {
   public:
    virtual ~space_waiter() = default;
    virtual void store_space() = 0;
  };

  virtual ~processor_port() = default;

  /// Configuration cycles, 1, 2 or 4 bytes that do not cross a dword, offset 0..4095, little-endian registers in memory
  /// order. `function` is the routing id's low byte (0 = physical function). False: too many operations under way.
  virtual bool start_config_read(std::uint16_t function, std::uint16_t offset, std::uint32_t bytes, reader& to,
                                 std::uint64_t token) = 0;
  virtual bool start_config_write(std::uint16_t function, std::uint16_t offset, const void* data, std::uint32_t bytes,
                                  reader& to, std::uint64_t token) = 0;
  /// Load of 1 to 64 bytes at a bus address that lies in a BAR; must not cross a 64-byte line.
  virtual bool start_mmio_read(std::uint64_t address, std::uint32_t bytes, reader& to, std::uint64_t token) = 0;

  /// Store of 1 to 64 bytes (one write-combined line at most, not crossing a 64-byte line). Stays in order with other
  /// stores, and later reads do not pass it. `span`, when not 0, is marked "mmio write" when the device has it.
  virtual bool mmio_store(std::uint64_t address, const void* data, std::uint32_t bytes, sim::span_id span = 0) = 0;
  /// After a refusal: calls waiter.store_space() once, when there is room again. One waiter for each refusal.
  virtual void wait_for_space(space_waiter& waiter) = 0;
};

/// Where message-signalled interrupts end (memory writes into 0xFEE0'0000..0xFEEF'FFFF). A call for each message, in
/// the root complex's tick, in order with the device's earlier writes.
class interrupt_controller_if {
 public:
  virtual ~interrupt_controller_if() = default;
  /// `function`: low byte of the requester id; `address` and `data` as software put them into the MSI-X table.
  virtual void interrupt(std::uint16_t function, std::uint64_t address, std::uint32_t data, sim::time_ps at) = 0;
  /// The wire INTA of the device, by its messages Assert_INTA and Deassert_INTA.
  virtual void line(bool asserted, sim::time_ps at) { static_cast<void>(asserted), static_cast<void>(at); }
};

inline constexpr std::uint64_t msi_base = 0xFEE0'0000;  ///< local APIC window (Intel SDM vol. 3, 11.11)
inline constexpr std::uint64_t msi_end = 0xFEF0'0000;

}  // namespace rnic::host
