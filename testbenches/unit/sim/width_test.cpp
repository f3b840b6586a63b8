// SPDX-License-Identifier: Apache-2.0
// What a channel takes and gives in a cycle, what it counts, and that asking changes nothing.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/fifo.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/timebase.h"

namespace rnic::sim::test {
namespace {

using cycles = std::vector<cycle_t>;

void run_ns(std::uint64_t ns) { sc_core::sc_start(sc_core::sc_time::from_value(ns * 1000)); }

/// From edge 1 on tries to push `count` items, as many as it may at once.
class burst final : public clocked_block {
 public:
  enum class manner { asks, claims, insists };
  fifo_out<unsigned> out{*this};
  cycles pushed, ticked;
  burst(clock_domain& domain, unsigned count, manner how) : clocked_block("burst", domain), left_(count), how_(how) {
    wake_at(1);
  }

 private:
  void tick() override {
    if (now() < 1) return;
    ticked.push_back(now());
    while (left_ != 0 && (how_ == manner::insists || (how_ == manner::claims ? out.claim() : out.can_push()))) {
      out.push(left_--);
      pushed.push_back(now());
    }
  }
  unsigned left_;
  manner how_;
};

/// Takes `at_once` items a cycle from edge `open_at` on.
class drain final : public clocked_block {
 public:
  fifo_in<unsigned> in{*this};
  cycles popped;
  drain(clock_domain& domain, cycle_t open_at, unsigned at_once)
      : clocked_block("drain", domain), open_at_(open_at), at_once_(at_once) {}

