// SPDX-License-Identifier: Apache-2.0
// Queues that firmware has halted, and how they come to rest.
#pragma once

#include <array>
#include <cstdint>

#include "model/completion/dma_queue.h"

namespace rnic::completion {

/// Data sheet. Part of the completion block, which has one for CQs and one for EQs.
///
/// A table of 8 queues. An engine that meets one of them lets its request wait, or drops it when the queue is
/// discarded. A queue is at rest when what was decided for it is in host memory and nothing of it is on chip: first the
/// parts forget it, then a read behind the writes (dma_queue::fence) tells when they are there, and its context is
/// written back or dropped. That the context has gone its cache knows.
///
/// Memory: the table, compared as a whole by each engine once a request; written by firmware between two edges.
///
/// Stalls: a fence waits for room in the DMA queue. A place whose fence is under way is not given away.
class halted_queues {
 public:
  struct entry {
    bool active = false;
    bool discard = false;
    bool forgotten = false;
    enum class fence : std::uint8_t { wanted, under_way, done } state = fence::wanted;
    std::uint32_t number = 0;
  };

  /// `first_fence`: index of the first place's fence, from which those of the others follow.
  explicit halted_queues(std::uint32_t first_fence) : first_fence_(first_fence) {}
  static constexpr unsigned places = 8;

  bool none() const { return count_ == 0; }
  /// The queue's entry when it is halted.
  const entry* find(std::uint32_t number) const {
    if (count_ == 0) return nullptr;
    for (const entry& e : entries_)
      if (e.active && e.number == number) return &e;
    return nullptr;
  }
  /// Nothing was there before the halt that is not in host memory now.
  static bool written(const entry& e) { return e.forgotten && e.state == entry::fence::done; }

  /// False: no place.
  bool halt(std::uint32_t number, bool discard);
  void release(std::uint32_t number);
  /// A fence under way keeps its place until it is answered.
  void release_all();
  void fence_answered(std::uint32_t index);

  /// Brings the halted queues to rest: `forget(entry)` once, `put_away(entry)` of the context in each tick.
  template <class Forget, class PutAway>
  void serve(dma_queue& dma, Forget forget, PutAway put_away) {
    for (entry& e : entries_) {
      if (!e.active) continue;
      if (!e.forgotten) forget(e);
      e.forgotten = true;
      if (e.state == entry::fence::wanted) ask_for_fence(e, dma);
      put_away(e);
    }
  }

 private:
  void ask_for_fence(entry& e, dma_queue& dma);

  std::uint32_t first_fence_;
  std::array<entry, places> entries_{};
  unsigned count_ = 0;
};

}  // namespace rnic::completion
