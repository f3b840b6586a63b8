// SPDX-License-Identifier: Apache-2.0
// What the requester and the block of its timers tell each other, and the parameters of that block.
#pragma once

#include <cstdint>

#include "model/sim/parameter.h"
#include "model/sim/types.h"

namespace rnic::transport {

struct timer_config {
  /// Running at once; more wait for one of these to end.
  sim::parameter<unsigned> entries{4096, {1, 1u << 24, "timers", "design: one for each message under way"}};
  /// A timer ends at a multiple of it, never early.
  sim::parameter<std::uint32_t> granularity_ps{
      1'024'000, {1, 100'000'000, "ps", "design: a quarter of the unit of IBA 9.7.6.1.3"}};
  /// From the end of one timer to that of the next.
  sim::parameter<unsigned> expiry_cycles{8, {1, 4000, "cycles", "design: one context access"}};

  void list(sim::fields& are) {
    are("entries", entries);
    are("granularity_ps", granularity_ps);
    are("expiry_cycles", expiry_cycles);
  }
};

/// Of a queue pair's timer, of which it has one: it starts, from wherever it was, or it is there no more.
struct timer_command {
  enum class kind : std::uint8_t { start, stop };
  kind what = kind::start;
  std::uint32_t qpn = 0;
  sim::cycle_t at = 0;   ///< start: edge at which it ends at the earliest
  std::uint8_t tag = 0;  ///< start: comes back when it ends
};

/// A queue pair's timer has ended, and is there no more.
struct timer_expiration {
  std::uint32_t qpn = 0;
  std::uint8_t tag = 0;  ///< of its last start
};

}  // namespace rnic::transport
