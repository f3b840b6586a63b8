// SPDX-License-Identifier: Apache-2.0
// The block of timers alone: literal cycles of starts, stops and ends, without an entry, without room for what expires.
#include "model/transport/requester/ack_timers.h"

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <random>
#include <string>
#include <systemc>
#include <tuple>
#include <vector>

#include "model/sim/timebase.h"
#include "testbenches/bench/child.h"

namespace {

using namespace rnic;
using cycle = sim::cycle_t;
using transport::timer_command;

/// What the requester is to it: commands at their cycles, expirations taken in one of so many.
struct world : sim::clocked_block {
  explicit world(sim::clock_domain& d) : clocked_block("world", d) {}
  sim::fifo_out<timer_command> out{*this};
  sim::fifo_in<transport::timer_expiration> in{*this};
  struct end {
    std::uint32_t qpn;
    unsigned tag;
    cycle at;  ///< seen: a cycle after it was pushed
    bool operator==(const end& o) const { return qpn == o.qpn && tag == o.tag && at == o.at; }
  };
  std::multimap<cycle, timer_command> commands;
  cycle takes_from = 0, every = 1;
  std::vector<end> ends;

 private:
  void tick() override {
    wake_next();
    if (!commands.empty() && commands.begin()->first <= now()) {
      EXPECT_TRUE(out.can_push()) << "commands never wait";
      out.push(commands.begin()->second);
      commands.erase(commands.begin());
    }
    if (now() < takes_from || now() % every != 0 || !in.can_pop()) return;
    const transport::timer_expiration e = in.pop();
    ends.push_back({e.qpn, e.tag, now()});
  }
};
std::ostream& operator<<(std::ostream& to, const world::end& e) {
  return to << e.qpn << "/" << e.tag << " at " << e.at;
}
using list = std::vector<world::end>;

/// 1 GHz: a cycle is 1 ns.
struct rig {
  explicit rig(unsigned entries = 16, unsigned expiry_cycles = 1, unsigned granularity = 1,
               const sim::timebase::options& o = {})
      : base(o), dut("timers", core, configuration(entries, expiry_cycles, granularity), 10, stats) {
    w.out.bind(commands);
    dut.commands.bind(commands);
    dut.expirations.bind(expirations);
    w.in.bind(expirations);
    w.wake_at(1);
  }
  static transport::timer_config configuration(unsigned entries, unsigned expiry_cycles, unsigned granularity) {
    transport::timer_config c;
    c.entries = entries;
    c.expiry_cycles = expiry_cycles;
    c.granularity_ps = 1000 * granularity;
    return c;
  }
  /// Sent in cycle `when`: seen in the next one.
  void start(cycle when, std::uint32_t qpn, cycle at, unsigned tag = 1) {
    w.commands.emplace(when, timer_command{timer_command::kind::start, qpn, at, static_cast<std::uint8_t>(tag)});
  }
  void stop(cycle when, std::uint32_t qpn) {
    w.commands.emplace(when, timer_command{timer_command::kind::stop, qpn, 0, 0});
  }
  void run(unsigned cycles = 1000) { sc_core::sc_start(static_cast<double>(cycles), sc_core::SC_NS); }
  std::uint64_t count(const char* counter) const { return stats.value(std::string("timers.") + counter); }
  const sim::server& engine() const { return *core.servers().front(); }
  std::map<std::string, std::uint64_t> blocked() const {
    std::map<std::string, std::uint64_t> all;
    for (const sim::server::hold_up& h : engine().blocked_cycles()) all[h.by] = h.cycles;
    return all;
  }

  sim::timebase base;
  sim::clock_domain core{"core", base, {1000, 1, 0}};
  sim::statistics stats;
  transport::ack_timers dut;
  world w{core};
  sim::fifo<timer_command> commands{"commands", core, 2};
  sim::fifo<transport::timer_expiration> expirations{"expirations", core, 2};
};

/// Its expiration is pushed at the edge at which it ends.
TEST(ack_timers, a_timer_ends_at_its_edge) {
  rig r;
  r.start(10, 5, 100, 7);
  r.run(50);
  EXPECT_EQ(r.dut.running(), 1u);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{5, 7, 101}}));
  EXPECT_EQ(r.dut.running(), 0u);
  EXPECT_EQ(r.count("expired"), 1u);
  EXPECT_EQ(r.count("timer_waits"), 0u);
  EXPECT_EQ(r.engine().operations(), 1u);
  EXPECT_TRUE(r.blocked().empty());
}

