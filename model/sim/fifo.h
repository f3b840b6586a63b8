// SPDX-License-Identifier: Apache-2.0
// The registered channel between two blocks of one clock domain.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/sim/channel.h"
#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"
#include "model/sim/ring.h"
#include "model/sim/seldom.h"

namespace rnic::sim {

/// What pushes, pops and their questions use of a channel, in two lines of the processor's cache: the first base, in
/// front of what the hierarchy needs (see clock_state).
template <class T>
class alignas(cache_line) fifo_state {
 public:
  /// Of no channel: nothing is ever in it.
  static const fifo_state& of_none() { return unbound; }
  [[gnu::always_inline]] bool can_pop() const { return count_ != 0 && slots_[head_].visible <= clock_->edge(); }
  /// f(T&) of each item, visible or not: a comparator at each register.
  template <class F>
  void for_each(F f) {
    for (std::uint32_t i = 0; i != count_; ++i) f(slots_[(head_ + i) & mask_of_slots_].item);
  }

 protected:
  static constexpr std::size_t most_places = 0x8000;
  static constexpr std::uint8_t nobody = 0xff;
  struct entry {
    T item{};
    cycle_t visible = 0;
  };
  fifo_state(clock_domain& clock, std::size_t depth, unsigned latency, channel_width width)
      : clock_(&clock),
        mask_of_slots_(static_cast<std::uint16_t>(places_for(depth) - 1)),
        places_(static_cast<std::uint16_t>(depth)),
        latency_(latency),
        items_a_cycle_(static_cast<std::uint16_t>(std::min<unsigned>(width.items, 0xffff))) {}
  virtual ~fifo_state() = default;

  // What a pop, a push and their questions use, in the line of the virtual functions.
  entry* slots_ = nullptr;  // a power of two of them
  clock_domain* clock_ = nullptr;
  std::uint32_t head_ = 0;
  std::uint32_t count_ = 0;
  std::uint16_t mask_of_slots_ = 0;
  std::uint16_t places_ = 0;           // the depth
  std::uint16_t wakes_from_ = 0xffff;  // so many items that a push, or a pop of others, ticks the consumer
  std::uint16_t freed_now_ = 0;        // slots freed in cycle freed_at_, which stay occupied for the rest of it
  cycle_t freed_at_ = never;
  std::uint64_t* mask_ = &mask_bit_;  // of the consumer; of none this, which stays 0:
  std::uint64_t mask_bit_ = 0;        // the channel's bit in it

  // What a push uses.
  channel::usage usage_;
  cycle_t last_visible_ = 0;
  unsigned latency_ = 1;
  unsigned shown_ = 0;              // items that become visible at last_visible_
  bool piped_ = false;              // the producer uses push_after
  std::uint8_t producer_ = nobody;  // their places
  std::uint8_t consumer_ = nobody;
  std::uint16_t items_a_cycle_ = 1;  // the width

 private:
  fifo_state() = default;
  static const fifo_state unbound;
};
template <class T>
inline const fifo_state<T> fifo_state<T>::unbound{};

/// Bounded first-in first-out channel with registers at both ends: what is pushed at cycle n can be popped at
/// n + latency (at least 1) and a slot freed at n can be filled at n + 1. One producer and one consumer block. It takes
/// and gives as many items a cycle as it is wide, one unless it says more.
///
/// Waking is the channel's business: the consumer is ticked when something becomes visible and, after a pop, as long
/// as more is visible; the producer of a full channel is ticked when a slot is free again. A consumer that leaves
/// something in the channel for another reason (busy until a cycle it knows) asks for its own wake-up, and so does a
/// producer that waits for more than one slot. Asking (can_push, can_pop, free_slots) changes nothing. Both ends are
/// used in ticks of the domain only.
template <class T>
class fifo : public fifo_state<T>, public channel {
  using state = fifo_state<T>;

 public:
  /// `depth`: 1 to 32768 items.
  fifo(const std::string& name, clock_domain& domain, std::size_t depth, unsigned latency = 1, channel_width width = {})
      : state(domain, depth, latency, width), channel(name, domain, depth, width) {
    if (latency == 0) throw config_error(this->name() + ": latency must be at least 1");
    if (depth > state::most_places) throw config_error(this->name() + ": depth must be at most 32768");
    storage_.resize(places_for(depth));
    slots_ = storage_.data();
  }

  /// Both are blocks of this channel's domain.
  void bind_producer(clocked_block& block) { producer_ = place_of(block); }
  void bind_consumer(clocked_block& block) {
    consumer_ = place_of(block);
    wakes_from_ = 1;
  }
  /// Keeps bit `bit` of `mask` set while something is in the channel, visible or not: a consumer of many channels looks
  /// at those only that hold something.
  void show_in(std::uint64_t& mask, unsigned bit) {
    mask_ = &mask;
    mask_bit_ = std::uint64_t{1} << bit;
  }

