// SPDX-License-Identifier: Apache-2.0
#include "model/icm/icm_map.h"

#include <algorithm>

namespace rnic::icm {

namespace {
constexpr unsigned page_bits = 12;
constexpr std::uint64_t page_mask = (std::uint64_t{1} << page_bits) - 1;
/// Pages of a range, not running over the end of the address space.
std::uint64_t page_count(std::uint64_t first_page, std::uint64_t icm, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  const std::uint64_t last = bytes - 1 > ~icm ? ~std::uint64_t{0} : icm + (bytes - 1);
  return (last >> page_bits) - first_page + 1;
}
}  // namespace

icm_map::chunk* icm_map::find(std::uint64_t number) const {
  if (index_.empty()) return nullptr;
  for (std::size_t i = bucket(number);; i = (i + 1) & (index_.size() - 1)) {
    chunk* const c = index_[i];
    if (c == nullptr || c->number == number) return c;
  }
}

icm_map::chunk& icm_map::get(std::uint64_t number) {
  if (chunk* const c = find(number); c != nullptr) return *c;
  if ((chunks_.size() + 1) * 2 > index_.size()) rehash(std::max<std::size_t>(64, index_.size() * 2));
  chunks_.push_back(std::make_unique<chunk>());
  chunk& c = *chunks_.back();
  c.number = number;
  c.used = 0;
  std::fill(std::begin(c.bus), std::end(c.bus), not_mapped);
  std::size_t i = bucket(number);
  while (index_[i] != nullptr) i = (i + 1) & (index_.size() - 1);
  index_[i] = &c;
  return c;
}

void icm_map::rehash(std::size_t buckets) {
  index_.assign(buckets, nullptr);
  for (const auto& c : chunks_) {
    std::size_t i = bucket(c->number);
    while (index_[i] != nullptr) i = (i + 1) & (index_.size() - 1);
    index_[i] = c.get();
  }
}

void icm_map::map(std::uint64_t icm, std::uint64_t bus, std::uint64_t bytes) {
  const std::uint64_t first = icm >> page_bits;
  const std::uint64_t count = page_count(first, icm, bytes);
  chunk* c = nullptr;
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::uint64_t page = first + n;
    if (c == nullptr || c->number != page >> chunk_bits) c = &get(page >> chunk_bits);
    std::uint64_t& entry = c->bus[page & ((1u << chunk_bits) - 1)];
    if (entry == not_mapped) {
      ++c->used;
      ++pages_;
    }
    entry = (bus & ~page_mask) + (n << page_bits);
  }
  changed();
}

void icm_map::unmap(std::uint64_t icm, std::uint64_t bytes) {
  const std::uint64_t first = icm >> page_bits;
  const std::uint64_t count = page_count(first, icm, bytes);
  if (count == 0) return;
  const std::uint64_t first_chunk = first >> chunk_bits, last_chunk = (first + count - 1) >> chunk_bits;
  if (last_chunk - first_chunk < chunks_.size()) {
    for (std::uint64_t n = first_chunk; n <= last_chunk; ++n)
      if (chunk* const c = find(n); c != nullptr) unmap(*c, first, count);
  } else {
    for (const auto& c : chunks_) unmap(*c, first, count);
  }
  changed();
}

/// Unmaps what lies in the chunk of `count` pages from `first`.
void icm_map::unmap(chunk& c, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t size = std::uint64_t{1} << chunk_bits;
  const std::uint64_t chunk_first = c.number << chunk_bits;
  const std::uint64_t from = std::max(first, chunk_first);
  const std::uint64_t to = std::min(first + count, chunk_first + size);
  for (std::uint64_t page = from; page < to; ++page) {
    std::uint64_t& entry = c.bus[page & (size - 1)];
    if (entry == not_mapped) continue;
    entry = not_mapped;
    --c.used;
    --pages_;
  }
}

void icm_map::clear() {
  chunks_.clear();
  index_.clear();
  pages_ = 0;
  changed();
}

std::optional<std::uint64_t> icm_map::translate(std::uint64_t icm) const {
  const std::uint64_t page = icm >> page_bits;
  const chunk* const c = find(page >> chunk_bits);
  if (c == nullptr) return std::nullopt;
  const std::uint64_t bus = c->bus[page & ((1u << chunk_bits) - 1)];
  if (bus == not_mapped) return std::nullopt;
  return bus | (icm & page_mask);
}

}  // namespace rnic::icm
