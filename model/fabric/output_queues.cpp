// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/output_queues.h"

#include <algorithm>
#include <utility>

namespace rnic::fabric {

void output_queues::queue::push(entry e) {
  if (count_ == slots_.size()) {
    std::rotate(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(head_), slots_.end());
    head_ = 0;
    slots_.resize(std::max<std::size_t>(16, slots_.size() * 2));
  }
  slots_[(head_ + count_++) & (slots_.size() - 1)] = std::move(e);
}

output_queues::entry output_queues::queue::pop() {
  entry e = std::move(slots_[head_]);
  head_ = (head_ + 1) & (slots_.size() - 1);
  --count_;
  return e;
}

void output_queues::push(unsigned priority, entry e) {
  queues_[priority].push(std::move(e));
  waiting_ = static_cast<std::uint8_t>(waiting_ | 1u << priority);
}

output_queues::entry output_queues::pop(unsigned priority) {
  entry e = queues_[priority].pop();
  if (queues_[priority].empty()) {
    waiting_ = static_cast<std::uint8_t>(waiting_ & ~(1u << priority));
    deficits_[priority] = 0;
    if (turn_ == priority) end_turn();
  }
  return e;
}

/// Deficit round robin (Shreedhar 1996): a queue has its quantum when its turn comes, keeps what is left of it, and
/// sends as long as its first frame is not longer than that. One that becomes empty loses the rest, and its turn: one
/// that has its next frame by the time that this one is out would keep it for ever. One that may not send is passed
/// over and gains nothing.
unsigned output_queues::pick(std::uint8_t ready) {
  if (how_ == switch_scheduling::strict) return 31u - static_cast<unsigned>(__builtin_clz(ready));
  if ((ready & (ready - 1)) == 0) return static_cast<unsigned>(__builtin_ctz(ready));
  for (;;) {
    if ((ready >> turn_ & 1) != 0) {
      if (!began_) deficits_[turn_] += quanta_[turn_];
      began_ = true;
      const std::uint32_t bytes = queues_[turn_].front().bytes;
      if (bytes <= deficits_[turn_]) {
        deficits_[turn_] -= bytes;
        return turn_;
      }
    }
    end_turn();
  }
}

void output_queues::end_turn() {
  turn_ = (turn_ + 1) % priorities;
  began_ = false;
}

}  // namespace rnic::fabric
