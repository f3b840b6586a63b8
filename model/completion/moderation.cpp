// SPDX-License-Identifier: Apache-2.0
#include "model/completion/moderation.h"

namespace rnic::completion {

bool moderation::runs(bool event_queue, std::uint32_t number) const {
  if (count_ == 0) return false;
  for (const period& p : periods_)
    if (p.active && p.event_queue == event_queue && p.number == number) return true;
  return false;
}

bool moderation::start(bool event_queue, std::uint32_t number, std::uint16_t period_us) {
  if (runs(event_queue, number)) return true;
  for (period& p : periods_) {
    if (p.active) continue;
    p = {true, event_queue, number, owner_.now_ps() + period_us * sim::ps_per_us};
    ++count_;
    wake_for(p.deadline);
    return true;
  }
  return false;
}

void moderation::end(bool event_queue, std::uint32_t number) {
  if (count_ == 0) return;
  for (period& p : periods_)
    if (p.active && p.event_queue == event_queue && p.number == number) return remove(p);
}

void moderation::clear() {
  for (period& p : periods_) p.active = false;
  count_ = 0;
}

void moderation::remove(period& p) {
  p.active = false;
  --count_;
}

void moderation::wake_for(sim::time_ps deadline) {
  owner_.wake_at(std::max(owner_.now() + 1, owner_.domain().edge_at_or_after(deadline)));
}

}  // namespace rnic::completion
