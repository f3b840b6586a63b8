// SPDX-License-Identifier: Apache-2.0
// The rate limit of a QP context, and CNPs, at the requester alone.
#include <gtest/gtest.h>

#include "testbenches/block/requester/bench.h"

namespace {

using namespace rnic;

/// Cycles between the starts of equal packets at a rate: `bytes` on the line, clock of the bench.
double cycles_of(const bench::bench& b, std::uint64_t bytes, std::uint64_t kbps) {
  const double cycle_ps = static_cast<double>(b.core.edge_time(1000) - b.core.edge_time(0)) / 1000;
  return static_cast<double>(bytes * 8) * 1e9 / static_cast<double>(kbps) / cycle_ps;
}

struct limit {
  std::uint16_t code;
  std::uint64_t kbps;
};

class qp_rate : public ::testing::TestWithParam<limit> {};

TEST_P(qp_rate, is_kept_between_packets) {
  bench::setup s;
  s.requester.miss_stall_cycles = 0;  // what it held up would be made up for
  bench::bench b(s);
  b.context.rate_limit = GetParam().code;
  b.make_qp(bench::qpn);
  b.post_write(10'240);
  b.ring_doorbell();
  b.run_ns(10'240ull * 8'800'000 / GetParam().kbps + 10'000);
  ASSERT_EQ(b.w.sent.size(), 10u);
  const std::uint64_t on_line = b.w.sent[5].second->length + 24;
  const double expected = cycles_of(b, on_line, GetParam().kbps);
  for (std::size_t i = 3; i < 10; ++i)
    EXPECT_NEAR(static_cast<double>(b.w.sent[i].first - b.w.sent[i - 1].first), expected, 4) << i;
  EXPECT_NEAR(static_cast<double>(b.w.sent[9].first - b.w.sent[2].first), 7 * expected, 4);
}

INSTANTIATE_TEST_SUITE_P(requester, qp_rate,
                         ::testing::Values(limit{3 << 14 | 10, 10'000'000}, limit{3 << 14 | 1, 1'000'000},
                                           limit{2 << 14 | 700, 700'000}, limit{1 << 14 | 4000, 4'000}));

/// The lower one of the path's static rate (2.5 Gb/s) and the queue pair's limit.
TEST(requester, lower_of_two_rate_limits) {
  bench::bench b;
  b.context.dest.static_rate = 7;
  b.context.rate_limit = 3 << 14 | 5;
  b.make_qp(bench::qpn);
  b.post_write(5'120);
  b.ring_doorbell();
  b.run_ns(40'000);
  ASSERT_EQ(b.w.sent.size(), 5u);
  const double expected = cycles_of(b, b.w.sent[3].second->length + 24, 2'500'000);
  EXPECT_NEAR(static_cast<double>(b.w.sent[4].first - b.w.sent[3].first), expected, 4);
}

TEST(requester, limit_above_the_line_is_none) {
  bench::bench fast;
  fast.context.rate_limit = 3 << 14 | 200;
  fast.make_qp(bench::qpn);
  fast.post_write(5'120);
  fast.ring_doorbell();
  fast.run_ns(5'000);
  ASSERT_EQ(fast.w.sent.size(), 5u);
  EXPECT_LT(fast.w.sent[4].first - fast.w.sent[3].first, 75u);
}

TEST(requester, a_rate_is_exact_though_edges_are_not) {
  bench::setup s;
  s.requester.miss_stall_cycles = 0;
  s.requester.congestion.catch_up_cycles = 0;
  bench::bench b(s);
  b.context.rate_limit = 3 << 14 | 10;
  b.make_qp(bench::qpn);
  b.post_write(10'240);
  b.ring_doorbell();
  b.run_ns(20'000);
  ASSERT_EQ(b.w.sent.size(), 10u);
  const double expected = cycles_of(b, b.w.sent[5].second->length + 24, 10'000'000);
  EXPECT_NEAR(static_cast<double>(b.w.sent[9].first - b.w.sent[1].first), 8 * expected, 1);
}

}  // namespace
