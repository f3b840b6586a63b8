// SPDX-License-Identifier: Apache-2.0
// Partitions that are served ahead of each other: nothing of it can be seen, and one that acts too early is found out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/crossing.h"
#include "model/sim/simulation.h"
#include "model/sim/timebase.h"
#include "model/sim/timed_inbox.h"
#include "testbenches/unit/sim/toy_network.h"

namespace rnic::sim::test {
namespace {

constexpr time_ps runs = 200'000'000;
constexpr time_ps flight = 90'000;
constexpr unsigned stations = 5;

/// The program of a partition: waits for a time, or until it is told something; in the kernel, or apart from it.
class waiter final : public program_list {
 public:
  explicit waiter(timebase& base) : base_(base), partition_(base.apart().add(*this)) {}
  ~waiter() override { base_.apart().remove(*this); }
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  void wait(time_ps duration, bool may_wait_apart) {
    due_ = base_.now_ps() + duration;
    apart_ = may_wait_apart && base_.apart().keep_programs();
    if (!apart_) return sc_core::wait(sc_core::sc_time::from_value(duration), event_);
    base_.apart().due(partition_, due_);
    sc_core::wait(event_);
    base_.apart().resumed(partition_);
    ++waits_apart;
  }
  /// By a tick.
  void tell(time_ps now) {
    due_ = std::min(due_, now);
    if (apart_)
      base_.apart().due(partition_, now);
    else
      base_.notify(event_, now);
  }

  unsigned waits_apart = 0;

 private:
  time_ps go_on(time_ps now) override {
    if (due_ > now) return due_;
    due_ = ~time_ps{0};
    event_.notify();
    return ~time_ps{0};
  }

  timebase& base_;
  std::size_t partition_;
  sc_core::sc_event event_;
  time_ps due_ = ~time_ps{0};
  bool apart_ = false;
};

/// The way of a station's balls into an inbox of another one.
class way final : private crossing {
 public:
  explicit way(timed_inbox<std::uint64_t>& to) : to_(to) {}
  void send(std::uint64_t value, time_ps arrival) {
    if (put_off())
      waiting_.emplace_back(value, arrival);
    else
      to_.push(value, arrival);
  }

 private:
  void cross() override {
    to_.push(waiting_.front().first, waiting_.front().second);
    waiting_.pop_front();
  }
  timed_inbox<std::uint64_t>& to_;
  std::deque<std::pair<std::uint64_t, time_ps>> waiting_;
};

/// Throws balls to other stations, or to what sorts them, at edges and with destinations that depend on what has come;
/// tells a program of some of them.
class station final : public clocked_block {
 public:
  std::vector<std::unique_ptr<timed_inbox<std::uint64_t>>> inboxes;  // by sender
  std::vector<std::unique_ptr<way>> ways;                            // to others
  std::vector<record> log;
  waiter told;
  unsigned news = 0;

  station(const std::string& name, clock_domain& domain, std::uint64_t number, time_ps takes, cycle_t rests)
      : clocked_block(name, domain),
        told(domain.base()),
        number_(number),
        takes_(takes),
        rests_(rests),
        due_(1 + number) {
    for (unsigned i = 0; i < stations; ++i)
      inboxes.push_back(
          std::make_unique<timed_inbox<std::uint64_t>>(this->name() + ".inbox" + std::to_string(i), *this));
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
    for (const auto& inbox : inboxes)
      while (inbox->can_pop()) take(inbox->pop());
    if (now() != due_ || now_ps() > 150'000'000) return;
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    ways[(state_ >> 33) % ways.size()]->send(state_, now_ps() + takes_);
    due_ = now() + 1 + (state_ >> 20) % 60 + rests_;
    wake_at(due_);
  }
  void take(std::uint64_t value) {
    log.push_back({number_, value, now(), now_ps()});
    state_ = (state_ ^ value) * 6364136223846793005U + 1442695040888963407U;
    if ((state_ >> 40) % 4 == 0) {
      ++news;
      told.tell(now_ps());
    }
    if (rests_ == 0 || (state_ >> 50) % 4 == 0) return;
    due_ = now() + 1;  // something comes of it
    wake_at(due_);
  }
  std::uint64_t number_, state_ = 1;
  time_ps takes_;
  cycle_t rests_, due_;
};

/// How the partitions are served, and how far from each other they are.
struct apart {
  time_ps lookahead = 0;
  time_ps takes = flight;
  bool has_hub = false;        ///< the last station is the hub: all others throw to it, and it to them
  bool programs_apart = true;  ///< programs do not wait in the kernel
  bool rests = false;          ///< stations hardly do anything but for their programs and for each other
  unsigned threads = 1;
};

struct table {
  timebase base;
  std::vector<std::unique_ptr<clock_domain>> clocks;
  std::vector<std::unique_ptr<station>> all;

