// SPDX-License-Identifier: Apache-2.0
// Packet sequence numbers.
#pragma once

#include <cstdint>

namespace rnic::wire {

/// 24-bit packet sequence number with the window arithmetic of IBA volume 1, section 9.7.2.
class psn_t {
 public:
  constexpr psn_t() = default;
  constexpr explicit psn_t(std::uint32_t v) : v_(v & 0xffffff) {}
  constexpr std::uint32_t value() const { return v_; }
  /// Signed distance a - b in the window of -2^23 .. 2^23 - 1.
  friend constexpr std::int32_t operator-(psn_t a, psn_t b) {
    return static_cast<std::int32_t>((a.v_ - b.v_) << 8) / 256;
  }
  friend constexpr psn_t operator+(psn_t a, std::uint32_t n) { return psn_t(a.v_ + n); }
  friend constexpr psn_t operator-(psn_t a, std::uint32_t n) { return psn_t(a.v_ - n); }
  psn_t& operator++() {
    v_ = (v_ + 1) & 0xffffff;
    return *this;
  }
  friend constexpr bool operator==(psn_t a, psn_t b) { return a.v_ == b.v_; }
  friend constexpr bool operator!=(psn_t a, psn_t b) { return a.v_ != b.v_; }
  /// Packets from `first` on until this one, 0 to 2^24 - 1.
  constexpr std::uint32_t since(psn_t first) const { return (v_ - first.v_) & 0xffffff; }
  /// Order inside the window.
  constexpr bool before(psn_t other) const { return *this - other < 0; }
  constexpr bool after(psn_t other) const { return *this - other > 0; }

 private:
  std::uint32_t v_ = 0;
};

}  // namespace rnic::wire
