// SPDX-License-Identifier: Apache-2.0
// A clock: period, phase and the blocks that it ticks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/clock_edges.h"
#include "model/sim/hierarchy.h"
#include "model/sim/seldom.h"
#include "model/sim/types.h"
#include "model/sim/wake_wheel.h"

namespace rnic::sim {

class channel;
class clock_domain;
class clocked_block;
class memory_ports;
class server;
class timebase;

/// Who looks at a domain from outside.
class edge_watcher_if {
 public:
  virtual ~edge_watcher_if() = default;
  /// All blocks that were due at the edge `of`.now() have been ticked.
  virtual void served(clock_domain& of) = 0;
};

/// What ticks, pushes and pops use of a clock domain. It has virtual functions and is the first base, so that it lies
/// in front of what the hierarchy needs: an instruction has one byte for the place of a near member, and four for
/// others.
class clock_state {
 public:
  /// The edge that is served: now() for what is called in ticks only. Outside of them it is the last edge that was, and
  /// a wake-up that follows from it is refused.
  cycle_t edge() const { return served_; }

 protected:
  explicit clock_state(const clock_edges& edges) : edges_(edges) {}
  virtual ~clock_state() = default;

  void wake_at(unsigned id, cycle_t when) {
    if (serving_)  // serve() looks for the next edge when it is done
      wake_in_tick(id, when);
    else
      wake_slow(id, when);
  }
  void wake_next(unsigned id) {
    if (mostly(serving_))
      soon_ |= std::uint64_t{1} << id;
    else
      wake_slow(id, passed_edge() + 1);
  }
  /// wake_at() in a tick of this domain.
  void wake_in_tick(unsigned id, cycle_t when) {
    const cycle_t ahead = when - served_ - 1;
    if (ahead == 0)
      soon_ |= std::uint64_t{1} << id;
    else if (mostly(wake_wheel::is_near(ahead)))
      wheel_.mark(id, when);
    else
      wake_slow(id, when);
  }
  /// wake_at() outside of an edge, or of one that is far away.
  virtual void wake_slow(unsigned id, cycle_t when) = 0;
  virtual cycle_t passed_edge() const = 0;

  cycle_t served_ = never;  // last edge served or passed in sleep; `never` is the edge before edge 0
  bool serving_ = false;
  std::uint64_t soon_ = 0;  // blocks to tick at the edge after the served one, beside those in the wheel
  cycle_t next_ = never;
  time_ps* next_edge_ = nullptr;  // time of next_, which the timebase keeps
  time_ps served_ps_ = 0;
  std::uint64_t ticks_ = 0;
  std::uint64_t active_edges_ = 0;
  std::uint64_t forced_ = 0;   // always_tick: all blocks, at each edge
  std::uint64_t at_each_ = 0;  // these, and the watcher: at each edge that is served
  wake_wheel wheel_;
  clock_edges edges_;
};

/// Ticks blocks only at edges for which they asked; costs nothing while all of them sleep. At most 63 blocks.
class clock_domain : private clock_state, public hierarchy_object {
 public:
  clock_domain(const std::string& name, timebase& base, clock_period period);
  ~clock_domain() override;
  clock_domain(const clock_domain&) = delete;
  clock_domain& operator=(const clock_domain&) = delete;

  timebase& base() const { return base_; }

  using clock_state::edge;
  cycle_t now() const { return seldom(!serving_) ? passed_edge() : served_; }
  time_ps now_ps() const { return seldom(!serving_) ? passed_edge_ps() : served_ps_; }
  time_ps edge_time(cycle_t k) const { return edges_.time(k); }
  /// For who acts on blocks between two edges, as a test does: f() is as in a tick of the last edge.
  template <class F>
  void as_in_tick(F f) {
    const between at(*this);
    f();
  }
  /// The first edge that is not before `t`.
  cycle_t edge_at_or_after(time_ps t) const { return edges_.at_or_after(t); }
  /// Whole cycles that cover `duration`, rounded up.
  cycle_t cycles(time_ps duration) const { return edges_.cycles(duration); }
  /// What is at least so far apart in time is not due at the same edge.
  time_ps longest_cycle() const { return edges_.longest_cycle(); }

  /// Edges at which at least one block was ticked, and ticks in all.
  std::uint64_t active_edges() const { return active_edges_; }
  std::uint64_t ticks() const { return ticks_; }
  /// nullptr: nobody.
  void watch(edge_watcher_if* by) {
    watcher_ = by;
    if (by != nullptr)
      at_each_ |= watcher_bit;
    else
      at_each_ &= ~watcher_bit;
  }
  /// nullptr: there is none.
  const clocked_block* block_at(unsigned place) const { return place < max_blocks ? blocks_[place] : nullptr; }
  /// The channels of this domain, in order of construction.
  const std::vector<channel*>& channels() const { return channels_; }
  /// The engines of its blocks, in order of construction.
  const std::vector<server*>& servers() const { return servers_; }
  /// The counted ports of its blocks' memories, in order of construction.
  const std::vector<memory_ports*>& memories() const { return memories_; }

 private:
  /// For as long as it exists, what is done is done in a tick of the last edge.
  class between {
   public:
    explicit between(clock_domain& domain);
    ~between();
    between(const between&) = delete;
    between& operator=(const between&) = delete;

   private:
    clock_domain& domain_;
  };
  friend class channel;
  friend class clocked_block;
  friend class memory_ports;
  friend class server;
  friend class timebase;
  // Who watches has the last place, behind all blocks: nobody pays for it who has none.
  static constexpr unsigned places = wake_wheel::max_blocks, max_blocks = places - 1;
  static constexpr std::uint64_t watcher_bit = std::uint64_t{1} << max_blocks;

  void add(clocked_block& block);
  void remove(clocked_block& block);
  void add(channel& c) { channels_.push_back(&c); }
  void remove(channel& c);
  void add(server& s) { servers_.push_back(&s); }
  void remove(server& s);
  void add(memory_ports& m) { memories_.push_back(&m); }
  void remove(memory_ports& m);
  // Outside of an edge, which is seldom: the way of a tick stays short where these are inlined.
  [[gnu::noinline, gnu::cold]] cycle_t passed_edge() const final;  // last edge that is not in the future
  [[gnu::noinline, gnu::cold]] time_ps passed_edge_ps() const { return edge_time(passed_edge()); }
  [[gnu::noinline]] void wake_slow(unsigned id, cycle_t when) final;
  template <unsigned Id>
  static void tick_one(clock_domain& d);
  template <std::size_t... Id>
  static constexpr auto ticks_of(std::index_sequence<Id...>);
  [[gnu::noinline]] time_ps serve(time_ps now);  // called by the timebase at its next edge; returns the one after it
  void set_next(cycle_t edge);

  timebase& base_;
  std::size_t index_ = 0;  // in the timebase
  std::array<clocked_block*, max_blocks> blocks_{};
  std::uint64_t all_ = 0;  // mask of registered blocks
  std::vector<channel*> channels_;
  std::vector<server*> servers_;
  std::vector<memory_ports*> memories_;
  edge_watcher_if* watcher_ = nullptr;
};

}  // namespace rnic::sim
