// SPDX-License-Identifier: Apache-2.0
// The one place where clock domains meet the SystemC kernel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "model/sim/crossing.h"
#include "model/sim/parameter.h"
#include "model/sim/partitions.h"
#include "model/sim/types.h"
#include "model/sim/windows.h"

namespace sc_core {
class sc_event;
}

namespace rnic::sim {

class clock_domain;

/// What a block leaves undone while only the clocked world runs, because nothing in it can see the difference.
class deferred_work {
 public:
  virtual ~deferred_work() = default;
  /// The kernel is about to run others, which may look: what is due before `before` is done now, and the rest has its
  /// wake-up.
  virtual void catch_up(time_ps before) = 0;
};

/// Serves the edges of all clock domains of a simulation with a single SystemC method: at most one kernel activation
/// per instant at which some domain has an edge with work, and fewer where it may run ahead, which a program may do
/// with it. Measured against one event per block and one method per domain, this is the cheapest of the exact ways
/// (testbenches/perf).
class timebase {
 public:
  struct options {
    options(bool tick_all = false, std::uint64_t seed = 0) {
      always_tick = tick_all;
      shuffle_seed = seed;
    }

    parameter<bool> always_tick{false, "design: every block at every edge, the proof that sleeping is invisible"};
    /// Not 0: another order, for the test that order is nothing.
    parameter<std::uint64_t> shuffle_seed{0, {0, ~std::uint64_t{0}, "", "design: order of blocks inside an edge"}};
    /// False: run_ahead_until() has no effect, for the test that it is invisible.
    parameter<bool> run_ahead{true, "design: serve edges ahead of the kernel, and partitions of each other"};

    void list(fields& are) {
      are("always_tick", always_tick);
      are("shuffle_seed", shuffle_seed);
      are("run_ahead", run_ahead);
    }
  };

  timebase() : timebase(options{}) {}
  explicit timebase(const options& opts);
  ~timebase();
  timebase(const timebase&) = delete;
  timebase& operator=(const timebase&) = delete;

  /// Present simulated time. Inside an edge that is served ahead of the kernel, the time of that edge; in a program
  /// that is ahead of it, or apart from it (windows), that program's.
  time_ps now_ps() const;
  /// Lets edges before `until` be served without returning to the kernel, as long as nothing else in it is due: the
  /// results are the same, one activation serves many edges. `until` must not be after the time to which the kernel is
  /// run (sc_start), which the kernel does not tell. 0 (as built): never ahead.
  void run_ahead_until(time_ps until) { ahead_until_ = options_.run_ahead ? until : 0; }
  /// Notifies `event` at `when` (at present if that has passed). Everything that a tick does to the kernel goes through
  /// here, since edges may be served ahead of it.
  void notify(sc_core::sc_event& event, time_ps when = 0);
  /// For a program that waits for a time, or for what a tick does, and for nothing else of the kernel: serves the edges
  /// up to and with those at `until`, or those of the instant at which a tick calls end_pass(), in the calling process
  /// (SC_THREAD), which then goes on at that time, ahead of the kernel. Two activations of the kernel less for each
  /// wait. False where something else is due by then: nobody is ahead any more, and the process must wait in the
  /// kernel, for the rest of the time, before it does anything else.
  bool pass(time_ps until);
  void end_pass() {
    ended_ = true;
    horizon_ = 0;
  }
  /// The calling process, which may be ahead of the kernel, is about to wait in it: until now_ps() as it was, or later.
  void leave();
  /// A tick has called code that may have notified events of its own, such as a TLM socket's other side.
  void left_model() { horizon_ = 0; }
  /// Whether work may be put off now: edges are being served, and what was deferred is asked for before others run.
  bool may_defer() const { return serving_; }
  void add(deferred_work& work) { deferred_.emplace_back(&work, partitions_.last()); }
  void remove(deferred_work& work);
  /// To begin one before domains and deferred work are added. With a lookahead, for a program whose processes, too,
  /// each act on one partition only, or after a wait for a time that the kernel or windows know of: results are the
  /// same, and pass() has no effect.
  partitions& parts() { return partitions_; }
  windows& apart() { return windows_; }
  const options& opts() const { return options_; }
  /// Activations of the kernel's method since the start: the cost that does not depend on the machine.
  std::uint64_t kernel_activations() const { return activations_; }

 private:
  friend class clock_domain;
  friend class windows;
  class process;
  void add(clock_domain& domain);
  void remove(clock_domain& domain);
  void request(std::size_t domain, time_ps when);  // this domain now has an edge with work at `when`
  void schedule(time_ps when);
  void serve();
  bool may_serve(time_ps next);
  bool is_first(time_ps when);
  template <std::size_t Domains>
  time_ps serve_due(time_ps now);
  template <std::size_t Domains>
  time_ps serve_to_horizon(time_ps next);
  template <std::size_t... Domains>
  static constexpr auto loops_of(std::index_sequence<Domains...>);
  void serve_domain(std::size_t i, time_ps now, time_ps& next);
  time_ps earliest_edge() const;
  void catch_up(time_ps before);
  unsigned pick_id(std::uint64_t taken);

  time_ps serve_partition(std::size_t p, time_ps now, time_ps& lowered);

  static constexpr std::size_t any_number = 0;
  static constexpr std::size_t most_unrolled = 8;  // domains with code of their own: two hosts, and more

  // What each instant uses comes first: see clock_state.
  time_ps now_ = 0;
  time_ps horizon_ = 0;  // edges before it may be served: nothing else is due; 0: ask the kernel
  time_ps lowered_ = 0;  // while serving: the earliest edge that was asked for in a domain that had no such edge
  std::vector<time_ps> next_edges_;  // of the domains, in their order: all are looked at at each instant
  std::vector<clock_domain*> domains_;
  partitions partitions_;
  windows windows_{*this};
  time_ps ahead_until_ = 0;
  time_ps kernel_now_ = 0;                                        // valid while serving
  time_ps (timebase::*to_horizon_)(time_ps) = nullptr;            // serve_to_horizon() of as many domains as there are
  std::vector<std::pair<deferred_work*, std::size_t>> deferred_;  // and the partition of each
  std::unique_ptr<process> process_;
  options options_;
  std::mt19937_64 rng_;
  // Notifications under way, the earliest last. A notification is never taken back: the kernel would keep its record
  // until its time comes, and a timer of a second would leave a million of them. One that finds no work is harmless.
  static constexpr unsigned max_scheduled = 16;
  std::array<time_ps, max_scheduled> scheduled_{};
  unsigned scheduled_count_ = 0;
  bool serving_ = false;
  bool ended_ = false;  // what the program waits for has happened
  bool ahead_ = false;  // a program runs, at now_, and no notification of an edge before that is under way
  bool apart_ = false;  // a program of a partition runs, at now_, which is not before the kernel's time
  std::uint64_t activations_ = 0;
};

}  // namespace rnic::sim