  /// While quiet, what is pushed does not tick the consumer, which takes it (take_due) when it is ticked for another
  /// reason; half full it ticks it all the same. For returned credits that nobody waits for.
  void set_quiet(bool quiet) final {
    if (consumer_ == nobody) return;
    const auto from = static_cast<std::uint16_t>(quiet && !watched_ ? (places_ + 1) / 2 : 1);
    if (seldom(from < wakes_from_) && count_ != 0) show_next(clock_->now());
    wakes_from_ = from;
  }

  /// Producer's side: a slot is free, and fewer than the width were pushed in this cycle.
  bool can_push() const {
    const cycle_t now = clock_->edge();
    return occupied(now) != places_ && !port_used(now);
  }
  /// can_push(), for a producer with several things to push: refused because the width is used up in this cycle, it is
  /// ticked at the next edge.
  [[gnu::always_inline]] bool claim() {
    const cycle_t now = clock_->edge();
    if (seldom(occupied(now) == places_)) return false;
    return !seldom(port_used(now)) || refused_in(now);
  }
  std::size_t free_slots() const { return places_ - occupied(clock_->edge()); }
  template <class U = T>
  void push(U&& item) {
    enter(std::forward<U>(item), 0);
  }
  /// push() of what make(T&) writes in its place, over an item of before: for what is large on the way there. make()
  /// does not use this channel.
  template <class F>
  void push_made(F make) {
    enter(make, 0);
  }
  /// push() of what leaves the producer's pipeline `cycles` later: the slots stand for the pipeline's registers as
  /// well, and the producer needs no tick for the end of it. What would leave beside others beyond the width leaves a
  /// cycle later, and nothing overtakes what was pushed before.
  template <class U>
  void push_after(U&& item, cycle_t cycles) {
    piped_ = true;
    enter(std::forward<U>(item), cycles);
  }

  /// Consumer's side.
  T& front() { return slots_[head_].item; }
  T pop() {
    entry& e = slots_[head_];
    const cycle_t now = clock_->edge();
    RNIC_ASSERT(count_ != 0 && e.visible <= now, name() + ": pop from an empty channel");
    T item = std::move(e.item);
    free_front(now);
    return item;
  }
  /// pop() for what was used in place. What the item holds is let go when its slot is filled again.
  void drop() { free_front(clock_->edge()); }
  /// Takes, one after the other, all that a consumer would have taken by now that is ticked at each edge and takes as
  /// many a cycle as the channel is wide: for a quiet channel, whose items wait until the consumer has another reason
  /// to be ticked. f(T&&) may not push into or pop from this channel.
  template <class F>
  void take_due(F f) {
    const cycle_t now = clock_->now();
    while (count_ != 0) {
      const cycle_t visible = slots_[head_].visible;
      if (taken_at_ == never || visible > taken_at_) {
        if (visible > now) return;
        taken_at_ = visible;
        taken_ = 0;
      } else if (taken_ == items_a_cycle_) {
        if (taken_at_ == now) return;
        ++taken_at_;
        taken_ = 0;
      }
      ++taken_;
      f(std::move(slots_[head_].item));
      release(now);
    }
  }

  bool empty() const { return count_ == 0; }
  const channel::usage& used() const override { return usage_; }

  void describe(channel_reader_if& to) const override {
    to.ends(block_at(producer_), block_at(consumer_));
    static const T none{};
    item_fields::read(to, none);
  }
  channel_state look(channel_reader_if* front) const override {
    const entry& first = slots_[head_];
    if (front != nullptr && count_ != 0) item_fields::read(*front, first.item);
    return {usage_.pushes, usage_.pushes - count_, count_, count_ != 0 ? first.visible : never,
            count_ != places_ ? 0 : never};
  }

 private:
  using state::nobody, state::slots_, state::clock_, state::head_, state::count_, state::mask_of_slots_, state::places_,
      state::wakes_from_, state::freed_now_, state::freed_at_, state::mask_, state::mask_bit_, state::usage_,
      state::last_visible_, state::latency_, state::shown_, state::piped_, state::producer_, state::consumer_,
      state::items_a_cycle_;
  using typename state::entry;

