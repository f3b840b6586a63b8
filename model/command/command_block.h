// SPDX-License-Identifier: Apache-2.0
// Register front end of BAR0: host command register, semaphores, reset, error buffer, clock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "model/abi/bar_layout.h"
#include "model/command/comm_channel.h"
#include "model/pcie/dma_if.h"
#include "model/pcie/function_listener_if.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/interrupt_lines.h"
#include "model/register_bus/notice.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/parameter.h"
#include "model/sim/statistics.h"

namespace rnic::command {

/// A register that a read claims: the reader gets the old value and leaves 1. Readers and writers may sit in different
/// blocks: what happens in a cycle is seen from the next one on, and a release wins over a claim of the same cycle.
class semaphore {
 public:
  std::uint32_t claim(sim::cycle_t now) {
    settle(now);
    claimed_ = true;
    return owned_ ? 1 : 0;
  }
  void release(sim::cycle_t now) {
    settle(now);
    released_ = true;
  }

 private:
  void settle(sim::cycle_t now) {
    if (at_ == now) return;
    owned_ = !released_ && (claimed_ || owned_);
    claimed_ = released_ = false;
    at_ = now;
  }
  bool owned_ = false;  // before cycle at_
  bool claimed_ = false, released_ = false;
  sim::cycle_t at_ = 0;
};

/// Data sheet.
///
/// BAR0 of the physical function (adapter control plane 1.3, 1.5, 2), and the channel of the virtual ones, of which
/// each has its registers in its own BAR (comm_channel.h). The endpoint delivers writes through `mmio` and reads
/// through read32, which gives what the registers held before the present edge. Posted commands wait in a queue for
/// firmware, which sees them through the registers of command_cr.h: a polled command keeps GO until firmware completes
/// it; one with the event bit frees the register as soon as the queue has taken it.
///
/// Ports: writes to BAR0 (mmio), one a cycle, its words in their order; reads of the endpoint; the internal register
/// bus; notices to firmware. Stage: one, what is written in a cycle is read from the next one on. Memories: registers;
/// `max_commands` posted commands, one written, one read in a cycle; the channels of the functions (comm_channel.h).
/// Stalls: none of the bus; a command stays in its register (GO) while the queue is full. Counters: commands, overrun
/// (written over one that is held), bad_access (length, alignment, unknown offset of a function), resets.
class command_block : public sim::clocked_block,
                      public pcie::register_file_if,
                      public pcie::function_listener_if,
                      public register_bus::cr_target_if,
                      public register_bus::reset_target_if {
 public:
  struct config {
    /// Commands accepted and waiting for firmware; QUERY_FW offers as many (control plane 4.2).
    sim::parameter<unsigned> max_commands{16, {1, 255, "commands", "adapter control plane 2"}};
    unsigned notice_ps = 1;  ///< picoseconds until firmware's interrupt line has moved: less than half a core period

    void list(sim::fields& are) { are("max_commands", max_commands); }
  };

  command_block(std::string name, sim::clock_domain& core, const config& cfg);

  /// Writes to BAR0, from the endpoint: 4 or 8 bytes, naturally aligned.
  sim::fifo_in<pcie::mmio_write> mmio;
  /// Firmware's interrupt inputs (firmware_port::notices). To be bound by the adapter.
  void bind_firmware(register_bus::interrupt_lines& lines) { firmware_ = &lines; }

  std::uint32_t read32(std::uint16_t function, std::uint64_t offset) override;

  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;

  /// Function-level reset of the physical function: at the next edge all that the reset register does, and the
  /// ownership register is free, which that does not do. Of a virtual one: at the next edge its channel is as after a
  /// device reset. Called in the tick of the endpoint.
  void function_level_reset(std::uint16_t function) override;
  void functions_enabled() override { tell_firmware(register_bus::notice::functions); }

  /// The rest of the device was reset by our own reset register: nothing left to do here.
  void device_reset() override {}

  struct counters {
    std::uint64_t commands = 0, overrun = 0, bad_access = 0, resets = 0;
  };
  const counters& stats() const { return stats_; }
  void announce(sim::statistics& to) const;

 private:
  struct registers {
    std::array<std::uint32_t, abi::hcr::bytes / 4> hcr{};
    std::array<std::uint32_t, abi::bar0::catas_words> catas{};
  };
  struct posted {
    std::array<std::uint32_t, abi::hcr::bytes / 4> hcr{};
  };

  void tick() override;
  registers& change();
  void write_word(std::uint64_t offset, std::uint32_t value);
  void write_channel(std::uint16_t function, std::uint64_t offset, std::uint32_t value);
  bool of_channel(std::uint64_t offset) const {
    return offset - abi::bar0::comm < abi::comm::functions * abi::comm::slot_bytes;
  }
  void write_control(std::uint32_t value);
  void post();
  void complete(std::uint32_t status);
  void reset();
  void reset_functions();
  void tell_firmware(register_bus::notice what);

  config config_;
  register_bus::interrupt_lines* firmware_ = nullptr;
  registers registers_;  // now
  registers before_;     // before edge changed_at_
  sim::cycle_t changed_at_ = sim::never;
  struct function_reset {
    sim::cycle_t asked;
    std::uint16_t function;
  };
  std::deque<function_reset> function_resets_;  // asked for, done at the edge behind that
  bool taken_ = false;                          // the polled command in the register is in the queue or with firmware
  std::deque<posted> queue_;                    // posted, not yet accepted by firmware
  std::uint32_t out_high_ = 0, out_low_ = 0;
  semaphore ownership_, flash_;
  comm_channel channel_;
  counters stats_;
};

}  // namespace rnic::command
