// SPDX-License-Identifier: Apache-2.0
// Address decoder of the internal register bus.
#pragma once

#include <cstdint>
#include <vector>

#include "model/register_bus/cr_space.h"

namespace rnic::register_bus {

/// Passes accesses to the block whose range holds the address. An address without a block reads 0, ignores writes and
/// is counted.
class cr_bus {
 public:
  /// Maps [base, base + bytes) to `target`, which sees offsets from base. Ranges must not overlap (sim::config_error).
  void map(std::uint32_t base, std::uint32_t bytes, cr_target_if& target);
  void map(cr_base base, cr_target_if& target) { map(static_cast<std::uint32_t>(base), block_bytes, target); }
  /// A block with registers per port (cr_port_stride apart); `port` is 0-based.
  void map(cr_base base, unsigned port, cr_target_if& target) {
    map(static_cast<std::uint32_t>(base) + port * cr_port_stride, cr_port_stride, target);
  }

  /// All ranges of `of` are of `by` from now on.
  void replace(const cr_target_if& of, cr_target_if& by);

  std::uint32_t read(std::uint32_t address);
  void write(std::uint32_t address, std::uint32_t value);

  /// Accesses that no block answered.
  const std::uint64_t& unclaimed() const { return unclaimed_; }

 private:
  static constexpr std::uint32_t block_bytes = 0x0100'0000;
  struct range {
    std::uint32_t base, bytes;
    cr_target_if* target;
  };
  const range* find(std::uint32_t address);

  std::vector<range> ranges_;
  std::uint64_t unclaimed_ = 0;
};

}  // namespace rnic::register_bus
