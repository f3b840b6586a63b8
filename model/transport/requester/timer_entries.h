// SPDX-License-Identifier: Apache-2.0
// The entries of the timers: which run, which ends first, and who waits for one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "model/sim/clock_domain.h"
#include "model/sim/seldom.h"
#include "model/sim/types.h"
#include "model/transport/requester/timers.h"

namespace rnic::transport {

/// Memories of ack_timers.h, without a clock: a directory by the number of the queue pair, the heap, the line.
///
/// On the chip an entry is moved, or taken out, where it is in the heap. Here it stays behind, with a key that is not
/// the queue pair's any more, until it has come to the top: nothing of that can be seen.
class timer_entries {
 public:
  /// Numbers of queue pairs are below 2^log_qps.
  timer_entries(const timer_config& config, const sim::clock_domain& domain, unsigned log_qps)
      : entries_(config.entries),
        granularity_(std::max<sim::cycle_t>(1, domain.cycles(config.granularity_ps))),
        by_granularity_(granularity_),
        pages_(std::max<std::size_t>(1, (std::size_t{1} << log_qps) / page)) {}

  void start(const timer_command& c, sim::cycle_t now) {
    timer& t = of(c.qpn);
    t.tag = c.tag;
    const sim::cycle_t at = std::max(c.at, now + 1);
    if (sim::seldom(t.end == sim::never && (running_ == entries_ || front_ != nobody))) return wait(c.qpn, t, at - now);
    if (t.end == sim::never) ++running_;
    set(c.qpn, t, at);
  }
  void stop(std::uint32_t qpn) {
    timer& t = of(qpn);
    t.span = 0;
    if (t.end == sim::never) return;
    t.end = sim::never;
    --running_;
  }
  /// A timer has come to its end that has not been taken out.
  bool due(sim::cycle_t now) { return earliest() <= now && find_due(now); }
  /// Edge before which none is due; never: none runs.
  sim::cycle_t earliest() const { return heap_.empty() ? sim::never : heap_.front().first; }
  /// Takes out the first of those that are due; there must be one. Its entry is free.
  timer_expiration end() {
    const std::uint32_t qpn = heap_.front().second;
    stop(qpn);
    return {qpn, of(qpn).tag};
  }
  /// There is a line, and a free entry for the first in it.
  bool may_give() const { return front_ != nobody && running_ != entries_; }
  /// It leaves the line, and has it, unless it was stopped meanwhile.
  void give(sim::cycle_t now) {
    const std::uint32_t qpn = front_;
    timer& t = of(qpn);
    front_ = t.next;
    t.in_line = false;
    if (t.span == 0) return;
    ++running_;
    set(qpn, t, now + std::exchange(t.span, 0));
  }

  /// Entries in use.
  unsigned running() const { return running_; }
  /// Starts that had to wait for an entry.
  const std::uint64_t& waits() const { return waits_; }

 private:
  using node = std::pair<sim::cycle_t, std::uint32_t>;
  static constexpr std::uint32_t page = 256, nobody = ~std::uint32_t{0};
  /// A word of the directory.
  struct timer {
    sim::cycle_t end = sim::never;     // it has an entry
    sim::cycle_t queued = sim::never;  // key of its node in the heap that counts
    sim::cycle_t span = 0;             // not 0: it waits for an entry, and runs so long then
    std::uint32_t next = nobody;       // behind it in the line
    std::uint8_t tag = 0;
    bool in_line = false;
  };

  timer& of(std::uint32_t qpn) {
    auto& p = pages_[qpn / page];
    if (sim::seldom(!p)) add_page(qpn);
    return (*p)[qpn % page];
  }
  [[gnu::noinline, gnu::cold]] void add_page(std::uint32_t qpn) {
    pages_[qpn / page] = std::make_unique<std::array<timer, page>>();
  }
  // Brings one that counts to the top.
  [[gnu::noinline]] bool find_due(sim::cycle_t now) {
    do {
      const auto [key, qpn] = heap_.front();
      timer& t = of(qpn);
      if (t.queued == key && t.end == key) return true;
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
      heap_.pop_back();
      if (t.queued != key) continue;
      t.queued = t.end;  // it was stopped, or has moved later
      if (t.end != sim::never) push({t.end, qpn});
    } while (earliest() <= now);
    return false;
  }
  // One that was stopped in the line, and starts again before it has come to the front, has kept its place.
  [[gnu::noinline]] void wait(std::uint32_t qpn, timer& t, sim::cycle_t span) {
    if (t.span == 0) ++waits_;
    t.span = span;
    if (t.in_line) return;
    t.in_line = true;
    t.next = nobody;
    if (front_ == nobody)
      front_ = qpn;
    else
      of(back_).next = qpn;
    back_ = qpn;
  }
  void set(std::uint32_t qpn, timer& t, sim::cycle_t at) {
    t.end = by_granularity_(at + granularity_ - 1) * granularity_;
    if (t.queued <= t.end) return;
    t.queued = t.end;
    push({t.end, qpn});
  }
  void push(node n) {
    if (sim::seldom(heap_.size() >= most_nodes_)) leave_current();
    heap_.push_back(n);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }

  // Without those that have stayed behind there are no more than timers that were started and have not come up since.
  [[gnu::noinline]] void leave_current() {
    const auto is_old = [this](const node& n) { return of(n.second).queued != n.first; };
    heap_.erase(std::remove_if(heap_.begin(), heap_.end(), is_old), heap_.end());
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>{});
    most_nodes_ = std::max(most_nodes_, 2 * heap_.size());
  }

  unsigned entries_, running_ = 0;
  sim::cycle_t granularity_;
  sim::fast_divider by_granularity_;
  std::uint64_t waits_ = 0;
  std::uint32_t front_ = nobody, back_ = nobody;  // of the line
  std::vector<node> heap_;
  std::size_t most_nodes_ = 1024;
  std::vector<std::unique_ptr<std::array<timer, page>>> pages_;
};

}  // namespace rnic::transport
