// SPDX-License-Identifier: Apache-2.0
// Numbers of objects, one by one and in rows: long random sequences against a list of who has which number.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "host_driver/bitmap.h"

namespace rnic::host_driver {
namespace {

/// What anybody would write down: each number is free, reserved, or part of the piece that begins somewhere.
class ledger {
 public:
  ledger(std::uint32_t count, std::uint32_t reserved) : owner_(count, nobody) {
    std::fill_n(owner_.begin(), reserved, hardware);
  }
  /// Whether there are `count` free ones in a row from a multiple of `align` on.
  bool has(std::uint32_t count, std::uint32_t align) const {
    for (std::size_t at = 0; at + count <= owner_.size(); at += align)
      if (std::all_of(owner_.begin() + static_cast<std::ptrdiff_t>(at),
                      owner_.begin() + static_cast<std::ptrdiff_t>(at + count), [](long o) { return o == nobody; }))
        return true;
    return false;
  }
  /// False: somebody has one of them.
  bool take(std::uint32_t first, std::uint32_t count) {
    if (first + count > owner_.size()) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (owner_[first + i] != nobody) return false;
      owner_[first + i] = first;
    }
    return true;
  }
  void give(std::uint32_t number) { owner_[number] = nobody; }
  std::uint32_t free() const { return static_cast<std::uint32_t>(std::count(owner_.begin(), owner_.end(), nobody)); }

 private:
  static constexpr long nobody = -1, hardware = -2;
  std::vector<long> owner_;
};

class RowsOfNumbers : public testing::TestWithParam<unsigned> {};

TEST_P(RowsOfNumbers, AreThereExactlyWhenTheLedgerHasThem) {
  std::mt19937 random(GetParam());
  const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t size = 64u << below(4), reserved = below(size / 4);
  const std::uint32_t mask = (size << 3) - 1;  // three bits that tell a stale number
  bitmap numbers(size, mask, reserved);
  ledger plain(size, reserved);
  std::map<std::uint32_t, std::uint32_t> pieces;  // as they were given: first number and how many are left
  unsigned given = 0, refused_by_count = 0, refused_in_pieces = 0;
  const unsigned fewest = below(size / 2), most = fewest + size / 3;
  bool growing = true;
  for (unsigned step = 0; step < 4000; ++step) {
    const std::uint32_t used = size - reserved - plain.free();
    if (used > most || plain.free() == 0) growing = false;
    if (used <= fewest) growing = true;
    if (pieces.empty() || below(10) < (growing ? 7u : 3u)) {
      const std::uint32_t count = 1 + below(below(3) == 0 ? 24 : 3), align = 1u << below(6);
      const std::uint32_t first = numbers.allocate_range(count, align);
      ASSERT_EQ(first != bitmap::none, plain.has(count, align)) << step << ": " << count << " at " << align;
      if (first == bitmap::none) {
        ++(plain.free() < count ? refused_by_count : refused_in_pieces);
        continue;
      }
      ++given;
      const std::uint32_t place = first & (size - 1);
      ASSERT_EQ(place % align, 0u);
      ASSERT_LE(first, mask);
      ASSERT_EQ((first + count - 1) / size, first / size) << "one generation";
      ASSERT_TRUE(plain.take(place, count)) << step << ": somebody has one of " << count << " from " << place;
      pieces[first] = count;
    } else {
      auto at = pieces.begin();
      std::advance(at, below(static_cast<std::uint32_t>(pieces.size())));
      // The end of a piece at a time, so that what is free is in small pieces.
      const std::uint32_t part = below(2) == 0 ? at->second : 1 + below(at->second);
      const bool round_robin = below(4) != 0;
      for (std::uint32_t i = 0; i < part; ++i) {
        const std::uint32_t number = at->first + --at->second;
        numbers.release(number, round_robin);
        plain.give(number & (size - 1));
      }
      if (at->second == 0) pieces.erase(at);
    }
    ASSERT_EQ(numbers.free(), plain.free()) << step;
  }
  EXPECT_GT(given, 500u);
  EXPECT_GT(refused_in_pieces, 3u) << "as many are free, but not in a row";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RowsOfNumbers, testing::Range(1u, 25u));

TEST(Numbers, WhatCannotBeARowIsRefused) {
  bitmap numbers(64, 63, 8);
  for (const auto& [count, align] : {std::pair{0u, 1u}, {1u, 3u}, {57u, 1u}, {1u, 64u}, {~0u, 1u}, {2u, 1u << 31}})
    EXPECT_EQ(numbers.allocate_range(count, align), bitmap::none) << count << " at " << align;
  EXPECT_EQ(numbers.free(), 56u);
  EXPECT_EQ(numbers.allocate_range(56, 8), 8u);
  EXPECT_EQ(numbers.allocate_range(1, 0), bitmap::none);
}

}  // namespace
}  // namespace rnic::host_driver
