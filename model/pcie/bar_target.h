// SPDX-License-Identifier: Apache-2.0
// What the adapter's BARs lead to: registers, the MSI-X table, and the channels of posted writes.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "model/payload/tlp.h"
#include "model/pcie/config_space.h"
#include "model/pcie/dma_if.h"
#include "model/pcie/functions.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/server.h"
#include "model/sim/span.h"

namespace rnic::pcie {

/// Whether byte `i` of a request is enabled (Base Specification 3.0, 2.2.5).
bool byte_enabled(const payload::tlp& t, std::uint32_t i);

/// BAR accesses: any 1 to `max_read_bytes` (reads) or any length (writes, cut at 64-byte lines) at any alignment; a
/// register file is asked once for each dword touched, bytes not enabled are not delivered. Holes in byte enables split
/// a write; one line, or run of enabled bytes, is handed on in a cycle. What no BAR claims, crosses a BAR's end, is too
/// long, or comes while memory space is disabled is an unsupported request: reads say so, writes are dropped; both are
/// counted and set the error bits.
///
/// A virtual function has BAR2 alone, a part of the range in the SR-IOV capability: its UAR pages, its MSI-X table,
/// and, in the first bytes of page 0, its registers of the communication channel, which are the register file's of BAR0
/// (command/comm_channel.h). CLR_INT of BAR0 takes the wire back (line_interrupt.h) and reads as zero. Doorbells of a
/// function that firmware holds are dropped and counted.
class bar_target {
 public:
  /// Writes to BAR0 and BAR2.
  struct outputs {
    sim::fifo_out<mmio_write>& command;
    sim::fifo_out<mmio_write>& doorbell;
  };
  /// `serving`: is told what holds a write up, and works a cycle for each part of it.
  bar_target(sim::clocked_block& owner, const config_space::config& c, std::uint32_t max_read_bytes, functions& all,
             register_file_if& bar0, register_file_if& bar2, const outputs& to, sim::server& serving,
             sim::span_recorder& spans);

  /// A part of the write. True: it was the last one.
  bool write(const payload::tlp& t);
  /// Whether the read is one of a BAR; else it is counted as unsupported.
  bool claims_read(const payload::tlp& t);
  /// Its data: each dword that has an enabled byte is read once, in ascending order; other bytes are 0.
  void read(const payload::tlp& t, std::uint8_t* to);
  /// Since the last call, something was written to the MSI-X table or to CLR_INT.
  bool took_interrupt_write() { return std::exchange(interrupts_written_, false); }
  /// For debuggers: `bytes` (1 or more) of the MSI-X table or pending bits; false: they are not all there.
  bool look(std::uint64_t address, std::uint32_t bytes, std::uint8_t* to) const;

  struct counters {
    std::uint64_t writes = 0, reads = 0, unsupported_reads = 0, unsupported_writes = 0, poisoned = 0, held_writes = 0;
  };
  counters& counts() { return counts_; }

 private:
  enum class bar : std::uint8_t { none, registers, uar };
  struct target {
    bar where = bar::none;
    std::uint64_t offset = 0;
    std::uint16_t function = 0;
  };
  /// Where a function's vectors are in its BAR `where`.
  struct msix_place {
    bar where = bar::registers;
    std::uint64_t table = 0, table_bytes = 0, pending = 0, pending_bytes = 0;
    bool has(target at) const {
      return at.where == where && (at.offset - table < table_bytes || at.offset - pending < pending_bytes);
    }
  };

  target decode(std::uint64_t address, std::uint64_t bytes) const;
  target decode_virtual(std::uint64_t address, std::uint64_t bytes) const;
  msix_place msix_of(unsigned function) const;
  bool push_run(target at, const std::uint8_t* data, std::uint32_t bytes, sim::span_id span);
  std::uint32_t register32(target at);
  bool in_msix(target at) const { return at.where != bar::none && msix_of(at.function).has(at); }
  std::uint32_t msix_read(target at) const;
  void msix_write(target at, const std::uint8_t* data, std::uint32_t bytes);
  static bool in_clear(target at);
  void clear_line(target at, const std::uint8_t* data, std::uint32_t bytes);

  sim::clocked_block& owner_;
  config_space::config config_;
  std::uint32_t max_read_bytes_;
  functions& functions_;
  register_file_if& bar0_;
  register_file_if& bar2_;
  outputs out_;
  sim::server& serving_;
  sim::span_recorder& spans_;
  std::uint32_t done_ = 0;  // bytes of the write that are handed on
  bool interrupts_written_ = false;
  counters counts_;
};

}  // namespace rnic::pcie
