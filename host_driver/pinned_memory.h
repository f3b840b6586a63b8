// SPDX-License-Identifier: Apache-2.0
// Memory of programs that is held in place for the device, and how much of it a program may have.
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>

namespace rnic::host_driver {

/// No limit, as `ulimit -l` says "unlimited": the highest number that configuration files have.
inline constexpr std::uint64_t no_memlock = ~std::uint64_t{0} >> 1;

/// Counts pages as the kernel does for what a program registers (core/umem.c:ib_umem_get, ib/doorbell.c): all pages of
/// a region, of a queue's buffer, and those with doorbell records once each. RLIMIT_MEMLOCK is in whole pages.
class pinned_memory {
 public:
  static constexpr unsigned page_shift = 12;

  explicit pinned_memory(std::uint64_t limit_bytes) : limit_(limit_bytes >> page_shift) {}

  /// Pages that the bytes touch.
  static std::uint64_t pages_of(std::uint64_t first, std::uint64_t bytes) {
    return bytes == 0 ? 0 : ((first + bytes - 1) >> page_shift) - (first >> page_shift) + 1;
  }
  /// 0, or -ENOMEM: they would be more than the limit; nothing has changed then.
  int pin(std::uint64_t pages) {
    if (pages > limit_ || pages_ > limit_ - pages) return -ENOMEM;
    pages_ += pages;
    return 0;
  }
  void unpin(std::uint64_t pages) { pages_ -= pages; }
  /// The page of a doorbell record, which it shares with others.
  int pin_record(std::uint64_t address) {
    unsigned& users = records_[address >> page_shift];
    const int error = users == 0 ? pin(1) : 0;
    if (error != 0) {
      records_.erase(address >> page_shift);
      return error;
    }
    ++users;
    return 0;
  }
  void unpin_record(std::uint64_t address) {
    const auto at = records_.find(address >> page_shift);
    if (at == records_.end() || --at->second != 0) return;
    records_.erase(at);
    unpin(1);
  }
  std::uint64_t bytes() const { return pages_ << page_shift; }
  bool is_limited() const { return limit_ != no_memlock >> page_shift; }
  std::uint64_t limit_bytes() const { return is_limited() ? limit_ << page_shift : no_memlock; }

 private:
  std::uint64_t limit_;
  std::uint64_t pages_ = 0;
  std::map<std::uint64_t, unsigned> records_;  // users of a page
};

}  // namespace rnic::host_driver
