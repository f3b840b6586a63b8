// SPDX-License-Identifier: Apache-2.0
#include "model/completion/completion.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/abi/queues.h"
#include "model/sim/check.h"

namespace rnic::completion {

namespace {
constexpr std::uint8_t status_overflow = 9, status_write_fail = 10;  // CQ context, as published

bool is_error(const cqe_request& r) { return (r.opcode & abi::cqe::opcode_mask) == abi::cqe::opcode_error; }

const completion_config& checked(const std::string& name, const completion_config& c) {
  if (c.write_depth < 4) throw sim::config_error(name + ".write_depth: at least 4");
  if ((c.page_entries & (c.page_entries - 1)) != 0) throw sim::config_error(name + ".page_entries: a power of two");
  return sim::checked(c, name);
}
}  // namespace

completion::completion(std::string name, sim::clock_domain& domain, const completion_config& config,
                       const icm::icm_map& map, unsigned cqe_sources, unsigned event_sources, sim::span_recorder* spans)
    : clocked_block(name, domain),
      doorbell(*this),
      dma(*this),
      msix(*this),
      pages(*this, config.page_entries),
      cqs(this->name() + ".cq_cache", *this, config.cq_cache, map, icm::table::cqc, 0),
      eqs(this->name() + ".eq_cache", *this, config.eq_cache, map, icm::table::eqc, 0),
      config_(checked(this->name(), config)),
      spans_(spans),
      cqe_seen_(cqe_sources),
      event_seen_(event_sources + 2),
      events_(config.event_depth),
      firmware_events_(firmware_events),
      writes_(config.write_depth),
      interrupts_(config.write_depth + config.event_depth),
      moderation_(*this, config.moderated_depth) {
  for (unsigned i = 0; i < cqe_sources; ++i) cqe.emplace_back(*this);
  for (unsigned i = 0; i < event_sources; ++i) event.emplace_back(*this);
  event_map_.fill(static_cast<std::uint16_t>(cr::event_unmapped));
}

void completion::tick() {
  cqs.service();
  eqs.service();
  pages.service();
  take_dma();
  hand_over_writes();
  if (halts_ != 0) serve_halts();
  if (!moderation_.none()) moderation_.serve([this](const moderation::period& p) { return end_period(p); });
  serve_events();
  serve_doorbell();
  serve_cqes();
  send_interrupts();
}

// ---------------------------------------------------------------- DMA

void completion::take_dma() {
  if (dma.response.can_pop()) {
    const pcie::dma_response answer = dma.response.pop();
    const auto what = static_cast<tag_kind>(answer.tag >> 32);
    const auto index = static_cast<std::uint32_t>(answer.tag);
    if (what == tag_kind::eqe_written) {
      ++eqes_written_;
    } else if (what == tag_kind::consumer_read) {
      consumer_fetch& f = consumer_fetches_[index];
      f.arrived = true;
      f.failed = answer.status != pcie::dma_status::ok;
      if (f.stale) f.active = false;
    } else {
      halt_entry& h = index < max_halted ? cq_halts_[index] : eq_halts_[index - max_halted];
      if (h.state == fence::under_way) h.state = fence::done;
    }
  }
}

pcie::dma_request& completion::queue_write(unsigned latency) {
  pending_write& w = writes_.extend();
  w.request = pcie::dma_request{};
  w.ready = now() + std::max(1u, latency);
  if (writes_.size() == 1) wake_at(w.ready);
  return w.request;
}

/// In the order in which they were decided, one a cycle.
void completion::hand_over_writes() {
  if (writes_.empty()) return;
  pending_write& w = writes_.front();
  if (w.ready > now()) return wake_at(w.ready);
  if (!dma.request.claim()) return;
  if (w.request.span != 0 && spans_ != nullptr) spans_->leave(w.request.span, name(), "completion", now_ps());
  dma.request.push(std::move(w.request));
  writes_.drop();
  if (!writes_.empty()) wake_at(std::max(now() + 1, writes_.front().ready));
}

// ---------------------------------------------------------------- completion queue entries

void completion::serve_cqes() {
  const unsigned n = static_cast<unsigned>(cqe.size());
  for (unsigned i = 0, source = last_cqe_source_; i != n; ++i) {
    if (++source == n) source = 0;
    if (!cqe[source].can_pop()) continue;
    if (!cqe_engine_.is_free()) return cqe_engine_.await();
    if (writes_.size() + 1 >= writes_.capacity()) return cqe_engine_.blocked("dma");  // woken when they drain
    if (events_.full()) return cqe_engine_.blocked("events");
    if (!try_cqe(source)) {
      cqe_engine_.blocked(waits_for_);
      continue;
    }
    cqe[source].pop();
    cqe_seen_[source] = 0;
    last_cqe_source_ = source;
    cqe_engine_.start(config_.cqe_cycles);
    wake_at(std::max(now() + 1, cqe_engine_.free_at()));  // another source may have something
    return;
  }
}

/// The CQ's context, or nullptr: then it is either to be waited for or not there.
icm::cq_context* completion::find_cq(std::uint32_t cqn, bool& seen, bool& wait) {
  wait = false;
  icm::cq_context* cq = seen ? cqs.peek(cqn) : nullptr;
  if (cq == nullptr) {
    using result = icm::context_cache<icm::cq_context>::result;
    const result r = cqs.lookup(cqn, cq);
    wait = r == result::pending;
    if (r != result::hit) return nullptr;
    seen = true;
  }
  return cq->valid == 0 || cq->cqn != cqn ? nullptr : cq;
}

/// Tries to finish the request at the head of a source; false when it has to wait.
bool completion::try_cqe(unsigned source) {
  const cqe_request& r = cqe[source].front();
  if (const halt_entry* h = find_halt(cq_halts_, r.cqn); h != nullptr) {
    waits_for_ = "command";
    if (h->discard) ++stats_.discarded;
    return h->discard;
  }
  bool seen = cqe_seen_[source] != 0;
  bool wait = false;
  icm::cq_context* cq = find_cq(r.cqn, seen, wait);
  cqe_seen_[source] = seen ? 1 : 0;
  waits_for_ = "contexts";
  if (wait) return false;
  if (cq == nullptr) {
    ++stats_.cqe_invalid;
    return true;
  }
  if (cq->status != 0 || !has_room(*cq, wait)) {
    waits_for_ = wait ? "consumer index" : "requester or responder";
    if (wait || !can_lose()) return false;
    ++stats_.cq_overflow;
    lose(r);
    return true;
  }
  const std::uint32_t mask = (std::uint32_t{1} << (cq->log_size & 31)) - 1;
  const std::uint32_t slot = (cq->flags & icm::cq_flag_collapsed) != 0 ? 0 : cq->producer & mask;
  std::uint64_t address = 0;
  const auto where = pages.address(buffer_pages::queue::cq, r.cqn, cq->address, cq->log_page,
                                   cq->page_offset + std::uint64_t{slot} * cqe_bytes_, cq->function, address);
  waits_for_ = "pages";
  if (where == buffer_pages::result::pending) return false;
  if (where == buffer_pages::result::failed) {
    waits_for_ = "requester or responder";
    if (!can_lose()) return false;
    fail_cq(*cq, status_write_fail, abi::eqe::cq_access_violation);
    ++stats_.cqe_invalid;
    lose(r);
    return true;
  }
  write_cqe(*cq, r, address);
  return true;
}

/// False when the CQ is full by the doorbell record, or by the consumer index known while that is being read (`wait`).
bool completion::has_room(icm::cq_context& cq, bool& wait) {
  const std::uint32_t size = std::uint32_t{1} << (cq.log_size & 31);
  const auto full = [&] { return ((cq.producer - cq.consumer) & index_mask) >= size; };
  if ((cq.flags & icm::cq_flag_overrun_ignore) != 0 || !full()) return true;
  consumer_fetch* f = nullptr;
  for (consumer_fetch& c : consumer_fetches_)
    if (c.active && !c.stale && c.cqn == cq.cqn) f = &c;
  if (f == nullptr || !f->arrived) {
    wait = true;
    if (f == nullptr) start_consumer_fetch(cq);
    return false;
  }
  f->active = false;
  if (!f->failed) {
    const std::uint32_t ci = abi::load32(f->data.data()) & index_mask;
    const std::uint32_t step = (ci - cq.consumer) & index_mask;
    if (step <= ((cq.producer - cq.consumer) & index_mask))
      cq.consumer = ci;  // software's index is not believed blindly
    cqs.mark_dirty(cq.cqn);
  }
  if (!full()) return true;
  fail_cq(cq, f->failed ? status_write_fail : status_overflow,
          f->failed ? abi::eqe::cq_access_violation : abi::eqe::cq_overrun);
  return false;
}

void completion::start_consumer_fetch(const icm::cq_context& cq) {
  for (unsigned i = 0; i < ci_reads; ++i) {
    consumer_fetch& f = consumer_fetches_[i];
    if (f.active) continue;
    f.active = true;
    f.arrived = f.failed = f.stale = false;
    f.cqn = cq.cqn;
    pcie::dma_request& read = queue_write(1);
    read.op = pcie::dma_request::kind::read;
    read.function = cq.function;
    read.length = 4;
    read.address = cq.db_record;
    read.tag = static_cast<std::uint64_t>(tag_kind::consumer_read) << 32 | i;
    read.destination = f.data.data();
    return;
  }
}

void completion::fail_cq(icm::cq_context& cq, std::uint8_t status, std::uint8_t syndrome) {
  cq.status = status;
  cqs.mark_dirty(cq.cqn);
  event_request& e = events_.extend();
  e = event_request{};
  e.type = static_cast<std::uint8_t>(abi::eqe::event::cq_error);
  e.set(abi::eqe::number, cq.cqn);
  e.set(abi::eqe::syndrome, syndrome);
}

/// Room to tell of a lost completion; asking books a wake-up.
bool completion::can_lose() {
  bool room = true;
  for (const auto& out : qp_errors) room = (!out.bound() || out.claim()) && room;
  return room;
}

/// A QP whose completions go nowhere stops (adapter data plane A.5 "Overflow"). Flushed ones come from that.
void completion::lose(const cqe_request& r) {
  if (is_error(r) && r.syndrome == static_cast<std::uint8_t>(abi::cqe::error::flushed)) return;
  for (const auto& out : qp_errors)
    if (out.bound()) out.push({r.qpn & 0xffffff});
}

void completion::write_cqe(icm::cq_context& cq, const cqe_request& r, std::uint64_t address) {
  pcie::dma_request& write = queue_write(config_.cqe_latency_cycles);
  write.op = pcie::dma_request::kind::write;
  write.function = cq.function;
  write.length = cqe_bytes_;
  write.address = address;
  write.span = r.span;
  const std::uint32_t size = std::uint32_t{1} << (cq.log_size & 31);
  encode(r, (cq.producer & size) != 0 ? abi::cqe::owner_bit : 0, write.bytes.data() + (cqe_bytes_ - abi::cqe::bytes));
  last_address_ = address;
  last_function_ = cq.function;
  ++stats_.cqe;

  cq.producer = (cq.producer + 1) & index_mask;
  const bool solicited = r.solicited || is_error(r);
  if (solicited) cq.last_solicited = cq.producer;
  cqs.mark_dirty(cq.cqn);
  // An event that is being delayed counts all completions, also when only a solicited one could start it.
  if (cq.arm == 2 || (cq.arm == 1 && (solicited || moderation_.runs(false, cq.cqn)))) condition_met(cq);
}

void completion::encode(const cqe_request& r, std::uint8_t owner, std::uint8_t* to) const {
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

void completion::announce(sim::statistics& to) const {
  const statistics& s = stats_;
  const std::pair<const char*, const std::uint64_t*> named[] = {{"cqe", &s.cqe},
                                                                {"cqe_invalid", &s.cqe_invalid},
                                                                {"cq_overflow", &s.cq_overflow},
                                                                {"eqe", &s.eqe},
                                                                {"eqe_invalid", &s.eqe_invalid},
                                                                {"eq_overflow", &s.eq_overflow},
                                                                {"event_unmapped", &s.event_unmapped},
                                                                {"event_lost", &s.event_lost},
                                                                {"interrupts", &s.interrupts},
                                                                {"stale_arm", &s.stale_arm},
                                                                {"bad_doorbell", &s.bad_doorbell},
                                                                {"discarded", &s.discarded}};
  for (const auto& [n, c] : named) to.add(name() + "." + n, *c);
  cqs.announce(to);
  eqs.announce(to);
}

}  // namespace rnic::completion
