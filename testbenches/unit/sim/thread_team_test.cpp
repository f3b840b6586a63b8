// SPDX-License-Identifier: Apache-2.0
// Work that threads share: each piece once, whoever is late, and what goes between them by pools.
#include "model/sim/thread_team.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model/payload/pool.h"

namespace rnic::sim::test {
namespace {

class ThreadTeams : public testing::TestWithParam<unsigned> {};

TEST_P(ThreadTeams, DoEachPieceOnceAndEndBehindTheLast) {
  constexpr std::size_t pieces = 37, rounds = 3'000;
  std::vector<std::size_t> done(pieces);  // by piece: no other thread than that of the piece touches it
  thread_team team(GetParam(), pieces, [&done](std::size_t i) { ++done[i]; });
  for (std::size_t r = 1; r <= rounds; ++r) {
    team.share();
    for (std::size_t i = 0; i < pieces; ++i) ASSERT_EQ(done[i], r) << "piece " << i;
  }
}

TEST_P(ThreadTeams, WorkAgainWhenTheOthersSleep) {
  std::atomic<std::size_t> done{0};
  thread_team team(GetParam(), 8, [&done](std::size_t) { ++done; });
  for (std::size_t r = 1; r <= 3; ++r) {
    while (team.asleep() != team.threads() - 1) std::this_thread::yield();
    team.share();
    EXPECT_EQ(done, 8 * r);
  }
}

TEST_P(ThreadTeams, SayWhatTheLowestPieceHasThrown) {
  std::atomic<std::size_t> done{0};
  thread_team team(GetParam(), 20, [&done](std::size_t i) {
    ++done;
    if (i % 7 == 5) throw std::runtime_error(std::to_string(i));
  });
  for (std::size_t r = 1; r <= 50; ++r) {
    try {
      team.share();
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "5");
    }
    EXPECT_EQ(done, 20 * r);
  }
}

INSTANTIATE_TEST_SUITE_P(, ThreadTeams, testing::Values(1U, 2U, 3U, 16U, 40U));

TEST(ThreadTeam, HasNoMoreThreadsThanPiecesAndAtMostSixteen) {
  const auto threads_of = [](unsigned asked, std::size_t pieces) {
    return thread_team(asked, pieces, [](std::size_t) {}).threads();
  };
  EXPECT_EQ(threads_of(0, 8), 1U);
  EXPECT_EQ(threads_of(4, 3), 3U);
  EXPECT_EQ(threads_of(40, 100), thread_team::most);
}

/// The first piece waits for all others: those that its thread would have come to are done by somebody else.
TEST(ThreadTeam, TakesWhatIsLeftOfALateOne) {
  constexpr std::size_t pieces = 10;
  std::atomic<std::size_t> others{0};
  thread_team team(2, pieces, [&others](std::size_t i) {
    if (i != 0)
      ++others;
    else
      while (others != pieces - 1) std::this_thread::yield();
  });
  for (int r = 0; r < 200; ++r) {
    team.share();
    EXPECT_EQ(others, pieces - 1);
    others = 0;
  }
}

TEST(ThreadTeam, BeginsWithTheSamePieces) {
  std::array<std::set<unsigned>, 16> places;
  thread_team team(4, places.size(), [&places](std::size_t i) { places[i].insert(thread_team::place()); });
  EXPECT_EQ(thread_team::place(), 0U);
  for (int r = 0; r < 100; ++r) team.share();
  for (const auto& p : places)
    for (const unsigned t : p) EXPECT_LT(t, 4U);
  EXPECT_EQ(places[0].count(0), 1U);  // of the calling thread, which is there from the beginning
}

struct thing {
  std::size_t value = 0;
  void recycle() { value = 0; }
};

/// One half of the pieces takes things, the other half lets them go: no thread keeps all that others are short of.
TEST(ThreadTeam, HasThingsOfAPoolGoRound) {
  constexpr std::size_t flows = 4, each = 100;
  payload::pool<thing> pool;
  using things = std::vector<payload::handle<thing>>;
  std::array<things, flows> coming, going;
  std::atomic<std::size_t> sum{0};
  thread_team team(2, 2 * flows, [&](std::size_t i) {
    if (i < flows) {
      for (std::size_t n = 0; n < each; ++n) {
        coming[i].push_back(pool.get());
        coming[i].back()->value = n;
      }
    } else {
      for (const auto& t : going[i - flows]) sum += t->value;
      going[i - flows].clear();
    }
  });
  constexpr std::size_t rounds = 500;
  std::size_t early = 0;
  for (std::size_t r = 0; r < rounds; ++r) {
    team.share();
    coming.swap(going);
    if (r == 20) early = pool.allocated();
  }
  team.share();
  EXPECT_EQ(sum, rounds * flows * each * (each - 1) / 2);
  EXPECT_EQ(pool.in_use(), flows * each);
  EXPECT_LE(early, 4'000U);
  EXPECT_LE(pool.allocated(), early + early / 2);
  for (things& all : coming) all.clear();
  EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace
}  // namespace rnic::sim::test
