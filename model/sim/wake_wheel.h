// SPDX-License-Identifier: Apache-2.0
// Which block of a clock domain is to be ticked at which edge.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/sim/seldom.h"
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
    // The first used slot, once around: the rest of its word, which has it as a rule, then the other words in order.
    const auto first = static_cast<unsigned>((now + 1) % size);
    const std::uint64_t bits = used_[first / 64] >> (first % 64);
    const cycle_t near = seldom(bits == 0) ? next_in_other_words(now + 1, first)
                                           : now + 1 + static_cast<unsigned>(__builtin_ctzll(bits));
    return near < far_min_ ? near : far_min_;
  }
  /// All wake-ups of a block.
  void forget(unsigned id);

 private:
  static constexpr unsigned size = 256;
  struct far_wake {
    cycle_t when;
    unsigned id;  ///< of the block
  };
  // Without a branch: whether the slot is empty is hard to foresee.
  std::uint64_t take_slot(unsigned slot) {
    used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
    return std::exchange(slots_[slot], 0);
  }
  [[gnu::noinline]] cycle_t next_in_other_words(cycle_t from, unsigned first) const;
  std::uint64_t take_far(cycle_t now);

  cycle_t far_min_ = never;
  std::array<std::uint64_t, size / 64> used_{};  // which slots are not empty
  std::array<std::uint64_t, size> slots_{};      // blocks, by edge modulo the size
  std::vector<far_wake> far_;                    // wake-ups beyond the slots, each once, the earliest first,
  std::size_t far_head_ = 0;                     // which is here: those before it are done
  std::array<cycle_t, max_blocks> last_far_;     // by block the last one that was asked for, while it is there
};

}  // namespace rnic::sim
