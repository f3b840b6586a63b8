// SPDX-License-Identifier: Apache-2.0
#include "model/completion/eq_engine.h"

#include <algorithm>
#include <cstring>

#include "model/completion/find_context.h"

namespace rnic::completion {

namespace {
std::uint32_t size_of(const icm::eq_context& eq) { return std::uint32_t{1} << (eq.log_size & 31); }
}  // namespace

eq_engine::eq_engine(sim::clocked_block& owner, const completion_config& config, const settings& set,
                     completion_statistics& stats, const eq_engine_ports& ports, unsigned sources)
    : owner_(owner),
      cycles_(config.event_cycles),
      latency_cycles_(config.event_latency_cycles),
      set_(set),
      stats_(stats),
      to_(ports),
      engine_(owner, "event_engine"),
      memory_(owner, "eq_memory"),
      seen_(sources + 2) {}

void eq_engine::serve() {
  const unsigned n = static_cast<unsigned>(seen_.size());
  for (unsigned i = 0, source = last_source_; i != n; ++i) {
    if (++source == n) source = 0;
    sim::ring<event_request>* inner = source == 0 ? &to_.events : source == 1 ? &to_.firmware_events : nullptr;
    if (inner != nullptr ? inner->empty() : !to_.requests[source - 2].can_pop()) continue;
    if (!engine_.is_free()) return engine_.await();
    if (!to_.dma.has_room() || to_.raised.full())  // woken when they drain
      return engine_.blocked(to_.raised.full() ? "interrupts" : "dma");
    bool seen = seen_[source] != 0;
    const bool done = try_event(inner != nullptr ? inner->front() : to_.requests[source - 2].front(), seen);
    seen_[source] = seen && !done ? 1 : 0;
    if (!done) {
      engine_.blocked("contexts or pages");
      continue;
    }
    if (inner != nullptr) {
      if (inner->full()) owner_.wake_next();  // moderation, which works before, may have waited for the room
      inner->drop();
    } else
      to_.requests[source - 2].pop();
    last_source_ = source;
    engine_.start(cycles_);
    owner_.wake_at(std::max(owner_.now() + 1, engine_.free_at()));  // another source may have something
    return;
  }
}

/// False when the event has to wait.
bool eq_engine::try_event(event_request& e, bool& seen) {
  if (e.eqn == cr::event_eqn_mapped) {
    const std::uint16_t mapped = e.type < cr::event_types ? set_.event_map[e.type] : std::uint16_t{cr::event_unmapped};
    if (mapped == cr::event_unmapped) {
      ++stats_.event_unmapped;
      return true;
    }
    e.eqn = mapped;
  }
  if (const auto* h = to_.halts.find(e.eqn); h != nullptr) {
    if (h->discard) ++stats_.discarded;
    return h->discard;
  }
  bool wait = false;
  icm::eq_context* eq = find_context(to_.eqs, e.eqn, seen, wait);
  if (wait) return false;
  if (eq == nullptr) {
    ++stats_.eqe_invalid;
    return true;
  }
  const std::uint32_t size = size_of(*eq);
  if (((eq->producer - eq->consumer) & index_mask) + 1 >= size) {  // one entry stays free, so that full is not empty
    ++stats_.eq_overflow;
    memory_.access_own(queue_memory::entries);
    return true;
  }
  std::uint64_t address = 0;
  const std::uint64_t offset = eq->page_offset + std::uint64_t{eq->producer & (size - 1)} * set_.eqe_bytes;
  const auto where =
      to_.pages.address(buffer_pages::queue::eq, e.eqn, eq->address, eq->log_page, offset, eq->function, address);
  if (where == buffer_pages::result::pending) return false;
  memory_.access_own(queue_memory::entries);
  if (where == buffer_pages::result::failed)
    ++stats_.eqe_invalid;
  else
    write(*eq, e, address);
  return true;
}

void eq_engine::write(icm::eq_context& eq, const event_request& e, std::uint64_t address) {
  pcie::dma_request& write = to_.dma.write_entry(address, eq.function, set_.eqe_bytes, latency_cycles_);
  dma_queue::notify(write, dma_queue::answer::eqe_written);
  namespace entry = abi::eqe;
  std::uint8_t* to = write.bytes.data() + (set_.eqe_bytes - entry::bytes);
  abi::set(to, entry::type, e.type);
  abi::set(to, entry::subtype, e.subtype);
  std::memcpy(to + event_request::data_offset, e.data.data(), e.data.size());
  abi::set(to, entry::function, static_cast<std::uint8_t>(e.function));
  abi::set(to, entry::owner, (eq.producer & size_of(eq)) != 0 ? entry::owner_bit : std::uint8_t{0});
  ++stats_.eqe;
  to_.raised.entry_decided();
  eq.producer = (eq.producer + 1) & index_mask;
  if (eq.state == interrupts::state_armed) to_.raised.due(eq);
  to_.eqs.mark_dirty(eq.eqn);
}

bool eq_engine::update(const queue_doorbell& d) {
  if (const auto* h = to_.halts.find(d.number); h != nullptr) return h->discard;
  bool seen = false;
  bool wait = false;
  icm::eq_context* eq = find_context(to_.eqs, d.number, seen, wait);
  if (wait) return false;
  memory_.access_own(queue_memory::doorbells);
  if (eq == nullptr || eq->function != d.function) {
    ++stats_.bad_doorbell;
    return true;
  }
  const std::uint32_t index = d.index & index_mask;
  take_consumer(*eq, index);
  if (d.arm) {
    eq->state = interrupts::state_armed;
    if (eq->producer != index) to_.raised.due(*eq);
  }
  to_.eqs.mark_dirty(eq->eqn);
  return true;
}

bool eq_engine::end_period(const moderation::period& p) {
  if (to_.raised.full() || to_.halts.find(p.number) != nullptr) return false;
  bool seen = false;
  bool wait = false;
  icm::eq_context* eq = find_context(to_.eqs, p.number, seen, wait);
  if (wait) return false;
  memory_.access_own(queue_memory::periods);
  if (eq != nullptr && eq->state == interrupts::state_armed) to_.raised.raise(*eq);
  return true;
}

}  // namespace rnic::completion
