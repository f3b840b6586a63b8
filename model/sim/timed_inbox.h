// SPDX-License-Identifier: Apache-2.0
// How things reach a block from outside of its clock domain: from a cable, a PCIe link, a processor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"
#include "model/sim/ring.h"
#include "model/sim/seldom.h"

namespace rnic::sim {

/// What the ends of a timed_inbox use: the first base, in front of what the hierarchy needs (see clock_state).
template <class T>
class timed_inbox_state {
 protected:
  struct entry {
    T item{};
    cycle_t edge = 0;
    time_ps arrival = 0;
  };
  timed_inbox_state(clocked_block& consumer, std::size_t places)
      : consumer_(consumer), slots_(places), mask_(places - 1) {}
  virtual ~timed_inbox_state() = default;

  clocked_block& consumer_;
  std::vector<entry> slots_;  // a power of two of them
  std::size_t mask_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  time_ps last_arrival_ = 0;
};

/// Queue of things with the time at which they arrive at the consumer's pins. The consumer can take one at its first
/// edge that is not before the arrival. Arrival times must be in the future and must not decrease. The sender bounds
/// what is under way (credits, line rate); the queue grows to that bound and then allocates nothing.
template <class T>
class timed_inbox : private timed_inbox_state<T>, public hierarchy_object {
  using state = timed_inbox_state<T>;

 public:
  timed_inbox(const std::string& name, clocked_block& consumer, std::size_t expected_depth = 64)
      : state(consumer, places_for(expected_depth)), hierarchy_object(name, "timed_inbox") {}
  timed_inbox(const timed_inbox&) = delete;
  timed_inbox& operator=(const timed_inbox&) = delete;

  void push(T&& item, time_ps arrival) {
    RNIC_ASSERT(arrival >= last_arrival_, name() + ": arrivals must not go back in time");
    last_arrival_ = arrival;
    if (seldom(count_ > mask_)) grow();
    entry& e = slots_[(head_ + count_) & mask_];
    e.item = std::move(item);
    e.edge = consumer_.domain().edge_at_or_after(arrival);
    e.arrival = arrival;
    if (++count_ == 1) consumer_.wake_at(e.edge);
  }
  void push(const T& item, time_ps arrival) { push(T(item), arrival); }

  bool can_pop() const { return count_ != 0 && slots_[head_].edge <= consumer_.domain().edge(); }
  T& front() { return slots_[head_].item; }
  time_ps front_arrival() const { return slots_[head_].arrival; }
  T pop() {
    const cycle_t now = consumer_.domain().edge();
    entry& e = slots_[head_];
    RNIC_ASSERT(count_ != 0 && e.edge <= now, name() + ": nothing has arrived");
    T item = std::move(e.item);
    // An empty one begins again with the slot that is in the cache.
    head_ = --count_ == 0 ? 0 : (head_ + 1) & mask_;
    if (count_ != 0) consumer_.wake_at(std::max(slots_[head_].edge, now + 1));
    return item;
  }
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }

 private:
  using state::consumer_, state::slots_, state::mask_, state::head_, state::count_, state::last_arrival_;
  using typename state::entry;

  [[gnu::noinline, gnu::cold]] void grow() {
    std::vector<entry> bigger(slots_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) bigger[i] = std::move(slots_[(head_ + i) & mask_]);
    slots_.swap(bigger);
    mask_ = slots_.size() - 1;
    head_ = 0;
  }
};

}  // namespace rnic::sim
