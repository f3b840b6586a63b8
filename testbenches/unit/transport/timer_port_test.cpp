// SPDX-License-Identifier: Apache-2.0
// Timers of queue pairs: when one runs, how long, what the block of timers is told, and how their ends follow each
// other.
#include "model/transport/requester/timer_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "model/transport/requester/ack_timers.h"

namespace {
using namespace rnic;

struct time_of_a_bench {
  explicit time_of_a_bench(bool always) : base({always, 0}) {}
  sim::timebase base;
  sim::clock_domain clock{"core", base, {1000, 1, 0}};
};

/// The port in a block that takes what it offers, or refuses it for some cycles first; behind it the block of timers.
struct bench final : time_of_a_bench, sim::clocked_block {
  explicit bench(unsigned expiry_cycles, bool always = false)
      : time_of_a_bench(always),
        clocked_block("bench", clock),
        block("ack_timers", clock, configuration(expiry_cycles), 10, stats) {
    out.bind(commands);
    block.commands.bind(commands);
    block.expirations.bind(expirations);
    in.bind(expirations);
    timers.announce(stats);
  }
  static transport::timer_config configuration(unsigned expiry_cycles) {
    transport::timer_config c;
    c.entries = 16;
    c.granularity_ps = 1000;
    c.expiry_cycles = expiry_cycles;
    return c;
  }
  static icm::requester_context of_code(std::uint8_t code, std::uint32_t unacked = 1, std::uint32_t next = 2) {
    icm::requester_context c{};
    c.type = icm::service::rc;
    c.ack_timeout = code;
    c.unacked_psn = unacked;
    c.next_psn = next;
    return c;
  }
  transport::qp_runtime& start(std::uint32_t qpn, std::uint8_t code, std::uint32_t unacked = 1,
                               std::uint32_t next = 2) {
    asks(qpn, next);
    timers.start(of_code(code, unacked, next), qps[qpn]);
    return qps[qpn];
  }
  /// The packet before `behind` has asked for an acknowledgement.
  transport::qp_runtime& asks(std::uint32_t qpn, std::uint32_t behind = 2) {
    qps[qpn].progress.asked = wire::psn_t(behind);
    return qps[qpn];
  }
  void run_us(std::uint64_t us) {
    wake_next();
    sc_core::sc_start(sc_core::sc_time::from_value(us * 1'000'000));
  }
  /// In that cycle, behind what expires.
  void at(sim::cycle_t cycle, std::function<void()> what) {
    todo.emplace(cycle, std::move(what));
    wake_at(cycle);
  }
  std::uint64_t count(const std::string& counter) { return stats.value("bench.timers_" + counter); }

  sim::statistics stats;
  transport::qp_table qps{10};
  sim::fifo<transport::timer_command> commands{"commands", clock, 2};
  sim::fifo<transport::timer_expiration> expirations{"expirations", clock, 2};
  sim::fifo_out<transport::timer_command> out{*this};
  sim::fifo_in<transport::timer_expiration> in{*this};
  transport::timer_port timers{*this, {out, in}, qps};
  transport::ack_timers block;
  unsigned refused = 0;  ///< cycles for which each is refused
  unsigned offers = 0;
  std::multimap<sim::cycle_t, std::function<void()>> todo;
  std::vector<std::pair<std::uint32_t, sim::cycle_t>> ends;

