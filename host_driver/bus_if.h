// SPDX-License-Identifier: Apache-2.0
// All that the driver shim has of the machine: configuration space, BARs, memory that the device can reach,
// interrupts, and a processor whose instructions take time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::host_driver {

/// One PCI function as the operating system gives it to a driver. Calls may take simulated time. The caller runs in a
/// process that may wait (SC_THREAD); several may use one bus.
class bus_if {
 public:
  virtual ~bus_if() = default;

  virtual std::uint32_t config_read32(std::uint16_t offset) = 0;
  virtual void config_write32(std::uint16_t offset, std::uint32_t value) = 0;

  /// Registers in a BAR (0 or 2), big-endian values as the device defines them. A read of an unanswered address gives
  /// all ones. Writes are posted and stay in order; write_combined sends up to 64 bytes as one store.
  virtual std::uint32_t mmio_read32(unsigned bar, std::uint64_t offset) = 0;
  virtual void mmio_write32(unsigned bar, std::uint64_t offset, std::uint32_t value) = 0;
  virtual void mmio_write64(unsigned bar, std::uint64_t offset, std::uint64_t value) = 0;
  virtual void mmio_write_combined(unsigned bar, std::uint64_t offset, const void* from, std::size_t bytes) = 0;

  /// Memory that processor and device share: zeroed, page-aligned to min(alignment, 4096..). The bus address is what
  /// the device uses; the pointer what the processor uses. The processor's loads and stores of it cost what spend()
  /// says and no more.
  struct dma_memory {
    std::uint64_t bus_address = 0;
    std::uint8_t* pointer = nullptr;
    std::size_t bytes = 0;
  };
  virtual dma_memory allocate(std::size_t bytes, std::size_t alignment = 4096) = 0;
  virtual void release(const dma_memory& memory) = 0;

  /// Processor time.
  virtual void spend_ps(std::uint64_t ps) = 0;
  /// Lets time go by that is nobody's work: sleeping, or what another core does.
  virtual void sleep_ps(std::uint64_t ps) { spend_ps(ps); }
  virtual std::uint64_t now_ps() const = 0;
  /// While `on`, one process alone uses this bus, and it waits for nothing but by calls of it: its waits may then cost
  /// the simulation less. The results are the same. A bus that cannot do that ignores it.
  virtual void run_ahead(bool on) { static_cast<void>(on); }

  /// Waits until the device has written into [address, address + bytes) since the last call of wait_for_write or
  /// arm_watch on this watch, or until the timeout (0: none): the processor's polling loop, whose next load misses
  /// because the line was taken away from it. Returns false on timeout.
  virtual bool wait_for_write(std::uint64_t bus_address, std::size_t bytes, std::uint64_t timeout_ps) = 0;

  /// Ends the waits of wait_for_write whose range has this address in it, as if their time were over: another process
  /// of the host has something for them to do.
  virtual void end_wait(std::uint64_t bus_address) = 0;

  /// Waits for interrupt `vector` (MSI-X), false on timeout. Interrupts that arrived before count.
  virtual bool wait_interrupt(unsigned vector, std::uint64_t timeout_ps) = 0;
  /// The events behind the vector have been handled: waits of other processes for it end as if their time were over.
  virtual void interrupt_served(unsigned vector) { static_cast<void>(vector); }
  /// Programs the MSI-X table entry and unmasks it; enables MSI-X when not yet.
  virtual bool enable_interrupt(unsigned vector) = 0;
  /// Without MSI-X: the device's wire INTA from now on is interrupt 0, which comes when the wire is asserted. False:
  /// the machine has no such wire.
  virtual bool enable_line() { return false; }

  /// Name of the message whose span the following stores to BARs belong to (model/sim/span.h); 0: none. A bus that
  /// does not follow messages ignores it.
  virtual void set_span(std::uint32_t span) { static_cast<void>(span); }
};

}  // namespace rnic::host_driver
