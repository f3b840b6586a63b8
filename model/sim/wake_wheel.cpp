// SPDX-License-Identifier: Apache-2.0
#include "model/sim/wake_wheel.h"

#include <algorithm>

namespace rnic::sim {

void wake_wheel::keep_far(unsigned id, cycle_t when) {
  if (last_far_[id] == when) return;
  const far_wake w{when, id};
  const auto earlier = [](const far_wake& a, const far_wake& b) {
    return a.when != b.when ? a.when < b.when : a.id < b.id;
  };
  const auto at = std::lower_bound(far_.begin() + static_cast<std::ptrdiff_t>(far_head_), far_.end(), w, earlier);
  if (at == far_.end() || at->when != when || at->id != id) far_.insert(at, w);
  last_far_[id] = when;
  far_min_ = far_[far_head_].when;
}

/// Of edge `from`, whose slot is `first` and whose word has none from there on.
cycle_t wake_wheel::next_in_other_words(cycle_t from, unsigned first) const {
  constexpr unsigned words = size / 64;
  for (unsigned n = 1; n <= words; ++n) {  // at last what its own word has before `first`
    const unsigned word = (first / 64 + n) % words;
    if (used_[word] == 0) continue;
    const unsigned slot = word * 64 + static_cast<unsigned>(__builtin_ctzll(used_[word]));
    return from + (slot - first) % size;
  }
  return never;
}

std::uint64_t wake_wheel::take_far(cycle_t now) {
  std::uint64_t due = 0;
  for (; far_head_ != far_.size() && far_[far_head_].when <= now; ++far_head_) {
    const far_wake& w = far_[far_head_];
    due |= std::uint64_t{1} << w.id;
    if (last_far_[w.id] == w.when) last_far_[w.id] = never;
  }
  far_min_ = far_head_ == far_.size() ? never : far_[far_head_].when;
  if (2 * far_head_ >= far_.size()) {  // their places are used again
    far_.erase(far_.begin(), far_.begin() + static_cast<std::ptrdiff_t>(far_head_));
    far_head_ = 0;
  }
  return due;
}

void wake_wheel::forget(unsigned id) {
  const auto head = far_.begin() + static_cast<std::ptrdiff_t>(far_head_);
  far_.erase(std::remove_if(head, far_.end(), [&](const far_wake& w) { return w.id == id; }), far_.end());
  far_min_ = far_head_ == far_.size() ? never : far_[far_head_].when;
  last_far_[id] = never;
  const std::uint64_t bit = std::uint64_t{1} << id;
  for (unsigned slot = 0; slot < size; ++slot)
    if ((slots_[slot] & bit) != 0 && (slots_[slot] &= ~bit) == 0) take_slot(slot);
}

}  // namespace rnic::sim
