// SPDX-License-Identifier: Apache-2.0
#include "model/completion/interrupts.h"

namespace rnic::completion {

/// Now, or when moderation lets it.
void interrupts::due(icm::eq_context& eq) {
  const std::uint32_t unread = (eq.producer - eq.consumer) & index_mask;
  const bool now_due = eq.period_us == 0 || (eq.max_count != 0 && unread >= eq.max_count);
  if (now_due || !periods_.start(true, eq.eqn, eq.period_us)) raise(eq);
}

void interrupts::raise(icm::eq_context& eq) {
  periods_.end(true, eq.eqn);
  eq.state = state_fired;
  waiting_.push({{eq.function, eq.vector}, decided_});
  owner_.wake_next();
}

void interrupts::send_front() {
  if (!out_.claim()) return;
  out_.push(waiting_.front().request);
  waiting_.drop();
  ++stats_.interrupts;
  if (!waiting_.empty() || !periods_.none()) owner_.wake_next();  // the end of a period may have waited for the room
}

}  // namespace rnic::completion
