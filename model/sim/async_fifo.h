// SPDX-License-Identifier: Apache-2.0
// The channel between two blocks of different clock domains: an asynchronous FIFO.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/channel.h"
#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"

namespace rnic::sim {

/// How what one clock writes is seen by another: through a chain of flip-flops, of which the first may be metastable.
/// What is written at an edge of the one is taken by the first flip-flop at the next edge of the other, never at the
/// same instant; logic sees it at the edge behind the last flip-flop's.
class synchroniser {
 public:
  /// `what`: whose stages they are, for the error.
  synchroniser(const std::string& what, const clock_domain& to, unsigned stages) : to_(to), stages_(stages) {
    if (stages < 2) throw config_error(what + ".synchroniser_stages: must be 2 or more");
  }
  /// The first edge at which logic sees what was written at time `written`.
  cycle_t edge(time_ps written) const { return to_.edge_at_or_after(written + 1) + stages_; }
  time_ps time(time_ps written) const { return to_.edge_time(edge(written)); }

 private:
  const clock_domain& to_;
  unsigned stages_;
};

/// Bounded first-in first-out channel whose ends have clocks of their own. Each end sees the other's pointer through a
/// synchroniser: what is pushed can be popped so many edges of the consumer's clock later, and a slot freed can be
/// filled so many edges of the producer's later. One item enters in a cycle of the producer and one leaves in a cycle
/// of the consumer; the depth covers the way of both pointers where a stream must not stall.
///
/// Waking is as that of sim::fifo. What the clocks' edges have in common changes nothing: nothing is seen at the
/// instant at which it was written, so the order in which the domains are served is not seen either.
template <class T>
class async_fifo : public channel {
 public:
  async_fifo(const std::string& name, clocked_block& producer, clocked_block& consumer, std::size_t depth,
             unsigned stages)
      : channel(name, producer.domain(), depth, {}),
        producer_(producer),
        consumer_(consumer),
        to_consumer_(this->name(), consumer.domain(), stages),
        to_producer_(this->name(), producer.domain(), stages),
        slots_(depth),
        freed_(depth) {}

  /// Producer's side: no slot is free.
  bool full() const { return count_ + freed_count_ == depth_ && (freed_count_ == 0 || freed_[freed_head_] > now()); }
  bool can_push() const { return !full() && written_ != now(); }
  /// The last register of what is pushed is written `cycles` later, never two in a cycle. Returns the edge of the
  /// consumer's clock at which it can be popped.
  cycle_t push(T item, cycle_t cycles = 0) {
    RNIC_ASSERT(!full(), name() + ": push into a full channel");
    const cycle_t when = now() + cycles;
    if (written_ != never && when <= written_) over(usage_.over_pushes, "pushes");
    written_ = when;
    see_freed();
    entry& e = slots_[wrapped(head_ + count_)];
    e.item = std::move(item);
    e.visible = to_consumer_.edge(domain_.edge_time(when));
    ++usage_.pushes;
    if (++count_ == 1) consumer_.wake_at(e.visible);
    const std::size_t held = count_ + freed_count_;
    if (held > usage_.max_occupancy) usage_.max_occupancy = held;
    if (held == depth_) {
      full_since_ = now();
      if (freed_count_ != 0) producer_.wake_at(freed_[freed_head_]);
    }
    return e.visible;
  }

  /// Consumer's side.
  bool can_pop() const { return count_ != 0 && slots_[head_].visible <= consumer_.now(); }
  const T& front() const { return slots_[head_].item; }
  T pop() {
    RNIC_ASSERT(can_pop(), name() + ": pop from an empty channel");
    const cycle_t at = consumer_.now();
    if (read_ == at) over(usage_.over_pops, "pops");
    read_ = at;
    T item = std::move(slots_[head_].item);
    const bool was_full = count_ + freed_count_ == depth_;
    const cycle_t seen = to_producer_.edge(consumer_.now_ps());
    freed_[wrapped(freed_head_ + freed_count_++)] = seen;
    head_ = wrapped(head_ + 1);
    --count_;
    if (was_full) producer_.wake_at(seen);
    if (count_ != 0) consumer_.wake_at(slots_[head_].visible > at ? slots_[head_].visible : at + 1);
    return item;
  }

  const usage& used() const override { return usage_; }
  void describe(channel_reader_if& to) const override {
    to.ends(&producer_, &consumer_);
    static const T none{};
    item_fields::read(to, none);
  }
  channel_state look(channel_reader_if* front) const override {
    if (front != nullptr && count_ != 0) item_fields::read(*front, slots_[head_].item);
    return {usage_.pushes, usage_.pushes - count_, count_, count_ != 0 ? slots_[head_].visible : never,
            count_ + freed_count_ != depth_ ? 0
            : freed_count_ != 0             ? freed_[freed_head_]
                                            : never};
  }

 private:
  struct entry {
    T item{};
    cycle_t visible = 0;
  };
  cycle_t now() const { return producer_.now(); }
  std::size_t wrapped(std::size_t i) const { return i >= depth_ ? i - depth_ : i; }
  /// Slots that the producer sees free by now are free.
  void see_freed() {
    if (count_ + freed_count_ == depth_) usage_.full_cycles += freed_[freed_head_] - full_since_;
    while (freed_count_ != 0 && freed_[freed_head_] <= now()) {
      freed_head_ = wrapped(freed_head_ + 1);
      --freed_count_;
    }
  }

  usage usage_;
  clocked_block& producer_;
  clocked_block& consumer_;
  synchroniser to_consumer_, to_producer_;
  std::vector<entry> slots_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::vector<cycle_t> freed_;  // ring: when the producer sees what the consumer has freed
  std::size_t freed_head_ = 0;
  std::size_t freed_count_ = 0;
  cycle_t written_ = never;  // the last item
  cycle_t read_ = never;
  cycle_t full_since_ = 0;
};

}  // namespace rnic::sim
