// SPDX-License-Identifier: Apache-2.0
#include "model/completion/cq_engine.h"

#include <algorithm>
#include <cstring>

#include "model/abi/queue_entries.h"
#include "model/completion/find_context.h"

namespace rnic::completion {

namespace {
constexpr std::uint8_t status_overflow = 9, status_write_fail = 10;  // CQ context, as published

bool is_error(const cqe_request& r) { return (r.opcode & abi::cqe::opcode_mask) == abi::cqe::opcode_error; }
}  // namespace

cq_engine::cq_engine(sim::clocked_block& owner, const completion_config& config, const settings& set,
                     completion_statistics& stats, const cq_engine_ports& ports, unsigned sources)
    : owner_(owner),
      cycles_(config.cqe_cycles),
      latency_cycles_(config.cqe_latency_cycles),
      set_(set),
      stats_(stats),
      to_(ports),
      engine_(owner, "cqe_engine"),
      heads_(sources),
      records_(ports.dma) {}

void cq_engine::serve() {
  const unsigned n = static_cast<unsigned>(heads_.size());
  for (unsigned i = 0, source = last_source_; i != n; ++i) {
    if (++source == n) source = 0;
    if (!to_.requests[source].can_pop()) continue;
    if (!engine_.is_free()) return engine_.await();
    if (!to_.dma.has_room()) return engine_.blocked("dma");  // woken when they drain
    if (to_.events.full()) return engine_.blocked("events");
    const head before = heads_[source];
    if (!try_request(source)) {
      engine_.blocked(waits_for_.whom);
      note(source, before);
      continue;
    }
    to_.requests[source].pop();
    heads_[source] = {};
    last_source_ = source;
    engine_.start(cycles_);
    owner_.wake_at(std::max(owner_.now() + 1, engine_.free_at()));  // another source may have something
    return;
  }
}

/// The head of a source waits: for the same as before, or now for something else.
void cq_engine::note(unsigned source, const head& before) {
  head& h = heads_[source];
  h.waits_for = waits_for_.whom;
  h.why = waits_for_.why;
  if (before.waits_for != nullptr && before.waits_for != h.waits_for)
    to_.dma.note(to_.requests[source].front().span, before.waits_for, before.why);
}

/// Tries to finish the request at the head of a source; false when it has to wait.
bool cq_engine::try_request(unsigned source) {
  const cqe_request& r = to_.requests[source].front();
  head& h = heads_[source];
  if (const auto* halt = to_.halts.find(r.cqn); halt != nullptr) {
    waits_for_ = {"command", sim::wait::software};
    if (halt->discard) ++stats_.discarded;
    return halt->discard;
  }
  bool wait = false;
  icm::cq_context* cq = find_context(to_.cqs, r.cqn, h.seen, wait);
  waits_for_ = {"contexts", sim::wait::context_miss};
  if (wait) return false;
  // A number that has gone to another function since: its queue is not for what an earlier owner's queue pairs say.
  if (cq == nullptr || cq->function != r.function) {
    ++stats_.cqe_invalid;
    return true;
  }
  if (cq->status != 0 || !has_room(*cq, wait)) {
    waits_for_ = wait ? reason{"consumer index", sim::wait::pcie} : told;
    if (wait || !can_lose()) return false;
    ++stats_.cq_overflow;
    to_.arming.memory().access_own(queue_memory::entries);
    lose(r);
    return true;
  }
  const std::uint32_t mask = (std::uint32_t{1} << (cq->log_size & 31)) - 1;
  const std::uint32_t slot = (cq->flags & icm::cq_flag_collapsed) != 0 ? 0 : cq->producer & mask;
  std::uint64_t address = 0;
  const auto where = to_.pages.address(buffer_pages::queue::cq, r.cqn, cq->address, cq->log_page,
                                       cq->page_offset + std::uint64_t{slot} * set_.cqe_bytes, cq->function, address);
  waits_for_ = {"pages", sim::wait::translation_miss};
  if (where == buffer_pages::result::pending) return false;
  if (where == buffer_pages::result::failed) {
    waits_for_ = told;
    if (!can_lose()) {
      to_.pages.keep_failed(buffer_pages::queue::cq, r.cqn);
      return false;
    }
    fail(*cq, status_write_fail, abi::eqe::cq_access_violation);
    ++stats_.cqe_invalid;
    to_.arming.memory().access_own(queue_memory::entries);
    lose(r);
    return true;
  }
  if (h.waits_for != nullptr) to_.dma.note(r.span, h.waits_for, h.why);
  write(*cq, r, address);
  return true;
}

/// False when the CQ is full by the doorbell record, or by the consumer index known while that is being read (`wait`).
bool cq_engine::has_room(icm::cq_context& cq, bool& wait) {
  const std::uint32_t size = std::uint32_t{1} << (cq.log_size & 31);
  const auto full = [&] { return ((cq.producer - cq.consumer) & index_mask) >= size; };
  if ((cq.flags & icm::cq_flag_overrun_ignore) != 0) return true;
  if (!full()) {
    // A doorbell has made room meanwhile: what is read of the record is old when the CQ is full again.
    if (sim::seldom(records_.any()) && records_.forget(cq.cqn)) owner_.wake_next();
    return true;
  }
  const auto record = records_.take(cq);
  if (!record) {
    wait = true;
    return false;
  }
  owner_.wake_next();  // another CQ may have waited for the place
  if (!record->failed) {
    take_consumer(cq, record->index);
    to_.cqs.mark_dirty(cq.cqn);
  }
  if (!full()) return true;
  fail(cq, record->failed ? status_write_fail : status_overflow,
       record->failed ? abi::eqe::cq_access_violation : abi::eqe::cq_overrun);
  return false;
}

void cq_engine::fail(icm::cq_context& cq, std::uint8_t status, std::uint8_t syndrome) {
  cq.status = status;
  to_.cqs.mark_dirty(cq.cqn);
  event_request& e = to_.events.extend();
  e = event_request{};
  e.type = static_cast<std::uint8_t>(abi::eqe::event::cq_error);
  e.function = cq.function;
  e.set(abi::eqe::number, cq.cqn);
  e.set(abi::eqe::syndrome, syndrome);
  owner_.wake_next();  // the EQ engine has had its turn in this cycle
}

/// Room to tell of a lost completion; asking books a wake-up.
bool cq_engine::can_lose() const {
  bool room = true;
  for (const auto& out : to_.lost) room = (!out.bound() || out.claim()) && room;
  return room;
}

/// A QP whose completions go nowhere stops (adapter data plane A.5 "Overflow"). Flushed ones come from that.
void cq_engine::lose(const cqe_request& r) {
  if (is_error(r) && r.syndrome == static_cast<std::uint8_t>(abi::cqe::error::flushed)) return;
  for (const auto& out : to_.lost)
    if (out.bound()) out.push({r.qpn & 0xffffff});
}

void cq_engine::write(icm::cq_context& cq, const cqe_request& r, std::uint64_t address) {
  to_.arming.memory().access_own(queue_memory::entries);
  pcie::dma_request& write = to_.dma.write_entry(address, cq.function, set_.cqe_bytes, latency_cycles_);
  write.span = r.span;
  const std::uint32_t size = std::uint32_t{1} << (cq.log_size & 31);
  encode(r, (cq.producer & size) != 0 ? abi::cqe::owner_bit : 0,
         write.bytes.data() + (set_.cqe_bytes - abi::cqe::bytes));
  ++stats_.cqe;

  cq.producer = (cq.producer + 1) & index_mask;
  const bool solicited = r.solicited || is_error(r);
  if (solicited) cq.last_solicited = cq.producer;
  to_.cqs.mark_dirty(cq.cqn);
  to_.arming.added(cq, solicited);
}

void cq_engine::encode(const cqe_request& r, std::uint8_t owner, std::uint8_t* to) {
  namespace entry = abi::cqe;
  std::memset(to, 0, entry::bytes);
  abi::set(to, entry::wqe_index, r.wqe_index);
  abi::set(to, entry::owner_opcode, static_cast<std::uint8_t>(owner | (r.opcode & ~entry::owner_bit)));
  if (is_error(r)) {
    abi::set(to, entry::qpn, r.qpn);
    abi::set(to, entry::source,
             r.remote_qpn);  // XRC: libmlx4 finds the shared receive queue by it, whatever the status
    abi::set(to, entry::vendor_error, r.vendor_error);
    abi::set(to, entry::syndrome, r.syndrome);
    return;
  }
  abi::set(to, entry::qpn_word, r.qpn);
  abi::set(to, entry::immediate, r.immediate);
  abi::set(to, entry::source, r.remote_qpn);
  abi::set(to, entry::sl_vid, r.sl_vid);
  std::memcpy(to + entry::source_mac, r.smac.data(), r.smac.size());
  abi::set(to, entry::byte_count, r.byte_count);
  abi::set(to, entry::checksum, r.checksum);
}

}  // namespace rnic::completion
