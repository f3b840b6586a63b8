// SPDX-License-Identifier: Apache-2.0
// Which block of a clock domain is to be ticked at which edge.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/sim/types.h"

namespace rnic::sim {

/// Wake-ups of up to 64 blocks, as masks: a slot for each of the next edges, and a list of those further away.
class wake_wheel {
 public:
  static constexpr unsigned max_blocks = 64;

  wake_wheel() { last_far_.fill(never); }

  /// Whether an edge `ahead` of the next one has a slot.
  static bool is_near(cycle_t ahead) { return ahead < size - 1; }
  /// Block `id` at edge `when`, which has a slot.
  void mark(unsigned id, cycle_t when) {
    const auto slot = static_cast<unsigned>(when % size);
    slots_[slot] |= std::uint64_t{1} << id;
    used_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    used_words_ |= std::uint64_t{1} << (slot / 64);
  }
  /// The same for one that is further away; once for each edge.
  void keep_far(unsigned id, cycle_t when);
  /// The blocks of edge `now`, which are taken out.
  std::uint64_t take(cycle_t now) {
    const auto slot = static_cast<unsigned>(now % size);
    std::uint64_t due = take_slot(slot);
    if (far_min_ <= now) due |= take_far(now);
    return due;
  }
  /// The first edge behind `now` that has blocks, or never.
  cycle_t next_after(cycle_t now) const {
    if (used_words_ == 0) return far_min_;
    // The first used slot, once around: the rest of its word, then the other words in order.
    const auto first = static_cast<unsigned>((now + 1) % size);
    unsigned word = first / 64;
    std::uint64_t bits = used_[word] & (~std::uint64_t{0} << (first % 64));
    if (bits == 0) {
      static_assert(size / 64 < 64);
      const std::uint64_t after = used_words_ & (~std::uint64_t{0} << (word + 1));
      word = static_cast<unsigned>(__builtin_ctzll(after != 0 ? after : used_words_));
      bits = used_[word];
    }
    const unsigned slot = word * 64 + static_cast<unsigned>(__builtin_ctzll(bits));
    const cycle_t near = now + 1 + (slot - first) % size;
    return near < far_min_ ? near : far_min_;
  }
  /// All wake-ups of a block.
  void forget(unsigned id);

 private:
  static constexpr unsigned size = 512;
  struct far_wake {
    cycle_t when;
    unsigned id;  ///< of the block
  };
  // Without a branch: whether the slot is empty is hard to foresee.
  std::uint64_t take_slot(unsigned slot) {
    const std::uint64_t rest = used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    used_words_ &= ~(std::uint64_t{rest == 0} << (slot / 64));
    return std::exchange(slots_[slot], 0);
  }
  std::uint64_t take_far(cycle_t now);

  cycle_t far_min_ = never;
  std::uint64_t used_words_ = 0;                 // which words of used_ are not zero, and
  std::array<std::uint64_t, size / 64> used_{};  // which slots are not empty
  std::array<std::uint64_t, size> slots_{};      // blocks, by edge modulo the size
  std::vector<far_wake> far_;                    // wake-ups beyond the slots, each once, the earliest first,
  std::size_t far_head_ = 0;                     // which is here: those before it are done
  std::array<cycle_t, max_blocks> last_far_;     // by block the last one that was asked for, while it is there
};

}  // namespace rnic::sim