 private:
  void tick() override {
    if (!in.can_pop()) return;
    if (now() < open_at_) return wake_at(open_at_);
    for (unsigned i = 0; i < at_once_ && in.can_pop(); ++i) {
      in.pop();
      popped.push_back(now());
    }
  }
  cycle_t open_at_;
  unsigned at_once_;
};

struct bench {
  timebase base;
  clock_domain domain{"d", base, {1000, 1, 0}};
  fifo<unsigned> channel;
  burst from;
  drain to;
  bench(std::size_t depth, channel_width width, unsigned count, burst::manner how, cycle_t open_at = 0,
        unsigned at_once = 1, const timebase::options& opts = {})
      : base(opts),
        channel("channel", domain, depth, 1, width),
        from(domain, count, how),
        to(domain, open_at, at_once) {
    from.out.bind(channel);
    to.in.bind(channel);
  }
};

TEST(Width, OneItemACycleUnlessDeclared) {
  bench b(8, {}, 3, burst::manner::claims);
  run_ns(20);
  EXPECT_EQ(b.from.pushed, (cycles{1, 2, 3}));
  EXPECT_EQ(b.to.popped, (cycles{2, 3, 4}));
}

TEST(Width, ADeclaredOneIsUsed) {
  bench b(8, {2}, 5, burst::manner::claims, 0, 2);
  run_ns(20);
  EXPECT_EQ(b.from.pushed, (cycles{1, 1, 2, 2, 3}));
  EXPECT_EQ(b.to.popped, (cycles{2, 2, 3, 3, 4}));
}

TEST(Width, APushBeyondItIsABrokenInvariant) {
  bench b(8, {}, 2, burst::manner::insists);
  EXPECT_THROW(run_ns(20), std::exception);
}

TEST(Width, APopBeyondItIsABrokenInvariant) {
  bench b(8, {}, 3, burst::manner::claims, 6, 2);
  EXPECT_THROW(run_ns(20), std::exception);
}

TEST(Width, OfABlockThatIsNotCountedYetIsReported) {
  bench b(8, {1, false}, 5, burst::manner::claims, 6, 3);
  run_ns(20);
  EXPECT_EQ(b.from.pushed, (cycles{1, 1, 1, 1, 1}));
  EXPECT_EQ(b.to.popped, (cycles{6, 6, 6, 7, 7}));
  EXPECT_EQ(b.channel.used().over_pushes, 4U);
  EXPECT_EQ(b.channel.used().over_pops, 3U);
}

TEST(Width, BothEndsHaveTheClockOfTheChannel) {
  timebase base;
  clock_domain domain{"d", base, {1000, 1, 0}}, other{"o", base, {1000, 1, 0}};
  fifo<unsigned> channel{"channel", domain, 1};
  burst from(other, 1, burst::manner::asks);
  drain to(other, 0, 1);
  EXPECT_THROW(from.out.bind(channel), invariant_error);
  EXPECT_THROW(to.in.bind(channel), invariant_error);
}

TEST(Width, AskingBooksNoTick) {
  bench b(8, {}, 3, burst::manner::asks);
  run_ns(20);
  EXPECT_EQ(b.from.ticked, (cycles{1}));
  EXPECT_EQ(b.from.pushed, (cycles{1}));
}

TEST(Width, TheProducerOfAFullChannelIsTickedWhenItHasRoom) {
  bench b(2, {}, 4, burst::manner::claims, 10);
  run_ns(30);
  EXPECT_EQ(b.from.pushed, (cycles{1, 2, 11, 12}));
  EXPECT_EQ(b.from.ticked, (cycles{1, 2, 11, 12, 13}));
  EXPECT_EQ(b.to.popped, (cycles{10, 11, 12, 13}));
}

// Each in a process of its own: simulated time begins once.
class UsageIn : public testing::TestWithParam<std::pair<bool, std::uint64_t>> {};

// Full behind the push of cycle 2 until the pop of 10, and never again: what 10 freed is filled at 11, as 11 pops.
TEST_P(UsageIn, CountsWhatItSays) {
  timebase::options o;
  std::tie(o.always_tick, o.shuffle_seed) = GetParam();
  bench b(2, {}, 4, burst::manner::claims, 10, 1, o);
  run_ns(30);
  const channel::usage& u = b.channel.used();
  EXPECT_EQ(u.pushes, 4U);
  EXPECT_EQ(u.max_occupancy, 2U);
  EXPECT_EQ(u.full_cycles, 8U);
}
INSTANTIATE_TEST_SUITE_P(AnyOrder, UsageIn,
                         testing::Values(std::pair{false, 0u}, std::pair{true, 0u}, std::pair{false, 1u},
                                         std::pair{false, 2u}, std::pair{false, 3u}, std::pair{true, 4u}));

TEST(Usage, TheDomainListsItsChannels) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  fifo<int> first("first", d, 1);
  {
    const fifo<int> second("second", d, 2);
    EXPECT_EQ(d.channels(), (std::vector<channel*>{&first, const_cast<fifo<int>*>(&second)}));
  }
  ASSERT_EQ(d.channels().size(), 1U);
  EXPECT_EQ(d.channels()[0]->name(), "first");
}

/// Takes what has come while it slept, at edge `at`.
class late final : public clocked_block {
 public:
  fifo_in<unsigned> in{*this};
  std::vector<unsigned> taken;
  late(clock_domain& domain, cycle_t at) : clocked_block("late", domain), at_(at) { wake_at(at); }

 private:
  void tick() override {
    if (now() != at_) return;
    in.take_due([this](unsigned v) { taken.push_back(v); });
  }
  cycle_t at_;
};

class TakeDueAt : public testing::TestWithParam<std::pair<cycle_t, std::size_t>> {};

// Four are pushed at 1 and visible at 2: a consumer of one a cycle takes them at 2, 3, 4, 5.
TEST_P(TakeDueAt, GivesWhatAConsumerThatIsAwakeWouldHaveTaken) {
  const auto& [at, count] = GetParam();
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  fifo<unsigned> wide("wide", d, 16, 1, {1, false});
  wide.set_quiet(true);
  burst from(d, 4, burst::manner::claims);
  late to(d, at);
  from.out.bind(wide);
  to.in.bind(wide);
  run_ns(20);
  EXPECT_EQ(to.taken.size(), count);
}
INSTANTIATE_TEST_SUITE_P(Cycles, TakeDueAt,
                         testing::Values(std::pair{2u, 1u}, std::pair{3u, 2u}, std::pair{4u, 3u}, std::pair{5u, 4u},
                                         std::pair{9u, 4u}));

TEST(PushAfter, WhatWouldLeaveTogetherLeavesInTurn) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  fifo<unsigned> f("f", d, 8);
  class pipe final : public clocked_block {
   public:
    fifo_out<unsigned> out{*this};
    explicit pipe(clock_domain& domain) : clocked_block("pipe", domain) {
      wake_at(1);
      wake_at(2);
    }

