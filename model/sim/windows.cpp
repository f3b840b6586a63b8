// SPDX-License-Identifier: Apache-2.0
// Partitions of a timebase, served apart.
#include "model/sim/windows.h"

#include <algorithm>

#include "model/sim/check.h"
#include "model/sim/timebase.h"

namespace rnic::sim {

std::size_t windows::add(program_list& programs) {
  programs_.emplace_back(&programs, base_.partitions_.last());
  dues_.resize(base_.partitions_.size(), partitions::never);
  return base_.partitions_.last();
}

void windows::remove(program_list& programs) {
  const auto is_it = [&programs](const auto& p) { return p.first == &programs; };
  programs_.erase(std::remove_if(programs_.begin(), programs_.end(), is_it), programs_.end());
}

bool windows::keep_programs() const { return base_.partitions_.have_windows() && base_.ahead_until_ != 0; }

void windows::due(std::size_t partition, time_ps when) {
  if (when == partitions::never) return;
  if (partition_turn* turn = partition_turn::here(); turn != nullptr) {
    RNIC_ASSERT(partition == turn->partition, "a partition tells programs of another one");
    turn->due = std::min(turn->due, when);
    return;
  }
  dues_[partition] = std::min(dues_[partition], when);
  due_ = std::min(due_, when);
  if (!base_.serving_) base_.schedule(when);
}

/// When the first of the partitions but the hub has something to do.
time_ps windows::next() const { return std::min(base_.partitions_.first(), due_); }

void windows::resumed(std::size_t partition) {
  base_.now_ = times_[partition];
  base_.apart_ = true;
}

/// In an activation of the kernel: everything that can be done before another one, or before programs go on, which do
/// so behind it; it is called again behind them. The hub may be behind the kernel's time amid a window, as nobody looks
/// at it.
void windows::serve() {
  dues_.resize(base_.partitions_.size(), partitions::never);
  times_.resize(dues_.size());
  base_.may_serve(base_.kernel_now_);  // finds the horizon
  do {
    serve_hub();
    serve_spokes();
    if (run_due_programs()) {
      base_.lowered_ = base_.kernel_now_;
      return;
    }
  } while (base_.may_serve(next()) || base_.may_serve(base_.partitions_.hub_edge()));
  base_.lowered_ = std::max(base_.kernel_now_, std::min(next(), base_.partitions_.hub_edge()));
  catch_up(std::min(base_.horizon_, base_.lowered_));
}

/// Where nothing of the others is left in their window: the hub, as far as they let it, and what of them is then a
/// window. Amid a window only for who looks at all.
void windows::serve_hub() {
  partitions& p = base_.partitions_;
  // Other processes of the kernel, too, may act on any partition.
  const auto first = [this] { return std::min(next(), std::max(base_.kernel_now_, base_.horizon_)); };
  const bool through = p.is_through(first());
  if (!through && next() < base_.horizon_) return;
  time_ps done = 0;
  if (p.spokes() != p.size()) {
    const time_ps& end = p.open_hub(first());
    const auto limit = [this, &end] { return std::max(base_.kernel_now_ + 1, std::min(end, base_.horizon_)); };
    if (p.hub_edge() < limit()) serve_one(p.spokes(), limit);
    done = limit();
  }
  if (through)
    p.open_window(first(), done);
  else
    p.hub_went_on(done);
}

/// One that asks for something in the kernel lowers the horizon for those behind it; those before it have been served
/// for longer, which nobody sees: the process that runs next is one of that partition.
void windows::serve_spokes() {
  partitions& p = base_.partitions_;
  if (team_ != nullptr) return serve_spokes_at_once();
  p.count_first();
  for (std::size_t i = 0; i != p.spokes(); ++i) {
    const auto limit = [this, i] { return limit_of(dues_[i], base_.horizon_); };
    if (p.of(i).next < limit()) serve_one(i, limit);
    p.counted(i);
  }
}

/// Up to where one may be served whose programs are due at `due`, if nothing else is in the kernel before `horizon`.
inline time_ps windows::limit_of(time_ps due, time_ps horizon) const {
  const time_ps end = std::max(base_.kernel_now_ + 1, std::min(base_.partitions_.end(), horizon));
  return due < end ? due + 1 : end;
}

void windows::serve_with(unsigned threads) {
  const std::size_t spokes = base_.partitions_.spokes();
  team_.reset();
  if (threads < 2 || spokes < 2 || !base_.partitions_.have_windows()) return;
  dues_.resize(base_.partitions_.size(), partitions::never);
  turns_.resize(spokes);
  for (std::size_t p = 0; p != spokes; ++p) turns_[p].partition = p;
  team_ = std::make_unique<thread_team>(threads, spokes, [this](std::size_t p) { serve_turn(turns_[p]); });
}

/// The same by threads: what one asks for in the kernel bounds itself alone, and what it does to others comes when all
/// have ended, in the order in which one thread would have served them.
void windows::serve_spokes_at_once() {
  partitions& p = base_.partitions_;
  std::size_t busy = 0;
  for (std::size_t i = 0; i != p.spokes(); ++i) {
    partition_turn& turn = turns_[i];
    turn.next = p.of(i).next;
    turn.horizon = base_.horizon_;
    turn.due = dues_[i];
    turn.has_work = turn.next < limit_of(turn.due, turn.horizon);
    busy += turn.has_work ? 1 : 0;
  }
  if (busy > 1)
    team_->share();
  else
    for (std::size_t i = 0; busy != 0 && i != p.spokes(); ++i) serve_turn(turns_[i]);
  for (partition_turn& turn : turns_)
    if (turn.has_work) end_turn(turn);
  for (partition_turn& turn : turns_)
    if (turn.has_work) cross(turn);
  p.count_first();
  for (std::size_t i = 0; i != p.spokes(); ++i) p.counted(i);
}

/// By any thread.
void windows::serve_turn(partition_turn& turn) {
  if (!turn.has_work) return;
  struct entered {
    explicit entered(partition_turn& turn) { partition_turn::of_this_thread = &turn; }
    ~entered() { partition_turn::of_this_thread = nullptr; }
    entered(const entered&) = delete;
    entered& operator=(const entered&) = delete;
  } const here(turn);
  do {
    turn.now = turn.next;
    turn.next = base_.serve_partition(turn.partition, turn.now, turn.lowered);
  } while (turn.next < limit_of(turn.due, turn.horizon));
}

void windows::end_turn(partition_turn& turn) {
  base_.partitions_.of(turn.partition) = {turn.next, turn.now};
  dues_[turn.partition] = turn.due;
  due_ = std::min(due_, turn.due);
  base_.now_ = base_.kernel_now_;
  for (const auto& [event, when] : turn.notified) base_.notify(*event, when);
  turn.notified.clear();
  base_.horizon_ = std::min(base_.horizon_, turn.horizon);
}

/// May give others something to do, whose turns have ended.
void windows::cross(partition_turn& turn) {
  const time_ps next = base_.partitions_.enter(turn.partition);
  base_.now_ = turn.now;
  for (crossing* c : turn.crossings) c->cross();
  turn.crossings.clear();
  base_.partitions_.leave(next, turn.now);
}

/// The edges of one partition; limit() may change with each.
template <class Limit>
void windows::serve_one(std::size_t p, Limit limit) {
  time_ps edge = base_.partitions_.of(p).next;
  base_.partitions_.enter(p);
  do {
    base_.now_ = edge;
    edge = base_.serve_partition(p, edge, base_.lowered_);
  } while (edge < limit());
  base_.partitions_.leave(edge, base_.now_);
}

/// What was deferred in their partitions is done before they look. False: none is due in the window.
bool windows::run_due_programs() {
  const time_ps end = std::max(base_.kernel_now_ + 1, std::min(base_.partitions_.end(), base_.horizon_));
  if (due_ >= end) return false;
  for (const auto& [work, partition] : base_.deferred_) {
    if (dues_[partition] >= end) continue;
    base_.now_ = dues_[partition];
    work->catch_up(base_.now_ + 1);
  }
  for (auto p = programs_.begin(); p != programs_.end();) {
    const std::size_t partition = p->second;
    const time_ps now = dues_[partition];
    time_ps next = partitions::never;
    for (; p != programs_.end() && p->second == partition; ++p)
      if (now < end) next = std::min(next, p->first->go_on(now));
    if (now >= end) continue;
    times_[partition] = now;
    dues_[partition] = next;
  }
  due_ = *std::min_element(dues_.begin(), dues_.end());
  return true;
}

/// Others of the kernel may look at all partitions, and not before `look`.
void windows::catch_up(time_ps look) {
  for (const auto& [work, partition] : base_.deferred_) {
    base_.now_ = std::max(base_.kernel_now_, base_.partitions_.of(partition).last);
    work->catch_up(std::max(look, base_.now_ + 1));
  }
}

}  // namespace rnic::sim
