// SPDX-License-Identifier: Apache-2.0
// The reaction point of 802.1Qau beside a reference of its own, written with real numbers after the pseudo code and the
// state machine of the standard (clauses 32.14, 32.15), and its numbers step by step.
#include "model/transport/congestion/qcn_reaction_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace rnic::transport {
namespace {

constexpr sim::time_ps us = sim::ps_per_us;
constexpr std::uint32_t line_kbps = 40'000'000;

double us_of(sim::time_ps t) { return static_cast<double>(t) / us; }

/// Rates in kb/s, times in us.
struct reference {
  qcn_group p;
  double crate, trate, tx_bcount, timer;
  unsigned si_count = 0, timer_scount = 0;
  bool active = true;

  explicit reference(const qcn_group& set, double now) : p(set) {
    crate = trate = line_kbps;
    tx_bcount = p.byte_reset;
    timer = now + p.time_reset_us;
  }
  void cnm(unsigned fb, double now) {
    time_passes(now);
    active = true;
    if (si_count != 0) {
      trate = crate;
      tx_bcount = p.byte_reset;
    }
    si_count = timer_scount = 0;
    const double gd = 1.0 / (1u << p.gd);
    const double factor = std::max(1 - gd * fb, p.min_dec_percent / 100.0);
    crate = std::max(crate * factor, std::min(crate, p.min_rate_mbps * 1000.0));
    timer = now + p.time_reset_us;
  }
  void frame(double bytes, double now) {
    time_passes(now);
    tx_bcount -= bytes;
    while (tx_bcount <= 0 && active) {
      ++si_count;
      tx_bcount += si_count < p.threshold ? p.byte_reset : p.byte_reset / 2;
      self_increase();
    }
  }
  void time_passes(double now) {
    while (timer <= now && active) {
      ++timer_scount;
      timer += timer_scount < p.threshold ? p.time_reset_us : p.time_reset_us / 2.0;
      self_increase();
    }
  }
  void self_increase() {
    const unsigned most = std::max(si_count, timer_scount), least = std::min(si_count, timer_scount);
    double increase = 0;
    if (most >= p.threshold) increase = p.ai_rate_mbps * 1000.0;
    if (least >= p.threshold) increase = p.hai_rate_mbps * 1000.0 * (least - p.threshold + 1);
    if ((si_count == 1 || timer_scount == 1) && trate > 10 * crate)
      trate /= 8;
    else
      trate += increase;
    trate = std::min<double>(trate, line_kbps);
    crate = (crate + trate) / 2;
    if (crate > line_kbps - 0.75) active = false;  // as near as whole kb/s come
  }
};

TEST(QcnReactionPoint, FollowsTheReference) {
  std::mt19937_64 random(11);
  for (unsigned run = 0; run < 40; ++run) {
    qcn_group g;
    g.byte_reset = static_cast<std::uint32_t>(20'000 + 2 * (random() % 100'000));
    g.time_reset_us = static_cast<std::uint32_t>(100 + 2 * (random() % 8000));
    g.threshold = static_cast<std::uint32_t>(1 + random() % 6);
    g.ai_rate_mbps = static_cast<std::uint32_t>(1 + random() % 50);
    g.hai_rate_mbps = static_cast<std::uint32_t>(1 + random() % 500);
    g.gd = static_cast<std::uint32_t>(6 + random() % 3);
    g.min_dec_percent = static_cast<std::uint32_t>(30 + random() % 40);
    g.min_rate_mbps = static_cast<std::uint32_t>(1 + random() % 200);
    sim::time_ps now = 1000 * us;
    qcn_reaction_point p;
    p.begin(g, line_kbps, now);
    reference r(g, us_of(now));
    const auto cnm = [&] {
      const auto fb = static_cast<std::uint8_t>(1 + random() % 63);
      p.notified(g, fb, now);
      r.cnm(fb, us_of(now));
    };
    cnm();
    unsigned increases = 0;
    for (unsigned i = 0; i < 20'000; ++i) {
      now += (1 + random() % 40) * us;
      const std::uint32_t before = p.rate_kbps();
      if (random() % (run % 4 == 0 ? 40 : 700) == 0) {
        cnm();
      } else {
        const auto bytes = static_cast<std::uint32_t>(100 + random() % 4100);
        p.sent(g, bytes, now);
        r.frame(bytes, us_of(now));
      }
      increases += p.rate_kbps() > before ? 1 : 0;
      ASSERT_NEAR(p.rate_kbps(), r.crate, 2) << "run " << run << ", step " << i;
      ASSERT_NEAR(p.target_kbps(), r.trate, 2) << "run " << run << ", step " << i;
      // From one state each: what is left of whole kb/s would add up.
      r.crate = p.rate_kbps();
      r.trate = p.target_kbps();
      if (p.ended()) {
        ASSERT_EQ(p.rate_kbps(), line_kbps);
        cnm();
      }
    }
    EXPECT_GT(increases, 50u);
  }
}

