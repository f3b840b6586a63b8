// SPDX-License-Identifier: Apache-2.0
// The interconnect context memory's address space: which host pages back it, and where the tables are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace rnic::icm {

/// Tables in ICM, with base address, entry size and number of entries (INIT_HCA).
enum class table : std::uint8_t { qpc, srqc, cqc, eqc, dmpt, mtt, cmpt, mcg, rdmarc, altc, auxc, count };
struct table_layout {
  std::uint64_t base = 0;
  std::uint32_t entry_bytes = 0;
  std::uint32_t log_entries = 0;
};

/// Mapping RAM and table registers. Written by firmware through the register bus (between two edges of the core
/// clock), read by every block that looks something up in ICM.
class icm_map {
 public:
  /// Backs [icm, icm + bytes) with host memory at `bus`; 4 KiB granularity.
  void map(std::uint64_t icm, std::uint64_t bus, std::uint64_t bytes);
  /// Removes what is mapped of [icm, icm + bytes); the rest is ignored.
  void unmap(std::uint64_t icm, std::uint64_t bytes);
  void clear();
  /// Bus address of an ICM address, if mapped; the 4 KiB page it lies in is contiguous.
  std::optional<std::uint64_t> translate(std::uint64_t icm) const;
  icm_map() = default;
  icm_map(const icm_map&) = delete;
  icm_map& operator=(const icm_map&) = delete;
  ~icm_map() {
    for (listener* l : listeners_) l->map_ = nullptr;
  }

  /// Calls `told`, between two edges, when what is mapped has changed, as long as both live.
  class listener {
   public:
    listener(const icm_map& map, std::function<void()> told) : map_(&map), told_(std::move(told)) {
      map.listeners_.push_back(this);
    }
    ~listener() {
      if (map_ == nullptr) return;
      auto& all = map_->listeners_;
      all.erase(std::remove(all.begin(), all.end(), this), all.end());
    }
    listener(const listener&) = delete;
    listener& operator=(const listener&) = delete;

   private:
    friend class icm_map;
    const icm_map* map_;
    std::function<void()> told_;
  };
  /// Number of 4 KiB pages mapped.
  std::uint64_t pages() const { return pages_; }

  table_layout& layout(table t) { return layout_[static_cast<unsigned>(t)]; }
  const table_layout& layout(table t) const { return layout_[static_cast<unsigned>(t)]; }
  /// ICM address of entry `index` (taken modulo the table's size).
  std::uint64_t entry(table t, std::uint32_t index) const {
    const table_layout& l = layout(t);
    return l.base + (std::uint64_t{index} & ((std::uint64_t{1} << l.log_entries) - 1)) * l.entry_bytes;
  }

 private:
  // Two levels: a hash table of chunks of 512 pages (2 MiB of ICM), each an array of bus pages.
  static constexpr unsigned chunk_bits = 9;
  static constexpr std::uint64_t not_mapped = ~std::uint64_t{0};
  struct chunk {
    std::uint64_t number;
    std::uint32_t used;
    std::uint64_t bus[1u << chunk_bits];
  };
  void changed() const {
    for (const listener* l : listeners_) l->told_();
  }
  chunk* find(std::uint64_t number) const;
  chunk& get(std::uint64_t number);
  void unmap(chunk& c, std::uint64_t first, std::uint64_t count);
  void rehash(std::size_t buckets);
  std::size_t bucket(std::uint64_t number) const { return (number * 0x9e3779b97f4a7c15u >> 32) & (index_.size() - 1); }

  std::vector<std::unique_ptr<chunk>> chunks_;  // kept when empty: the same ranges come and go
  std::vector<chunk*> index_;                   // open addressing, a power of two, at most half full
  std::uint64_t pages_ = 0;
  mutable std::vector<listener*> listeners_;
  table_layout layout_[static_cast<unsigned>(table::count)];
};

}  // namespace rnic::icm
