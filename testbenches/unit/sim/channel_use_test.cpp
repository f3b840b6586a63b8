// SPDX-License-Identifier: Apache-2.0
// What both ends of a channel are told and counted for: slots freed in a cycle, masks, quiet, and arrivals from
// outside.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/fifo.h"
#include "model/sim/timebase.h"
#include "model/sim/timed_inbox.h"

namespace rnic::sim::test {
namespace {

using cycles = std::vector<cycle_t>;

void run_ns(std::uint64_t ns) { sc_core::sc_start(sc_core::sc_time::from_value(ns * 1000)); }

/// Does what it is told in fixed cycles, and remembers when it was ticked for something else.
class scripted final : public clocked_block {
 public:
  using calls = std::map<cycle_t, std::function<void()>>;
  fifo_out<int> out{*this};
  fifo_in<int> in{*this};
  cycles ticked;
  explicit scripted(clock_domain& clock) : clocked_block("scripted", clock) {}
  void follow(calls all) {
    calls_ = std::move(all);
    for (const auto& call : calls_) wake_at(call.first);
  }

 private:
  void tick() override {
    if (const auto c = calls_.find(now()); c != calls_.end())
      c->second();
    else
      ticked.push_back(now());
  }
  calls calls_;
};

struct ends {
  timebase base;
  clock_domain clock{"d", base, {1000, 1, 0}};
  fifo<int> channel;
  scripted from{clock}, to{clock};
  explicit ends(std::size_t depth, channel_width width = {}) : channel("channel", clock, depth, 1, width) {
    from.out.bind(channel);
    to.in.bind(channel);
  }
};

TEST(ChannelUse, SlotsFreedInACycleAreTakenUntilItsEnd) {
  ends b(3, {2});
  const auto push = [&] { b.from.out.push(0); };
  b.to.follow({{4, [&] {
                  b.to.in.drop();
                  EXPECT_EQ(b.from.out.free_slots(), 0u) << "whoever is ticked first";
                  b.to.in.drop();
                  EXPECT_EQ(b.from.out.free_slots(), 0u);
                }}});
  b.from.follow({{1, push},
                 {2,
                  [&] {
                    push();
                    EXPECT_EQ(b.from.out.free_slots(), 1u);
                    push();
                  }},
                 {5, [&] { EXPECT_EQ(b.from.out.free_slots(), 2u); }}});
  run_ns(20);
  EXPECT_EQ(b.channel.used().max_occupancy, 3u);
  EXPECT_EQ(b.channel.used().full_cycles, 2u) << "2 to 4, once, though two leave at 4";
}

TEST(ChannelUse, TheMostThatWasInItIsCounted) {
  ends b(8, {2});
  b.from.follow({{1, [&] { b.from.out.push(0); }}});
  run_ns(5);
  EXPECT_EQ(b.channel.used().max_occupancy, 1u);
}

// Wider than a byte tells.
TEST(ChannelUse, AWidthOf300IsUsedUpByThe300th) {
  ends b(512, {300});
  unsigned pushed = 0;
  b.from.follow({{1, [&] {
                    while (b.from.out.can_push()) {
                      b.from.out.push(0);
                      ++pushed;
                    }
                  }}});
  run_ns(5);
  EXPECT_EQ(pushed, 300u);
}

TEST(ChannelUse, AMaskShowsWhatHoldsSomething) {
  ends b(4);
  std::uint64_t mask = 0x8000;
  b.channel.show_in(mask, 3);
  std::vector<std::uint64_t> seen;
  const auto look = [&] { seen.push_back(mask); };
  const auto take = [&] {
    b.to.in.drop();
    look();
  };
  b.from.follow({{1,
                  [&] {
                    b.from.out.push(0);
                    look();
                  }},
                 {2, [&] { b.from.out.push(0); }}});
  b.to.follow({{4, take}, {6, take}});
  run_ns(20);
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{0x8008, 0x8008, 0x8000}));
}

// Of seven places half, four, tick the consumer; at the end of it, so does what is there.
TEST(ChannelUse, AQuietChannelTicksWhenHalfFullAndAtTheEndOfIt) {
  ends b(7);
  b.channel.set_quiet(true);
  const auto push = [&] { b.from.out.push(0); };
  const auto take = [&] {
    while (b.to.in.can_pop()) b.to.in.take_due([](int) {});
  };
  b.from.follow({{1, push}, {2, push}, {3, push}, {10, push}, {20, push}, {25, [&] { b.channel.set_quiet(false); }}});
  b.to.follow({{15, take}});
  run_ns(40);
  EXPECT_EQ(b.to.ticked, (cycles{11, 26})) << "for the fourth, and for what waits when quiet ends";
}

TEST(ChannelUse, AChannelTellsWhoLooksWhatItHolds) {
  ends b(2);
  std::vector<channel_state> seen;
  const auto look = [&] { seen.push_back(b.channel.look(nullptr)); };
  b.from.follow({{1, [&] { b.from.out.push(0); }}, {2, [&] { b.from.out.push(0); }}, {3, look}});
  b.to.follow({{5, [&] { b.to.in.drop(); }}, {6, look}});
  run_ns(20);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].pushes, 2u);
  EXPECT_EQ(seen[0].pops, 0u);
  EXPECT_EQ(seen[0].occupancy, 2u);
  EXPECT_EQ(seen[0].valid_from, 2u);
  EXPECT_EQ(seen[0].ready_from, never);
  EXPECT_EQ(seen[1].pops, 1u);
  EXPECT_EQ(seen[1].valid_from, 3u);
  EXPECT_EQ(seen[1].ready_from, 0u);
}

/// Takes one a cycle, whatever has arrived.
class taker final : public clocked_block {
 public:
  timed_inbox<int> inbox;
  std::vector<std::pair<cycle_t, int>> taken;
  taker(clock_domain& clock, std::size_t places) : clocked_block("taker", clock), inbox("taker.inbox", *this, places) {}

 private:
  void tick() override {
    if (inbox.can_pop()) taken.emplace_back(now(), inbox.pop());
  }
};

// Two places, and the first item has gone when the third comes: it grows where it is turned.
TEST(TimedInbox, GrowsInOrder) {
  timebase base;
  clock_domain clock("d", base, {1000, 1, 0});
  taker t(clock, 2);
  t.inbox.push(1, 1000);
  t.inbox.push(2, 9500);  // the edge behind it
  run_ns(5);
  for (int i = 3; i <= 6; ++i) t.inbox.push(i, 10'000);
  EXPECT_EQ(t.inbox.size(), 5u);
  run_ns(30);
  EXPECT_EQ(t.taken, (std::vector<std::pair<cycle_t, int>>{{1, 1}, {10, 2}, {11, 3}, {12, 4}, {13, 5}, {14, 6}}));
  t.inbox.push(7, 50'000);
  EXPECT_THROW(t.inbox.push(8, 49'999), invariant_error) << "before the last one";
}

}  // namespace
}  // namespace rnic::sim::test