/// Seen at 11, it ends at 12 at the earliest.
TEST(ack_timers, one_whose_edge_has_passed_ends_at_the_next_one) {
  rig r;
  r.start(10, 5, 3);
  r.start(20, 6, 21);
  r.start(30, 7, 32);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{5, 1, 13}, {6, 1, 23}, {7, 1, 33}}));
}

TEST(ack_timers, all_end_at_multiples_of_the_granularity_and_never_early) {
  rig r(16, 1, 16);
  r.start(10, 1, 112);
  r.start(11, 2, 113);
  r.start(12, 3, 144);
  r.start(14, 4, 7);   // seen at 15
  r.start(200, 5, 7);  // at 201
  r.run();
  EXPECT_EQ(r.w.ends, (list{{4, 1, 17}, {1, 1, 113}, {2, 1, 129}, {3, 1, 145}, {5, 1, 209}}));
}

/// The lowest number first, whoever has started first.
TEST(ack_timers, those_that_end_together_follow_each_other) {
  rig r(16, 8);
  r.start(10, 9, 100);
  r.start(11, 3, 100);
  r.start(12, 6, 100);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{3, 1, 101}, {6, 1, 109}, {9, 1, 117}}));
  EXPECT_EQ(r.engine().busy_cycles(), 24u);
  EXPECT_TRUE(r.blocked().empty()) << "one behind the other is not a hold-up";
}

TEST(ack_timers, one_that_ends_within_the_interval_waits_for_its_end) {
  rig r(16, 8);
  r.start(10, 1, 100);
  r.start(11, 2, 103);
  r.start(12, 3, 116);
  r.start(13, 4, 130);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 1, 101}, {2, 1, 109}, {3, 1, 117}, {4, 1, 131}}));
}

/// 3 is to run for 50 cycles (seen at 13), 4 for 30. What comes free at 100 is given at 101.
TEST(ack_timers, without_an_entry_they_wait_in_order_and_run_from_then_on) {
  rig r(2);
  r.start(10, 1, 100);
  r.start(11, 2, 200);
  r.start(12, 3, 63);
  r.start(13, 4, 44);
  r.run(50);
  EXPECT_EQ(r.dut.running(), 2u);
  EXPECT_EQ(r.count("timer_waits"), 2u);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 1, 101}, {3, 1, 152}, {4, 1, 183}, {2, 1, 201}}));
  EXPECT_EQ(r.dut.running(), 0u);
}

/// Seen at 41, given at 42; it is no other's in between.
TEST(ack_timers, an_entry_that_a_stop_makes_free_is_the_first_ones_who_waits) {
  rig r(1);
  r.start(10, 1, 100);
  r.start(11, 2, 62);  // for 50
  r.stop(40, 1);
  r.start(41, 3, 52);  // seen at 42, for 10
  r.run();
  EXPECT_EQ(r.w.ends, (list{{2, 1, 93}, {3, 1, 104}}));
  EXPECT_EQ(r.count("timer_waits"), 2u);
}

/// It is passed over at 101, so that 3 has the entry at 102.
TEST(ack_timers, one_that_is_stopped_in_the_line_takes_no_entry) {
  rig r(1);
  r.start(10, 1, 100);
  r.start(11, 2, 62);
  r.start(12, 3, 63);  // for 50
  r.stop(20, 2);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 1, 101}, {3, 1, 153}}));
  EXPECT_EQ(r.dut.running(), 0u);
}

TEST(ack_timers, one_that_starts_again_in_the_line_keeps_its_place) {
  rig r(1);
  r.start(10, 1, 100);
  r.start(11, 2, 62);
  r.start(12, 3, 63);
  r.start(20, 2, 31, 2);  // for 10
  r.stop(21, 3);
  r.start(22, 3, 43, 2);  // for 20
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 1, 101}, {2, 2, 112}, {3, 2, 133}}));
  EXPECT_EQ(r.count("timer_waits"), 3u) << "3 has waited twice";
}

