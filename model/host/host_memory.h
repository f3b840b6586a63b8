// SPDX-License-Identifier: Apache-2.0
// The memory behind the slot: bytes that processor and device share, by bus address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "model/sim/parameter.h"
#include "model/sim/seldom.h"
#include "model/sim/types.h"

namespace rnic::host {

/// Where a device access to a region finds the data (adds to the root complex's read latency).
enum class memory_class : std::uint8_t { llc, dram, remote };

/// Told when a device write has become visible in a watched range. Called in the root complex's tick; it may remove or
/// add watches, but must not write memory through the device.
class write_watcher {
 public:
  virtual ~write_watcher() = default;
  /// `address` and `bytes` are what the device wrote; `at` is the time at which a processor's load sees it.
  virtual void memory_written(std::uint64_t address, std::uint32_t bytes, sim::time_ps at) = 0;
};

/// Told when somebody begins to watch: what is to be written there must not be put off any more.
class watch_listener {
 public:
  virtual ~watch_listener() = default;
  virtual void watch_added() = 0;
};

/// Told when pages are devices' no more.
class mapping_listener {
 public:
  virtual ~mapping_listener() = default;
  /// [address, address + bytes), in whole pages, has been released.
  virtual void unmapped(std::uint64_t address, std::uint64_t bytes) = 0;
};

/// DMA-able memory. A range of bus addresses is reserved once and backed by the operating system page by page at first
/// touch, so bus address and pointer differ by a constant, pointers are stable, and looking up costs two compares.
/// Only what has been allocated exists for devices; anything else is an unsupported request.
///
/// A page belongs to the function that it was allocated for, as an IOMMU has it whose domains are the functions and
/// whose translation changes no address (requester IDs, PCI Express Base Specification 3.0, 2.2.6.2): others cannot
/// reach it. What such an IOMMU costs in time is in iommu.h. Function 0 is the host's own.
class host_memory {
 public:
  struct config {
    config() = default;
    config(std::uint64_t from, std::uint64_t size) : base(from) { bytes = size; }

    std::uint64_t base = 0x1'0000'0000;  ///< first bus address, multiple of 4 KiB (above 4 GiB: no overlap with BARs)
    /// Size of the range.
    sim::parameter<std::uint64_t> bytes{
        32ull << 30, {1u << 26, 1ull << 40, "bytes", "design: addresses; pages are there when they are used"}};

    void list(sim::fields& are) { are("memory.bytes", bytes); }
  };
  /// A physically contiguous buffer, zeroed, in whole 4 KiB pages.
  struct buffer {
    std::uint64_t address = 0;        ///< bus address
    std::uint8_t* pointer = nullptr;  ///< the same byte as the processor sees it
    std::size_t bytes = 0;
  };
  static constexpr std::uint64_t page_bytes = 4096;

  host_memory();
  /// Throws sim::config_error when the range cannot be reserved.
  explicit host_memory(const config& c);
  ~host_memory();
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  /// Zeroed contiguous memory at a multiple of max(alignment, 4096); alignment is a power of two. An empty buffer
  /// (pointer nullptr) when no gap is large enough. `function`: whose it is.
  buffer allocate(std::size_t bytes, std::size_t alignment = page_bytes, memory_class where = memory_class::llc,
                  std::uint8_t function = 0);
  /// Gives a buffer from allocate() back; devices get unsupported requests there from now on.
  void release(const buffer& b);
  /// Moves a page-aligned part of an allocated buffer to another class.
  void set_class(std::uint64_t address, std::size_t bytes, memory_class where);

