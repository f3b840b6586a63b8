// SPDX-License-Identifier: Apache-2.0
// An engine of a block that does one thing at a time, and counts for how long it was busy, and blocked by whom.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/hierarchy.h"
#include "model/sim/seldom.h"

namespace rnic::sim {

/// Who looks at an engine from outside (server::watch). Told in a tick of the engine's block.
class server_watcher_if {
 public:
  virtual ~server_watcher_if() = default;
  /// An operation begins at edge `from`, which is not before now(), and ends `interval` cycles later; never: not known
  /// yet. Operations of an engine are told in the order in which they begin.
  virtual void started(cycle_t from, cycle_t interval) = 0;
  /// The operation whose end was not known ends now.
  virtual void ended(cycle_t at) = 0;
  /// Blocked from edge `from` on, which is not before now().
  virtual void blocked(cycle_t from) = 0;
  /// Not blocked any more from edge `at` on; where that is the one from which it would have been, it never was.
  virtual void unblocked(cycle_t at) = 0;
};

/// What an operation uses of an engine: the first base, in front of what the hierarchy needs (see clock_state).
class server_state {
 public:
  /// Cycles in which work waited, the engine was free, and `by` held it up.
  struct hold_up {
    const char* by;
    std::uint64_t cycles;
  };

 protected:
  explicit server_state(clocked_block& owner) : clock_(owner.domain()), owner_(owner) {}
  virtual ~server_state() = default;

  clock_domain& clock_;
  cycle_t free_at_ = 0;
  std::uint64_t busy_ = 0, operations_ = 0;
  const char* blocked_by_ = nullptr;
  cycle_t blocked_at_ = 0;
  cycle_t begun_at_ = 0;
  clocked_block& owner_;
  std::vector<hold_up> blocked_;
  server_watcher_if* watcher_ = nullptr;
};

/// One engine: an operation occupies it for an interval of its own, and the next one starts when that is over (law
/// 16). Its domain lists it (clock_domain::servers), so that what limits a run can be read from the busy cycles. Cycles
/// in which it is neither busy nor blocked it is idle: nothing waits for it.
class server : private server_state, public hierarchy_object {
 public:
  using server_state::hold_up;

  /// `leaf`: what the engine does ("check"); its name is that of the block, a dot, and this.
  server(clocked_block& owner, const std::string& leaf)
      : server_state(owner), hierarchy_object(owner.name() + "." + leaf, "server") {
    blocked_.reserve(8);
    owner.domain().add(*this);
  }
  ~server() override { owner_.domain().remove(*this); }

  [[gnu::always_inline]] bool is_free() const { return clock_.edge() >= free_at_; }
  /// First edge at which the next operation can start; not known (never) while one has begun and not ended.
  cycle_t free_at() const { return free_at_; }
  /// An operation of `interval` cycles. The engine must be free.
  [[gnu::always_inline]] void start(cycle_t interval) {
    const cycle_t now = clock_.edge();
    RNIC_ASSERT(now >= free_at_, name() + ": operation started while the engine is busy");
    occupy(now, interval);
  }
  /// Work waits for the engine that cannot start because of `by`, a literal of the block ("tx_out", "egress credit"):
  /// blocked from the first edge at which it is free, until it starts, something else blocks it, or idle(). To be
  /// called in the tick in which that becomes so, and as often as the block likes.
  [[gnu::always_inline]] void blocked(const char* by) {
    if (by != blocked_by_) now_blocked(by);
  }
  /// What was blocked is gone, and nothing else waits.
  void idle() {
    if (seldom(blocked_by_ != nullptr)) settle();
  }
  /// Tells of all that begins from now on; nullptr: nobody. For the calls below an engine that is watched is one that
  /// something blocks, which is seldom: so one that is not watched pays nothing for it.
  void watch(server_watcher_if* by) {
    watcher_ = by;
    if (!is_blocked()) blocked_by_ = unblocked();
  }
  /// blocked(by), or idle() where nothing holds it up (nullptr).
  void waits_for(const char* by) {
    if (by != nullptr)
      blocked(by);
    else
      idle();
  }
  /// start() behind what occupies the engine: its operations wait in a queue of their own.
  void append(cycle_t interval) { occupy(std::max(clock_.edge(), free_at_), interval); }
  /// The same for what comes at edge `at`, by which the engine will not have been free: nothing is lost in between.
  void append_at(cycle_t at, cycle_t interval) {
    RNIC_ASSERT(at <= free_at_ && free_at_ != never, name() + ": an operation ahead of time, behind a gap");
    occupy(free_at_, interval);
  }
  /// An operation whose end is not known when it begins: it waits for memory. Between the two the engine is not free.
  void begin() {
    RNIC_ASSERT(is_free(), name() + ": operation begun while the engine is busy");
    if (seldom(blocked_by_ != nullptr)) settle_for(clock_.edge(), never);
    begun_at_ = clock_.edge();
    free_at_ = never;
    ++operations_;
  }
  void end() {
    RNIC_ASSERT(free_at_ == never, name() + ": no operation has begun");
    free_at_ = clock_.edge();
    busy_ += free_at_ - begun_at_;
    if (blocked_by_ != nullptr) ended();
  }
  /// Ticks the owner when the engine is free; must not be called while it is or while the end is not known.
  void await() const { owner_.wake_at(free_at_); }

