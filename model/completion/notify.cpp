// SPDX-License-Identifier: Apache-2.0
// Arming, moderation, event queue entries, interrupts.
#include <algorithm>
#include <cstring>

#include "model/completion/completion.h"

namespace rnic::completion {

namespace {
constexpr std::uint8_t state_armed = 9, state_fired = 10;  // EQ context, as published
constexpr std::uint32_t half_range = 1u << 23;             // running indices: further ahead means behind

bool beyond(std::uint32_t index, std::uint32_t reference) {
  const std::uint32_t distance = (index - reference) & 0xffffff;
  return distance != 0 && distance < half_range;
}

std::uint32_t size_of(const icm::eq_context& eq) { return std::uint32_t{1} << (eq.log_size & 31); }
}  // namespace

// ---------------------------------------------------------------- doorbells

void completion::serve_doorbell() {
  if (!doorbell.can_pop()) return;
  if (!doorbell_engine_.is_free()) return doorbell_engine_.await();
  if (events_.full() || interrupts_.full())  // woken when they drain
    return doorbell_engine_.blocked(events_.full() ? "events" : "interrupts");
  const queue_doorbell& d = doorbell.front();
  if (d.what == queue_doorbell::kind::cq_arm ? !arm_cq(d) : !update_eq(d)) return doorbell_engine_.blocked("contexts");
  doorbell.pop();
  doorbell_engine_.start(config_.doorbell_cycles);
}

/// False when the context has to be waited for.
bool completion::arm_cq(const queue_doorbell& d) {
  if (const halt_entry* h = find_halt(cq_halts_, d.number); h != nullptr) return h->discard;
  bool seen = false;
  bool wait = false;
  icm::cq_context* cq = find_cq(d.number, seen, wait);
  if (wait) return false;
  if (cq == nullptr || d.command == 0 || d.command > 2) {
    ++stats_.bad_doorbell;
    return true;
  }
  if (d.sequence == cq->arm_sn) {
    ++stats_.stale_arm;
    return true;
  }
  const std::uint32_t index = d.index & index_mask;
  if (((index - cq->consumer) & index_mask) <= ((cq->producer - cq->consumer) & index_mask)) cq->consumer = index;
  cq->arm = d.command;
  cq->armed_sn = d.sequence;
  cqs.mark_dirty(cq->cqn);
  if (beyond(d.command == 2 ? cq->producer : cq->last_solicited, index)) condition_met(*cq);
  return true;
}

bool completion::update_eq(const queue_doorbell& d) {
  if (const halt_entry* h = find_halt(eq_halts_, d.number); h != nullptr) return h->discard;
  bool seen = false;
  bool wait = false;
  icm::eq_context* eq = find_eq(d.number, seen, wait);
  if (wait) return false;
  if (eq == nullptr) {
    ++stats_.bad_doorbell;
    return true;
  }
  const std::uint32_t index = d.index & index_mask;
  if (((index - eq->consumer) & index_mask) <= ((eq->producer - eq->consumer) & index_mask)) eq->consumer = index;
  if (d.arm) {
    eq->state = state_armed;
    if (eq->producer != index) interrupt_due(*eq);
  }
  eqs.mark_dirty(eq->eqn);
  return true;
}

// ---------------------------------------------------------------- completion events

/// The armed CQ has what software waits for: now, or when moderation lets it, comes the event.
/// Approximation: the period runs from the first completion that meets the condition, not from one before the arm.
void completion::condition_met(icm::cq_context& cq) {
  const std::uint32_t unnotified = (cq.producer - cq.notified) & index_mask;
  const bool now_due = cq.period_us == 0 || (cq.max_count != 0 && unnotified >= cq.max_count);
  if (now_due || !moderation_.start(false, cq.cqn, cq.period_us)) fire(cq);
}

void completion::fire(icm::cq_context& cq) {
  moderation_.end(false, cq.cqn);
  cq.arm = 0;
  cq.arm_sn = cq.armed_sn;
  cq.notified = cq.producer;
  cqs.mark_dirty(cq.cqn);
  event_request& e = events_.extend();
  e = event_request{};
  e.type = static_cast<std::uint8_t>(abi::eqe::event::completion);
  e.eqn = cq.eqn;
  e.set(abi::eqe::number, cq.cqn);
  wake_next();
}

/// What waited for it goes out. False: cannot now; who is waited for wakes us.
bool completion::end_period(const moderation::period& p) {
  bool seen = false;
  bool wait = false;
  if (p.event_queue) {
    if (interrupts_.full() || find_halt(eq_halts_, p.number) != nullptr) return false;
    icm::eq_context* eq = find_eq(p.number, seen, wait);
    if (eq != nullptr && eq->state == state_armed) interrupt_for(*eq);
    return !wait;
  }
  if (events_.full() || find_halt(cq_halts_, p.number) != nullptr) return false;
  icm::cq_context* cq = find_cq(p.number, seen, wait);
  if (cq != nullptr && cq->arm != 0) fire(*cq);
  return !wait;
}

// ---------------------------------------------------------------- event queue entries

void completion::serve_events() {
  const unsigned n = static_cast<unsigned>(event.size()) + 2;
  for (unsigned i = 0, source = last_event_source_; i != n; ++i) {
    if (++source == n) source = 0;
    sim::ring<event_request>* inner = source == 0 ? &events_ : source == 1 ? &firmware_events_ : nullptr;
    if (inner != nullptr ? inner->empty() : !event[source - 2].can_pop()) continue;
    if (!event_engine_.is_free()) return event_engine_.await();
    if (writes_.size() + 1 >= writes_.capacity() || interrupts_.full())  // woken when they drain
      return event_engine_.blocked(interrupts_.full() ? "interrupts" : "dma");
    bool seen = event_seen_[source] != 0;
    const bool done = try_event(inner != nullptr ? inner->front() : event[source - 2].front(), seen);
    event_seen_[source] = seen && !done ? 1 : 0;
    if (!done) {
      event_engine_.blocked("contexts or pages");
      continue;
    }
    if (inner != nullptr)
      inner->drop();
    else
      event[source - 2].pop();
    last_event_source_ = source;
    event_engine_.start(config_.event_cycles);
    wake_at(std::max(now() + 1, event_engine_.free_at()));  // another source may have something
    return;
  }
}

icm::eq_context* completion::find_eq(std::uint32_t eqn, bool& seen, bool& wait) {
  wait = false;
  icm::eq_context* eq = seen ? eqs.peek(eqn) : nullptr;
  if (eq == nullptr) {
    using result = icm::context_cache<icm::eq_context>::result;
    const result r = eqs.lookup(eqn, eq);
    wait = r == result::pending;
    if (r != result::hit) return nullptr;
    seen = true;
  }
  return eq->valid == 0 || eq->eqn != eqn ? nullptr : eq;
}

/// False when the event has to wait.
bool completion::try_event(event_request& e, bool& seen) {
  if (e.eqn == cr::event_eqn_mapped) {
    const std::uint16_t mapped = e.type < cr::event_types ? event_map_[e.type] : std::uint16_t{cr::event_unmapped};
    if (mapped == cr::event_unmapped) {
      ++stats_.event_unmapped;
      return true;
    }
    e.eqn = mapped;
  }
  if (const halt_entry* h = find_halt(eq_halts_, e.eqn); h != nullptr) {
    if (h->discard) ++stats_.discarded;
    return h->discard;
  }
  bool wait = false;
  icm::eq_context* eq = find_eq(e.eqn, seen, wait);
  if (wait) return false;
  if (eq == nullptr) {
    ++stats_.eqe_invalid;
    return true;
  }
  const std::uint32_t size = size_of(*eq);
  if (((eq->producer - eq->consumer) & index_mask) + 1 >= size) {  // one entry stays free, so that full is not empty
    ++stats_.eq_overflow;
    return true;
  }
  std::uint64_t address = 0;
  const std::uint64_t offset = eq->page_offset + std::uint64_t{eq->producer & (size - 1)} * eqe_bytes_;
  const auto where =
      pages.address(buffer_pages::queue::eq, e.eqn, eq->address, eq->log_page, offset, eq->function, address);
  if (where == buffer_pages::result::pending) return false;
  if (where == buffer_pages::result::failed)
    ++stats_.eqe_invalid;
  else
    write_eqe(*eq, e, address);
  return true;
}

void completion::write_eqe(icm::eq_context& eq, const event_request& e, std::uint64_t address) {
  pcie::dma_request& write = queue_write(config_.event_latency_cycles);
  write.op = pcie::dma_request::kind::write;
  write.notify = true;
  write.function = eq.function;
  write.length = eqe_bytes_;
  write.address = address;
  write.tag = static_cast<std::uint64_t>(tag_kind::eqe_written) << 32;
  namespace entry = abi::eqe;
  std::uint8_t* to = write.bytes.data() + (eqe_bytes_ - entry::bytes);
  abi::set(to, entry::type, e.type);
  abi::set(to, entry::subtype, e.subtype);
  std::memcpy(to + event_request::data_offset, e.data.data(), e.data.size());
  abi::set(to, entry::function, static_cast<std::uint8_t>(e.function));
  abi::set(to, entry::owner, (eq.producer & size_of(eq)) != 0 ? entry::owner_bit : std::uint8_t{0});
  last_address_ = address;
  last_function_ = eq.function;
  ++stats_.eqe;
  ++eqes_decided_;
  eq.producer = (eq.producer + 1) & index_mask;
  if (eq.state == state_armed) interrupt_due(eq);
  eqs.mark_dirty(eq.eqn);
}

// ---------------------------------------------------------------- interrupts

/// The armed EQ has an entry: now, or when moderation lets it, comes the interrupt.
void completion::interrupt_due(icm::eq_context& eq) {
  const std::uint32_t unread = (eq.producer - eq.consumer) & index_mask;
  const bool now_due = eq.period_us == 0 || (eq.max_count != 0 && unread >= eq.max_count);
  if (now_due || !moderation_.start(true, eq.eqn, eq.period_us)) interrupt_for(eq);
}

void completion::interrupt_for(icm::eq_context& eq) {
  moderation_.end(true, eq.eqn);
  eq.state = state_fired;
  interrupts_.push({{eq.function, eq.vector}, eqes_decided_});
  wake_next();
}

void completion::send_interrupts() {
  if (interrupts_.empty() || interrupts_.front().after > eqes_written_) return;
  if (!msix.claim()) return;
  msix.push(interrupts_.front().request);
  interrupts_.drop();
  ++stats_.interrupts;
  if (!interrupts_.empty() || !moderation_.none()) wake_next();  // the end of a period may have waited for the room
}

}  // namespace rnic::completion
