// SPDX-License-Identifier: Apache-2.0
// What every block of the adapter is: something that a clock domain ticks at the edges it asked for.
#pragma once

#include <string>

#include "model/sim/clock_domain.h"
#include "model/sim/hierarchy.h"
#include "model/sim/types.h"

namespace rnic::sim {

/// What a tick uses of a block: the first base, in front of what the hierarchy needs (see clock_state).
class ticked {
 protected:
  explicit ticked(clock_domain& domain) : domain_(domain) {}
  virtual ~ticked() = default;

  clock_domain& domain_;
  unsigned id_ = 0;

 private:
  friend class clock_domain;
  /// One clock edge. Reads like the pipeline of the block, last stage first.
  virtual void tick() = 0;
};

/// A block of the block diagram. It has no process of its own: its domain calls tick() at the edges for which it
/// asked (wake_at) or at which a channel has something for it. Between blocks there are only registered channels
/// (fifo, timed_inbox), so the order of ticks inside one edge cannot change a result (law 2).
///
/// A tick without work must change nothing that can be observed: a domain may be told to tick every block at every
/// edge, and the run must be the same byte for byte (law 3). So "is it time yet?" is answered from now(), never from
/// "I was woken".
///
/// In SystemC's hierarchy it is a module below the one that it is part of: sc_find_object("a.adapter.requester") finds
/// it, its channels from outside of the clock domain and its parts are its children. By the same name go its statistics
/// (statistics::of) and its parameters (parameter_set::of).
class clocked_block : private ticked, public hierarchy_module {
 public:
  /// `name`: full name (see hierarchy_place).
  clocked_block(const std::string& name, clock_domain& domain);
  ~clocked_block() override;

  clock_domain& domain() const { return domain_; }
  /// Its number among the blocks of its domain: a channel ticks it by that, and leaves the block's own memory alone.
  unsigned place() const { return id_; }

  /// The edge being served, or outside of a tick the last edge that is not in the future.
  cycle_t now() const { return domain_.now(); }
  /// now() for what is called in ticks of its domain only: see clock_domain::edge().
  cycle_t edge() const { return domain_.edge(); }
  /// Time of now() in picoseconds.
  time_ps now_ps() const { return domain_.now_ps(); }

  /// Puts this block where `of` is, a block of the same domain that has not been ticked yet: what ticks that place (its
  /// channels, wake_at of either) ticks this one from now on, in the same order among the others, and `of` never again.
  /// To be called before the ports of this block are bound.
  void take_place_of(clocked_block& of);

  /// Asks for a tick at edge `when`, which must be in the future (the next edge is now() + 1). Every request is kept;
  /// one that is not needed any more costs a tick.
  void wake_at(cycle_t when) { domain_.wake_at(id_, when); }
  void wake_next() { domain_.wake_next(id_); }

 private:
  friend class clock_domain;
};

}  // namespace rnic::sim