   private:
    void tick() override {
      if (now() == 1) out.push_after(1u, 4);  // visible at 6
      if (now() == 2) out.push_after(2u, 3);  // and so would this be: 7
    }
  } from(d);
  drain to(d, 0, 2);  // would take both at once
  from.out.bind(f);
  to.in.bind(f);
  run_ns(20);
  EXPECT_EQ(to.popped, (cycles{6, 7}));
}

/// Starts an operation of 3 cycles whenever it can, from edge 1 on; one more begins at 10 and ends at 15.
class worker final : public clocked_block {
 public:
  server engine{*this, "engine"};
  cycles started;
  explicit worker(clock_domain& domain) : clocked_block("worker", domain) {
    for (const cycle_t k : {1u, 2u, 10u, 15u}) wake_at(k);
  }

 private:
  void tick() override {
    if (now() == 10) engine.begin();
    if (now() == 15) engine.end();
    if (now() == 0 || now() >= 10 || started.size() == 2) return;
    if (!engine.is_free()) return engine.await();
    engine.start(3);
    started.push_back(now());
  }
};

TEST(Server, StartsWhenTheOneBeforeIsOver) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  worker w(d);
  run_ns(5);
  EXPECT_EQ(w.started, (cycles{1, 4}));
  EXPECT_EQ(w.engine.busy_cycles(), 4U) << "of the second operation's cycles one is over at edge 5";
  run_ns(7);
  EXPECT_EQ(w.engine.busy_cycles(), 8U) << "6 and two of the one that began at 10";
  run_ns(8);
  EXPECT_EQ(w.engine.busy_cycles(), 11U);
  EXPECT_EQ(w.engine.operations(), 3U);
  EXPECT_EQ(d.servers(), (std::vector<server*>{&w.engine}));
  EXPECT_EQ(w.engine.name(), "worker.engine");
}

/// Calls of one edge after the other, in the tick of each.
class script final : public clocked_block {
 public:
  server engine{*this, "engine"};
  script(clock_domain& domain, std::map<cycle_t, std::function<void(server&)>> calls)
      : clocked_block("script", domain), calls_(std::move(calls)) {
    for (const auto& [when, call] : calls_) wake_at(when);
  }
  std::string blocked() const {
    std::string text;
    for (const server::hold_up& h : engine.blocked_cycles()) text += h.by + (" " + std::to_string(h.cycles)) + "; ";
    return text;
  }

 private:
  void tick() override {
    if (const auto c = calls_.find(now()); c != calls_.end()) c->second(engine);
  }
  std::map<cycle_t, std::function<void(server&)>> calls_;
};

TEST(Server, CountsByWhomItIsBlocked) {
  static const char* const channel = "channel";
  static const char* const credits = "credits";
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  script s(d, {{2, [](server& e) { e.start(5); }},
               {3, [](server& e) { e.blocked(channel); }},  // busy until 7: from then on
               {9, [](server& e) { e.blocked(channel); }},
               {10, [](server& e) { e.blocked(credits); }},
               {14, [](server& e) { e.start(1); }},
               {16, [](server& e) { e.blocked(channel); }},
               {17, [](server& e) { e.idle(); }},
               {20, [](server& e) { e.begin(); }},
               {21, [](server& e) { e.blocked(credits); }},  // its end is not known: from then on
               {25, [](server& e) { e.end(); }}});
  run_ns(6);
  EXPECT_EQ(s.blocked(), "");
  run_ns(2);
  EXPECT_EQ(s.blocked(), "channel 1; ");
  run_ns(4);
  EXPECT_EQ(s.blocked(), "channel 3; credits 2; ");
  run_ns(7);
  EXPECT_EQ(s.blocked(), "channel 4; credits 4; ") << "idle since 17";
  run_ns(9);
  EXPECT_EQ(s.blocked(), "channel 4; credits 7; ");
  EXPECT_EQ(s.engine.busy_cycles(), 11U) << "blocked and busy are never the same cycle";
}

