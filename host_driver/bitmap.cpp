// SPDX-License-Identifier: Apache-2.0
// Allocators of object numbers and of translation entries.
#include "host_driver/bitmap.h"

#include <algorithm>

namespace rnic::host_driver {

bitmap::bitmap(std::uint32_t count, std::uint32_t mask, std::uint32_t reserved)
    : taken_(count, false), count_(count), mask_(mask), reserved_(std::min(reserved, count)) {
  for (std::uint32_t i = 0; i < reserved && i < count; ++i) taken_[i] = true;
}

std::uint32_t bitmap::find_from(std::uint32_t first) const {
  const auto at = std::find(taken_.begin() + first, taken_.end(), false);
  return at == taken_.end() ? none : static_cast<std::uint32_t>(at - taken_.begin());
}

std::uint32_t bitmap::allocate() {
  std::uint32_t number = find_from(last_);
  if (number == none) {
    top_ = (top_ + count_) & mask_;
    number = find_from(0);
  }
  if (number == none) return none;
  taken_[number] = true;
  ++in_use_;
  last_ = number + 1 == count_ ? 0 : number + 1;
  return number | top_;
}

/// Behind a number that is in the way the next multiple is tried.
std::uint32_t bitmap::find_range(std::uint64_t first, std::uint32_t count, std::uint64_t align) const {
  for (std::uint64_t start = (first + align - 1) / align * align; start + count <= count_;) {
    const auto begin = taken_.begin() + static_cast<std::ptrdiff_t>(start), end = begin + count;
    auto in_the_way = std::find(begin, end, true);
    if (in_the_way == end) return static_cast<std::uint32_t>(start);
    const auto next = static_cast<std::uint64_t>(in_the_way - taken_.begin()) + 1;
    start = (next + align - 1) / align * align;
  }
  return none;
}

std::uint32_t bitmap::allocate_range(std::uint32_t count, std::uint32_t align) {
  if (count == 0 || (align & (align - 1)) != 0) return none;
  if (count == 1 && align <= 1) return allocate();
  const std::uint64_t step = std::max(align, 1u);
  std::uint32_t first = find_range(last_, count, step);
  if (first == none) {
    top_ = (top_ + count_) & mask_;
    first = find_range(0, count, step);
  }
  if (first == none) return none;
  std::fill_n(taken_.begin() + first, count, true);
  in_use_ += count;
  if (first == last_) last_ = (first + count) & (count_ - 1);
  return first | top_;
}

bool bitmap::claim(std::uint32_t number) {
  number &= count_ - 1;
  if (number < reserved_) return claimed_.insert(number).second;
  if (taken_[number]) return false;
  taken_[number] = true;
  ++in_use_;
  return true;
}

void bitmap::release(std::uint32_t number, bool round_robin) {
  number &= count_ - 1;
  if (number < reserved_) {
    claimed_.erase(number);
    return;
  }
  if (!taken_[number]) return;
  if (!round_robin) {
    last_ = std::min(last_, number);
    top_ = (top_ + count_) & mask_;
  }
  taken_[number] = false;
  --in_use_;
}

buddy::buddy(unsigned log_size) : free_(log_size + 1) { free_[log_size].insert(0); }

buddy::buddy(std::uint32_t first, std::uint32_t count) : free_(32) {
  while (count != 0) {
    unsigned order = 0;
    while (order < 31 && (first >> order & 1) == 0 && 2u << order <= count) ++order;
    free_[order].insert(first);
    first += 1u << order;
    count -= 1u << order;
  }
}

std::uint32_t buddy::allocate(unsigned order) {
  unsigned from = order;
  while (from < free_.size() && free_[from].empty()) ++from;
  if (from >= free_.size()) return none;
  const std::uint32_t first = *free_[from].begin();
  free_[from].erase(free_[from].begin());
  while (from > order) {
    --from;
    free_[from].insert(first + (1u << from));
  }
  return first;
}

void buddy::release(std::uint32_t first, unsigned order) {
  while (order + 1 < free_.size()) {
    const auto twin = free_[order].find(first ^ (1u << order));
    if (twin == free_[order].end()) break;
    free_[order].erase(twin);
    first &= ~(1u << order);
    ++order;
  }
  free_[order].insert(first);
}

bool buddy::claim_upper_half() {
  const unsigned log_half = log_size() - 1;
  if (!free_[log_size()].empty()) {
    free_[log_size()].clear();
    free_[log_half] = {0};
    return true;
  }
  return free_[log_half].erase(1u << log_half) != 0;
}

}  // namespace rnic::host_driver