/// With the standard's parameters, step by step.
TEST(QcnReactionPoint, StepByStep) {
  const qcn_group g;
  qcn_reaction_point p;
  sim::time_ps t = 0;
  p.begin(g, line_kbps, t);
  p.notified(g, 63, t);  // 63/128 of it
  EXPECT_EQ(p.rate_kbps(), 20'312'500u);
  EXPECT_EQ(p.target_kbps(), 40'000'000u);
  p.sent(g, 149'999, t);
  EXPECT_EQ(p.rate_kbps(), 20'312'500u);
  p.sent(g, 1, t);  // the end of the first stage: half the way
  EXPECT_EQ(p.rate_kbps(), 30'156'250u);
  p.notified(g, 1, t);  // bytes have brought an increase: this is the target now
  EXPECT_EQ(p.target_kbps(), 30'156'250u);
  EXPECT_EQ(p.rate_kbps(), 30'156'250u - 235'595);
  p.notified(g, 1, t);  // and it stays, since none has come after that
  EXPECT_EQ(p.target_kbps(), 30'156'250u);
  const std::uint32_t low = p.rate_kbps();
  p.advance(g, 15'000 * us - 1);
  EXPECT_EQ(p.rate_kbps(), low);
  p.advance(g, 15'000 * us);
  EXPECT_EQ(p.rate_kbps(), (low + 30'156'250 + 1) / 2);
  p.advance(g, 60'000 * us);  // four stages; with the fifth the target moves
  EXPECT_EQ(p.target_kbps(), 30'156'250u);
  p.advance(g, 75'000 * us - 1);
  EXPECT_EQ(p.target_kbps(), 30'156'250u);
  p.advance(g, 75'000 * us);
  EXPECT_EQ(p.target_kbps(), 30'161'250u) << "R_AI";
  p.advance(g, 82'500 * us);
  EXPECT_EQ(p.target_kbps(), 30'166'250u) << "half the time behind the threshold";
  for (unsigned stage = 1; stage < 5; ++stage) {
    p.sent(g, 150'000, 82'500 * us);
    EXPECT_EQ(p.target_kbps(), 30'166'250u + stage * 5'000) << "time alone has reached the threshold";
  }
  p.sent(g, 150'000, 82'500 * us);
  EXPECT_EQ(p.target_kbps(), 30'186'250u + 50'000) << "R_HAI, once";
  p.sent(g, 75'000, 82'500 * us);
  EXPECT_EQ(p.target_kbps(), 30'236'250u + 100'000) << "twice; half the bytes";
  EXPECT_FALSE(p.ended());
  p.advance(g, 10'000'000 * us);
  EXPECT_TRUE(p.ended());
  EXPECT_EQ(p.rate_kbps(), line_kbps);
  EXPECT_LT(p.ended_at(), 10'000'000 * us);
}

TEST(QcnReactionPoint, BoundsAndWhatIsSwitchedOff) {
  qcn_group g;
  g.min_dec_percent = 90;
  g.min_rate_mbps = 35'000;
  qcn_reaction_point p;
  p.begin(g, line_kbps, 0);
  p.notified(g, 63, 0);
  EXPECT_EQ(p.rate_kbps(), 36'000'000u) << "90 % are left";
  p.notified(g, 63, 0);
  EXPECT_EQ(p.rate_kbps(), 35'000'000u) << "the lowest rate";
  p.notified(g, 63, 0);
  EXPECT_EQ(p.rate_kbps(), 35'000'000u);
  g = {};
  g.max_rate_mbps = 10'000;
  g.time_reset_us = g.byte_reset = 0;
  p.begin(g, line_kbps, 0);
  p.notified(g, 64 - 1, 0);
  EXPECT_EQ(p.target_kbps(), 10'000'000u);
  const std::uint32_t rate = p.rate_kbps();
  p.sent(g, 1'000'000'000, 1'000'000'000 * us);
  EXPECT_EQ(p.rate_kbps(), rate) << "neither bytes nor time";
  g.max_rate_mbps = 100'000;
  p.begin(g, line_kbps, 0);
  EXPECT_EQ(p.rate_kbps(), line_kbps);
}

/// A target more than ten times the rate at the end of the first stage is an eighth of it (32.14).
TEST(QcnReactionPoint, TargetThatIsFarAway) {
  qcn_group g;
  g.min_dec_percent = 1;
  qcn_reaction_point p;
  p.begin(g, line_kbps, 0);
  for (unsigned i = 0; i < 4; ++i) p.notified(g, 63, 0);
  ASSERT_LT(p.rate_kbps(), 4'000'000u);
  const std::uint32_t rate = p.rate_kbps();
  p.advance(g, 15'000 * us);
  EXPECT_EQ(p.target_kbps(), 5'000'000u);
  EXPECT_EQ(p.rate_kbps(), (rate + 5'000'000 + 1) / 2);
}

}  // namespace
}  // namespace rnic::transport
