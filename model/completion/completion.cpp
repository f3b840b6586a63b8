// SPDX-License-Identifier: Apache-2.0
#include "model/completion/completion.h"

#include <utility>

#include "model/sim/check.h"

namespace rnic::completion {

namespace {
const completion_config& checked(const std::string& name, const completion_config& c) {
  if (c.write_depth < 4) throw sim::config_error(name + ".write_depth: at least 4");
  if ((c.page_entries & (c.page_entries - 1)) != 0) throw sim::config_error(name + ".page_entries: a power of two");
  return sim::checked(c, name);
}

/// The context of a queue that comes to rest: written back or dropped.
template <class Context>
void put_away(icm::context_cache<Context>& cache, const halted_queues::entry& e) {
  if (e.discard)
    cache.drop(e.number);
  else if (cache.on_chip(e.number))
    cache.flush(e.number);
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
      doorbell_cycles_(checked(this->name(), config).doorbell_cycles),
      events_(config.event_depth),
      firmware_events_(firmware_event_depth),
      dma_queue_(*this, dma, config.write_depth, spans),
      moderation_(*this, config.moderated_depth),
      interrupts_(*this, msix, config.write_depth + config.event_depth, moderation_, stats_),
      cq_arming_(*this, cqs, cq_halts_, moderation_, events_, stats_),
      cq_engine_(*this, config, set_, stats_, {cqe, losses, cqs, pages, dma_queue_, events_, cq_halts_, cq_arming_},
                 cqe_sources),
      eq_engine_(*this, config, set_, stats_,
                 {event, events_, firmware_events_, eqs, pages, dma_queue_, eq_halts_, interrupts_}, event_sources) {
  for (unsigned i = 0; i < cqe_sources; ++i) cqe.emplace_back(*this);
  for (unsigned i = 0; i < event_sources; ++i) event.emplace_back(*this);
}

void completion::tick() {
  cqs.service();
  eqs.service();
  pages.service();
  take_dma();
  dma_queue_.hand_over();
  serve_halts();
  if (!moderation_.none())
    moderation_.serve([this](const moderation::period& p) {
      return p.event_queue ? eq_engine_.end_period(p) : cq_arming_.end_period(p);
    });
  eq_engine_.serve();
  serve_doorbell();
  cq_engine_.serve();
  interrupts_.send();
}

void completion::take_dma() {
  if (!dma.response.can_pop()) return;
  const pcie::dma_response answer = dma.response.pop();
  const std::uint32_t index = dma_queue::index_of(answer);
  switch (dma_queue::kind_of(answer)) {
    case dma_queue::answer::eqe_written:
      return interrupts_.entry_written();
    case dma_queue::answer::consumer_read:
      return cq_engine_.records().answered(index, answer.status == pcie::dma_status::ok);
    case dma_queue::answer::fence:
      return (index < halted_queues::places ? cq_halts_ : eq_halts_).fence_answered(index);
  }
}

/// Brings halted queues to rest.
void completion::serve_halts() {
  using entry = halted_queues::entry;
  if (!cq_halts_.none())
    cq_halts_.serve(
        dma_queue_,
        [this](const entry& e) {
          pages.forget(buffer_pages::queue::cq, e.number);
          cq_engine_.records().forget(e.number);
          if (e.discard) moderation_.end(false, e.number);
        },
        [this](const entry& e) { put_away(cqs, e); });
  if (!eq_halts_.none())
    eq_halts_.serve(
        dma_queue_,
        [this](const entry& e) {
          pages.forget(buffer_pages::queue::eq, e.number);
          if (e.discard) moderation_.end(true, e.number);
        },
        [this](const entry& e) { put_away(eqs, e); });
}

void completion::serve_doorbell() {
  if (!doorbell.can_pop()) return;
  if (!doorbell_engine_.is_free()) return doorbell_engine_.await();
  if (events_.full() || interrupts_.full())  // woken when they drain
    return doorbell_engine_.blocked(events_.full() ? "events" : "interrupts");
  const queue_doorbell& d = doorbell.front();
  const bool done = d.what == queue_doorbell::kind::cq_arm ? cq_arming_.arm(d) : eq_engine_.update(d);
  if (!done) return doorbell_engine_.blocked("contexts");
  doorbell.pop();
  doorbell_engine_.start(doorbell_cycles_);
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
