// SPDX-License-Identifier: Apache-2.0
// Partitions that are served ahead of each other: nothing of it can be seen, and one that acts too early is found out.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/simulation.h"
#include "model/sim/timebase.h"
#include "model/sim/timed_inbox.h"
#include "testbenches/unit/sim/toy_network.h"

namespace rnic::sim::test {
namespace {

constexpr time_ps flight = 90'000;
constexpr unsigned stations = 5;

/// Throws balls to other stations, at edges and with destinations that depend on what has come; tells a program of
/// some of them.
class station final : public clocked_block {
 public:
  timed_inbox<std::uint64_t> inbox;
  std::vector<station*> others;
  std::vector<record> log;
  sc_core::sc_event told;
  unsigned news = 0;

  station(const std::string& name, clock_domain& domain, std::uint64_t number, time_ps takes)
      : clocked_block(name, domain),
        inbox(this->name() + ".inbox", *this),
        number_(number),
        takes_(takes),
        due_(1 + number) {
    wake_at(due_);
  }
  /// Of a program of this station.
  void kick(std::uint64_t value) {
    state_ += value;
    due_ = now() + 1;
    wake_at(due_);
  }

 private:
  void tick() override {
    while (inbox.can_pop()) {
      const std::uint64_t value = inbox.pop();
      log.push_back({number_, value, now(), now_ps()});
      state_ = (state_ ^ value) * 6364136223846793005U + 1442695040888963407U;
      if ((state_ >> 40) % 4 == 0) {
        ++news;
        domain().base().notify(told, now_ps());
      }
    }
    if (now() != due_ || now_ps() > 150'000'000) return;
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    station& to = *others[(state_ >> 33) % others.size()];
    // Of each sender they arrive in order; others may throw to the same one, which an inbox of its own would part.
    if (to.last_ < now_ps() + takes_) {
      to.last_ = now_ps() + takes_;
      to.inbox.push(state_, now_ps() + takes_);
    }
    due_ = now() + 1 + (state_ >> 20) % 60;
    wake_at(due_);
  }
  std::uint64_t number_, state_ = 1;
  time_ps takes_, last_ = 0;
  cycle_t due_;
};

struct table {
  timebase base;
  std::vector<std::unique_ptr<clock_domain>> clocks;
  std::vector<std::unique_ptr<station>> all;

  /// In a ring: each throws to the next one only, so that an inbox has one sender.
  table(const timebase::options& opts, time_ps lookahead, time_ps takes) : base(opts) {
    for (unsigned i = 0; i < stations; ++i) {
      base.parts().begin();
      for (unsigned d = 0; d < 2; ++d)
        clocks.push_back(std::make_unique<clock_domain>("clock" + std::to_string(i) + std::to_string(d), base,
                                                        clock_period::from_khz(300'000 + 27'000 * i + 100'000 * d)));
      all.push_back(std::make_unique<station>("station" + std::to_string(i), *clocks.back(), i, takes));
    }
    for (unsigned i = 0; i < stations; ++i) all[i]->others = {all[(i + 1) % stations].get()};
    base.parts().set_lookahead(lookahead);
    base.run_ahead_until(~time_ps{0});
  }
};

struct outcome {
  std::array<std::vector<record>, stations> seen, looked;
  std::uint64_t activations = 0, ticks = 0;
};

/// With a program a station, which waits for what it is told or for a time and gives its station something to do.
outcome run(const timebase::options& opts, time_ps lookahead, time_ps takes = flight) {
  const simulation kernel;
  table t(opts, lookahead, takes);
  outcome o;
  for (unsigned i = 0; i < stations; ++i)
    sc_core::sc_spawn([&t, &o, i] {
      station& mine = *t.all[i];
      for (unsigned seen = 0;;) {
        sc_core::wait(sc_core::sc_time(7'013'001 + 1'000 * i, sc_core::SC_PS), mine.told);
        o.looked[i].push_back({i, mine.news - seen, mine.log.size(), t.base.now_ps()});
        seen = mine.news;
        mine.kick(seen);
      }
    });
  sc_core::sc_start(sc_core::sc_time(200, sc_core::SC_US));
  for (unsigned i = 0; i < stations; ++i) o.seen[i] = t.all[i]->log;
  o.activations = t.base.kernel_activations();
  for (const auto& c : t.clocks) o.ticks += c->ticks();
  return o;
}

void expect_same(const outcome& x, const outcome& y, const char* how) {
  SCOPED_TRACE(how);
  for (unsigned i = 0; i < stations; ++i) {
    EXPECT_GT(x.seen[i].size(), 500U);
    EXPECT_GT(x.looked[i].size(), 100U);
    EXPECT_TRUE(x.seen[i] == y.seen[i]) << "station " << i;
    EXPECT_TRUE(x.looked[i] == y.looked[i]) << "program " << i;
  }
}

TEST(Partitions, ServedApartEqualTheOrderOfTime) {
  const outcome in_order = run({}, 0);
  for (const time_ps lookahead : {time_ps{1}, flight / 7, flight}) {
    const outcome apart = run({}, lookahead);
    expect_same(in_order, apart, "apart");
    EXPECT_EQ(in_order.ticks, apart.ticks);
  }
  expect_same(in_order, run({false, 4711}, flight), "another order of blocks");
  expect_same(in_order, run({true, 0}, flight), "ticked at every edge");
  timebase::options stepping;
  stepping.run_ahead = false;
  expect_same(in_order, run(stepping, flight), "not ahead of the kernel");
}

TEST(Partitions, OneThatActsWithinTheLookaheadIsFoundOut) {
  std::string what = "nothing";
  try {
    run({}, 4 * flight, flight);
  } catch (const std::exception& e) {
    what = e.what();
  }
  EXPECT_TRUE(what.find("within the lookahead") != std::string::npos ||
              what.find("for an edge that has passed") != std::string::npos)
      << what;
}

TEST(Partitions, AsBuiltThereIsOne) {
  partitions p;
  for (int i = 0; i < 3; ++i) p.add_domain();
  EXPECT_EQ(p.size(), 1U);
  EXPECT_EQ(p[0], partitions::domains(0, 3));
  p.set_lookahead(10);
  EXPECT_FALSE(p.have_windows());
  p.begin();
  p.begin();  // nothing in the one before
  p.add_domain();
  EXPECT_EQ(p.size(), 2U);
  EXPECT_EQ(p[1], partitions::domains(3, 4));
  EXPECT_TRUE(p.have_windows());
}

}  // namespace
}  // namespace rnic::sim::test