TEST(ack_timers, a_stop_before_the_end_leaves_nothing) {
  rig r;
  r.start(10, 1, 100);
  r.stop(98, 1);  // seen at 99
  r.run();
  EXPECT_TRUE(r.w.ends.empty());
  EXPECT_EQ(r.dut.running(), 0u);
}

TEST(ack_timers, a_stop_at_the_edge_of_the_end_is_too_late_and_changes_nothing) {
  rig r;
  r.start(10, 1, 100);
  r.stop(99, 1);
  r.stop(100, 1);
  r.stop(101, 2);  // has never run
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 1, 101}}));
  EXPECT_EQ(r.dut.running(), 0u);
}

TEST(ack_timers, a_start_moves_the_end_later) {
  rig r(1);
  r.start(10, 1, 100, 1);
  r.start(98, 1, 150, 2);  // seen at 99
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 2, 151}}));
  EXPECT_EQ(r.count("timer_waits"), 0u) << "its entry is its own";
}

TEST(ack_timers, a_start_moves_the_end_earlier) {
  rig r(1);
  r.start(10, 1, 100, 1);
  r.start(40, 1, 60, 2);
  r.start(70, 1, 300, 3);  // of a timer that has ended
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 2, 61}, {1, 3, 301}}));
}

/// The old one ends, with its tag, and the new one has an entry of its own.
TEST(ack_timers, a_start_at_the_edge_of_the_end_is_another_timer) {
  rig r(1);
  r.start(10, 1, 100, 1);
  r.start(99, 1, 150, 2);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 1, 101}, {1, 2, 151}}));
}

TEST(ack_timers, one_that_has_moved_often_ends_once) {
  rig r;
  for (unsigned n = 0; n != 20; ++n) r.start(10 + n, 1, n % 2 == 0 ? 200 - n : 300 + n, n);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{1, 19, 320}}));
}

