// SPDX-License-Identifier: Apache-2.0
// How things reach a block from outside of its clock domain: from a cable, a PCIe link, a processor.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"

namespace rnic::sim {

/// Queue of things with the time at which they arrive at the consumer's pins. The consumer can take one at its first
/// edge that is not before the arrival. Arrival times must be in the future and must not decrease. The sender bounds
/// what is under way (credits, line rate); the queue grows to that bound and then allocates nothing.
template <class T>
class timed_inbox : public hierarchy_object {
 public:
  timed_inbox(const std::string& name, clocked_block& consumer, std::size_t expected_depth = 64)
      : hierarchy_object(name, "timed_inbox"), consumer_(consumer), slots_(expected_depth) {}
  timed_inbox(const timed_inbox&) = delete;
  timed_inbox& operator=(const timed_inbox&) = delete;

  void push(T item, time_ps arrival) {
    RNIC_ASSERT(arrival >= last_arrival_, name() + ": arrivals must not go back in time");
    last_arrival_ = arrival;
    if (count_ == slots_.size()) grow();
    entry& e = slots_[wrapped(head_ + count_)];
    e.item = std::move(item);
    e.edge = consumer_.domain().edge_at_or_after(arrival);
    e.arrival = arrival;
    if (++count_ == 1) consumer_.wake_at(e.edge);
  }

  bool can_pop() const { return count_ != 0 && slots_[head_].edge <= consumer_.now(); }
  T& front() { return slots_[head_].item; }
  time_ps front_arrival() const { return slots_[head_].arrival; }
  T pop() {
    RNIC_ASSERT(can_pop(), name() + ": nothing has arrived");
    T item = std::move(slots_[head_].item);
    head_ = wrapped(head_ + 1);
    --count_;
    if (count_ != 0) {
      const cycle_t edge = slots_[head_].edge;
      const cycle_t next = consumer_.now() + 1;
      consumer_.wake_at(edge > next ? edge : next);
    }
    return item;
  }
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }

 private:
  struct entry {
    T item{};
    cycle_t edge = 0;
    time_ps arrival = 0;
  };
  std::size_t wrapped(std::size_t i) const { return i >= slots_.size() ? i - slots_.size() : i; }
  void grow() {
    std::vector<entry> bigger(slots_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) bigger[i] = std::move(slots_[wrapped(head_ + i)]);
    slots_.swap(bigger);
    head_ = 0;
  }

  clocked_block& consumer_;
  std::vector<entry> slots_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  time_ps last_arrival_ = 0;
};

}  // namespace rnic::sim
