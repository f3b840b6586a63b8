// SPDX-License-Identifier: Apache-2.0
// The registered channel between two blocks of one clock domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"

namespace rnic::sim {

/// Bounded first-in first-out channel with registers at both ends: what is pushed at cycle n can be popped at
/// n + latency (at least 1) and a slot freed at n can be filled at n + 1. One producer and one consumer block.
///
/// Waking is the channel's business: the consumer is ticked when something becomes visible and, after a pop, as long
/// as more is visible; a producer that found the channel full is ticked when a slot is free again. A consumer that
/// leaves something in the channel for another reason (busy until a cycle it knows) asks for its own wake-up.
template <class T>
class fifo : public hierarchy_object {
 public:
  fifo(const std::string& name, clock_domain& domain, std::size_t depth, unsigned latency = 1)
      : hierarchy_object(name, "fifo"), domain_(domain), slots_(depth), latency_(latency) {
    if (depth == 0 || latency == 0) throw config_error(this->name() + ": depth and latency must be at least 1");
  }
  fifo(const fifo&) = delete;
  fifo& operator=(const fifo&) = delete;

  void bind_producer(clocked_block& block) { producer_ = &block; }
  void bind_consumer(clocked_block& block) { consumer_ = &block; }
  /// Keeps bit `bit` of `mask` set while something is in the channel, visible or not: a consumer of many channels looks
  /// at those only that hold something.
  void show_in(std::uint64_t& mask, unsigned bit) {
    mask_ = &mask;
    mask_bit_ = std::uint64_t{1} << bit;
  }

  /// While quiet, what is pushed does not tick the consumer, which takes it when it is ticked for another reason; half
  /// full it ticks it all the same. For returned credits that nobody waits for.
  void set_quiet(bool quiet) {
    if (quiet_ && !quiet && count_ != 0 && consumer_ != nullptr) {
      const cycle_t visible = slots_[head_].visible;
      consumer_->wake_at(visible > domain_.now() ? visible : domain_.now() + 1);
    }
    quiet_ = quiet;
  }

  /// Producer's side. Asking and being refused books a wake-up for the cycle at which a slot is free.
  bool can_push() {
    if (free_slots() != 0) return true;
    producer_waits_ = true;
    if (freed_at_ == domain_.now() && producer_ != nullptr) producer_->wake_at(freed_at_ + 1);
    return false;
  }
  std::size_t free_slots() const { return slots_.size() - occupied(); }
  void push(T&& item) {
    next_slot().item = std::move(item);
    pushed();
  }
  void push(const T& item) {
    next_slot().item = item;
    pushed();
  }
  /// push() of what leaves the producer's pipeline `cycles` later: the slots stand for the pipeline's registers as
  /// well, and the producer needs no tick for the end of it. Nothing overtakes what was pushed before.
  template <class U>
  void push_after(U&& item, cycle_t cycles) {
    next_slot().item = std::forward<U>(item);
    pushed(cycles);
  }

  /// Consumer's side.
  bool can_pop() const { return count_ != 0 && slots_[head_].visible <= domain_.now(); }
  T& front() { return slots_[head_].item; }
  T pop() {
    RNIC_ASSERT(can_pop(), name() + ": pop from an empty channel");
    T item = std::move(slots_[head_].item);
    drop();
    return item;
  }
  /// pop() for what was used in place. What the item holds is let go when its slot is filled again.
  void drop() {
    head_ = wrapped(head_ + 1);
    --count_;
    if (count_ == 0 && mask_ != nullptr) *mask_ &= ~mask_bit_;
    const cycle_t now = domain_.now();
    freed_now_ = freed_at_ == now ? freed_now_ + 1 : 1;
    freed_at_ = now;
    if (producer_waits_ && producer_ != nullptr) {
      producer_waits_ = false;
      producer_->wake_at(now + 1);
    }
    if (count_ != 0 && consumer_ != nullptr && (!quiet_ || 2 * count_ >= slots_.size())) {
      const cycle_t visible = slots_[head_].visible;
      consumer_->wake_at(visible > now ? visible : now + 1);
    }
  }

