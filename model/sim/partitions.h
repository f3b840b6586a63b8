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
/// and the stages of the ports at its ends). So each partition can be served by itself through a window of that length,
/// and the results are those of serving all edges in the order of their times: what a host has in the processor's
/// caches is used many times before that of the next one takes its place. Known as conservative windows in parallel
/// discrete-event simulation.
///
/// With a single partition, as built, or without a lookahead there are no windows.
class partitions {
 public:
  /// Its domains are `first` to `end` - 1, in the order in which they were added.
  using domains = std::pair<std::size_t, std::size_t>;

  /// Domains that are added from now on are those of another partition.
  void begin() {
    if (all_.back().first != all_.back().second) {
      all_.push_back({of_domain_.size(), of_domain_.size()});
      edges_.push_back(~time_ps{0});
      reached_.push_back(0);
    }
  }
  void add_domain() {
    of_domain_.push_back(last());
    ++all_.back().second;
  }
  /// The partition under construction.
  std::size_t last() const { return all_.size() - 1; }
  std::size_t size() const { return all_.size(); }
  const domains& operator[](std::size_t partition) const { return all_[partition]; }

  /// 0: no windows.
  void set_lookahead(time_ps lookahead) { lookahead_ = lookahead; }
  bool have_windows() const { return seldom(lookahead_ != 0) && all_.size() > 1; }

  /// A domain now has an edge with work at `when`.
  void request(std::size_t domain, time_ps when) {
    time_ps& edge = edges_[of_domain_[domain]];
    edge = std::min(edge, when);
  }
  /// The earliest of all edges with work, or one before it.
  time_ps earliest() const { return *std::min_element(edges_.begin(), edges_.end()); }

  /// The edges from `begin` on, up to and without `end`, are about to be served.
  void open(time_ps begin, time_ps end) {
    open_ = true;
    begin_ = begin;
    end_ = end;
  }
  /// As long as no other edge before `horizon` can change what happens, and at least the edge at `begin`.
  void open_window(time_ps begin, time_ps horizon) {
    open(begin, std::max(begin + 1, std::min(horizon, begin + lookahead_)));
  }
  time_ps end() const { return end_; }
  /// The first edge of a partition there, which is being served from now on; ~0 where it has none.
  time_ps enter(std::size_t partition) {
    if (edges_[partition] >= end_) return ~time_ps{0};
    served_ = partition;
    return std::max(begin_, std::exchange(edges_[partition], ~time_ps{0}));
  }
  /// When its next edge is, and when its last one was.
  void leave(time_ps next, time_ps now) {
    edges_[served_] = next;
    reached_[served_] = now;
  }
  void close() { open_ = false; }
  /// Its last edge that was served.
  time_ps reached(std::size_t partition) const { return reached_[partition]; }

  /// A domain of another partition than that which is being served, if one is.
  bool is_foreign(std::size_t domain) const { return seldom(open_) && of_domain_[domain] != served_; }
  /// Whether a domain may be asked for an edge at `when`: a foreign one has been served up to the end of the window, or
  /// will be.
  bool can_ask(std::size_t domain, time_ps when) const { return !is_foreign(domain) || when >= end_; }
  /// Up to where the edges of a domain have passed, at `now` in the served partition.
  time_ps passed(std::size_t domain, time_ps now) const { return is_foreign(domain) ? begin_ : now; }

 private:
  std::vector<domains> all_{{0, 0}};
  std::vector<time_ps> edges_{~time_ps{0}};  // by partition: the earliest edge with work
  std::vector<time_ps> reached_{0};          // by partition: its last edge that was served
  std::vector<std::size_t> of_domain_;
  time_ps lookahead_ = 0;
  time_ps begin_ = 0, end_ = 0;
  std::size_t served_ = 0;
  bool open_ = false;
};

}  // namespace rnic::sim
