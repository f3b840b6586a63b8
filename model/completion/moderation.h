// SPDX-License-Identifier: Apache-2.0
// The moderation table: for which queues a period runs, and when it ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/sim/clocked_block.h"

namespace rnic::completion {

/// Data sheet.
///
/// A CQ or EQ whose context has a period does not report each entry: its first one that is due starts the period, and
/// the event or interrupt goes out when the period ends or its count is reached. The table holds the periods under
/// way, `depth` of them, CQs and EQs together; a queue has at most one. When it is full the queue reports at once.
///
/// Periods are real time, not cycles: a period ends at the first edge at or after its deadline, one in a cycle, since
/// each is an access to its queue's context; of several the first of the table. What that leads to is for the
/// neighbours (event for a CQ, interrupt for an EQ): they are offered the period in each tick until they have taken it.
///
/// Stalls: the end of a period, by that of another one in the same cycle. A period that ended stays while the neighbour
/// has no room; who gives room wakes the block. Source: completion moderation of the published programming interface
/// (cq_period, cq_max_count; the same for EQs).
class moderation {
 public:
  struct period {
    bool active = false;
    bool event_queue = false;  // else of a CQ
    std::uint32_t number = 0;
    sim::time_ps deadline = 0;
  };

  moderation(sim::clocked_block& owner, unsigned depth) : owner_(owner), periods_(depth) {}

  /// No period is under way.
  bool none() const { return count_ == 0; }
  bool runs(bool event_queue, std::uint32_t number) const;
  /// A period for the queue, unless one runs. False: the table is full.
  bool start(bool event_queue, std::uint32_t number, std::uint16_t period_us);
  /// The queue has no period any more.
  void end(bool event_queue, std::uint32_t number);
  void clear();

  /// Offers periods whose time has come to `take(period)`, which says whether it is done with, until one is: it is the
  /// one of this cycle. For the others the block is woken, in the next cycle or at the earliest deadline.
  template <class Take>
  void serve(Take take) {
    sim::time_ps next = ~sim::time_ps{0};
    bool taken = false;
    for (period& p : periods_) {
      if (!p.active) continue;
      if (p.deadline > owner_.now_ps()) {
        next = std::min(next, p.deadline);
      } else if (taken) {
        owner_.wake_next();
      } else if (take(p)) {
        taken = true;
        if (p.active) remove(p);
      }
    }
    if (next != ~sim::time_ps{0}) wake_for(next);
  }

 private:
  void remove(period& p);
  void wake_for(sim::time_ps deadline);

  sim::clocked_block& owner_;
  std::vector<period> periods_;
  unsigned count_ = 0;
};

}  // namespace rnic::completion
