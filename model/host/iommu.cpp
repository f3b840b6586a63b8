// SPDX-License-Identifier: Apache-2.0
#include "model/host/iommu.h"

#include <algorithm>
#include <utility>

#include "model/host/device_credits.h"
#include "model/host/processor_port.h"
#include "model/sim/check.h"
#include "model/sim/clock_domain.h"

namespace rnic::host {

namespace {

constexpr unsigned table_bits = 9;     // 512 entries of 8 bytes in a page
constexpr unsigned small_shift = 12;   // what a table of level 1 maps
constexpr unsigned function_bits = 8;  // of a tag, the low ones

/// Bytes that an entry of a table of `level` maps, as a power of two.
unsigned shift_of(unsigned level) { return small_shift + table_bits * (level - 1); }

/// The level of the table whose entries map such pages.
unsigned leaf_level(iommu_page page) { return static_cast<unsigned>(page) + 1; }

}  // namespace

iommu::iommu(const std::string& name, sim::clock_domain& domain, const iommu_config& c, host_memory& memory,
             memory_timing& timing, translated_traffic_if& to, sim::statistics& stats)
    : clocked_block(name, domain),
      config_(sim::checked(c, name)),
      page_shift_(shift_of(leaf_level(c.page))),
      leaf_level_(leaf_level(c.page)),
      sets_(c.entries / c.ways),
      memory_(memory),
      timing_(timing),
      to_(to),
      arrived_(name + ".arrived", *this, 128),
      lookup_(*this, "lookup"),
      cached_(c.entries),
      upper_(c.walk_entries) {
  if (c.entries % c.ways != 0)
    throw sim::config_error(name + ".ways: " + std::to_string(c.ways) + ": must divide entries, which is " +
                            std::to_string(c.entries));
  if (((memory.end() - 1) >> (shift_of(c.levels) + table_bits)) != 0)
    throw sim::config_error(name + ".levels: " + std::to_string(c.levels) + ": addresses of memory have more bits");
  for (unsigned i = 0; i < c.walkers; ++i)
    walkers_.push_back(std::make_unique<sim::server>(*this, "walker" + std::to_string(i)));
  memory.add(static_cast<mapping_listener&>(*this));
  announce(stats);
}

iommu::~iommu() { memory_.remove(static_cast<mapping_listener&>(*this)); }

void iommu::announce(sim::statistics& stats) {
  const std::string n = name() + ".";
  stats.add(n + "hits", counts_.hits);
  stats.add(n + "misses", counts_.misses);
  stats.add(n + "merged", counts_.merged);
  stats.add(n + "walks", counts_.walks);
  stats.add(n + "table_accesses", counts_.accesses);
  stats.add(n + "faults", counts_.faults);
  stats.add(n + "invalidations", counts_.invalidations);
  stats.add(n + "stalls", counts_.stalls);
}

void iommu::tick() {
  take_out();
  if (!arrived_.can_pop()) return lookup_.idle();
  const payload::tlp& t = *arrived_.front();
  if (!is_translated(t)) return pass({now(), false}, false);
  const bool mapped = is_mapped(t);
  const std::uint64_t tag = tag_of(t);
  if (translation* const have = look(tag)) {
    const bool there = have->filled <= now();
    ++(there ? counts_.hits : counts_.misses);
    if (!there) ++counts_.merged;
    have->used = now();
    return pass({std::max(now(), have->filled), !there}, !mapped);
  }
  translation* const place = mapped ? victim(tag) : nullptr;
  if (mapped && place == nullptr) return;  // ticked again when a walk for its set ends
  ++counts_.misses;
  const sim::cycle_t end = walk(t);
  if (mapped) *place = {tag, end, now(), true};
  pass({end, true}, !mapped);
}

/// To memory, which has it lookup_cycles after its translation.
void iommu::pass(const found& f, bool refused) {
  lookup_.start(1);
  if (refused) ++counts_.faults;
  const sim::time_ps arrival = arrived_.front_arrival();
  to_.translated(arrived_.pop(), {arrival, domain().edge_time(f.at + config_.lookup_cycles), f.missed, refused});
}

/// Requests that are malformed anyway (across a page) take the way of the others; memory counts them.
bool iommu::is_translated(const payload::tlp& t) const {
  if (t.type == payload::tlp_type::mem_read) return true;
  return t.type == payload::tlp_type::mem_write && (t.address < msi_base || t.address >= msi_end);
}

bool iommu::is_mapped(const payload::tlp& t) const {
  if (crosses_page(t)) return true;
  for (const release& r : releases_)
    if (t.address - r.address < r.bytes) return true;
  return memory_.admits(t.requester & 0xff, t.address) && memory_.at(t.address, t.length) != nullptr;
}

std::uint64_t iommu::tag_of(const payload::tlp& t) const {
  return t.address >> page_shift_ << function_bits | (t.requester & 0xff);
}

/// By the page's number, so a contiguous window of as many pages as there are entries has no conflicts; functions,
/// whose windows begin anywhere, are spread.
iommu::translation* iommu::set_of(std::uint64_t tag) {
  return cached_.data() + ((tag >> function_bits) + (tag & ((1u << function_bits) - 1))) % sets_ * config_.ways;
}

iommu::translation* iommu::look(std::uint64_t tag) {
  translation* const set = set_of(tag);
  translation* const end = set + config_.ways;
  translation* const at = std::find_if(set, end, [=](const translation& e) { return e.valid && e.page == tag; });
  return at == end ? nullptr : at;
}

/// The way for a new translation; nullptr when walks are under way for all of them: the owner is ticked when the first
/// of those ends.
iommu::translation* iommu::victim(std::uint64_t tag) {
  translation* best = nullptr;
  sim::cycle_t first_end = sim::never;
  translation* const set = set_of(tag);
  for (translation* e = set; e != set + config_.ways; ++e) {
    if (!e->valid) return e;
    if (e->filled > now())
      first_end = std::min(first_end, e->filled);
    else if (best == nullptr || e->used < best->used)
      best = e;
  }
  if (best == nullptr) {
    if (stalled_until_ != first_end) ++counts_.stalls;
    stalled_until_ = first_end;
    lookup_.blocked("walks of a set");
    wake_at(first_end);
  }
  return best;
}

/// Returns the edge at which it ends.
sim::cycle_t iommu::walk(const payload::tlp& t) {
  const auto free_sooner = [](const auto& a, const auto& b) { return a->free_at() < b->free_at(); };
  sim::server& walker = **std::min_element(walkers_.begin(), walkers_.end(), free_sooner);
  const sim::cycle_t begin = std::max(now(), walker.free_at());
  const std::uint64_t function = t.requester & 0xff;
  const auto entry_of = [&](unsigned level) { return t.address >> shift_of(level) << function_bits | function; };
  const unsigned lowest = std::max<unsigned>(leaf_level_ + 1, config_.cached_level);
  unsigned level = config_.levels;  // the walk begins with the table of this level
  for (unsigned k = lowest; k <= config_.levels && level == config_.levels; ++k)
    if (upper_.use(k, entry_of(k), begin)) level = k - 1;
  sim::time_ps taken = 0;
  const auto cycles = [&] { return (taken + domain().longest_cycle() - 1) / domain().longest_cycle(); };
  for (;; --level) {
    taken += config_.access_ps + timing_.extra(config_.tables);
    ++counts_.accesses;
    if (level >= lowest) upper_.fill(level, entry_of(level), begin + cycles());
    if (level == leaf_level_) break;
  }
  ++counts_.walks;
  walker.append(cycles());
  return begin + cycles();
}

void iommu::unmapped(std::uint64_t address, std::uint64_t bytes) {
  releases_.push_back({address, bytes, now() + 1});
  wake_next();
}

void iommu::take_out() {
  while (!releases_.empty() && releases_.front().from <= now()) {
    const release& r = releases_.front();
    const std::uint64_t first = r.address >> page_shift_, last = (r.address + r.bytes - 1) >> page_shift_;
    for (translation& e : cached_) {
      const std::uint64_t page = e.page >> function_bits;
      if (!e.valid || page < first || page > last) continue;
      e.valid = false;
      ++counts_.invalidations;
    }
    releases_.erase(releases_.begin());
  }
}

}  // namespace rnic::host
