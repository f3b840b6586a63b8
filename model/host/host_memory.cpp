// SPDX-License-Identifier: Apache-2.0
#include "model/host/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "model/sim/check.h"

namespace rnic::host {

namespace {

std::uint8_t* reserve(std::uint64_t bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(p);
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

host_memory::host_memory() : host_memory(config{}) {}

host_memory::host_memory(const config& c) : base_(c.base), bytes_(c.bytes) {
  for (auto& bucket : watches_) bucket.reserve(4);  // steady state allocates nothing
  if (c.bytes < page_bytes || c.bytes > (std::uint64_t{1} << 40) || c.bytes % page_bytes != 0)
    throw sim::config_error("host.memory.bytes: must be 4 KiB to 1 TiB, in whole pages of 4 KiB");
  if (c.base % page_bytes != 0 || c.bytes - 1 > ~c.base)
    throw sim::config_error("host.memory.base: must be a multiple of 4 KiB, at most 2^64 - host.memory.bytes");
  memory_ = reserve(bytes_);
  pages_ = reserve(bytes_ / page_bytes);
  owners_ = reserve(bytes_ / page_bytes);
  if (memory_ == nullptr || pages_ == nullptr || owners_ == nullptr) {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
    if (pages_ != nullptr) ::munmap(pages_, bytes_ / page_bytes);
    throw sim::config_error("host.memory.bytes: this machine cannot reserve so many addresses, choose a smaller value");
  }
  free_.emplace(0, bytes_);
}

host_memory::~host_memory() {
  ::munmap(memory_, bytes_);
  ::munmap(pages_, bytes_ / page_bytes);
  ::munmap(owners_, bytes_ / page_bytes);
}

host_memory::buffer host_memory::allocate(std::size_t bytes, std::size_t alignment, memory_class where,
                                          std::uint8_t function) {
  const std::uint64_t size = round_up(std::max<std::size_t>(bytes, 1), page_bytes);
  const std::uint64_t align = std::max<std::uint64_t>(alignment, page_bytes);
  for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
    const std::uint64_t begin = round_up(base_ + gap->first, align) - base_;
    const std::uint64_t end = gap->first + gap->second;
    if (begin > end || size > end - begin) continue;
    const std::uint64_t before = gap->first;
    free_.erase(gap);
    if (begin != before) free_.emplace(before, begin - before);
    if (begin + size != end) free_.emplace(begin + size, end - begin - size);
    mark_pages(begin, size, static_cast<std::uint8_t>(allocated | static_cast<std::uint8_t>(where)));
    if (function != 0 || has_functions_) std::memset(owners_ + begin / page_bytes, function, size / page_bytes);
    has_functions_ = has_functions_ || function != 0;
    allocated_bytes_ += size;
    return {base_ + begin, memory_ + begin, bytes};
  }
  return {};
}

void host_memory::release(const buffer& b) {
  if (b.pointer == nullptr) return;
  const std::uint64_t size = round_up(std::max<std::size_t>(b.bytes, 1), page_bytes);
  std::uint64_t begin = b.address - base_;
  std::uint64_t end = begin + size;
  RNIC_ASSERT(at(b.address, size) != nullptr, "release of memory that is not allocated");
  mark_pages(begin, size, 0);
  for (mapping_listener* l : mapping_listeners_) l->unmapped(b.address, size);
  ::madvise(memory_ + begin, size, MADV_DONTNEED);  // back to zeros, and back to the operating system
  allocated_bytes_ -= size;
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == end) {
    end += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      free_.erase(before);
    }
  }
  free_.emplace(begin, end - begin);
}

void host_memory::set_class(std::uint64_t address, std::size_t bytes, memory_class where) {
  RNIC_ASSERT(at(address, bytes) != nullptr, "class of memory that is not allocated");
  const std::uint64_t offset = address - base_;
  for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + bytes; ++page)
    pages_[page] = static_cast<std::uint8_t>((pages_[page] & ~class_mask) | static_cast<std::uint8_t>(where));
}

void host_memory::mark_pages(std::uint64_t offset, std::uint64_t bytes, std::uint8_t state) {
  std::memset(pages_ + offset / page_bytes, state, bytes / page_bytes);
}

void host_memory::watch(std::uint64_t address, std::size_t bytes, write_watcher& watcher) {
  RNIC_ASSERT(bytes != 0 && at(address, bytes) != nullptr, "watch of memory that is not allocated");
  const std::uint64_t offset = address - base_;
  const watch_entry entry{address, address + bytes, &watcher};
  for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + bytes; ++page) {
    bucket_of(page).push_back(entry);
    pages_[page] |= watched;
  }
  for (watch_listener* l : listeners_) l->watch_added();
}

void host_memory::remove(watch_listener& listener) {
  listeners_.erase(std::remove(listeners_.begin(), listeners_.end(), &listener), listeners_.end());
}

void host_memory::remove(mapping_listener& listener) {
  mapping_listeners_.erase(std::remove(mapping_listeners_.begin(), mapping_listeners_.end(), &listener),
                           mapping_listeners_.end());
}

void host_memory::unwatch(std::uint64_t address, std::size_t bytes, write_watcher& watcher) {
  const std::uint64_t offset = address - base_;
  if (bytes == 0 || offset >= bytes_) return;
  for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + bytes; ++page) {
    auto& bucket = bucket_of(page);
    const auto same = [&](const watch_entry& e) {
      return e.begin == address && e.end == address + bytes && e.watcher == &watcher;
    };
    const auto found = std::find_if(bucket.begin(), bucket.end(), same);
    if (found == bucket.end()) continue;
    *found = bucket.back();
    bucket.pop_back();
    const std::uint64_t first = base_ + page * page_bytes;
    const auto touches = [&](const watch_entry& e) { return e.begin < first + page_bytes && first < e.end; };
    if (std::none_of(bucket.begin(), bucket.end(), touches))
      pages_[page] = static_cast<std::uint8_t>(pages_[page] & ~watched);
  }
}

bool host_memory::device_write(std::uint64_t address, const std::uint8_t* data, std::uint32_t bytes, sim::time_ps at) {
  if (!tells(address, bytes)) {  // most are in one page, which nobody watches
    std::memcpy(memory_ + (address - base_), data, bytes);
    return true;
  }
  std::uint8_t* to = this->at(address, bytes);
  if (to == nullptr) return false;
  std::memcpy(to, data, bytes);
  const std::uint64_t first = (address - base_) / page_bytes;
  const std::uint64_t last = (address - base_ + (bytes == 0 ? 0 : bytes - 1)) / page_bytes;
  if (((pages_[first] | pages_[last]) & watched) != 0) notify(address, bytes, at);
  return true;
}

void host_memory::notify(std::uint64_t address, std::uint32_t bytes, sim::time_ps at) {
  to_notify_.clear();
  const std::uint64_t first = (address - base_) / page_bytes;
  const std::uint64_t last = (address - base_ + (bytes == 0 ? 0 : bytes - 1)) / page_bytes;
  for (std::uint64_t page = first; page <= last; ++page)
    for (const watch_entry& e : bucket_of(page))
      if (e.begin < address + bytes && address < e.end &&
          std::find(to_notify_.begin(), to_notify_.end(), e.watcher) == to_notify_.end())
        to_notify_.push_back(e.watcher);
  // A watcher may change the watches, so they are called from a list of their own.
  for (write_watcher* w : to_notify_) w->memory_written(address, bytes, at);
}

}  // namespace rnic::host
