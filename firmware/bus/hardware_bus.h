// SPDX-License-Identifier: Apache-2.0
// Firmware's bus: plain calls of a process that waits, on top of the hardware's request interface.
#pragma once

#include <cstdint>
#include <systemc>

#include "firmware/hardware_if.h"
#include "model/command/firmware_port.h"

namespace rnic::firmware {

/// Thrown out of a bus call when the device has been reset: the command under way is to be abandoned.
struct device_was_reset {};

/// All calls of hardware_if must come from one SC_THREAD.
class hardware_bus : public hardware_if, public command::firmware_processor_if {
 public:
  explicit hardware_bus(command::firmware_port& port);

  std::uint32_t cr_read(std::uint32_t address) override;
  void cr_write(std::uint32_t address, std::uint32_t value) override;
  bool dma_read(std::uint16_t function, std::uint64_t address, void* to, std::size_t bytes) override;
  bool dma_write(std::uint16_t function, std::uint64_t address, const void* from, std::size_t bytes) override;
  bool icm_read(std::uint64_t icm_address, void* to, std::size_t bytes) override;
  bool icm_write(std::uint64_t icm_address, const void* from, std::size_t bytes) override;
  void spend(std::uint64_t cycles) override;

  /// Sleeps until an interrupt line has moved since the last return.
  void wait_for_interrupt();
  /// Bus calls work again after a reset.
  void acknowledge_reset();

 private:
  void request_done(bool ok, std::uint32_t value) override;
  void interrupt() override;
  void reset() override;
  bool call(const command::firmware_request& request);

  command::firmware_port& port_;
  sc_core::sc_event changed_;
  bool done_ = false, ok_ = false, interrupted_ = false, reset_ = false;
  std::uint32_t value_ = 0;
};

}  // namespace rnic::firmware
