// SPDX-License-Identifier: Apache-2.0
// Partitions of a timebase, served apart.
#include "model/sim/windows.h"

#include <algorithm>

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
  dues_[partition] = std::min(dues_[partition], when);
  due_ = std::min(due_, when);
  if (!base_.serving_) base_.schedule(when);
}

/// When the first of the partitions but the hub has something to do.
time_ps windows::next() const { return std::min(base_.partitions_.first(), due_); }

/// In an activation of the kernel: everything that can be done before another one. The hub may be behind the kernel's
/// time amid a window, as nobody looks at it.
void windows::serve() {
  dues_.resize(base_.partitions_.size(), partitions::never);
  base_.may_serve(base_.kernel_now_);  // finds the horizon
  do {
    serve_hub();
    serve_spokes();
  } while (has_more());
  const bool programs_run = due_ <= base_.kernel_now_;
  if (programs_run) run_due_programs();
  const bool amid = !base_.partitions_.is_through(next()) && next() < base_.horizon_;
  base_.lowered_ = amid ? next() : std::max(base_.kernel_now_, std::min(next(), base_.partitions_.hub_edge()));
  if (!amid) catch_up(programs_run ? 0 : std::min(base_.horizon_, base_.lowered_));
}

/// Whether anything comes before all that the kernel has to do: programs that are due, and others.
bool windows::has_more() {
  if (!base_.may_serve(next())) return base_.may_serve(base_.partitions_.hub_edge());
  return base_.partitions_.first() < due_;
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
  p.count_first();
  for (std::size_t i = 0; i != p.spokes(); ++i) {
    const auto limit = [this, &p, i] {
      const time_ps end = std::max(base_.kernel_now_ + 1, std::min(p.end(), base_.horizon_));
      return dues_[i] < end ? dues_[i] + 1 : end;
    };
    if (p.edge(i) < limit()) serve_one(i, limit);
    p.counted(i);
  }
}

/// The edges of one partition; limit() may change with each.
template <class Limit>
void windows::serve_one(std::size_t p, Limit limit) {
  time_ps edge = base_.partitions_.edge(p);
  base_.partitions_.enter(p);
  do {
    base_.now_ = edge;
    edge = base_.serve_partition(p, edge);
  } while (edge < limit());
  base_.partitions_.leave(edge, base_.now_);
}

/// What was deferred in their partitions is done before they look.
void windows::run_due_programs() {
  const time_ps now = base_.now_ = base_.kernel_now_;
  for (const auto& [work, partition] : base_.deferred_)
    if (dues_[partition] <= now) work->catch_up(now + 1);
  for (auto p = programs_.begin(); p != programs_.end();) {
    const std::size_t partition = p->second;
    const bool due = dues_[partition] <= now;
    time_ps next = partitions::never;
    for (; p != programs_.end() && p->second == partition; ++p)
      if (due) next = std::min(next, p->first->go_on(now));
    if (due) dues_[partition] = next;
  }
  due_ = *std::min_element(dues_.begin(), dues_.end());
}

/// Others of the kernel may look at all partitions, and not before `look`.
void windows::catch_up(time_ps look) {
  for (const auto& [work, partition] : base_.deferred_) {
    base_.now_ = std::max(base_.kernel_now_, base_.partitions_.reached(partition));
    work->catch_up(std::max(look, base_.now_ + 1));
  }
}

}  // namespace rnic::sim
