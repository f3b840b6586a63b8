// SPDX-License-Identifier: Apache-2.0
// A loosely timed platform as users have one: processor, bus, memory, interrupt controller; plain TLM-2.0, nothing of
// the model. The adapter is plugged into it through tlm/platform_bridge.h.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "host_driver/bus_if.h"

namespace rnic::platform_test {

/// Where things are.
namespace map {
inline constexpr std::uint64_t memory = 0x1'0000'0000, memory_bytes = 256u << 20;
inline constexpr std::uint64_t config = 0xe000'0000, config_bytes = 1u << 20;  // ECAM of one bus
inline constexpr std::uint64_t window = 0x38'0000'0000, window_bytes = 64u << 20;
inline constexpr std::uint64_t interrupts = 0xfee0'0000, interrupts_bytes = 0x10'0000;
}  // namespace map

/// 60 ns an access, of which a write is done at the beginning, or, where it takes time, behind that.
struct lt_memory : sc_core::sc_module {
  explicit lt_memory(const sc_core::sc_module_name& name);
  tlm_utils::simple_target_socket<lt_memory, 64> socket;
  std::vector<std::uint8_t> bytes;
  sc_core::sc_time write_time;
  sc_core::sc_event written;
  std::uint64_t reads = 0, writes = 0;
  void transport(::tlm::tlm_generic_payload& p, sc_core::sc_time& delay);
};

/// Where messages end: a word for each vector.
struct lt_interrupts : sc_core::sc_module {
  explicit lt_interrupts(const sc_core::sc_module_name& name);
  tlm_utils::simple_target_socket<lt_interrupts, 64> socket;
  std::map<std::uint32_t, unsigned> pending;  // by the message's data
  sc_core::sc_event raised;
  std::uint64_t messages = 0;
  void wire(unsigned vector);
  void transport(::tlm::tlm_generic_payload& p, sc_core::sc_time& delay);
};

/// Decodes addresses; targets see offsets, the adapter's window whole addresses.
struct lt_bus : sc_core::sc_module {
  explicit lt_bus(const sc_core::sc_module_name& name);
  tlm_utils::simple_target_socket<lt_bus, 64> from_processor, from_device;
  tlm_utils::simple_initiator_socket<lt_bus, 64> to_memory, to_window, to_interrupts;
  tlm_utils::simple_initiator_socket<lt_bus, 32> to_config;
  void transport(::tlm::tlm_generic_payload& p, sc_core::sc_time& delay);
};

/// The driver's processor, in the threads that call it.
class lt_processor : public sc_core::sc_module, public host_driver::bus_if {
 public:
  lt_processor(const sc_core::sc_module_name& name, lt_memory& memory, lt_interrupts& interrupts);
  tlm_utils::simple_initiator_socket<lt_processor, 64> socket;

  /// What a PC's firmware does before the driver comes: places the BARs, sets payload and read request size.
  void enumerate();
  ::tlm::tlm_response_status access(::tlm::tlm_command command, std::uint64_t address, void* data, unsigned bytes);

  std::uint32_t config_read32(std::uint16_t offset) override;
  void config_write32(std::uint16_t offset, std::uint32_t value) override;
  std::uint32_t mmio_read32(unsigned bar, std::uint64_t offset) override;
  void mmio_write32(unsigned bar, std::uint64_t offset, std::uint32_t value) override;
  void mmio_write64(unsigned bar, std::uint64_t offset, std::uint64_t value) override;
  void mmio_write_combined(unsigned bar, std::uint64_t offset, const void* from, std::size_t bytes) override;
  dma_memory allocate(std::size_t bytes, std::size_t alignment) override;
  void release(const dma_memory&) override {}
  void spend_ps(std::uint64_t ps) override;
  std::uint64_t now_ps() const override { return sc_core::sc_time_stamp().value(); }
  bool wait_for_write(std::uint64_t bus_address, std::size_t bytes, std::uint64_t timeout_ps) override;
  void end_wait(std::uint64_t bus_address) override;
  bool wait_interrupt(unsigned vector, std::uint64_t timeout_ps) override;
  bool enable_interrupt(unsigned vector) override;
  bool enable_line() override { return true; }  // its test binds the wire

 private:
  std::uint64_t bar(unsigned index);
  std::uint16_t capability(std::uint8_t id);

  lt_memory& memory_;
  lt_interrupts& interrupts_;
  std::uint64_t allocated_ = 0;
  std::uint64_t ended_ = 0;  // address of the last end_wait
};

struct lt_platform : sc_core::sc_module {
  explicit lt_platform(const sc_core::sc_module_name& name);
  lt_memory memory;
  lt_interrupts interrupts;
  lt_bus bus;
  lt_processor processor;
};

}  // namespace rnic::platform_test