 private:
  void tick() override {
    if (transport::qp_runtime* const r = timers.expired(); r != nullptr && offers++ >= refused) {
      offers = 0;
      timers.end(*r);
      ends.emplace_back(r->qpn, now());
    }
    for (; !todo.empty() && todo.begin()->first <= now(); todo.erase(todo.begin())) todo.begin()->second();
    timers.send();
  }
};
using list = std::vector<std::pair<std::uint32_t, sim::cycle_t>>;
constexpr sim::cycle_t unit = 4096;  // cycles of 1 ns
constexpr sim::cycle_t seen = 1;     // an expiration is pushed at its edge and seen a cycle later

/// Packets 1 and 2 are under way, and only the first one, which is acknowledged, has asked.
TEST(ack_timers, none_runs_while_nothing_is_asked_for) {
  bench b(1);
  b.asks(1, 2);
  b.timers.restart(bench::of_code(1, 2, 3), b.qps[1]);
  b.asks(2, 1);
  b.timers.start(bench::of_code(1, 1, 3), b.qps[2]);
  EXPECT_FALSE(transport::timer_port::is_on(b.qps[1]) || transport::timer_port::is_on(b.qps[2]));
  b.asks(2, 3);
  b.timers.start(bench::of_code(1, 1, 3), b.qps[2]);
  b.run_us(40);
  EXPECT_EQ(b.ends, (list{{2, 2 * unit + seen}}));
}

/// 1024 ns after it went back its first packet is sent again, 1024 ns later the one that asks.
TEST(ack_timers, run_from_what_asks_when_a_queue_pair_has_gone_back) {
  bench b(1);
  transport::qp_runtime& r = b.asks(4, 7);
  r.progress.retrying = true;
  b.timers.restart(bench::of_code(1, 7, 7), r);
  b.at(1024, [&] {
    b.timers.sent(bench::of_code(1, 7, 8), r, wire::psn_t(7), false);
    EXPECT_FALSE(transport::timer_port::is_on(r));
  });
  b.at(2048, [&] { b.timers.sent(bench::of_code(1, 7, 9), r, wire::psn_t(8), true); });
  b.at(3072, [&] { b.timers.sent(bench::of_code(1, 7, 10), r, wire::psn_t(9), true); });
  b.run_us(40);
  EXPECT_EQ(b.ends, (list{{4, 2048 + 2 * unit + seen}}));
}

TEST(ack_timers, run_for_the_code_of_the_queue_pair) {
  bench b(1);
  b.start(1, 1);
  b.start(2, 2);
  b.start(3, 0);        // none
  b.start(4, 1, 7, 7);  // nothing under way
  b.run_us(40);
  EXPECT_EQ(b.ends, (list{{1, 2 * unit + seen}, {2, 4 * unit + seen}}));
}

/// Everything that is not acknowledged is to be sent again: until then nothing is under way, and it must not get stuck.
TEST(ack_timers, run_while_a_queue_pair_goes_back) {
  bench b(1);
  b.qps[4].progress.retrying = true;
  b.start(4, 1, 7, 7);
  b.run_us(40);
  EXPECT_EQ(b.ends, (list{{4, 2 * unit + seen}}));
}

TEST(ack_timers, of_other_services_than_acknowledged_ones_do_not_run) {
  bench b(1);
  icm::requester_context c{};
  c.type = icm::service::uc;
  c.ack_timeout = 1;
  c.next_psn = 1;
  b.timers.start(c, b.asks(1));
  EXPECT_FALSE(transport::timer_port::is_on(b.qps[1]));
}

/// Idle or one behind the other, with an engine that is slow, and a completer that has no time: what it leaves in front
/// holds up what is behind it, and the engine only where the channel is full.
class ends : public testing::TestWithParam<std::tuple<bool, unsigned, unsigned, unsigned>> {};
TEST_P(ends, follow_each_other_an_interval_apart) {
  const auto [always, interval, refused, together] = GetParam();
  bench b(interval, always);
  b.refused = refused;
  for (unsigned n = 0; n < together; ++n) b.start(n, 1);
  b.run_us(20);
  ASSERT_EQ(b.ends.size(), together);
  for (unsigned n = 0; n < together; ++n)
    EXPECT_EQ(b.ends[n].second, 2 * unit + seen + refused + n * std::max(interval, 1 + refused));
}
INSTANTIATE_TEST_SUITE_P(ack_timers, ends,
                         testing::Combine(testing::Bool(), testing::Values(1u, 8u), testing::Values(0u, 3u),
                                          testing::Values(1u, 2u, 5u)));

TEST(ack_timers, start_leaves_one_that_runs_and_restart_does_not) {
  bench b(1);
  b.start(1, 1);
  b.start(2, 1);
  b.run_us(4);
  icm::requester_context c{};
  c.type = icm::service::rc;
  c.ack_timeout = 1;
  c.next_psn = 1;
  const sim::cycle_t later = b.now();
  b.timers.start(c, b.asks(1));
  b.timers.restart(c, b.asks(2));
  b.run_us(20);
  EXPECT_EQ(b.ends, (list{{1, 2 * unit + seen}, {2, later + 2 * unit + seen}}));
}

TEST(ack_timers, a_receiver_that_is_not_ready_takes_the_place_of_the_acknowledgement) {
  bench b(1);
  b.start(1, 1);
  b.timers.wait_for_receiver(b.qps[1], 0x20 | 2);  // 0.02 ms
  b.run_us(40);
  EXPECT_EQ(b.ends, (list{{1, 20'000 + seen}}));
}

/// Three starts, of which one is told of: the other two are later than what the block knows. The stop is the second
/// command; the timer that the block knows ends before that.
TEST(timer_port, a_later_end_is_not_told_before_the_earlier_one) {
  bench b(1);
  const auto c = bench::of_code(1);
  for (const sim::cycle_t cycle : {10u, 1000u, 2000u}) b.at(cycle, [&] { b.timers.restart(c, b.asks(1)); });
  b.run_us(8);
  EXPECT_EQ(b.commands.pushes(), 1u);
  b.run_us(4);
  EXPECT_EQ(b.commands.pushes(), 2u) << "for the rest, at the end of the first";
  EXPECT_EQ(b.ends, (list{{1, 2000 + 2 * unit + seen}}));
  EXPECT_EQ(b.count("extended"), 1u);
  EXPECT_EQ(b.count("crossed"), 0u);
  EXPECT_EQ(b.block.running(), 0u);
}

TEST(timer_port, an_earlier_end_is_told_at_once) {
  bench b(1);
  b.start(1, 10);
  b.at(100, [&] { b.timers.wait_for_receiver(b.qps[1], 0x20 | 1); });  // 0.01 ms
  b.run_us(20);
  EXPECT_EQ(b.ends, (list{{1, 10'100 + seen}}));
  EXPECT_EQ(b.commands.pushes(), 2u);
}

/// What changes in one cycle, or before its turn has come, is one command or none.
TEST(timer_port, the_last_wish_is_told) {
  bench b(1);
  const auto c = bench::of_code(1);
  b.start(1, 1);
  b.at(100, [&] {
    b.timers.stop(b.qps[1]);
    b.timers.start(c, b.asks(1));
  });
  b.at(200, [&] {
    b.timers.start(c, b.asks(2));
    b.timers.stop(b.qps[2]);
  });
  b.run_us(1);
  EXPECT_EQ(b.commands.pushes(), 1u);
  EXPECT_TRUE(b.timers.told());
  b.at(2000, [&] { b.timers.stop(b.qps[1]); });
  b.run_us(20);
  EXPECT_EQ(b.commands.pushes(), 2u);
  EXPECT_TRUE(b.ends.empty());
  EXPECT_EQ(b.block.running(), 0u);
}

/// Each is in the list once, and has its turn in the order in which they came.
TEST(timer_port, one_command_leaves_in_a_cycle) {
  bench b(1);
  const auto c = bench::of_code(1);
  b.at(100, [&] {
    for (const std::uint32_t qpn : {7u, 3u, 5u}) b.timers.start(c, b.asks(qpn));
    b.timers.stop(b.qps[3]);
  });
  b.at(101, [&] {
    EXPECT_EQ(b.commands.pushes(), 1u);
    EXPECT_TRUE(b.timers.told(b.qps[7]));
    EXPECT_FALSE(b.timers.told(b.qps[3]));
  });
  b.at(102, [&] {
    EXPECT_EQ(b.commands.pushes(), 1u) << "nothing to be told of 3";
    EXPECT_FALSE(b.timers.told(b.qps[5]));
  });
  b.at(103, [&] {
    EXPECT_EQ(b.commands.pushes(), 2u);
    EXPECT_TRUE(b.timers.told());
  });
  b.at(104, [&] { EXPECT_EQ(b.block.running(), 2u); });
  b.run_us(20);
  EXPECT_EQ(b.ends, (list{{5, 100 + 2 * unit + seen}, {7, 100 + 2 * unit + seen + 1}}));
}

/// The timer's end is at `end` in the block and a cycle later here. A stop that is there in time leaves nothing; one
/// that crosses it, or waits behind it in the same cycle, makes it nobody's.
class crossing : public testing::TestWithParam<std::tuple<bool, int>> {};
constexpr sim::cycle_t end = 2 * unit;
TEST_P(crossing, a_stop_leaves_nothing_to_expire) {
  const auto [always, late] = GetParam();
  bench b(1, always);
  b.start(1, 1);
  b.at(end + static_cast<sim::cycle_t>(late), [&] { b.timers.stop(b.qps[1]); });
  b.run_us(30);
  EXPECT_TRUE(b.ends.empty());
  EXPECT_EQ(b.count("crossed"), late <= -2 ? 0u : 1u);
  EXPECT_EQ(b.block.running(), 0u);
}
/// The start behind it has another tag, and its own time.
TEST_P(crossing, a_start_behind_the_stop_has_its_own_time) {
  const auto [always, late] = GetParam();
  bench b(1, always);
  const auto c = bench::of_code(1);
  b.start(1, 1);
  const sim::cycle_t stopped = end + static_cast<sim::cycle_t>(late);
  b.at(stopped, [&] { b.timers.stop(b.qps[1]); });
  b.at(stopped + 1, [&] { b.timers.start(c, b.asks(1)); });
  b.run_us(30);
  EXPECT_EQ(b.ends, (list{{1, stopped + 1 + 2 * unit + seen}}));
  EXPECT_EQ(b.count("crossed"), late <= -2 ? 0u : 1u);
  EXPECT_EQ(b.block.running(), 0u);
}
INSTANTIATE_TEST_SUITE_P(timer_port, crossing, testing::Combine(testing::Bool(), testing::Values(-3, -2, -1, 0)));

TEST(ack_timers, the_longest_code) {
  bench b(1);
  const transport::qp_runtime& r = b.start(1, 31);
  EXPECT_EQ(r.timer.deadline, b.clock.cycles(4'096'000) << 31);
}

}  // namespace
