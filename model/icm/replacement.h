// SPDX-License-Identifier: Apache-2.0
// Which entry of a full set makes room.
#pragma once

#include <cstdint>

namespace rnic::icm {

/// lru: the one not used for the longest time. fifo: the one that has been there for the longest time. random: any, by
/// a shift register, as small hardware does.
enum class replacement : std::uint8_t { lru, fifo, random };
inline constexpr const char* replacement_names = "lru, fifo, random";

/// 16-bit Galois shift register (taps 16, 14, 13, 11): each value but 0 once in 65535 steps.
class shift_register {
 public:
  unsigned value() const { return state_; }
  void step() { state_ = static_cast<std::uint16_t>(state_ >> 1 ^ (-(state_ & 1u) & 0xb400u)); }

 private:
  std::uint16_t state_ = 0xace1;
};

}  // namespace rnic::icm
