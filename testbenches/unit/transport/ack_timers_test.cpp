// SPDX-License-Identifier: Apache-2.0
// The timers engine: when a timer runs, how long, and how its ends follow each other.
#include "model/transport/requester/ack_timers.h"

#include <gtest/gtest.h>

#include <functional>
#include <systemc>
#include <tuple>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"

namespace {
using namespace rnic;

struct time_of_a_bench {
  explicit time_of_a_bench(bool always) : base({always, 0}) {}
  sim::timebase base;
  sim::clock_domain clock{"core", base, {1000, 1, 0}};
};

/// The engine in a block that takes what it offers, or refuses it for some cycles first.
struct bench final : time_of_a_bench, sim::clocked_block {
  explicit bench(unsigned expiry_cycles, bool always = false)
      : time_of_a_bench(always),
        clocked_block("bench", clock),
        timers(*this, configuration(expiry_cycles), qps, limiter) {}
  static transport::timer_config configuration(unsigned expiry_cycles) {
    transport::timer_config c;
    c.entries = 16;
    c.granularity_ps = 1000;
    c.expiry_cycles = expiry_cycles;
    return c;
  }
  transport::qp_runtime& start(std::uint32_t qpn, std::uint8_t code, std::uint32_t unacked = 1,
                               std::uint32_t next = 2) {
    icm::requester_context c{};
    c.type = icm::service::rc;
    c.ack_timeout = code;
    c.unacked_psn = unacked;
    c.next_psn = next;
    timers.start(c, qps[qpn]);
    return qps[qpn];
  }
  void run_us(std::uint64_t us) {
    wake_next();
    sc_core::sc_start(sc_core::sc_time::from_value(us * 1'000'000));
  }

  transport::qp_table qps{10};
  transport::congestion_config congestion;
  transport::rate_limiter limiter{congestion, clock, 10};
  transport::ack_timers timers;
  unsigned refused = 0;  ///< cycles for which each is refused
  unsigned offers = 0;
  std::vector<std::pair<std::uint32_t, sim::cycle_t>> ends;

 private:
  void tick() override {
    if (transport::qp_runtime* const r = timers.expired(); r != nullptr && offers++ >= refused) {
      offers = 0;
      timers.stop(*r);
      timers.done();
      ends.emplace_back(r->qpn, now());
    }
    if (timers.next() != sim::never) wake_at(std::max(timers.next(), now() + 1));
  }
};
using list = std::vector<std::pair<std::uint32_t, sim::cycle_t>>;
constexpr sim::cycle_t unit = 4096;  // cycles of 1 ns

TEST(ack_timers, run_for_the_code_of_the_queue_pair) {
  bench b(1);
  b.start(1, 1);
  b.start(2, 2);
  b.start(3, 0);        // none
  b.start(4, 1, 7, 7);  // nothing under way
  b.run_us(40);
  EXPECT_EQ(b.ends, (list{{1, 2 * unit}, {2, 4 * unit}}));
}

/// Everything that is not acknowledged is to be sent again: until then nothing is under way, and it must not get stuck.
TEST(ack_timers, run_while_a_queue_pair_goes_back) {
  bench b(1);
  b.qps[4].progress.retrying = true;
  b.start(4, 1, 7, 7);
  b.run_us(40);
  EXPECT_EQ(b.ends, (list{{4, 2 * unit}}));
}

TEST(ack_timers, of_other_services_than_acknowledged_ones_do_not_run) {
  bench b(1);
  icm::requester_context c{};
  c.type = icm::service::uc;
  c.ack_timeout = 1;
  c.next_psn = 1;
  b.timers.start(c, b.qps[1]);
  EXPECT_FALSE(transport::qp_timers::is_on(b.qps[1]));
}

/// Idle or one behind the other, with an engine that is slow, and a completer that has no time.
class ends : public testing::TestWithParam<std::tuple<bool, unsigned, unsigned, unsigned>> {};
TEST_P(ends, follow_each_other_an_interval_apart) {
  const auto [always, interval, refused, together] = GetParam();
  bench b(interval, always);
  b.refused = refused;
  for (unsigned n = 0; n < together; ++n) b.start(n, 1);
  b.run_us(20);
  ASSERT_EQ(b.ends.size(), together);
  for (unsigned n = 0; n < together; ++n) EXPECT_EQ(b.ends[n].second, 2 * unit + refused + n * (interval + refused));
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
  b.timers.start(c, b.qps[1]);
  b.timers.restart(c, b.qps[2]);
  b.run_us(20);
  EXPECT_EQ(b.ends, (list{{1, 2 * unit}, {2, later + 2 * unit}}));
}

TEST(ack_timers, a_receiver_that_is_not_ready_takes_the_place_of_the_acknowledgement) {
  bench b(1);
  b.start(1, 1);
  b.timers.wait_for_receiver(b.qps[1], 0x20 | 2);  // 0.02 ms
  b.run_us(40);
  EXPECT_EQ(b.ends, (list{{1, 20'000}}));
}

}  // namespace
