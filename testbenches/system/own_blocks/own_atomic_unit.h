// SPDX-License-Identifier: Apache-2.0
// An atomic unit by somebody who has read the data sheet of the model's, and nothing else of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <utility>

#include "model/adapter/block_place.h"
#include "model/transport/responder/atomic_unit.h"

namespace rnic::system_test {

/// A list of jobs in their order, which is searched for everything.
class own_atomic_unit final : public sim::clocked_block {
 public:
  explicit own_atomic_unit(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()), config_(place.parameters().responder.atomics) {
    place.bind("read_generator_to_atomic_unit_jobs", jobs_);
    place.bind("atomic_unit_to_read_generator_outcomes", outcomes_);
    place.bind("atomic_unit_read_to_pcie_dma_requests", "pcie_to_atomic_unit_read_dma_responses", reads_);
    place.bind("atomic_unit_write_to_pcie_dma_requests", "pcie_to_atomic_unit_write_dma_responses", writes_);
    const std::pair<const char*, const std::uint64_t*> all[] = {
        {"executed", &executed_}, {"abandoned", &abandoned_}, {"failed", &failed_}, {"lock_waits", &lock_waits_}};
    for (const auto& [name, counter] : all) place.around().statistics.add(place.name() + "." + name, *counter);
  }

 private:
  enum class phase { waits, reads, computes, writes, ended };
  struct entry {
    transport::atomic_job job;
    std::uint64_t number = 0;
    phase at = phase::waits;
    bool done = false, unreadable = false, given_up = false, has_engine = false;
    sim::cycle_t computed = 0;
    std::array<std::uint8_t, 8> bytes{};
  };
  using place_of = std::list<entry>::iterator;

  void tick() override {
    if (writes_.response.can_pop()) {
      const place_of e = numbered(writes_.response.pop().tag);
      e->at = phase::ended;
      e->done = true;
    }
    if (reads_.response.can_pop()) take(reads_.response.pop());
    if (jobs_.can_pop()) take(jobs_.pop());
    end_one();
    write_one();
    start_one();
    if (!all_.empty()) wake_next();
  }

  void take(const pcie::dma_response& r) {
    const place_of e = numbered(r.tag);
    e->unreadable = r.status != pcie::dma_status::ok;
    e->at = e->unreadable || e->given_up ? phase::ended : phase::computes;
    e->computed = now() + config_.align_cycles + config_.execute_cycles + config_.store_cycles;
  }

  void take(const transport::atomic_job& job) {
    if (job.what == transport::atomic_job::kind::execute) {
      entry e;
      e.job = job;
      e.number = next_++;
      for (const entry& other : all_)
        if (lock(other) == lock(e)) {
          ++lock_waits_;
          break;
        }
      all_.push_back(e);
      return;
    }
    for (entry& e : all_)
      if (e.job.job == job.job && e.at != phase::writes && e.at != phase::ended) {
        e.given_up = true;
        if (e.at != phase::reads) e.at = phase::ended;
      }
  }

  void end_one() {
    const auto e = std::find_if(all_.begin(), all_.end(), [](const entry& x) { return x.at == phase::ended; });
    if (e == all_.end() || !outcomes_.can_push()) return;
    outcomes_.push({e->job.job, e->done, value(e->bytes)});
    ++(e->done ? executed_ : e->given_up ? abandoned_ : failed_);
    if (e->has_engine) --engines_;
    all_.erase(e);
  }

  void write_one() {
    for (entry& e : all_) {
      if (e.at != phase::computes || e.computed > now()) continue;
      if (!writes_.request.can_push()) return;
      pcie::dma_request r = request(e, pcie::dma_request::kind::write);
      r.notify = true;
      std::uint64_t result = e.job.operation.apply(value(e.bytes));
      for (unsigned i = 0; i < 8; ++i, result >>= 8) r.bytes[i] = static_cast<std::uint8_t>(result);
      writes_.request.push(std::move(r));
      e.at = phase::writes;
      return;
    }
  }

  void start_one() {
    if (engines_ == config_.in_flight || !reads_.request.can_push()) return;
    for (auto e = all_.begin(); e != all_.end(); ++e) {
      if (e->at != phase::waits) continue;
      if (std::any_of(all_.begin(), e, [&](const entry& older) { return lock(older) == lock(*e); })) continue;
      pcie::dma_request r = request(*e, pcie::dma_request::kind::read);
      r.destination = e->bytes.data();
      reads_.request.push(std::move(r));
      e->at = phase::reads;
      e->has_engine = true;
      ++engines_;
      return;
    }
  }

  static std::uint64_t value(const std::array<std::uint8_t, 8>& word) {
    std::uint64_t v = 0;
    for (unsigned i = 8; i-- != 0;) v = v << 8 | word[i];
    return v;
  }
  static pcie::dma_request request(const entry& e, pcie::dma_request::kind op) {
    pcie::dma_request r;
    r.op = op;
    r.function = e.job.function;
    r.address = e.job.address;
    r.length = 8;
    r.tag = e.number;
    return r;
  }
  std::uint64_t lock(const entry& e) const { return e.job.address % config_.lock_buckets; }
  place_of numbered(std::uint64_t n) {
    return std::find_if(all_.begin(), all_.end(), [&](const entry& e) { return e.number == n; });
  }

  const transport::atomic_unit_config& config_;
  sim::fifo_in<transport::atomic_job> jobs_{*this};
  sim::fifo_out<transport::atomic_outcome> outcomes_{*this};
  pcie::dma_port reads_{*this}, writes_{*this};
  std::list<entry> all_;
  std::uint64_t next_ = 0;
  unsigned engines_ = 0;
  std::uint64_t executed_ = 0, abandoned_ = 0, failed_ = 0, lock_waits_ = 0;
};

}  // namespace rnic::system_test