  std::uint64_t operations() const { return operations_; }
  /// Cycles up to now() in which the engine was busy.
  std::uint64_t busy_cycles() const {
    const cycle_t now = clock_.now();
    if (free_at_ == never) return busy_ + (now - begun_at_);
    return free_at_ > now ? busy_ - (free_at_ - now) : busy_;
  }
  /// What held it up until now(), each cause once, in the order in which they first did.
  std::vector<hold_up> blocked_cycles() const {
    std::vector<hold_up> all = blocked_;
    if (is_blocked() && since() != 0) add(all, blocked_by_, since());
    return all;
  }
  bool is_blocked() const { return blocked_by_ != nullptr && blocked_by_ != nothing; }
  /// From this edge on, where something blocks it.
  cycle_t blocked_at() const { return blocked_at_; }
  const clocked_block& owner() const { return owner_; }

 private:
  // What `blocked_by_` is of an engine that is watched, and not blocked.
  inline static const char nothing[] = "nothing";
  const char* unblocked() const { return watcher_ != nullptr ? nothing : nullptr; }
  void occupy(cycle_t from, cycle_t interval) {
    if (seldom(blocked_by_ != nullptr)) settle_for(from, interval);
    free_at_ = from + interval;
    busy_ += interval;
    ++operations_;
  }
  std::uint64_t since() const { return std::max(clock_.now(), blocked_at_) - blocked_at_; }
  [[gnu::noinline]] void now_blocked(const char* by) {
    idle();
    blocked_by_ = by;
    blocked_at_ = std::max(clock_.edge(), free_at_);
    if (seldom(watcher_ != nullptr)) tell_blocked();
  }
  // Most of what starts was not blocked: what start() asks is short, and this is in one place.
  [[gnu::noinline]] void settle() {
    if (seldom(watcher_ != nullptr)) return settle_watched();
    if (since() != 0) add(blocked_, blocked_by_, since());
    blocked_by_ = nullptr;
  }
  [[gnu::noinline]] void settle_for(cycle_t from, cycle_t interval) {
    settle();
    if (seldom(watcher_ != nullptr)) watcher_->started(from, interval);
  }
  // What only an engine has that is watched.
  [[gnu::noinline, gnu::cold]] void settle_watched() {
    if (is_blocked()) {
      if (since() != 0) add(blocked_, blocked_by_, since());
      if (blocked_at_ != never) watcher_->unblocked(std::max(clock_.now(), blocked_at_));
    }
    blocked_by_ = unblocked();
  }
  [[gnu::noinline, gnu::cold]] void tell_blocked() {
    if (blocked_at_ != never) watcher_->blocked(blocked_at_);
  }
  [[gnu::noinline]] void ended() {
    if (watcher_ != nullptr) watcher_->ended(free_at_);
    if (!is_blocked()) return;
    blocked_at_ = free_at_;
    if (watcher_ != nullptr) watcher_->blocked(blocked_at_);
  }
  static void add(std::vector<hold_up>& all, const char* by, std::uint64_t cycles) {
    for (hold_up& h : all)
      if (h.by == by || std::strcmp(h.by, by) == 0) {
        h.cycles += cycles;
        return;
      }
    all.push_back({by, cycles});
  }
};

}  // namespace rnic::sim