/// Two are in the channel at 100 and 101, which is full from 102 on. It has room when one was taken at 150, and again
/// at 152.
/// Each round leaves a node of the long time behind, more than are kept.
TEST(ack_timers, long_and_short_ones_in_turn_for_long) {
  rig r;
  constexpr unsigned rounds = 4000;
  for (unsigned i = 0; i < rounds; ++i) {
    r.start(10 + 20 * i, 5, 1'000'000 + i);
    r.start(12 + 20 * i, 5, 20 + 20 * i, 2);
    r.start(13 + 20 * i, 6 + i % 7, 900'000, 3);
  }
  r.run(10 + 20 * rounds + 100);
  ASSERT_EQ(r.w.ends.size(), rounds);
  for (unsigned i = 0; i < rounds; ++i) EXPECT_EQ(r.w.ends[i], (world::end{5, 2, 21 + 20 * i}));
  EXPECT_EQ(r.dut.running(), 7u);
  r.run(900'000);
  EXPECT_EQ(r.w.ends.size(), rounds + 7);
}

TEST(ack_timers, what_expires_waits_for_room_in_the_channel) {
  rig r;
  r.w.takes_from = 150;
  for (unsigned n = 0; n != 4; ++n) r.start(10 + n, n, 100);
  r.run(149);
  EXPECT_EQ(r.expirations.pushes(), 2u);
  EXPECT_EQ(r.dut.running(), 2u) << "an entry is free when its expiration is pushed";
  r.run();
  EXPECT_EQ(r.w.ends, (list{{0, 1, 150}, {1, 1, 151}, {2, 1, 152}, {3, 1, 153}}));
  EXPECT_EQ(r.blocked(), (std::map<std::string, std::uint64_t>{{"expirations", 151 - 102}}));
  EXPECT_EQ(r.engine().busy_cycles(), 4u);
}

/// Seen at 121 and 122: what stood there is gone, and nothing keeps the engine any more.
TEST(ack_timers, commands_go_on_while_the_channel_is_full) {
  rig r;
  r.w.takes_from = 150;
  for (unsigned n = 0; n != 4; ++n) r.start(10 + n, n, 100);
  r.start(120, 2, 140, 2);
  r.stop(121, 3);
  r.run();
  EXPECT_EQ(r.w.ends, (list{{0, 1, 150}, {1, 1, 151}, {2, 2, 152}}));
  EXPECT_EQ(r.blocked(), (std::map<std::string, std::uint64_t>{{"expirations", (122 - 102) + (151 - 140)}}));
  EXPECT_EQ(r.dut.running(), 0u);
}

/// A command to a queue pair's timer.
struct sent {
  cycle when, end;
  unsigned tag;
  bool starts;
};
using history = std::map<std::uint32_t, std::vector<sent>>;

/// Starts and stops of twelve queue pairs at random.
history load_of(rig& r, unsigned seed) {
  history of;
  std::mt19937 rng(seed);
  cycle when = 5;
  for (unsigned n = 0; n != 250; ++n) {
    when += 1 + rng() % 6;
    const auto qpn = static_cast<std::uint32_t>(rng() % 12);
    const cycle at = when + rng() % 150;
    const bool starts = rng() % 3 != 0;
    if (starts)
      r.start(when, qpn, at, n);
    else
      r.stop(when, qpn);
    of[qpn].push_back({when, at, n, starts});
  }
  return of;
}

/// A timer that was neither stopped nor moved ends once, with the tag of its start, and not before its time. One that
/// was, and ends all the same, has crossed the command: that was seen no earlier than the expiration was pushed.
class ack_timers_load : public testing::TestWithParam<std::tuple<unsigned, unsigned, unsigned, unsigned>> {};
TEST_P(ack_timers_load, every_timer_ends_once_unless_it_is_stopped) {
  const auto [entries, expiry, granularity, every] = GetParam();
  rig r(entries, expiry, granularity);
  r.w.every = every;
  const history all = load_of(r, entries + expiry);
  r.run(20'000);
  EXPECT_EQ(r.dut.running(), 0u);
  EXPECT_EQ(r.count("expired"), r.w.ends.size());
  std::map<std::uint32_t, std::size_t> next;  // command behind the last start that has ended
  for (const world::end& e : r.w.ends) {
    const std::vector<sent>& of = all.at(e.qpn);
    std::size_t i = next[e.qpn];
    while (i < of.size() && !(of[i].starts && of[i].tag == e.tag)) ++i;
    ASSERT_LT(i, of.size()) << "once each, in order";
    EXPECT_GT(e.at, of[i].end) << "never early";
    if (every == 1 && i + 1 < of.size()) {
      EXPECT_LE(e.at, of[i + 1].when + 2);
    }
    next[e.qpn] = i + 1;
  }
  for (const auto& [qpn, of] : all) {
    EXPECT_TRUE(next[qpn] == of.size() || !of.back().starts) << qpn;
  }
}
INSTANTIATE_TEST_SUITE_P(entries_by_interval_by_granularity_by_room, ack_timers_load,
                         testing::Combine(testing::Values(1u, 3u, 16u), testing::Values(1u, 8u),
                                          testing::Values(1u, 16u), testing::Values(1u, 7u, 40u)));

/// What expired when, under load, and what was counted.
std::string results(const sim::timebase::options& o) {
  return rnic::bench::in_child([o] {
    rig r(8, 2, 4, o);
    r.w.every = 9;
    load_of(r, 1);
    r.run(20'000);
    std::string seen = std::to_string(r.w.ends.size()) + " ends:";
    for (const world::end& e : r.w.ends)
      seen += ' ' + std::to_string(e.qpn) + '/' + std::to_string(e.tag) + '@' + std::to_string(e.at);
    for (const auto& [by, cycles] : r.blocked()) seen += ' ' + by + ' ' + std::to_string(cycles);
    return seen + ' ' + std::to_string(r.engine().busy_cycles()) + ' ' + std::to_string(r.count("timer_waits"));
  });
}

TEST(ack_timers, sleeping_and_the_order_of_ticks_are_not_seen) {
  const std::string seen = results({false, 0});
  EXPECT_NE(seen.find("expirations"), std::string::npos) << seen;
  EXPECT_EQ(results({true, 0}), seen);
  EXPECT_EQ(results({false, 7}), seen);
  EXPECT_EQ(results({true, 11}), seen);
}

}  // namespace