  std::size_t depth() const { return slots_.size(); }
  bool empty() const { return count_ == 0; }
  std::uint64_t pushes() const { return pushed_; }
  std::size_t max_occupancy() const { return max_count_; }

 private:
  struct entry {
    T item{};
    cycle_t visible = 0;
  };
  entry& next_slot() {
    RNIC_ASSERT(free_slots() != 0, name() + ": push into a full channel");
    return slots_[wrapped(head_ + count_)];
  }
  void pushed(cycle_t cycles = 0) {
    cycle_t visible = domain_.now() + latency_ + cycles;
    if (visible < last_visible_) visible = last_visible_;
    last_visible_ = visible;
    slots_[wrapped(head_ + count_)].visible = visible;
    ++count_;
    ++pushed_;
    if (mask_ != nullptr) *mask_ |= mask_bit_;
    if (count_ > max_count_) max_count_ = count_;
    if (consumer_ != nullptr && (!quiet_ || 2 * count_ >= slots_.size())) consumer_->wake_at(visible);
  }
  std::size_t wrapped(std::size_t i) const { return i >= slots_.size() ? i - slots_.size() : i; }
  std::size_t occupied() const { return count_ + (freed_at_ == domain_.now() ? freed_now_ : 0); }

  clock_domain& domain_;
  std::vector<entry> slots_;
  unsigned latency_;
  clocked_block* producer_ = nullptr;
  clocked_block* consumer_ = nullptr;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::size_t freed_now_ = 0;  // slots freed in cycle freed_at_, which stay occupied for the rest of it
  cycle_t freed_at_ = never;
  cycle_t last_visible_ = 0;
  bool producer_waits_ = false;
  bool quiet_ = false;
  std::uint64_t* mask_ = nullptr;  // of the consumer
  std::uint64_t mask_bit_ = 0;
  std::uint64_t pushed_ = 0;
  std::size_t max_count_ = 0;
};

/// Both ends of a channel as a block sees them: a block has ports, the adapter binds them.
template <class T>
class fifo_out {
 public:
  explicit fifo_out(clocked_block& owner) : owner_(&owner) {}
  void bind(fifo<T>& channel) {
    channel_ = &channel;
    channel.bind_producer(*owner_);
  }
  bool can_push() const { return channel_->can_push(); }
  std::size_t free_slots() const { return channel_->free_slots(); }
  void push(T&& item) const { channel_->push(std::move(item)); }
  void push(const T& item) const { channel_->push(item); }
  template <class U>
  void push_after(U&& item, cycle_t cycles) const {
    channel_->push_after(std::forward<U>(item), cycles);
  }
  bool bound() const { return channel_ != nullptr; }

 private:
  clocked_block* owner_;
  fifo<T>* channel_ = nullptr;
};

template <class T>
class fifo_in {
 public:
  explicit fifo_in(clocked_block& owner) : owner_(&owner) {}
  void bind(fifo<T>& channel) {
    channel_ = &channel;
    channel.bind_consumer(*owner_);
    if (mask_ != nullptr) channel.show_in(*mask_, bit_);
  }
  /// Before bind(): see fifo::show_in.
  void show_in(std::uint64_t& mask, unsigned bit) {
    mask_ = &mask;
    bit_ = bit;
  }
  /// False as well while nothing is bound: a port that the configuration leaves out.
  bool can_pop() const { return channel_ != nullptr && channel_->can_pop(); }
  T& front() const { return channel_->front(); }
  T pop() const { return channel_->pop(); }
  void drop() const { channel_->drop(); }
  void set_quiet(bool quiet) const {
    if (channel_ != nullptr) channel_->set_quiet(quiet);
  }
  bool bound() const { return channel_ != nullptr; }

 private:
  clocked_block* owner_;
  fifo<T>* channel_ = nullptr;
  std::uint64_t* mask_ = nullptr;
  unsigned bit_ = 0;
};

}  // namespace rnic::sim
