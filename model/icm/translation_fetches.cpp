// SPDX-License-Identifier: Apache-2.0
#include "model/icm/translation_fetches.h"

#include <utility>

namespace rnic::icm {

void translation_fetches::take_response() {
  const pcie::dma_response answer = dma_.response.pop();
  translation_fetch& f = fetches_[answer.tag];
  f.arrived = true;
  f.failed = answer.status != pcie::dma_status::ok;
  f.usable = owner_.now() + miss_cycles_;
  ++arrived_;
  if (miss_cycles_ != 0) owner_.wake_at(f.usable);
}

/// An entry of a region is written into the memory of these.
bool translation_fetches::may_finish(const translation_fetch& f) {
  return !f.mpt || f.stale || f.failed || tables_.mpt_writes().try_access(translation_tables::by_fills);
}

void translation_fetches::finish(translation_fetch& f) {
  f.active = f.arrived = false;
  --active_;
  --arrived_;
  if (f.stale)
    ++stats_.stale;
  else if (!f.failed)
    tables_.insert(f);
}

/// Joins the fetch of the line that is under way or starts one.
translation_step translation_fetches::fetch(bool mpt, std::uint64_t line, translation_job& j, unsigned index,
                                            bool locked) {
  const std::uint64_t me = std::uint64_t{1} << index;
  for (translation_fetch& f : fetches_)
    if (f.active && !f.stale && f.mpt == mpt && f.line == line) {
      if ((f.waiters & me) == 0) {
        f.waiters |= me;
        ++j.fetches;
        j.answer.missed = true;
        ++stats_.merged;
      }
      return translation_step::waits;
    }
  std::uint64_t bus = 0;
  if (!tables_.fetch_address(mpt, line, bus)) return translation_step::done;
  if (locked) {
    owner_.wake_next();
    return translation_step::blocked;
  }
  if (full() || !dma_.request.claim()) return translation_step::blocked;
  unsigned n = 0;
  while (fetches_[n].active) ++n;
  translation_fetch& f = fetches_[n];
  f.active = true;
  f.mpt = mpt;
  f.stale = f.arrived = f.failed = false;
  f.line = line;
  f.waiters = me;
  ++active_;
  ++j.fetches;
  j.answer.missed = true;
  ++(mpt ? stats_.mpt_misses : stats_.mtt_misses);
  pcie::dma_request read;
  read.op = pcie::dma_request::kind::read;
  read.length = tables_.fetch_bytes(mpt);
  read.address = bus;
  read.tag = n;
  read.destination = f.data.data();
  read.span = j.request.span;
  dma_.request.push(std::move(read));
  return translation_step::waits;
}

void translation_fetches::drop(bool mpt, std::uint64_t first, std::uint64_t last) {
  for (translation_fetch& f : fetches_)
    if (f.active && f.mpt == mpt && f.line >= first && f.line <= last) f.stale = true;
}

}  // namespace rnic::icm
