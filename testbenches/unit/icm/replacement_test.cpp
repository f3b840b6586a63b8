// SPDX-License-Identifier: Apache-2.0
// Which line of a full set makes room.
#include <gtest/gtest.h>

#include <set>

#include "model/icm/tag_array.h"

namespace rnic::icm {
namespace {

/// A set of four lines, filled with the keys 0 to 3 in this order, of which 0 was used again.
tag_array<int> full_set(replacement policy) {
  tag_array<int> a("test.entries", 4, 4, policy);
  for (std::uint64_t key = 0; key != 4; ++key) a.insert(key) = static_cast<int>(key);
  EXPECT_NE(a.find(0), nullptr);
  return a;
}

TEST(Replacement, LeastRecentlyUsedGoes) {
  auto a = full_set(replacement::lru);
  a.insert(4) = 4;
  EXPECT_EQ(a.find(1), nullptr);
  EXPECT_EQ(*a.find(0), 0);
  EXPECT_EQ(*a.find(4), 4);
}

TEST(Replacement, FirstInGoesFirstHoweverOftenUsed) {
  auto a = full_set(replacement::fifo);
  a.insert(4) = 4;
  EXPECT_EQ(a.find(0), nullptr);
  EXPECT_EQ(*a.find(1), 1);
  EXPECT_EQ(*a.find(4), 4);
}

TEST(Replacement, RandomTakesEveryWayInTheLongRun) {
  auto a = full_set(replacement::random);
  std::set<std::uint64_t> gone;
  std::set<std::uint64_t> there{0, 1, 2, 3};
  unsigned ways_hit = 0;
  for (std::uint64_t key = 4; key != 200; ++key) {
    a.insert(key);
    unsigned lost = 0;
    for (auto i = there.begin(); i != there.end();) {
      if (a.find(*i) == nullptr) {
        if (*i < 4) ++ways_hit;  // one of the first four, each in a way of its own
        i = there.erase(i);
        ++lost;
      } else {
        ++i;
      }
    }
    ASSERT_EQ(lost, 1U);
    there.insert(key);
  }
  EXPECT_EQ(ways_hit, 4U);
}

TEST(Replacement, AnEmptyLineIsTakenFirst) {
  for (const replacement policy : {replacement::lru, replacement::fifo, replacement::random}) {
    auto a = full_set(policy);
    a.erase(2, 2);
    a.insert(9);
    for (const std::uint64_t key : {0u, 1u, 3u, 9u}) EXPECT_NE(a.find(key), nullptr);
  }
}

}  // namespace
}  // namespace rnic::icm