  /// Pointer to [address, address + bytes), or nullptr when not all of it is allocated.
  std::uint8_t* at(std::uint64_t address, std::size_t bytes) const {
    const std::uint64_t offset = address - base_;
    if (offset >= bytes_ || bytes > bytes_ - offset) return nullptr;
    const std::uint64_t last = bytes == 0 ? offset : offset + bytes - 1;
    for (std::uint64_t page = offset / page_bytes; page <= last / page_bytes; ++page)
      if ((pages_[page] & allocated) == 0) return nullptr;
    return memory_ + offset;
  }
  /// Whether a packet of `function`, which crosses no page, may go there: the page is its own.
  bool admits(std::uint16_t function, std::uint64_t address) const {
    const std::uint64_t offset = address - base_;
    return sim::seldom(offset >= bytes_) ||
           (sim::seldom(has_functions_) ? owners_[offset / page_bytes] : 0) == function;
  }
  /// For the simulation's speed only: bytes of a packet that has just arrived are used a little later, so the machine
  /// that simulates can fetch them into its caches meanwhile.
  void touch_soon(std::uint64_t address, std::size_t bytes, bool write) const {
    const std::uint64_t offset = address - base_;
    if (offset >= bytes_ || bytes > bytes_ - offset) return;
    constexpr std::size_t line = 64;
    for (std::size_t i = 0; i < bytes; i += line) {
      if (write)
        __builtin_prefetch(memory_ + offset + i, 1);
      else
        __builtin_prefetch(memory_ + offset + i, 0);
    }
  }
  /// Class of an allocated address; llc for any other.
  memory_class class_of(std::uint64_t address) const {
    const std::uint64_t offset = address - base_;
    return offset >= bytes_ ? memory_class::llc : static_cast<memory_class>(pages_[offset / page_bytes] & class_mask);
  }

  /// Tells `watcher` about device writes that touch [address, address + bytes) from now on. The same watcher may
  /// watch several ranges; it must outlive the watch. `bytes` at least 1, within allocated memory.
  void watch(std::uint64_t address, std::size_t bytes, write_watcher& watcher);
  /// Ends the watch with the same arguments; no effect when there is none.
  void unwatch(std::uint64_t address, std::size_t bytes, write_watcher& watcher);

  /// Who is told of new watches, until it is removed.
  void add(watch_listener& listener) { listeners_.push_back(&listener); }
  void remove(watch_listener& listener);
  /// Who is told of releases, until it is removed.
  void add(mapping_listener& listener) { mapping_listeners_.push_back(&listener); }
  void remove(mapping_listener& listener);
  /// Whether a write there would have an effect that can be seen without looking at the bytes: a watch, or a refusal.
  bool tells(std::uint64_t address, std::uint32_t bytes) const {
    const std::uint64_t offset = address - base_;
    if (offset >= bytes_ || bytes > bytes_ - offset || bytes == 0) return true;
    const std::uint8_t state = pages_[offset / page_bytes];
    return sim::seldom(offset % page_bytes + bytes > page_bytes) || (state & (allocated | watched)) != allocated;
  }

  /// A device write as the root complex makes it visible. Returns false, and writes nothing, when not allocated.
  bool device_write(std::uint64_t address, const std::uint8_t* data, std::uint32_t bytes, sim::time_ps at);

  std::size_t allocated_bytes() const { return allocated_bytes_; }
  /// The first bus address beyond the range.
  std::uint64_t end() const { return base_ + bytes_; }

 private:
  static constexpr std::uint8_t class_mask = 0x03;
  static constexpr std::uint8_t watched = 0x40;
  static constexpr std::uint8_t allocated = 0x80;
  struct watch_entry {
    std::uint64_t begin;
    std::uint64_t end;
    write_watcher* watcher;
  };
  static constexpr std::size_t buckets = 1024;
  std::vector<watch_entry>& bucket_of(std::uint64_t page) { return watches_[page % buckets]; }
  void notify(std::uint64_t address, std::uint32_t bytes, sim::time_ps at);
  void mark_pages(std::uint64_t offset, std::uint64_t bytes, std::uint8_t state);

  std::uint64_t base_;
  std::uint64_t bytes_;
  std::uint8_t* memory_ = nullptr;
  std::uint8_t* pages_ = nullptr;                          // one state byte for each 4 KiB
  std::uint8_t* owners_ = nullptr;                         // and one of the function that it belongs to
  bool has_functions_ = false;                             // some page is not function 0's
  std::map<std::uint64_t, std::uint64_t> free_;            // offset -> bytes of the gaps; not on any fast path
  std::array<std::vector<watch_entry>, buckets> watches_;  // by page; a watch is in the bucket of each of its pages
  std::vector<write_watcher*> to_notify_;
  std::size_t allocated_bytes_ = 0;
  std::vector<watch_listener*> listeners_;
  std::vector<mapping_listener*> mapping_listeners_;
};

}  // namespace rnic::host
