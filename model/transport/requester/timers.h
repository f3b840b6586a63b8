// SPDX-License-Identifier: Apache-2.0
// The requester's timers: for acknowledgements, and for receivers that are not ready.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "model/sim/clock_domain.h"
#include "model/sim/parameter.h"
#include "model/sim/types.h"
#include "model/transport/requester/tables.h"

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

/// A timer for each QP that needs one, as far as there are entries. They end one after the other, earliest first.
class qp_timers {
 public:
  qp_timers(const timer_config& config, const sim::clock_domain& domain)
      : entries_(config.entries),
        granularity_(std::max<sim::cycle_t>(1, domain.cycles(config.granularity_ps))),
        by_granularity_(granularity_) {}

  /// The QP has a timer, running or waiting for an entry.
  static bool is_on(const qp_runtime& r) { return r.timer.deadline != sim::never || r.timer.span != 0; }
  /// Starts it anew, `span` cycles (at least 1) from now on; without a free entry from the moment on that it gets one.
  void start(qp_table& table, qp_runtime& r, sim::cycle_t now, sim::cycle_t span) {
    if (r.timer.deadline == sim::never && running_ == entries_) {
      r.timer.span = span;
      ++waits_;
      return waiting_.push(table, r);
    }
    if (r.timer.deadline == sim::never) ++running_;
    r.timer.span = 0;
    set(r, by_granularity_(now + span + granularity_ - 1) * granularity_);
  }
  void stop(qp_table& table, qp_runtime& r, sim::cycle_t now) {
    r.timer.span = 0;
    if (r.timer.deadline == sim::never) return;
    r.timer.deadline = sim::never;
    --running_;
    give_entry(table, now);
  }
  /// The first edge at which something may end.
  sim::cycle_t earliest() const { return heap_.empty() ? sim::never : heap_.front().first; }
  /// QP whose time has come, or no_index. It keeps its entry until start() or stop().
  std::uint32_t expired(qp_table& table, sim::cycle_t now) {
    while (!heap_.empty() && heap_.front().first <= now) {
      const auto [key, qpn] = heap_.front();
      qp_runtime& r = table[qpn];
      if (r.timer.queued == key && r.timer.deadline <= now) return qpn;
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
      heap_.pop_back();
      if (r.timer.queued != key) continue;
      r.timer.queued = sim::never;
      if (r.timer.deadline == sim::never) continue;
      r.timer.queued = r.timer.deadline;
      push({r.timer.deadline, qpn});
    }
    return no_index;
  }
  /// Starts that had to wait for an entry.
  const std::uint64_t& waits() const { return waits_; }

 private:
  using node = std::pair<sim::cycle_t, std::uint32_t>;
  // A deadline that moves later costs nothing until the old one is reached.
  void set(qp_runtime& r, sim::cycle_t deadline) {
    r.timer.deadline = deadline;
    if (r.timer.queued <= deadline) return;
    r.timer.queued = deadline;
    push({deadline, r.qpn});
  }
  void push(node n) {
    heap_.push_back(n);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
  void give_entry(qp_table& table, sim::cycle_t now) {
    while (!waiting_.empty()) {
      qp_runtime& r = waiting_.pop(table);
      if (r.timer.span == 0) continue;  // stopped meanwhile
      return start(table, r, now, r.timer.span);
    }
  }

  unsigned entries_, running_ = 0;
  sim::cycle_t granularity_;
  sim::fast_divider by_granularity_;
  std::uint64_t waits_ = 0;
  qp_queue waiting_{qp_list::timer};
  std::vector<node> heap_;
};

}  // namespace rnic::transport
