// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/atomic_unit.h"

#include <algorithm>
#include <utility>

#include "model/sim/check.h"
#include "model/transport/message_packets.h"
#include "model/wire/bytes.h"

namespace rnic::transport {

atomic_unit::atomic_unit(const std::string& name, sim::clock_domain& domain, const atomic_unit_config& config,
                         sim::span_recorder& spans, sim::statistics& stats)
    : clocked_block(name, domain),
      config_(sim::checked(config, this->name())),
      spans_(spans),
      pipeline_(*this, "operands",
                {{"align", config.align_cycles}, {"execute", config.execute_cycles}, {"store", config.store_cycles}}),
      places_(config.places()) {
  const unsigned locks = config.lock_buckets;
  if ((locks & (locks - 1)) != 0) throw sim::config_error(this->name() + ".lock_buckets: must be a power of two");
  order_.reserve(places_.size());
  for (std::size_t i = places_.size(); i-- != 0;) free_.push_back(static_cast<std::uint16_t>(i));
  for (unsigned i = 0; i < config.in_flight; ++i)
    engines_.push_back(std::make_unique<sim::server>(*this, "engine" + std::to_string(i)));
  const std::pair<const char*, const std::uint64_t*> all[] = {{"executed", &count_.executed},
                                                              {"abandoned", &count_.abandoned},
                                                              {"failed", &count_.failed},
                                                              {"lock_waits", &count_.lock_waits}};
  for (const auto& [n, counter] : all) stats.add(this->name() + "." + n, *counter);
}

void atomic_unit::tick() {
  take_notice();
  take_operand();
  take_job();
  end();
  write();
  start();
}

// ---------------------------------------------------------------- what comes

void atomic_unit::take_notice() {
  if (!dma_write.response.can_pop()) return;
  place& p = places_[dma_write.response.pop().tag];
  spans_.leave(p.job.span, name(), "write", now_ps(), sim::wait::pcie);
  p.at = phase::ended;
  p.executed = true;
  ++ended_;
}

void atomic_unit::take_operand() {
  if (!dma_read.response.can_pop()) return;
  const pcie::dma_response r = dma_read.response.pop();
  place& p = places_[r.tag];
  spans_.leave(p.job.span, name(), "operand", now_ps(), sim::wait::payload_fetch);
  p.original = wire::load_le64(p.operand.data());
  p.failed = r.status != pcie::dma_status::ok;
  if (p.failed || p.abandoned) {
    p.at = phase::ended;
    ++ended_;
    return;
  }
  p.at = phase::computing;
  p.ready = now() + pipeline_.enter();
  ++computing_;
}

void atomic_unit::take_job() {
  if (!job_in.can_pop()) return;
  const atomic_job& job = job_in.front();
  if (job.what == atomic_job::kind::abandon) {
    abandon(job.job);
    return job_in.drop();
  }
  RNIC_ASSERT(!free_.empty(), name() + ": more jobs than places");
  const std::uint16_t at = free_.back();
  free_.pop_back();
  place& p = places_[at];
  p = place{};
  p.job = job;
  p.older = static_cast<std::uint16_t>(std::count_if(
      order_.begin(), order_.end(), [&](std::uint16_t other) { return lock_of(places_[other]) == lock_of(p); }));
  if (p.older != 0) ++count_.lock_waits;
  order_.push_back(at);
  ++waiting_;
  job_in.drop();
}

/// It ends without a write, now or when its operand has come.
void atomic_unit::abandon(std::uint16_t job) {
  const auto at =
      std::find_if(order_.begin(), order_.end(), [&](std::uint16_t i) { return places_[i].job.job == job; });
  if (at == order_.end()) return;
  place& p = places_[*at];
  if (p.at == phase::writing || p.at == phase::ended) return;
  p.abandoned = true;
  if (p.at == phase::reading) return;
  --(p.at == phase::waiting ? waiting_ : computing_);
  p.at = phase::ended;
  ++ended_;
}

// ---------------------------------------------------------------- what leaves

void atomic_unit::end() {
  if (ended_ == 0 || !outcome_out.claim()) return;
  const auto at =
      std::find_if(order_.begin(), order_.end(), [&](std::uint16_t i) { return places_[i].at == phase::ended; });
  const place& p = places_[*at];
  outcome_out.push({p.job.job, p.executed, p.original});
  ++(p.executed ? count_.executed : p.abandoned ? count_.abandoned : count_.failed);
  free(static_cast<std::size_t>(at - order_.begin()));
  if (--ended_ != 0) wake_next();
}

/// Its lock passes to those behind it, its place to another job.
void atomic_unit::free(std::size_t position) {
  const std::uint16_t at = order_[position];
  const place& p = places_[at];
  if (p.engine != nullptr) p.engine->end();
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position));
  for (std::size_t i = position; i != order_.size(); ++i) {
    place& behind = places_[order_[i]];
    if (lock_of(behind) == lock_of(p)) --behind.older;
  }
  free_.push_back(at);
}

void atomic_unit::write() {
  if (computing_ == 0) return;
  sim::cycle_t next = sim::never;
  for (const std::uint16_t at : order_) {
    place& p = places_[at];
    if (p.at != phase::computing) continue;
    if (p.ready > now()) {
      next = std::min(next, p.ready);
      continue;
    }
    if (!dma_write.request.claim()) continue;  // which ticks us
    pcie::dma_request r;
    r.op = pcie::dma_request::kind::write;
    r.notify = true;
    r.function = p.job.function;
    r.address = p.job.address;
    r.length = atomic_bytes;
    r.tag = at;
    const std::uint64_t value = p.job.operation.apply(p.original);
    for (unsigned i = 0; i < atomic_bytes; ++i) r.bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
    dma_write.request.push(std::move(r));
    pipeline_.mark(spans_, p.job.span, p.ready - pipeline_.cycles());
    if (now() > p.ready) spans_.leave(p.job.span, name(), "port", now_ps(), sim::wait::arbitration);
    p.at = phase::writing;
    --computing_;
  }
  if (next != sim::never) wake_at(next);
}

void atomic_unit::start() {
  sim::server* const engine = waiting_ != 0 ? free_engine() : nullptr;
  if (engine == nullptr) return hold_up(nullptr, nullptr);
  const auto next = std::find_if(order_.begin(), order_.end(), [&](std::uint16_t i) {
    return places_[i].at == phase::waiting && places_[i].older == 0;
  });
  if (next == order_.end()) return hold_up(engine, "lock");
  if (!dma_read.request.claim()) return hold_up(engine, "memory");
  hold_up(nullptr, nullptr);
  place& p = places_[*next];
  p.engine = engine;
  engine->begin();
  p.at = phase::reading;
  spans_.leave(p.job.span, name(), "start", now_ps(), sim::wait::arbitration);
  read(*next);
  if (--waiting_ != 0) wake_next();
}

void atomic_unit::read(std::uint16_t at) {
  place& p = places_[at];
  pcie::dma_request r;
  r.function = p.job.function;
  r.address = p.job.address;
  r.length = atomic_bytes;
  r.destination = p.operand.data();
  r.tag = at;
  dma_read.request.push(std::move(r));
}

sim::server* atomic_unit::free_engine() {
  const auto e = std::find_if(engines_.begin(), engines_.end(), [](const auto& x) { return x->is_free(); });
  return e == engines_.end() ? nullptr : e->get();
}

void atomic_unit::hold_up(sim::server* engine, const char* by) {
  if (held_up_ != nullptr && held_up_ != engine) held_up_->idle();
  held_up_ = engine;
  if (engine != nullptr) engine->blocked(by);
}

}  // namespace rnic::transport
