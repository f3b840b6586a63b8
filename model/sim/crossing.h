// SPDX-License-Identifier: Apache-2.0
// What crosses from a partition into another one while threads serve several.
#pragma once

#include <utility>
#include <vector>

#include "model/sim/types.h"

namespace sc_core {
class sc_event;
}

namespace rnic::sim {

/// By which a partition acts on another one, such as a cable. While several partitions are served at once, what it has
/// to do is put off until all have ended, and then done partition by partition, as if one thread had served them.
class crossing {
 public:
  virtual ~crossing() = default;

 protected:
  /// In a tick. True: cross() is called later, once for each call of this, in their order.
  bool put_off();

 private:
  friend class windows;
  /// The oldest thing that was put off.
  virtual void cross() = 0;
};

/// What a thread has of its own while it serves a partition beside others: what ticks ask of the timebase and the
/// kernel, kept until all have ended.
struct alignas(64) partition_turn {  // a line of a processor's cache
  time_ps now = 0;                   ///< the instant that is served
  time_ps next = 0;                  ///< that behind it
  time_ps horizon = 0;               ///< edges before it may be served
  time_ps due = 0;                   ///< when one of its programs goes on
  time_ps lowered = 0;               ///< the earliest edge that was asked for in a domain that had no such edge
  std::size_t partition = 0;
  bool has_work = false;
  std::vector<std::pair<sc_core::sc_event*, time_ps>> notified;
  std::vector<crossing*> crossings;

  /// Of the calling thread; nullptr: one thread serves all.
  static partition_turn* here() { return of_this_thread; }

 private:
  friend class windows;
  inline static thread_local partition_turn* of_this_thread = nullptr;
};

inline bool crossing::put_off() {
  partition_turn* const turn = partition_turn::here();
  if (turn != nullptr) turn->crossings.push_back(this);
  return turn != nullptr;
}

}  // namespace rnic::sim