  bool port_used(cycle_t now) const {
    return last_visible_ == now + latency_ && shown_ >= items_a_cycle_ && width_.refuses && !piped_;
  }
  template <class U>
  void enter(U&& item, cycle_t cycles) {
    const cycle_t now = clock_->edge();
    // Slots freed in this cycle count, so that the order of push and pop within it is not seen.
    const std::uint32_t held = occupied(now) + 1;
    RNIC_ASSERT(held <= places_, name() + ": push into a full channel");
    entry& e = slots_[(head_ + count_) & mask_of_slots_];
    if constexpr (std::is_invocable_v<U, T&>)
      item(e.item);
    else
      e.item = std::forward<U>(item);
    cycle_t visible = now + latency_ + cycles;
    if (mostly(visible > last_visible_)) {
      last_visible_ = visible;
      shown_ = 1;
    } else {
      if (seldom(++shown_ > items_a_cycle_)) beside_others(visible);
      visible = last_visible_;
    }
    e.visible = visible;
    ++count_;
    ++usage_.pushes;
    *mask_ |= mask_bit_;
    if (seldom(held > usage_.max_occupancy)) usage_.max_occupancy = held;
    if (seldom(held == places_)) filled(now);
    if (mostly(count_ >= wakes_from_)) {
      if (mostly(wakes_from_ == 1))
        wake(*clock_, consumer_, visible);
      else
        show_next(now);  // of a quiet one: what is in front came without a tick
    }
  }
  // What follows is seldom, or is more than a call: each in one place, so that pushes and pops are short where they are
  // inlined.
  /// The width is used up in this cycle.
  [[gnu::noinline]] bool refused_in(cycle_t now) {
    wake_producer(now + 1);
    return false;
  }
  /// More than the width becomes visible at last_visible_.
  [[gnu::noinline]] void beside_others(cycle_t visible) {
    if (piped_) {
      ++last_visible_;
      shown_ = 1;
    } else if (visible == last_visible_ && producer_ != nobody) {
      over(usage_.over_pushes, "pushes");
    }
  }
  /// A push has taken the last slot; when others were freed in this cycle, there is room in the next one.
  [[gnu::noinline]] void filled(cycle_t now) {
    if (count_ == places_)
      full_since_ = now;
    else
      wake_producer(now + 1);
  }
  void free_front(cycle_t now) {
    release(now);
    if (seldom(freed_now_ > items_a_cycle_)) freed_beyond();
  }
  [[gnu::noinline]] void freed_beyond() {
    if (consumer_ != nobody) over(usage_.over_pops, "pops");
  }
  void release(cycle_t now) {
    freed_now_ = seldom(freed_at_ == now) ? static_cast<std::uint16_t>(freed_now_ + 1) : 1;
    freed_at_ = now;
    --count_;
    if (seldom(count_ + freed_now_ == places_)) was_full(now);
    if (count_ != 0) {
      head_ = (head_ + 1) & mask_of_slots_;
      if (count_ >= wakes_from_) show_next(now);
    } else {
      head_ = 0;  // begins again with the slot that is in the cache
      *mask_ &= ~mask_bit_;
    }
  }
  /// Every slot was taken in this cycle, by items, or by those freed in it: the first of them ends the time in which
  /// the channel was full.
  [[gnu::noinline]] void was_full(cycle_t now) {
    if (freed_now_ == 1) usage_.full_cycles += now - full_since_;
    wake_producer(now + 1);
  }
  /// Ticks the consumer for what is in front.
  [[gnu::noinline]] void show_next(cycle_t now) {
    const cycle_t visible = slots_[head_].visible;
    wake(*clock_, consumer_, visible > now ? visible : now + 1);
  }
  void wake_producer(cycle_t when) {
    if (producer_ != nobody) wake(*clock_, producer_, when);
  }
  std::uint32_t occupied(cycle_t now) const { return count_ + (seldom(freed_at_ == now) ? freed_now_ : 0); }

  // What seldom is used.
  std::vector<entry> storage_;
  cycle_t full_since_ = 0;
  cycle_t taken_at_ = never;
  unsigned taken_ = 0;  // take_due: items taken in cycle taken_at_
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
  bool claim() const { return channel_->claim(); }
  std::size_t free_slots() const { return channel_->free_slots(); }
  void push(T&& item) const { channel_->push(std::move(item)); }
  void push(const T& item) const { channel_->push(item); }
  template <class F>
  void push_made(F make) const {
    channel_->push_made(make);
  }
  template <class U>
  void push_after(U&& item, cycle_t cycles) const {
    channel_->push_after(std::forward<U>(item), cycles);
  }
  bool bound() const { return channel_ != nullptr; }
  forwarding forwards() const { return channel_->forwards(); }

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
    state_ = &channel;
    channel.bind_consumer(*owner_);
    if (mask_ != nullptr) channel.show_in(*mask_, bit_);
  }
  /// Before bind(): see fifo::show_in.
  void show_in(std::uint64_t& mask, unsigned bit) {
    mask_ = &mask;
    bit_ = bit;
  }
  /// False as well while nothing is bound: a port that the configuration leaves out.
  [[gnu::always_inline]] bool can_pop() const { return state_->can_pop(); }
  T& front() const { return channel_->front(); }
  T pop() const { return channel_->pop(); }
  void drop() const { channel_->drop(); }
  template <class F>
  void take_due(F f) const {
    if (channel_ != nullptr) channel_->take_due(f);
  }
  template <class F>
  void for_each(F f) const {
    if (channel_ != nullptr) channel_->for_each(f);
  }
  void set_quiet(bool quiet) const {
    if (channel_ != nullptr) channel_->set_quiet(quiet);
  }
  bool bound() const { return channel_ != nullptr; }

 private:
  clocked_block* owner_;
  const fifo_state<T>* state_ = &fifo_state<T>::of_none();
  fifo<T>* channel_ = nullptr;
  std::uint64_t* mask_ = nullptr;
  unsigned bit_ = 0;
};

}  // namespace rnic::sim