/// The text counts, not where it stands: each block has its own.
TEST(Server, OneNameIsOneCause) {
  static const char here[] = "channel", there[] = "channel";
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  script s(d, {{1, [](server& e) { e.blocked(here); }},
               {4, [](server& e) { e.blocked(there); }},
               {6, [](server& e) { e.waits_for(nullptr); }},
               {8, [](server& e) { e.waits_for(there); }}});
  run_ns(10);
  EXPECT_EQ(s.blocked(), "channel 7; ");
}

TEST(Server, WhatComesAheadOfTimeBeginsBehindTheOthersAndNotBehindAGap) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  script s(d, {{2, [](server& e) {
                  e.start(5);
                  e.append_at(4, 2);  // there at 4, begins at 7
                  EXPECT_EQ(e.free_at(), 9U);
                  EXPECT_THROW(e.append_at(10, 1), invariant_error);
                  e.append_at(9, 1);
                }}});
  run_ns(20);
  EXPECT_EQ(s.engine.busy_cycles(), 8U);
}

TEST(Server, WhoWatchesIsToldOfNoBlockThatNeverWas) {
  struct log final : server_watcher_if {
    void started(cycle_t from, cycle_t interval) override { add("start", from, interval); }
    void ended(cycle_t at) override { add("end", at); }
    void blocked(cycle_t from) override { add("blocked", from); }
    void unblocked(cycle_t at) override { add("unblocked", at); }
    void add(const char* what, cycle_t at, cycle_t more = 0) {
      text += what + (" " + std::to_string(at)) + (more != 0 ? "+" + std::to_string(more) : "") + "; ";
    }
    std::string text;
  } seen;
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  script s(d, {{1, [&](server& e) { e.watch(&seen); }},
               {2, [](server& e) { e.start(5); }},
               {3, [](server& e) { e.blocked("channel"); }},  // from 7 on
               {5, [](server& e) { e.idle(); }},
               {9, [](server& e) { e.blocked("channel"); }},
               {12, [](server& e) { e.start(1); }}});
  run_ns(20);
  EXPECT_EQ(seen.text, "start 2+5; blocked 7; unblocked 7; blocked 9; unblocked 12; start 12+1; ");
  EXPECT_EQ(s.blocked(), "channel 3; ");
}

TEST(Server, AssertsThatItDoesOneThingAtATime) {
  timebase base;
  clock_domain d("d", base, {1000, 1, 0});
  bool served = false;
  script s(d, {{2, [&](server& e) {
                  e.start(3);
                  EXPECT_THROW(e.start(1), invariant_error);
                  EXPECT_THROW(e.begin(), invariant_error);
                  EXPECT_THROW(e.end(), invariant_error);
                  e.append(2);
                  EXPECT_EQ(e.free_at(), 2U + 5U);
                  served = true;
                }}});
  run_ns(3);
  EXPECT_TRUE(served);
}

TEST(Ring, KeepsOrderAcrossItsEnd) {
  ring<int> r(3);
  r.push(1);
  r.push(2);
  EXPECT_EQ(r.pop(), 1);
  r.push(3);
  r.push(4);
  EXPECT_TRUE(r.full());
  EXPECT_EQ(r[0], 2);
  EXPECT_EQ(r[2], 4);
  EXPECT_EQ(r.back(), 4);
  r.drop();
  EXPECT_EQ(r.front(), 3);
  r.clear();
  EXPECT_TRUE(r.empty());
}

TEST(Ring, AssertsItsBounds) {
  ring<int> r(1);
  EXPECT_THROW(r.pop(), invariant_error);
  EXPECT_THROW(r.front(), invariant_error);
  r.push(1);
  EXPECT_THROW(r.push(2), invariant_error);
  EXPECT_THROW(r[1], invariant_error);
}

}  // namespace
}  // namespace rnic::sim::test
