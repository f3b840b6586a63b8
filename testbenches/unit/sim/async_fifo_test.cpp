// SPDX-License-Identifier: Apache-2.0
// The channel between two clocks, in literal edges, and that nothing but the clocks' edges can be seen in it.
#include "model/sim/async_fifo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/simulation.h"
#include "model/sim/timebase.h"

namespace rnic::sim {
namespace {

using cycles = std::vector<cycle_t>;

void run_ns(std::uint64_t ns) { sc_core::sc_start(sc_core::sc_time::from_value(ns * 1000)); }

/// Pushes 0, 1, 2 ... each at its edge or when there is room.
class source final : public clocked_block {
 public:
  source(clock_domain& domain, cycles at) : clocked_block("source", domain), at_(std::move(at)) { wake_at(at_[0]); }
  void bind(async_fifo<unsigned>& f) { out_ = &f; }
  cycles pushed;

 private:
  void tick() override {
    if (pushed.size() == at_.size()) return;
    if (at_[pushed.size()] > now()) return wake_at(at_[pushed.size()]);
    if (!out_->can_push()) return;
    out_->push(static_cast<unsigned>(pushed.size()));
    pushed.push_back(now());
    if (pushed.size() != at_.size()) wake_at(std::max(now() + 1, at_[pushed.size()]));
  }
  async_fifo<unsigned>* out_ = nullptr;
  cycles at_;
};

/// Takes what is there, not before its edge.
class sink final : public clocked_block {
 public:
  sink(clock_domain& domain, cycles from) : clocked_block("sink", domain), from_(std::move(from)) {}
  void bind(async_fifo<unsigned>& f) { in_ = &f; }
  cycles popped;
  std::vector<unsigned> got;

 private:
  void tick() override {
    if (!in_->can_pop()) return;
    if (popped.size() < from_.size() && from_[popped.size()] > now()) return wake_at(from_[popped.size()]);
    got.push_back(in_->pop());
    popped.push_back(now());
  }
  async_fifo<unsigned>* in_ = nullptr;
  cycles from_;
};

/// A fast clock (1 ns) and a slow one (4 ns).
struct crossing {
  crossing(clock_period from, clock_period to, cycles push, cycles pop, std::size_t depth, unsigned stages,
           timebase::options o = {})
      : base(o),
        writer("writer", base, from),
        reader("reader", base, to),
        in(writer, std::move(push)),
        out(reader, std::move(pop)),
        channel("channel", in, out, depth, stages) {
    in.bind(channel);
    out.bind(channel);
  }
  timebase base;
  clock_domain writer, reader;
  source in;
  sink out;
  async_fifo<unsigned> channel;
};
const clock_period fast{1000, 1, 0}, slow{4000, 1, 0};

TEST(AsyncFifo, IsSeenTheStagesBehindTheNextEdge) {
  crossing x(fast, slow, {1, 2, 3}, {}, 8, 2);
  run_ns(40);
  EXPECT_EQ(x.in.pushed, (cycles{1, 2, 3}));
  EXPECT_EQ(x.out.popped, (cycles{3, 4, 5})) << "the first flip-flop has it at 1, the second at 2; one leaves a cycle";
  EXPECT_EQ(x.out.got, (std::vector<unsigned>{0, 1, 2}));
}

TEST(AsyncFifo, WhatIsWrittenAtAnEdgeIsNotTakenAtIt) {
  crossing x(fast, slow, {3, 4, 20}, {}, 8, 2);
  run_ns(60);
  EXPECT_EQ(x.out.popped, (cycles{3, 4, 8})) << "4 ns is an edge of the slow clock: from the next one on, 8 ns";
}

TEST(AsyncFifo, TakesALongerChainOfFlipFlops) {
  crossing x(fast, slow, {1}, {}, 8, 5);
  run_ns(60);
  EXPECT_EQ(x.out.popped, (cycles{6}));
}

TEST(AsyncFifo, AFreedSlotComesBackTheSameWay) {
  crossing x(fast, slow, {1, 2, 3, 4, 5}, {}, 2, 2);
  run_ns(100);
  EXPECT_EQ(x.out.popped, (cycles{3, 4, 6, 7, 9}));
  EXPECT_EQ(x.in.pushed, (cycles{1, 2, 15, 19, 27})) << "what is popped at 12 ns is seen by flip-flops at 13 and 14";
  EXPECT_EQ(x.channel.used().full_cycles, 13u + (19 - 15) + (27 - 19));
  EXPECT_EQ(x.channel.used().pushes, 5u);
  EXPECT_EQ(x.channel.used().max_occupancy, 2u);
}

TEST(AsyncFifo, FromSlowToFast) {
  crossing x(slow, fast, {1, 2, 3, 4, 5}, {}, 2, 2);
  run_ns(100);
  EXPECT_EQ(x.in.pushed, (cycles{1, 2, 4, 5, 7})) << "popped at 7 ns, seen by flip-flops at 8 and 12";
  EXPECT_EQ(x.out.popped, (cycles{7, 11, 19, 23, 31}));
}

TEST(AsyncFifo, AConsumerThatStallsKeepsItFull) {
  crossing x(fast, slow, {1, 2, 3}, {10, 10, 20}, 2, 2);
  run_ns(200);
  EXPECT_EQ(x.out.popped, (cycles{10, 11, 20}));
  EXPECT_EQ(x.in.pushed, (cycles{1, 2, 43}));
}

TEST(AsyncFifo, RefusesOneFlipFlop) { EXPECT_THROW(crossing(fast, slow, {1}, {}, 2, 1), config_error); }

/// Neither sleeping nor the order in which domains and blocks are served is seen, whatever the clocks have in common.
TEST(AsyncFifo, OnlyTheClocksAreSeen) {
  const clock_period clocks[] = {{1000, 1, 0}, {4000, 1, 0}, {2000, 1, 1000}, {1'000'000'000, 427'000, 0}};
  std::set<std::pair<cycles, cycles>> all;
  unsigned settings = 0;
  for (const clock_period& from : clocks)
    for (const clock_period& to : clocks)
      for (const std::size_t depth : {1u, 3u}) {
        std::uint64_t random = 17 * depth + from.num_ps + 3 * to.num_ps;
        const auto distance = [&random] {
          random = random * 6364136223846793005u + 1442695040888963407u;
          return (random >> 33) % 8 < 5 ? 1 : (random >> 36) % 40;
        };
        cycles push{2}, pop{5};
        for (unsigned i = 0; i < 60; ++i) {
          push.push_back(push.back() + distance());
          pop.push_back(pop.back() + distance());
        }
        std::pair<cycles, cycles> first;
        for (unsigned variant = 0; variant < 4; ++variant) {
          timebase::options o;
          o.always_tick = (variant & 1) != 0;
          o.shuffle_seed = variant / 2 * 77;
          simulation kernel;
          crossing x(from, to, push, pop, depth, 2, o);
          run_ns(20'000);
          ASSERT_EQ(x.out.popped.size(), push.size());
          for (unsigned i = 0; i < push.size(); ++i) ASSERT_EQ(x.out.got[i], i);
          if (variant == 0) first = {x.in.pushed, x.out.popped};
          ASSERT_EQ(std::make_pair(x.in.pushed, x.out.popped), first) << settings << ", variant " << variant;
        }
        all.insert(first);
        ++settings;
      }
  EXPECT_EQ(all.size(), settings) << "the clocks and the depth are seen";
}

}  // namespace
}  // namespace rnic::sim
