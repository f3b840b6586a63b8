// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/lanes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace rnic::bench::test {
namespace {

TEST(Lanes, SliceIsOnTheFirstRowThatIsFree) {
  lanes l;
  EXPECT_EQ(l.place(0, 10), 0u);
  EXPECT_EQ(l.place(10, 20), 0u);  // they touch
  EXPECT_EQ(l.place(5, 15), 1u);
  EXPECT_EQ(l.place(9, 11), 2u);
  EXPECT_EQ(l.place(30, 40), 0u);
  EXPECT_EQ(l.place(19, 31), 1u);
  EXPECT_EQ(l.place(19, 29), 2u);
  EXPECT_EQ(l.place(20, 29), 0u);  // between two that came before
  EXPECT_EQ(l.place(20, 28), 3u);
  EXPECT_EQ(l.rows(), 4u);
}

TEST(Lanes, NothingOverlapsOnARowInWhateverOrderItComes) {
  lanes l;
  std::mt19937 random(7);
  std::vector<std::vector<std::pair<sim::time_ps, sim::time_ps>>> rows(lanes::most);
  for (unsigned i = 0; i < 5'000; ++i) {
    const sim::time_ps begin = i * 10 + random() % 400, end = begin + 1 + random() % 60;
    const std::size_t row = l.place(begin, end);
    ASSERT_LT(row, lanes::most);
    for (const auto& [from, to] : rows[row]) ASSERT_TRUE(end <= from || to <= begin) << i;
    rows[row].emplace_back(begin, end);
  }
  EXPECT_LT(l.rows(), 30u);
}

TEST(Lanes, AGapMayBeFilledUp) {
  lanes l;
  EXPECT_EQ(l.place(0, 10), 0u);
  EXPECT_EQ(l.place(20, 30), 0u);
  EXPECT_EQ(l.place(10, 20), 0u);
  EXPECT_EQ(l.place(2, 5), 1u);
  EXPECT_EQ(l.place(30, 40), 0u) << "the first one whose last slice ends there";
}

// Of 108 slices the last 64 are remembered: what is before them is taken, though it was a gap.
TEST(Lanes, BeforeWhatARowRemembersIsNoRoom) {
  lanes l;
  for (sim::time_ps i = 0; i < 108; ++i) ASSERT_EQ(l.place(10 * i, 10 * i + 5), 0u);
  EXPECT_EQ(l.place(10 * 42 + 6, 10 * 42 + 8), 1u);
}

TEST(Lanes, MoreThanTheRowsHaveNoPlace) {
  lanes l;
  for (std::size_t i = 0; i < lanes::most; ++i) EXPECT_EQ(l.place(0, 100), i);
  EXPECT_EQ(l.place(50, 60), lanes::most);
  EXPECT_EQ(l.place(100, 110), 0u);
}

}  // namespace
}  // namespace rnic::bench::test
