// SPDX-License-Identifier: Apache-2.0
#include "model/completion/cq_arming.h"

#include "model/completion/find_context.h"

namespace rnic::completion {

namespace {
constexpr std::uint32_t half_range = 1u << 23;  // running indices: further ahead means behind

bool beyond(std::uint32_t index, std::uint32_t reference) {
  const std::uint32_t distance = (index - reference) & index_mask;
  return distance != 0 && distance < half_range;
}
}  // namespace

bool cq_arming::arm(const queue_doorbell& d) {
  if (const auto* h = halts_.find(d.number); h != nullptr) return h->discard;
  bool seen = false;
  bool wait = false;
  icm::cq_context* cq = find_context(cqs_, d.number, seen, wait);
  if (wait) return false;
  memory_.access_own(queue_memory::doorbells);
  if (cq == nullptr || d.command == 0 || d.command > 2 || d.function != cq->function || d.uar != cq->uar) {
    ++stats_.bad_doorbell;
    return true;
  }
  if (d.sequence == cq->arm_sn) {
    ++stats_.stale_arm;
    return true;
  }
  const std::uint32_t index = d.index & index_mask;
  take_consumer(*cq, index);
  cq->arm = d.command;
  cq->armed_sn = d.sequence;
  cqs_.mark_dirty(cq->cqn);
  if (beyond(d.command == 2 ? cq->producer : cq->last_solicited, index)) condition_met(*cq);
  return true;
}

/// The armed CQ has what software waits for: now, or when moderation lets it, comes the event.
/// Approximation: the period runs from the first completion that meets the condition, not from one before the arm.
void cq_arming::condition_met(icm::cq_context& cq) {
  const std::uint32_t unnotified = (cq.producer - cq.notified) & index_mask;
  const bool now_due = cq.period_us == 0 || (cq.max_count != 0 && unnotified >= cq.max_count);
  if (now_due || !periods_.start(false, cq.cqn, cq.period_us)) fire(cq);
}

void cq_arming::fire(icm::cq_context& cq) {
  periods_.end(false, cq.cqn);
  cq.arm = 0;
  cq.arm_sn = cq.armed_sn;
  cq.notified = cq.producer;
  cqs_.mark_dirty(cq.cqn);
  event_request& e = events_.extend();
  e = event_request{};
  e.type = static_cast<std::uint8_t>(abi::eqe::event::completion);
  e.eqn = cq.eqn;
  e.set(abi::eqe::number, cq.cqn);
  owner_.wake_next();
}

bool cq_arming::end_period(const moderation::period& p) {
  if (events_.full() || halts_.find(p.number) != nullptr) return false;
  bool seen = false;
  bool wait = false;
  icm::cq_context* cq = find_context(cqs_, p.number, seen, wait);
  if (wait) return false;
  memory_.access_own(queue_memory::periods);
  if (cq != nullptr && cq->arm != 0) fire(*cq);
  return true;
}

}  // namespace rnic::completion
