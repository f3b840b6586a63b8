// SPDX-License-Identifier: Apache-2.0
// Allocators of object numbers and of translation entries, with the kernel's order of allocation.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

namespace rnic::host_driver {

/// Numbers with generation bits: after a wrap a number comes back with other bits above the table's size, so that a
/// stale one is recognised (adapter control plane 5.5, 5.6; net/alloc.c).
class bitmap {
 public:
  static constexpr std::uint32_t none = ~0u;
  bitmap() = default;
  /// `count` a power of two; numbers below `reserved` are never given; `mask` limits the generation bits.
  bitmap(std::uint32_t count, std::uint32_t mask, std::uint32_t reserved);

  std::uint32_t allocate();
  /// The first of `count` consecutive numbers, a multiple of `align` (0 is 1), without a wrap among them; or none:
  /// there are not so many in a row, or `align` is no power of two.
  std::uint32_t allocate_range(std::uint32_t count, std::uint32_t align);
  /// Takes this very number, which may be a reserved one; false when its place is in use.
  bool claim(std::uint32_t number);
  /// `round_robin`: the number is not given again before all others were.
  void release(std::uint32_t number, bool round_robin);
  std::uint32_t in_use() const { return in_use_; }
  /// Numbers that can be allocated.
  std::uint32_t free() const { return count_ - reserved_ - in_use_; }

 private:
  std::uint32_t find_from(std::uint32_t first) const;
  std::uint32_t find_range(std::uint64_t first, std::uint32_t count, std::uint64_t align) const;

  std::vector<bool> taken_;
  std::set<std::uint32_t> claimed_;  // reserved ones in use
  std::uint32_t count_ = 0, mask_ = 0, reserved_ = 0, last_ = 0, top_ = 0, in_use_ = 0;
};

/// Aligned power-of-two ranges (net/mr.c:mlx4_buddy_alloc).
class buddy {
 public:
  static constexpr std::uint32_t none = ~0u;
  buddy() = default;
  explicit buddy(unsigned log_size);
  /// Of [first, first + count): ranges as large as their alignment lets them be.
  buddy(std::uint32_t first, std::uint32_t count);
  /// First of 2^order entries, or none.
  std::uint32_t allocate(unsigned order);
  void release(std::uint32_t first, unsigned order);
  /// Of one made by log_size.
  unsigned log_size() const { return static_cast<unsigned>(free_.size()) - 1; }
  /// False: something in it is in use.
  bool claim_upper_half();

 private:
  std::vector<std::set<std::uint32_t>> free_;
};

}  // namespace rnic::host_driver
