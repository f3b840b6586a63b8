// SPDX-License-Identifier: Apache-2.0
// Clock domains that act on each other only after a while.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "model/sim/seldom.h"
#include "model/sim/types.h"

namespace rnic::sim {

/// The clock domains of a timebase in partitions: those of one adapter and its host, those of all switches. What a
/// domain does in its edge at time t can reach a domain of another partition at t + lookahead at the earliest (a cable
/// and the stages of the ports at its ends). So each partition can be served by itself through a window, and the
/// results are those of serving all edges in the order of their times: what a host has in the processor's caches is
/// used many times before that of the next one takes its place. Known as conservative windows in parallel
/// discrete-event simulation. A window is as long as the lookahead; where partitions act on each other by a hub only,
/// which is served up to where they can reach it before their window begins, as long as the way there and back.
///
/// With a single partition, as built, or without a lookahead there are no windows.
class partitions {
 public:
  /// Its domains are `first` to `end` - 1, in the order in which they were added.
  using domains = std::pair<std::size_t, std::size_t>;
  static constexpr time_ps never = ~time_ps{0};
  /// Numbers between the domains of two partitions: what threads write by the number is in cache lines of their own.
  static constexpr std::size_t apart = 64 / sizeof(time_ps);
  struct edges {
    time_ps next = never;  ///< the earliest edge with work, or one before it
    time_ps last = 0;      ///< the last one that was served
  };

  /// Domains that are added from now on are those of another partition.
  void begin() {
    if (all_.back().first != all_.back().second) {
      of_domain_.resize(of_domain_.size() + apart, last());  // numbers of no domain
      all_.push_back({of_domain_.size(), of_domain_.size()});
      edges_.emplace_back();
    }
  }
  /// Returns its number.
  std::size_t add_domain() {
    of_domain_.push_back(last());
    return all_.back().second++;
  }
  /// The partition under construction.
  std::size_t last() const { return all_.size() - 1; }
  std::size_t size() const { return all_.size(); }
  std::size_t partition_of(std::size_t domain) const { return of_domain_[domain]; }
  const domains& operator[](std::size_t partition) const { return all_[partition]; }

  /// 0: no windows.
  void set_lookahead(time_ps lookahead) {
    lookahead_ = lookahead;
    spokes_ = size();
  }
  /// The last partition is the hub, by which alone the others act on each other: the lookaheads towards it and from it.
  void set_hub(time_ps towards, time_ps from) {
    lookahead_ = towards;
    from_hub_ = from;
    spokes_ = size() - 1;
  }
  bool have_windows() const { return seldom(lookahead_ != 0) && all_.size() > 1; }
  /// Those that are served through windows: all, or all but the hub, which is the one behind them.
  std::size_t spokes() const { return spokes_; }

  /// A domain now has an edge with work at `when`.
  void request(std::size_t domain, time_ps when) {
    const std::size_t p = of_domain_[domain];
    edges_[p].next = std::min(edges_[p].next, when);
    if (open_ && p == served_) return;                                            // which is told when it is left
    if (open_ && served_ == spokes_) hub_end_ = std::min(hub_end_, after(when));  // its answer comes then
    if (p != spokes_) first_ = std::min(first_, when);
  }
  /// Of one, which whoever serves it between enter() and leave(), or a thread beside others, leaves as they are then.
  edges& of(std::size_t partition) { return edges_[partition]; }
  const edges& of(std::size_t partition) const { return edges_[partition]; }
  /// The earliest edge with work of all but the hub, since count_first(), or one before it.
  time_ps first() const { return first_; }
  /// They are about to be served in their order; counted() tells the edge that one has then.
  void count_first() { first_ = never; }
  void counted(std::size_t partition) { first_ = std::min(first_, edges_[partition].next); }
  time_ps hub_edge() const { return spokes_ != size() ? edges_.back().next : never; }

  /// Whether all that partitions do in their window is done, if nothing of them is left to do before `next`.
  bool is_through(time_ps next) const { return next >= end_; }
  /// Nothing is left to do before `next`, in any of them but the hub, which is about to be served; returns up to where,
  /// which may be less and less.
  const time_ps& open_hub(time_ps next) {
    all_done_before(std::min(next, hub_edge()));
    hub_end_ = after(next);
    return hub_end_;
  }
  /// The hub has been served up to `end`. The window begins of those that have nothing left to do before `next`.
  void open_window(time_ps next, time_ps end) {
    hub_done_ = end;
    const time_ps acts =
        spokes_ != size() ? std::min(hub_edge(), after(next)) : next;  // the first that does, on others
    if (acts == never) return;
    all_done_before(std::min(acts, next));
    end_ = acts + (spokes_ != size() ? from_hub_ : lookahead_);
  }
  /// The hub has been served up to `end`, in a window.
  void hub_went_on(time_ps end) { hub_done_ = end; }
  time_ps end() const { return end_; }
  /// Each partition at one instant, without windows.
  void open(time_ps begin, time_ps end) {
    begin_ = begin;
    end_ = hub_done_ = end;
  }
  /// The first edge of a partition, which is being served from now on.
  time_ps enter(std::size_t partition) {
    open_ = true;
    served_ = partition;
    return std::exchange(edges_[partition].next, never);
  }
  /// When its next edge is, and when its last one was.
  void leave(time_ps next, time_ps now) {
    open_ = false;
    edges_[served_] = {next, now};
  }

  /// A domain of another partition than that which is being served, if one is.
  bool is_foreign(std::size_t domain) const { return seldom(open_) && of_domain_[domain] != served_; }
  /// Whether a domain may be asked for an edge at `when`: a foreign one has been served up to the end of its window, or
  /// will be.
  bool can_ask(std::size_t domain, time_ps when) const {
    return !is_foreign(domain) || when >= (of_domain_[domain] == spokes_ ? hub_done_ : end_);
  }
  /// Up to where the edges of a domain have passed, at `now` in the served partition.
  time_ps passed(std::size_t domain, time_ps now) const {
    return is_foreign(domain) ? (of_domain_[domain] == spokes_ ? hub_done_ : begin_) : now;
  }

 private:
  void all_done_before(time_ps t) {
    if (t != never) begin_ = t;
  }
  time_ps after(time_ps t) const { return t < never - lookahead_ ? t + lookahead_ : never; }

  std::vector<domains> all_{{0, 0}};
  std::vector<edges> edges_{{}};  // by partition
  time_ps first_ = 0;
  std::vector<std::size_t> of_domain_;
  time_ps lookahead_ = 0;  // towards the hub, or between any two
  time_ps from_hub_ = 0;
  std::size_t spokes_ = 0;
  time_ps begin_ = 0, end_ = 0;         // of the window, but for the hub
  time_ps hub_end_ = 0, hub_done_ = 0;  // up to where the hub may be served, and has been
  std::size_t served_ = 0;
  bool open_ = false;
};

}  // namespace rnic::sim
