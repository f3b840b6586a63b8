// SPDX-License-Identifier: Apache-2.0
// The communication channel of the virtual functions: registers that each shares with the physical function's driver.
#pragma once

#include <array>
#include <cstdint>

#include "model/abi/bar_layout.h"
#include "model/sim/types.h"

namespace rnic::command {

/// Bits of all functions, 32 a word: function f is bit f % 32 of word f / 32.
using function_vector = std::array<std::uint32_t, abi::comm::functions / 32>;

/// Part of the command block (adapter control plane 8.1 and 8.2). A virtual function sees four registers at the
/// beginning of its BAR2: what it wrote, what the physical function's driver wrote, what it may do, and flags of its
/// reset. The physical function sees the first two of all functions from bar0::comm on.
///
/// A virtual function's store to its first register, its request to be reset, and its function-level reset are each
/// remembered in a bit for each function, until firmware reads them. Firmware writes the flags.
///
/// A read gives what the register held before the present edge.
class comm_channel {
 public:
  struct word {
    std::uint32_t now = 0, before = 0;
    sim::cycle_t changed = sim::never;
    void set(std::uint32_t value, sim::cycle_t at) {
      if (changed != at) before = now;
      changed = at;
      now = value;
    }
    std::uint32_t seen(sim::cycle_t at) const { return changed == at ? before : now; }
  };

  /// BAR0 of the physical function, `offset` from bar0::comm.
  std::uint32_t physical_read(std::uint64_t offset, sim::cycle_t now) const;
  void physical_write(std::uint64_t offset, std::uint32_t value, sim::cycle_t now);
  /// BAR2 of a virtual function. Nobody's register reads all ones; a write to it has no effect.
  std::uint32_t virtual_read(unsigned function, std::uint64_t offset, sim::cycle_t now) const;
  enum class effect : std::uint8_t { none, tell_firmware, unknown };
  effect virtual_write(unsigned function, std::uint64_t offset, std::uint32_t value, sim::cycle_t now);

  void function_was_reset(unsigned function, sim::cycle_t now);
  /// After a device reset: no function has said anything, and all are offline.
  void reset(sim::cycle_t now);

  /// Firmware: the bits since they were last taken, of word `i`.
  std::uint32_t take_written(unsigned i) { return take(written_[i]); }
  std::uint32_t take_reset_requests(unsigned i) { return take(reset_requests_[i]); }
  std::uint32_t take_function_resets(unsigned i) { return take(function_resets_[i]); }
  std::uint32_t flags(unsigned function) const { return slots_[function].flags.now; }
  void set_flags(unsigned function, std::uint32_t value, sim::cycle_t now) { slots_[function].flags.set(value, now); }

 private:
  struct slot {
    word from_function, to_function, flags;
  };
  static std::uint32_t take(std::uint32_t& bits) {
    const std::uint32_t taken = bits;
    bits = 0;
    return taken;
  }
  static void mark(function_vector& v, unsigned function) { v[function / 32] |= 1u << function % 32; }

  std::array<slot, abi::comm::functions> slots_{};
  function_vector written_{}, reset_requests_{}, function_resets_{};
};

}  // namespace rnic::command
