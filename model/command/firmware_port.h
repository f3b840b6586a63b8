// SPDX-License-Identifier: Apache-2.0
// The embedded processor's bus interface: register accesses, DMA and time, one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/command/firmware_dma.h"
#include "model/register_bus/cr_bus.h"
#include "model/register_bus/interrupt_lines.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/parameter.h"
#include "model/sim/timed_inbox.h"

namespace rnic::command {

/// What the processor asks of its bus.
struct firmware_request {
  enum class kind : std::uint8_t { cr_read, cr_write, dma_read, dma_write, icm_read, icm_write, spend };
  kind what = kind::spend;
  std::uint16_t function = 0;
  std::uint32_t address = 0;   ///< register
  std::uint32_t value = 0;     ///< register to write
  std::uint64_t memory = 0;    ///< bus address, or ICM address
  std::uint64_t length = 0;    ///< bytes; cycles for spend
  std::uint8_t* to = nullptr;  ///< read: filled; must stay until done
  const std::uint8_t* from = nullptr;
};

/// The processor: told when its request is done or its interrupt lines have moved. Called inside a tick.
class firmware_processor_if {
 public:
  virtual ~firmware_processor_if() = default;
  /// `ok`: false when a DMA failed or an ICM address is not mapped. `value`: of a register read.
  virtual void request_done(bool ok, std::uint32_t value) = 0;
  virtual void interrupt() = 0;
  /// The device was reset: what was asked will not be answered; start from the beginning.
  virtual void reset() = 0;
};

/// Data sheet.
///
/// Lives in a clock domain of its own whose edges lie half a core period beside those of the core clock, so what it
/// does to registers and tables happens between two edges of everybody else. Executes one request at a time. When the
/// reset register is written it resets all targets, then the processor.
///
/// Ports: requests of the processor; the internal register bus (a load in cr_read_cycles, a store in cr_write_cycles,
/// seen by the blocks from their next edge on); jobs to firmware_dma, set up in dma_start_cycles, and their answers;
/// notices of the blocks, which are the processor's interrupt lines (register_bus::interrupt_lines). Stalls: the
/// request, by the DMA that it waits for.
class firmware_port : public sim::clocked_block {
 public:
  struct config {
    /// Firmware cycles from a load to its value; a slow processor.
    sim::parameter<unsigned> cr_read_cycles{8, {1, sim::many, "cycles", "design: on-chip bus"}};
    /// Firmware cycles of a posted store.
    sim::parameter<unsigned> cr_write_cycles{2, {1, sim::many, "cycles", "design: on-chip bus"}};
    /// Firmware cycles to set up one DMA descriptor.
    sim::parameter<unsigned> dma_start_cycles{16, {1, sim::many, "cycles", "design: on-chip bus"}};

    void list(sim::fields& are) {
      are("cr_read_cycles", cr_read_cycles);
      are("cr_write_cycles", cr_write_cycles);
      are("dma_start_cycles", dma_start_cycles);
    }
  };

  firmware_port(std::string name, sim::clock_domain& firmware_clock, const config& cfg, register_bus::cr_bus& bus,
                firmware_dma& dma);

  register_bus::interrupt_lines notices;   ///< of command_block, the ports and the requester
  sim::timed_inbox<dma_done> dma_answers;  ///< from firmware_dma

  void bind_processor(firmware_processor_if& processor) { processor_ = &processor; }
  /// The hardware's ICM mapping: bus address of an ICM address; contiguous to the end of the 4 KiB page.
  void bind_icm(std::function<std::optional<std::uint64_t>(std::uint64_t)> translate) {
    translate_ = std::move(translate);
  }
  void add_reset_target(register_bus::reset_target_if& target) { reset_targets_.push_back(&target); }
  /// `by` is reset in the place of `of`, in its turn.
  void replace_reset_target(register_bus::reset_target_if& of, register_bus::reset_target_if& by) {
    std::replace(reset_targets_.begin(), reset_targets_.end(), &of, &by);
  }

  /// Starts a request; the one before must be done. Lengths of DMA and ICM accesses are not limited.
  void submit(const firmware_request& request);
  bool busy() const { return busy_; }

 private:
  void tick() override;
  void take_notices();
  void reset();
  void execute();
  void next_piece();
  void finish(bool ok, std::uint32_t value);
  bool is_read() const;

  static constexpr sim::time_ps crossing_ps = 1;
  config config_;
  register_bus::cr_bus& bus_;
  firmware_dma& dma_;
  firmware_processor_if* processor_ = nullptr;
  std::function<std::optional<std::uint64_t>(std::uint64_t)> translate_;
  std::vector<register_bus::reset_target_if*> reset_targets_;

  firmware_request request_;
  bool busy_ = false;
  sim::cycle_t due_ = sim::never;  // request_ is executed, or its next piece of DMA started
  bool dma_busy_ = false;          // the channel has a job,
  bool dma_stale_ = false;         // which is of before a reset
  std::uint64_t done_bytes_ = 0;
  std::uint32_t piece_ = 0;
};

}  // namespace rnic::command
