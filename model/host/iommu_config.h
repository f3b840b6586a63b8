// SPDX-License-Identifier: Apache-2.0
// Parameters of the IOMMU.
#pragma once

#include <cstdint>

#include "model/host/host_memory.h"
#include "model/sim/parameter.h"

namespace rnic::host {

enum class iommu_page : std::uint8_t { small, large, huge };

/// As pcie-bench found it in an E5-2620v2 without large pages ("iommu-nosp"). A window of so many 4 KiB pages, read at
/// random: 128 miss 1.7 % of the time, 256, 512 and 1024 miss 52, 76 and 88 %, as 124 of 128 translations would. (The
/// paper infers 64 from the rates of later hosts, which fall between 64 and 128 pages.)
struct iommu_config {
  sim::parameter<bool> enable{false, "design: hosts were calibrated without"};
  sim::parameter<unsigned> entries{128, {1, 65536, "translations", "calibration 2.4: 1 MB misses 52 %, 512 KB 1.7 %"}};
  /// Divides the number of entries.
  sim::parameter<unsigned> ways{8, {1, 65536, "ways", "design: what was measured does not tell them"}};
  sim::parameter<unsigned> lookup_cycles{
      1, {1, 1000, "cycles of the root complex", "calibration 2.4: a hit costs less than what is resolved, 13 ns"}};
  sim::parameter<iommu_page> page{iommu_page::small,
                                  {"4k, 2m, 1g", "calibration 2.4: with pages of 2 MB no window up to 64 MB misses"}};
  sim::parameter<unsigned> levels{
      3, {3, 5, "levels", "calibration 2.4: 0.1 % of reads that miss take 440 ns, 3 accesses"}};
  /// Entries of the tables of this level and above are cached; 1 is the table of 4 KiB pages.
  sim::parameter<unsigned> cached_level{
      3, {2, 6, "level", "calibration 2.4: a miss takes 293 ns in windows of 1 to 64 MB, 2 accesses"}};
  sim::parameter<unsigned> walk_entries{
      16, {1, 4096, "table entries", "design: windows that were measured need one, 64 MB in the first GB"}};
  sim::parameter<unsigned> walkers{
      5, {1, 256, "page walks", "calibration 2.4: 17.7 M reads/s of which each misses, 293 ns each; writes 18.8 M/s"}};
  /// Of an entry of a table in the LLC.
  sim::parameter<sim::time_ps> access_ps{146'500, {1, 1'000'000'000, "ps", "calibration 2.4: 293 ns for 2 of them"}};
  /// Where the tables are: beyond the LLC an access takes dram_extra_ps or remote_extra_ps more.
  sim::parameter<memory_class> tables{
      memory_class::llc, {"llc, dram, remote", "calibration 2.4: caches that were thrashed before change nothing"}};

  void list(sim::fields& are) {
    are("enable", enable);
    are("entries", entries);
    are("ways", ways);
    are("lookup_cycles", lookup_cycles);
    are("page", page);
    are("levels", levels);
    are("cached_level", cached_level);
    are("walk_entries", walk_entries);
    are("walkers", walkers);
    are("access_ps", access_ps);
    are("tables", tables);
  }
};

}  // namespace rnic::host
