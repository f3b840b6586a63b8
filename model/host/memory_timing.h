// SPDX-License-Identifier: Apache-2.0
// When what the device asks for happens in memory: order of writes and reads, and the cache that takes its writes.
#pragma once

#include <cstdint>
#include <vector>

#include "model/host/host_memory.h"
#include "model/host/memory_jitter.h"
#include "model/sim/parameter.h"
#include "model/sim/types.h"

namespace rnic::host {

/// A command of the driver is given up after less than a second.
inline constexpr std::uint64_t slow_ps = 1000 * sim::ps_per_us;

struct memory_timing_config {
  /// Read packet to first completion, LLC hit.
  sim::parameter<sim::time_ps> llc_read_ps{160'000, {1, slow_ps, "ps", "calibration 5: 310 ns for 64 bytes in all"}};
  sim::parameter<sim::time_ps> dram_extra_ps{70'000, {0, slow_ps, "ps", "calibration 5"}};
  sim::parameter<sim::time_ps> remote_extra_ps{100'000, {0, slow_ps, "ps", "calibration 5"}};  ///< other socket
  /// Write packet to a load that sees it.
  sim::parameter<sim::time_ps> posted_visible_ps{80'000, {1, slow_ps, "ps", "calibration 5: 160 ns in all"}};
  /// A line that no cache of the device's socket holds, until it can be written: it is owned, its victim written back.
  /// The read of 8 bytes behind their write takes 733 ns of a window of 64 MB, 642 of 4 KB; the read is 4 ns behind.
  sim::parameter<sim::time_ps> allocate_ps{
      95'000,
      {0, slow_ps, "ps",
       "calibration 2.4: a write to a line that is not in the cache; fitted to 8 bytes of 64 MB and of 4 KB"}};
  /// What of the LLC the device's writes may allocate: knee between 1 and 1.5 MB of a window on 15 MB.
  sim::parameter<unsigned> io_cache_sets{
      12288, {1, 1u << 20, "sets of 64-byte lines", "calibration 2.4: 1.5 MB of the LLC for the device's writes"}};
  sim::parameter<unsigned> io_cache_ways{2, {1, 32, "ways", "calibration 2.4: 2 of 20"}};
  memory_jitter_config jitter;

  void list(sim::fields& are) {
    are("llc_read_ps", llc_read_ps);
    are("dram_extra_ps", dram_extra_ps);
    are("remote_extra_ps", remote_extra_ps);
    are("posted_visible_ps", posted_visible_ps);
    are("allocate_ps", allocate_ps);
    are("io_cache_sets", io_cache_sets);
    are("io_cache_ways", io_cache_ways);
    are("jitter", jitter);
  }
};

/// Lines that writes of the device have allocated, least recently written ones leave. Indexed by the line's number, so
/// a contiguous window up to its size has no conflicts. All lines of a packet are looked up side by side: each set has
/// a port of its own, as the slices of an LLC.
class io_cache {
 public:
  /// Throws nothing; sets and ways are at least 1.
  io_cache(unsigned sets, unsigned ways);
  bool holds(std::uint64_t line) const;
  /// A write of the line. True: it was there. It is the most recent one of its set afterwards.
  bool write(std::uint64_t line);

 private:
  std::uint64_t* set_of(std::uint64_t line) { return lines_.data() + line % sets_ * ways_; }

  unsigned sets_, ways_;
  std::vector<std::uint64_t> lines_;  // by set, the most recent one first
};

/// Writes of the device become visible in order, one in a cycle of the root complex; each needs its lines in the cache
/// of the device's socket first. Lines of class llc are there; others when the device wrote them lately, else they are
/// allocated, many at a time, so that writes lose no bandwidth by it. A read does not pass the writes before it: its
/// access begins when they have their lines. It finds what the device wrote in that cache, wherever the memory is; its
/// own misses allocate nothing (DDIO as pcie-bench measured it, bibliography calibration 2.4). Reads take longer by
/// chance where host.jitter says so (memory_jitter.h).
class memory_timing {
 public:
  /// `cycle_ps`: of the root complex, rounded up. Throws sim::config_error, naming `owner` and the parameter.
  memory_timing(const char* owner, const memory_timing_config& c, const host_memory& memory, sim::time_ps cycle_ps);

  /// A write has arrived, behind all before it: when a processor sees it.
  sim::time_ps write(std::uint64_t address, std::uint32_t bytes, sim::time_ps arrival);
  /// A read has arrived, behind all writes before it: when its first completion is ready.
  sim::time_ps read(std::uint64_t address, std::uint32_t bytes, sim::time_ps arrival);
  /// What an access takes that finds its line where `where` says, beyond one of the LLC that takes as long as it
  /// usually does.
  sim::time_ps extra(memory_class where);

  /// When a processor sees the last write that has arrived, and with it all before; 0: there was none.
  sim::time_ps visible() const { return visible_; }

  /// Writes that waited for a line, reads of memory, and of memory of the other socket.
  const std::uint64_t& allocations() const { return allocations_; }

 private:
  sim::time_ps latency(std::uint64_t address, std::uint32_t bytes) const;

  memory_timing_config config_;
  const host_memory& memory_;
  sim::time_ps cycle_ps_;
  io_cache cache_;
  memory_jitter jitter_;
  sim::time_ps visible_ = 0;  // of the last write
  std::uint64_t allocations_ = 0;
};

}  // namespace rnic::host
