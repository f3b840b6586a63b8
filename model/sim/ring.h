// SPDX-License-Identifier: Apache-2.0
// A bounded queue inside a block.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "model/sim/check.h"

namespace rnic::sim {

/// The smallest power of two that is not less: of so many places, the one behind another is found by a mask.
constexpr std::size_t places_for(std::size_t things) {
  std::size_t places = 1;
  while (places < things) places *= 2;
  return places;
}

/// First-in first-out queue of at most capacity() things: registers or a memory of its block, so it may be read at any
/// place. Allocates at construction only. Its bounds are asserted: who pushes asks full() first.
template <class T>
class ring {
 public:
  explicit ring(std::size_t capacity) : slots_(places_for(capacity)), mask_(slots_.size() - 1), capacity_(capacity) {}

  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == capacity_; }
  std::size_t size() const { return count_; }
  std::size_t capacity() const { return capacity_; }

  void push(T item) { extend() = std::move(item); }
  /// push() of what is made in its place: the slot as it was left, to be assigned as a whole.
  T& extend() {
    RNIC_ASSERT(!full(), "push into a full ring");
    return slots_[(head_ + count_++) & mask_];
  }
  /// What was pushed first.
  T& front() { return at(0); }
  const T& front() const { return at(0); }
  T& back() { return at(count_ - 1); }
  /// The n-th of those that are there, 0: the front.
  T& operator[](std::size_t n) { return at(n); }
  const T& operator[](std::size_t n) const { return at(n); }
  T pop() {
    T item = std::move(front());
    drop();
    return item;
  }
  /// pop() for what was used in place. What the item holds is let go when its slot is filled again.
  void drop() {
    RNIC_ASSERT(!empty(), "pop from an empty ring");
    // An empty one begins again with the slot that is in the cache.
    head_ = --count_ == 0 ? 0 : (head_ + 1) & mask_;
  }
  void clear() {
    while (!empty()) pop();
  }

 private:
  T& at(std::size_t n) {
    RNIC_ASSERT(n < count_, "beyond the end of a ring");
    return slots_[(head_ + n) & mask_];
  }
  const T& at(std::size_t n) const {
    RNIC_ASSERT(n < count_, "beyond the end of a ring");
    return slots_[(head_ + n) & mask_];
  }

  std::vector<T> slots_;
  std::size_t mask_;
  std::size_t capacity_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace rnic::sim
