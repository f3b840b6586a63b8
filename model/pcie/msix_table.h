// SPDX-License-Identifier: Apache-2.0
// MSI-X vectors of one function: table, pending bits and the rule when a message may go out.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace rnic::pcie {

/// PCI Local Bus Specification 3.0, 6.8.2. Little-endian registers. The function mask and enable are configuration
/// space's.
class msix_table {
 public:
  struct message {
    std::uint64_t address = 0;
    std::uint32_t data = 0;
  };
  explicit msix_table(unsigned vectors) : entries_(vectors), pending_((vectors + 63) / 64) { reset(); }

  unsigned vectors() const { return static_cast<unsigned>(entries_.size()); }
  void reset() {
    for (auto& e : entries_) e = {0, 0, 0, 1};
    drop_pending();
  }
  void drop_pending() {
    for (auto& p : pending_) p = 0;
  }
  /// Register access by dword offset in the table; beyond its end reads 0.
  std::uint32_t read32(std::uint32_t offset) const {
    return offset / 16 < entries_.size() ? entries_[offset / 16][offset / 4 % 4] : 0;
  }
  void write32(std::uint32_t offset, std::uint32_t value, std::uint32_t mask) {
    if (offset / 16 >= entries_.size()) return;
    std::uint32_t& word = entries_[offset / 16][offset / 4 % 4];
    word = (word & ~mask) | (value & mask);
    if (offset / 4 % 4 == 0) word &= ~3u;  // messages are dwords
    if (offset / 4 % 4 == 3) word &= 1u;   // only the mask bit exists
  }
  std::uint32_t pending32(std::uint32_t offset) const {
    const std::uint32_t word = offset / 4;
    return word / 2 < pending_.size() ? static_cast<std::uint32_t>(pending_[word / 2] >> (32 * (word % 2))) : 0;
  }

  bool masked(unsigned vector) const { return (entries_[vector][3] & 1) != 0; }
  message of(unsigned vector) const {
    const auto& e = entries_[vector];
    return {static_cast<std::uint64_t>(e[1]) << 32 | e[0], e[2]};
  }
  void set_pending(unsigned vector) { pending_[vector / 64] |= std::uint64_t{1} << (vector % 64); }
  bool is_pending(unsigned vector) const { return (pending_[vector / 64] >> (vector % 64) & 1) != 0; }
  void clear_pending(unsigned vector) { pending_[vector / 64] &= ~(std::uint64_t{1} << (vector % 64)); }
  /// A vector that is pending and not masked, or -1.
  int deliverable() const {
    for (unsigned w = 0; w < pending_.size(); ++w)
      for (std::uint64_t p = pending_[w]; p != 0; p &= p - 1) {
        const unsigned vector = w * 64 + static_cast<unsigned>(__builtin_ctzll(p));
        if (!masked(vector)) return static_cast<int>(vector);
      }
    return -1;
  }

 private:
  std::vector<std::array<std::uint32_t, 4>> entries_;
  std::vector<std::uint64_t> pending_;
};

}  // namespace rnic::pcie
