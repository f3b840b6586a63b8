// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory_timing.h"

#include <algorithm>
#include <string>

#include "model/sim/check.h"

namespace rnic::host {

namespace {
constexpr std::uint64_t line_bytes = 64;
constexpr std::uint64_t no_line = ~std::uint64_t{0};
}  // namespace

io_cache::io_cache(unsigned sets, unsigned ways)
    : sets_(sets), ways_(ways), lines_(std::size_t{sets} * ways, no_line) {}

bool io_cache::holds(std::uint64_t line) const {
  const std::uint64_t* const set = lines_.data() + line % sets_ * ways_;
  return std::find(set, set + ways_, line) != set + ways_;
}

bool io_cache::write(std::uint64_t line) {
  std::uint64_t* const set = set_of(line);
  std::uint64_t* const found = std::find(set, set + ways_, line);
  const bool hit = found != set + ways_;
  std::copy_backward(set, hit ? found : found - 1, hit ? found + 1 : found);
  *set = line;
  return hit;
}

memory_timing::memory_timing(const char* owner, const memory_timing_config& c, const host_memory& memory,
                             sim::time_ps cycle_ps)
    : config_(sim::checked(c, owner)),
      memory_(memory),
      cycle_ps_(cycle_ps),
      cache_(c.io_cache_sets, c.io_cache_ways),
      jitter_(owner, c.jitter) {
  if (c.llc_read_ps < c.posted_visible_ps)
    throw sim::config_error(std::string(owner) +
                            ".llc_read_ps: must not be less than posted_visible_ps, a read would pass a write");
}

sim::time_ps memory_timing::write(std::uint64_t address, std::uint32_t bytes, sim::time_ps arrival) {
  sim::time_ps at = arrival + config_.posted_visible_ps;
  if (memory_.class_of(address) != memory_class::llc && bytes != 0) {
    bool hit = true;
    for (std::uint64_t line = address / line_bytes; line <= (address + bytes - 1) / line_bytes; ++line)
      hit &= cache_.write(line);
    if (!hit) {
      ++allocations_;
      at += config_.allocate_ps;
    }
  }
  return visible_ = std::max(at, visible_ + cycle_ps_);
}

sim::time_ps memory_timing::read(std::uint64_t address, std::uint32_t bytes, sim::time_ps arrival) {
  // visible_ may be less than posted_visible_ps only before the first write.
  const sim::time_ps ordered = visible_ == 0 ? 0 : visible_ - config_.posted_visible_ps;
  const sim::time_ps taken = latency(address, bytes);
  return std::max(arrival, ordered) + taken + jitter_.next(taken != config_.llc_read_ps);
}

sim::time_ps memory_timing::extra(memory_class where) {
  const sim::time_ps farther = where == memory_class::llc    ? sim::time_ps{0}
                               : where == memory_class::dram ? config_.dram_extra_ps
                                                             : config_.remote_extra_ps;
  return farther + jitter_.next(where != memory_class::llc);
}

sim::time_ps memory_timing::latency(std::uint64_t address, std::uint32_t bytes) const {
  const memory_class where = memory_.class_of(address);
  if (where == memory_class::llc || bytes == 0) return config_.llc_read_ps;
  for (std::uint64_t line = address / line_bytes; line <= (address + bytes - 1) / line_bytes; ++line)
    if (!cache_.holds(line))
      return config_.llc_read_ps + (where == memory_class::dram ? config_.dram_extra_ps : config_.remote_extra_ps);
  return config_.llc_read_ps;
}

}  // namespace rnic::host
