// SPDX-License-Identifier: Apache-2.0
// Wake-ups against a map of edges, and edges of a clock against arithmetic in 128 bits.
#include "model/sim/wake_wheel.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "model/sim/clock_edges.h"

namespace rnic::sim {
namespace {

void wake(wake_wheel& w, unsigned id, cycle_t now, cycle_t when) {
  if (wake_wheel::is_near(when - now - 1))
    w.mark(id, when);
  else
    w.keep_far(id, when);
}

class wake_wheel_seeds : public testing::TestWithParam<unsigned> {};

TEST_P(wake_wheel_seeds, gives_each_block_at_the_edges_that_it_asked_for) {
  std::mt19937 random(GetParam());
  wake_wheel wheel;
  std::map<cycle_t, std::uint64_t> wanted;
  cycle_t now = GetParam() * 1'000'003ull;
  for (unsigned step = 0; step != 20'000; ++step) {
    const unsigned id = random() % 64;
    // Mostly soon, some at the border of the slots, some far away.
    static constexpr unsigned spans[] = {3, 40, 250, 264, 520, 100'000};
    const cycle_t when = now + 1 + random() % spans[random() % 6];
    wake(wheel, id, now, when);
    wanted[when] |= std::uint64_t{1} << id;
    if (random() % 50 == 0) {
      const unsigned gone = random() % 64;
      wheel.forget(gone);
      for (auto w = wanted.begin(); w != wanted.end();) {
        w->second &= ~(std::uint64_t{1} << gone);
        w = w->second == 0 ? wanted.erase(w) : std::next(w);
      }
    }
    const cycle_t next = wheel.next_after(now);
    ASSERT_EQ(next, wanted.empty() ? never : wanted.begin()->first) << step;
    if (next == never || random() % 3 == 0) continue;
    now = next;
    ASSERT_EQ(wheel.take(now), wanted.begin()->second) << step;
    wanted.erase(wanted.begin());
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, wake_wheel_seeds, testing::Range(1u, 9u));

TEST(clock_edges, are_those_of_exact_arithmetic_however_long_the_run) {
  __extension__ using wide = unsigned __int128;
  for (const std::uint64_t khz :
       {std::uint64_t{427'000}, std::uint64_t{250'000}, std::uint64_t{156'250}, std::uint64_t{1}}) {
    const clock_edges edges("test", clock_period::from_khz(khz));
    std::mt19937_64 random(khz);
    for (unsigned i = 0; i != 10'000; ++i) {
      const cycle_t k = random() >> (24 + random() % 40);
      if (wide{k} * 1'000'000'000 / khz > ~std::uint64_t{0} / 2) continue;
      const auto at = static_cast<time_ps>(wide{k} * 1'000'000'000 / khz);
      ASSERT_EQ(edges.time(k), at);
      ASSERT_EQ(edges.at_or_after(at), k);
      ASSERT_EQ(edges.at_or_before(at), k);
      ASSERT_EQ(edges.at_or_after(at + 1), k + 1);
      ASSERT_EQ(edges.at_or_before(at + 1), k);
      const time_ps span = random() >> (10 + random() % 40);
      ASSERT_EQ(edges.cycles(span), static_cast<cycle_t>((wide{span} * khz + 999'999'999) / 1'000'000'000));
    }
  }
}

TEST(clock_edges, a_period_below_a_picosecond_is_refused_by_name) {
  try {
    clock_edges("core", {1, 2, 0});
    FAIL();
  } catch (const config_error& e) {
    EXPECT_STREQ(e.what(), "core: clock period must be at least 1 ps");
  }
}

}  // namespace
}  // namespace rnic::sim
