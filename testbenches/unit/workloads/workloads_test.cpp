// SPDX-License-Identifier: Apache-2.0
// Sizes, arrivals and latencies of workloads against what their definitions say.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "host_driver/workloads/arrivals.h"
#include "host_driver/workloads/latency_record.h"
#include "host_driver/workloads/message_sizes.h"
#include "testbenches/bench/latency_histogram.h"

namespace rnic::workloads {
namespace {

constexpr unsigned many = 200'000;

TEST(MessageSizes, AFixedSizeIsThatOfEachMessage) {
  const message_sizes s(1234);
  std::mt19937_64 random(1);
  EXPECT_EQ(s.next(random), 1234u);
  EXPECT_EQ(s.largest(), 1234u);
  EXPECT_DOUBLE_EQ(s.mean(), 1234);
}

TEST(MessageSizes, AListFollowsItsWeights) {
  const message_sizes s = message_sizes::list({{4096, 1}, {0, 2}, {64, 5}});
  std::mt19937_64 random(2);
  std::map<std::uint32_t, unsigned> drawn;
  for (unsigned i = 0; i < many; ++i) ++drawn[s.next(random)];
  ASSERT_EQ(drawn.size(), 3u);
  // Six standard deviations of a binomial count.
  const auto expect_part = [&](std::uint32_t bytes, double part) {
    EXPECT_NEAR(drawn[bytes], part * many, 6 * std::sqrt(many * part * (1 - part))) << bytes;
  };
  expect_part(0, 2.0 / 8);
  expect_part(64, 5.0 / 8);
  expect_part(4096, 1.0 / 8);
  EXPECT_DOUBLE_EQ(s.mean(), (64 * 5 + 4096) / 8.0);
  EXPECT_EQ(s.smallest(), 0u);
  EXPECT_EQ(s.largest(), 4096u);
}

TEST(MessageSizes, ADistributionIsReachedAtItsPoints) {
  for (const char* name : {"websearch", "hadoop", "storage"}) {
    const message_sizes s = message_sizes::published(name);
    std::mt19937_64 random(3);
    double sum = 0;
    std::vector<std::uint32_t> all;
    for (unsigned i = 0; i < many; ++i) all.push_back(s.next(random));
    for (const std::uint32_t b : all) sum += b;
    EXPECT_NEAR(sum / many / s.mean(), 1, 0.03) << name;
    for (const std::uint32_t b : all) ASSERT_TRUE(b >= s.smallest() && b <= s.largest()) << name << " " << b;
  }
  // Points of the publication: 53 % of web search up to 80 kB, 60 % of Hadoop up to 1 kB, 69.21 % of storage up to 8
  // kB.
  const auto part_up_to = [](const char* name, std::uint32_t bytes) {
    const message_sizes s = message_sizes::published(name);
    std::mt19937_64 random(4);
    unsigned count = 0;
    for (unsigned i = 0; i < many; ++i) count += s.next(random) <= bytes ? 1 : 0;
    return static_cast<double>(count) / many;
  };
  EXPECT_NEAR(part_up_to("websearch", 80'000), 0.53, 0.007);
  EXPECT_NEAR(part_up_to("hadoop", 1000), 0.60, 0.007);
  EXPECT_NEAR(part_up_to("storage", 8000), 0.6921, 0.007);
}

TEST(MessageSizes, BetweenTwoPointsEachSizeIsEquallyLikely) {
  const message_sizes s = message_sizes::cdf({{0, 0}, {4, 0.5}, {6, 1}});
  std::mt19937_64 random(5);
  std::map<std::uint32_t, unsigned> drawn;
  for (unsigned i = 0; i < many; ++i) ++drawn[s.next(random)];
  ASSERT_EQ(drawn.size(), 6u);  // 1 to 6
  for (const auto& [bytes, count] : drawn) {
    const double part = bytes <= 4 ? 0.125 : 0.25;
    EXPECT_NEAR(count, part * many, 6 * std::sqrt(many * part * (1 - part))) << bytes;
  }
  EXPECT_DOUBLE_EQ(s.mean(), 0.5 * 2.5 + 0.5 * 5.5);
}

TEST(MessageSizes, WrongOnesAreRefused) {
  EXPECT_THROW(message_sizes::list({}), std::invalid_argument);
  EXPECT_THROW(message_sizes::list({{64, 0}}), std::invalid_argument);
  EXPECT_THROW(message_sizes::cdf({{64, 1}}), std::invalid_argument);
  EXPECT_THROW(message_sizes::cdf({{0, 0}, {64, 0.9}}), std::invalid_argument);
  EXPECT_THROW(message_sizes::cdf({{0, 0.5}, {64, 0.4}, {65, 1}}), std::invalid_argument);
  EXPECT_THROW(message_sizes::cdf({{64, 0}, {64, 1}}), std::invalid_argument);
  EXPECT_THROW(message_sizes::published("ftp"), std::invalid_argument);
}

/// Gaps of the first `count` arrivals, in picoseconds.
std::vector<double> gaps_of(const arrival_config& c, unsigned count, std::uint64_t seed = 1) {
  arrivals a(c, 0, seed);
  std::vector<double> gaps;
  sim::time_ps before = 0;
  for (unsigned i = 0; i < count; ++i, a.pop()) {
    gaps.push_back(static_cast<double>(a.next() - before));
    before = a.next();
  }
  return gaps;
}

double mean_of(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}
double deviation_of(const std::vector<double>& x) {
  const double m = mean_of(x);
  double squares = 0;
  for (const double v : x) squares += (v - m) * (v - m);
  return std::sqrt(squares / static_cast<double>(x.size()));
}

TEST(Arrivals, DeterministicGapsKeepTheRateForEver) {
  arrival_config c;
  c.kind = arrival_config::process::deterministic;
  c.gap_ps = 1000.0 / 3;  // no whole number of picoseconds
  arrivals a(c, 5000, 1);
  for (unsigned n = 1; n <= 30'000; ++n, a.pop())
    ASSERT_NEAR(static_cast<double>(a.next()), 5000 + n * c.gap_ps, 1.001) << n;
}

TEST(Arrivals, PoissonGapsAreExponentialAndIndependent) {
  arrival_config c;
  c.kind = arrival_config::process::poisson;
  c.gap_ps = 1e6;
  const std::vector<double> gaps = gaps_of(c, many);
  EXPECT_NEAR(mean_of(gaps), 1e6, 6e6 / std::sqrt(many));
  EXPECT_NEAR(deviation_of(gaps), 1e6, 0.02e6);  // of an exponential distribution: its mean
  unsigned longer = 0;
  for (const double g : gaps) longer += g > 2e6 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(longer) / many, std::exp(-2.0), 0.005);
  double product = 0;
  for (unsigned i = 1; i < many; ++i) product += (gaps[i] - 1e6) * (gaps[i - 1] - 1e6);
  EXPECT_NEAR(product / many / 1e12, 0, 6 / std::sqrt(many));
}

TEST(Arrivals, BurstsHaveTheMeanRateAndTheirOwnGaps) {
  arrival_config c;
  c.kind = arrival_config::process::on_off;
  c.gap_ps = 1e6;
  c.on_ps = 50e6;
  c.off_ps = 150e6;
  const std::vector<double> gaps = gaps_of(c, 2 * many);
  EXPECT_NEAR(mean_of(gaps), 1e6, 0.03e6);
  unsigned within = 0;
  for (const double g : gaps) {
    ASSERT_GE(g, 0.25e6 - 2) << "shorter than in a burst, which has four times the rate";
    within += g < 0.25e6 + 2 ? 1 : 0;
  }
  // A burst has 200 messages on average, so one gap of 200 has a silence.
  EXPECT_NEAR(1 - static_cast<double>(within) / (2 * many), 1.0 / 200, 0.001);
}

TEST(Arrivals, OneSeedIsOneSequence) {
  arrival_config c;
  c.gap_ps = 1e6;
  EXPECT_EQ(gaps_of(c, 100, 7), gaps_of(c, 100, 7));
  EXPECT_NE(gaps_of(c, 100, 7), gaps_of(c, 100, 8));
}

TEST(LatencyRecord, QuantilesAreTheNearestRank) {
  latency_record r;
  for (unsigned i = 1000; i != 0; --i) r.add(i);
  EXPECT_EQ(r.quantile(0), 1u);
  EXPECT_EQ(r.quantile(0.5), 500u);
  EXPECT_EQ(r.quantile(0.99), 990u);
  EXPECT_EQ(r.quantile(0.999), 999u);
  EXPECT_EQ(r.quantile(0.9999), 1000u);
  EXPECT_EQ(r.quantile(1), 1000u);
  EXPECT_DOUBLE_EQ(r.mean_ps(), 500.5);
  latency_record more;
  more.add(5000);
  r.add(more);
  EXPECT_EQ(r.count(), 1001u);
  EXPECT_EQ(r.quantile(1), 5000u) << "samples that come behind a look are seen";
}

TEST(LatencyRecord, TheHistogramHasEachSampleInItsBin) {
  latency_record r;
  const std::vector<sim::time_ps> samples{
      0, 1, 9, 10, 99, 100, 999, 1000, 1001, 999'999, 1'000'000, 999'999'999'999'999, 1'000'000'000'000'000};
  for (const sim::time_ps t : samples) r.add(t);
  std::uint64_t count = 0;
  double before = 0;
  for (const bench::latency_bin& b : bench::histogram_of(r)) {
    EXPECT_LE(before, b.from_ps * (1 + 1e-12)) << "bins rise and do not overlap";
    EXPECT_LT(b.from_ps, b.to_ps);
    before = b.to_ps;
    std::uint64_t inside = 0;  // at the edges a logarithm may be rounded either way
    for (const sim::time_ps t : samples) {
      const double v = std::max(1.0, static_cast<double>(t));
      inside += v >= b.from_ps * (1 - 1e-12) && v < b.to_ps * (1 + 1e-12) ? 1 : 0;
    }
    EXPECT_LE(b.count, inside);
    count += b.count;
  }
  EXPECT_EQ(count, samples.size());
  EXPECT_NE(bench::histogram_of(r).front().count, 0u);
  EXPECT_NE(bench::histogram_of(r).back().count, 0u);
  EXPECT_TRUE(bench::histogram_of(latency_record()).empty());
}

// Twenty bins of a decade: the first of them ends at 10^(1/20) times its begin.
TEST(LatencyRecord, TheHistogramHasBinsOfEachDecade) {
  latency_record r;
  r.add(1000);
  r.add(999'999);
  const auto bins = bench::histogram_of(r);
  ASSERT_EQ(bins.size(), 60u);
  EXPECT_NEAR(bins.front().to_ps / bins.front().from_ps, 1.1220184543, 1e-9);
  EXPECT_NEAR(bins[20].from_ps, 10'000, 1e-6);
  EXPECT_EQ(bench::histogram_of(r, 5).size(), 15u);
}

TEST(LatencyRecord, WhatIsAddedOfAnotherOneIsInOrder) {
  latency_record all, more;
  all.add(30);
  all.add(50);
  EXPECT_EQ(all.quantile(1), 50u);
  more.add(10);
  more.add(40);
  all.add(more);
  EXPECT_EQ(all.samples(), (std::vector<sim::time_ps>{10, 30, 40, 50}));
  EXPECT_EQ(all.quantile(0.5), 30u);
}

}  // namespace
}  // namespace rnic::workloads