  /// In a ring: each throws to the next one only. With a hub they throw to it, and it to all of them.
  table(const timebase::options& opts, const apart& how) : base(opts) {
    for (unsigned i = 0; i < stations; ++i) {
      base.parts().begin();
      for (unsigned d = 0; d < 2; ++d)
        clocks.push_back(std::make_unique<clock_domain>("clock" + std::to_string(i) + std::to_string(d), base,
                                                        clock_period::from_khz(300'000 + 27'000 * i + 100'000 * d)));
      all.push_back(
          std::make_unique<station>("station" + std::to_string(i), *clocks.back(), i, how.takes, how.rests ? 5000 : 0));
    }
    constexpr unsigned hub = stations - 1;
    for (unsigned i = 0; i < stations; ++i) {
      std::vector<unsigned> others{how.has_hub ? hub : (i + 1) % stations};
      if (how.has_hub && i == hub) others = {0, 1, 2, 3};
      for (const unsigned o : others) all[i]->ways.push_back(std::make_unique<way>(*all[o]->inboxes[i]));
    }
    if (how.has_hub)
      base.parts().set_hub(how.lookahead, flight);
    else
      base.parts().set_lookahead(how.lookahead);
    base.apart().serve_with(how.threads);
    base.run_ahead_until(runs);
  }
};

struct outcome {
  std::array<std::vector<record>, stations> seen, looked;
  std::uint64_t activations = 0, ticks = 0, waits_apart = 0;
};

/// With a program a station, but for a hub, which waits for what it is told or for a time and gives its station
/// something to do.
outcome run(const timebase::options& opts, const apart& how) {
  const simulation kernel;
  table t(opts, how);
  outcome o;
  for (unsigned i = 0; i < stations - (how.has_hub ? 1 : 0); ++i)
    sc_core::sc_spawn([&t, &o, &how, i] {
      station& mine = *t.all[i];
      for (unsigned seen = 0;;) {
        mine.told.wait((how.rests ? 713'001 : 7'013'001) + 1'000 * i, how.programs_apart);
        o.looked[i].push_back({i, mine.news - seen, mine.log.size(), t.base.now_ps()});
        seen = mine.news;
        mine.kick(seen);
      }
    });
  sc_core::sc_start(sc_core::sc_time::from_value(runs));
  for (unsigned i = 0; i < stations; ++i) o.seen[i] = t.all[i]->log;
  o.activations = t.base.kernel_activations();
  for (const auto& c : t.clocks) o.ticks += c->ticks();
  for (const auto& s : t.all) o.waits_apart += s->told.waits_apart;
  return o;
}

void expect_same(const outcome& x, const outcome& y, const apart& of, const std::string& how) {
  SCOPED_TRACE(how);
  for (unsigned i = 0; i < stations; ++i) {
    EXPECT_GT(x.seen[i].size(), of.rests ? 100U : 500U);
    const bool is_hub = of.has_hub && i + 1 == stations;  // has no program
    EXPECT_GE(x.looked[i].size(), is_hub ? 0U : 20U) << "program " << i;
    EXPECT_TRUE(x.seen[i] == y.seen[i]) << "station " << i;
    EXPECT_TRUE(x.looked[i] == y.looked[i]) << "program " << i;
  }
}

/// With a hub, and with stations that rest.
class PartitionsApart : public testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(PartitionsApart, EqualTheOrderOfTime) {
  const auto [hub, rests] = GetParam();
  const apart at_once{0, flight, hub, true, rests}, windows{flight, flight, hub, true, rests};
  const outcome in_order = run({}, at_once);
  EXPECT_EQ(in_order.waits_apart, 0U);
  for (const bool programs : {false, true})
    for (const time_ps lookahead : {time_ps{1}, flight / 7, flight}) {
      const outcome apart = run({}, {lookahead, flight, hub, programs, rests});
      expect_same(in_order, apart, windows, std::to_string(lookahead) + " ps apart");
      EXPECT_EQ(in_order.ticks, apart.ticks);
      EXPECT_EQ(apart.waits_apart != 0, programs);
    }
  expect_same(in_order, run({false, 4711}, windows), windows, "another order of blocks");
  expect_same(in_order, run({true, 0}, windows), windows, "ticked at every edge");
  timebase::options stepping;
  stepping.run_ahead = false;
  expect_same(in_order, run(stepping, windows), windows, "not ahead of the kernel");
}

/// More threads than processors, too.
TEST_P(PartitionsApart, EqualThemselvesServedByThreads) {
  const auto [hub, rests] = GetParam();
  timebase::options stepping;
  stepping.run_ahead = false;
  for (const bool programs : {false, true})
    for (const time_ps lookahead : {flight / 2, flight}) {
      const apart by_one{lookahead, flight, hub, programs, rests};
      const outcome one = run({}, by_one);
      for (const unsigned threads : {2U, 3U, 16U}) {
        if (threads == 16 && lookahead != flight) continue;
        apart how = by_one;
        how.threads = threads;
        const outcome shared = run({}, how);
        const std::string what = std::to_string(threads) + " threads, " + std::to_string(lookahead) + " ps apart";
        expect_same(one, shared, how, what);
        EXPECT_EQ(one.ticks, shared.ticks) << what;
        EXPECT_EQ(one.waits_apart, shared.waits_apart) << what;
        if (threads != 3) continue;
        expect_same(one, run({true, 0}, how), how, what + ", ticked at every edge");
        expect_same(one, run(stepping, how), how, what + ", not ahead of the kernel");
      }
    }
}

INSTANTIATE_TEST_SUITE_P(, PartitionsApart,
                         testing::Values(std::pair{false, false}, std::pair{true, false}, std::pair{false, true},
                                         std::pair{true, true}),
                         [](const auto& p) {
                           return std::string(p.param.first ? "with_a_hub" : "in_a_ring") +
                                  (p.param.second ? "_that_rest" : "");
                         });

class PartitionsTooNear : public testing::TestWithParam<bool> {};

TEST_P(PartitionsTooNear, AreFoundOut) {
  std::string what = "nothing";
  try {
    run({}, {4 * flight, flight, GetParam()});
  } catch (const std::exception& e) {
    what = e.what();
  }
  EXPECT_TRUE(what.find("within the lookahead") != std::string::npos ||
              what.find("for an edge that has passed") != std::string::npos)
      << what;
}

TEST_P(PartitionsTooNear, AreFoundOutByThreads) {
  apart how{4 * flight, flight, GetParam()};
  how.threads = 2;
  EXPECT_THROW(run({}, how), std::exception);
}

INSTANTIATE_TEST_SUITE_P(, PartitionsTooNear, testing::Bool(),
                         [](const auto& hub) { return hub.param ? "with_a_hub" : "in_a_ring"; });

/// Pushes into a foreign inbox by no crossing.
class intruder final : public clocked_block {
 public:
  timed_inbox<int> inbox{"inbox", *this};
  intruder* other = nullptr;
  intruder(const std::string& name, clock_domain& domain) : clocked_block(name, domain) { wake_at(10); }

 private:
  void tick() override { other->inbox.push(1, now_ps() + flight); }
};

TEST(PartitionsWithThreads, MeetByCrossingsOnly) {
  const simulation kernel;
  timebase base;
  std::vector<std::unique_ptr<clock_domain>> clocks;
  std::vector<std::unique_ptr<intruder>> all;
  for (const char* name : {"a", "b"}) {
    base.parts().begin();
    clocks.push_back(
        std::make_unique<clock_domain>(std::string(name) + "_clock", base, clock_period::from_khz(300'000)));
    all.push_back(std::make_unique<intruder>(name, *clocks.back()));
  }
  all[0]->other = all[1].get();
  all[1]->other = all[0].get();
  base.parts().set_lookahead(flight);
  base.apart().serve_with(2);
  base.run_ahead_until(~time_ps{0});
  try {
    sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_US));
    FAIL() << "nobody has seen it";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("beside all crossings"), std::string::npos) << e.what();
  }
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
  const std::size_t next = 3 + partitions::apart;
  EXPECT_EQ(p[1], partitions::domains(next, next + 1));
  EXPECT_TRUE(p.have_windows());
}

}  // namespace
}  // namespace rnic::sim::test
