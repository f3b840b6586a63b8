// SPDX-License-Identifier: Apache-2.0
// The unit that executes atomic operations on host memory.
#include "model/transport/responder/atomic_unit.h"

#include <algorithm>

namespace rnic::transport {

namespace {

constexpr std::uint32_t operand_bytes = 8;

std::uint64_t load_le64(const std::uint8_t* p) {
  std::uint64_t v = 0;
  for (unsigned i = operand_bytes; i-- != 0;) v = v << 8 | p[i];
  return v;
}

/// Sum of two words made of fields that end at the bits of `boundaries`: no carry leaves a field.
std::uint64_t add_fields(std::uint64_t a, std::uint64_t b, std::uint64_t boundaries) {
  const std::uint64_t below = ~boundaries;
  return ((a & below) + (b & below)) ^ ((a ^ b) & boundaries);
}

}  // namespace

std::uint64_t atomic_operation::apply(std::uint64_t memory) const {
  if (what == kind::fetch_add) return add_fields(memory, swap_add, boundaries);
  if (((memory ^ compare) & compare_mask) != 0) return memory;
  return (memory & ~swap_mask) | (swap_add & swap_mask);
}

atomic_unit::atomic_unit(sim::clocked_block& owner, const atomic_unit_config& config, pcie::dma_port& read,
                         pcie::dma_port& write, std::uint64_t dma_tag)
    : owner_(owner),
      config_(sim::checked(config, owner.name() + ".atomics")),
      read_(read),
      write_(write),
      tag_(dma_tag),
      entries_(config.in_flight) {
  const unsigned locks = config.lock_buckets;
  if ((locks & (locks - 1)) != 0)
    throw sim::config_error(owner.name() + ".atomics.lock_buckets: must be a power of two");
  for (unsigned i = 0; i < config.in_flight; ++i)
    engines_.push_back(std::make_unique<sim::server>(owner, "atomic_unit" + std::to_string(i)));
}

bool atomic_unit::start(std::uint16_t job, std::uint16_t function, std::uint64_t address,
                        const atomic_operation& what) {
  if (used_ == entries_.size() || !read_.request.claim()) return false;
  entry* place = nullptr;
  for (entry& e : entries_) {
    if (e.at == phase::idle)
      place = &e;
    else if (lock_of(e.address) == lock_of(address))
      return false;
  }
  ++used_;
  engines_[static_cast<std::size_t>(place - entries_.data())]->begin();
  *place = entry{};
  place->at = phase::reading;
  place->job = job;
  place->function = function;
  place->address = address;
  place->what = what;
  pcie::dma_request r;
  r.function = function;
  r.address = address;
  r.length = operand_bytes;
  r.destination = place->operand.data();
  r.tag = tag_ | static_cast<std::uint64_t>(place - entries_.data());
  read_.request.push(std::move(r));
  return true;
}

void atomic_unit::read_done(std::uint32_t tag, pcie::dma_status status) {
  entry& e = entries_[tag];
  e.at = phase::computing;
  e.ok = status == pcie::dma_status::ok;
  e.original = load_le64(e.operand.data());
  e.ready = owner_.now() + config_.lock_cycles;
  owner_.wake_at(std::max(e.ready, owner_.now() + 1));
}

void atomic_unit::abandon(std::uint16_t job) {
  for (entry& e : entries_)
    if (e.at != phase::idle && e.job == job) e.abandoned = true;
}

bool atomic_unit::write_back(entry& e, std::uint64_t& writes_asked) {
  if (!write_.request.claim()) return false;
  const std::uint64_t value = e.what.apply(e.original);
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::write;
  r.notify = true;
  r.function = e.function;
  r.address = e.address;
  r.length = operand_bytes;
  for (unsigned i = 0; i < operand_bytes; ++i) r.bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
  write_.request.push(std::move(r));
  e.write = ++writes_asked;
  e.at = phase::writing;
  return true;
}

bool atomic_unit::work(std::uint64_t& writes_asked, std::uint64_t writes_done, outcome& out) {
  if (used_ == 0) return false;
  for (entry& e : entries_) {
    bool over = e.at == phase::writing && e.write <= writes_done;
    if (e.at == phase::computing) {
      over = !e.ok || e.abandoned;
      if (!over && e.ready > owner_.now())
        owner_.wake_at(e.ready);
      else if (!over)
        write_back(e, writes_asked);
    }
    if (!over) continue;
    out = {e.job, e.ok && !e.abandoned, e.original};
    e.at = phase::idle;
    engines_[static_cast<std::size_t>(&e - entries_.data())]->end();
    --used_;
    owner_.wake_next();  // somebody may have waited for the lock
    return true;
  }
  return false;
}

}  // namespace rnic::transport
