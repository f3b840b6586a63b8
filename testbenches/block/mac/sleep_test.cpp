// SPDX-License-Identifier: Apache-2.0
// Sleeping is invisible, and so is the order of blocks: the same traffic in three benches side by side.
#include <gtest/gtest.h>

#include <random>

#include "testbenches/block/mac/bench.h"

namespace rnic::mac::test {
namespace {

port::config small_buffers() {
  port::config c;
  c.ingress_bytes = 12'000;
  c.xoff_bytes = 5'000;
  c.xon_bytes = 3'000;
  c.pause_quanta = 300;
  return c;
}

/// Mixed sizes and priorities both ways with pauses, slow takers and idle times.
void load(bench& t) {
  std::mt19937 rng(7);
  for (station* s : {&t.a, &t.b}) {
    s->mac.cr_write(cr::pfctx, 0x2a);
    s->mac.cr_write(cr::pfcrx, 0x2a);
    s->rx.interval = 130;
    sim::cycle_t at = 1;
    for (unsigned i = 0; i < 300; ++i) {
      if (rng() % 40 == 0) at += 3'000 + rng() % 9'000;
      const auto size = static_cast<std::uint32_t>(60 + rng() % 1400);
      s->tx.send(t.frame(size, static_cast<std::uint8_t>(rng() % 8), true, static_cast<std::uint8_t>(i)), at);
    }
  }
}

std::vector<std::uint64_t> story(const bench& t) {
  std::vector<std::uint64_t> s;
  for (const station* x : {&t.a, &t.b}) {
    for (const auto& n : x->rx.notes)
      s.insert(s.end(), {n.at, n.frame->stamp, n.frame->length, n.frame->priority, n.frame->data()[18]});
    const port::counters& c = x->mac.count();
    s.insert(s.end(), {c.tx_frames, c.rx_frames, c.tx_pause, c.rx_pause, c.drop_overflow, c.blocked_by_pause});
  }
  for (unsigned from = 0; from < 2; ++from)
    for (const auto& n : t.log.notes)
      if (n.from == from) s.insert(s.end(), {n.first_bit, n.last_bit, n.bytes.size(), n.control});
  return s;
}

TEST(mac_sleep, always_tick_and_order_change_nothing) {
  sim::timebase::options always, shuffled;
  always.always_tick = true;
  shuffled.shuffle_seed = 99;
  const sim::clock_period core = sim::clock_period::from_khz(427'000);
  bench sleeping(small_buffers(), small_buffers(), {}, core);
  bench awake(small_buffers(), small_buffers(), always, core);
  bench mixed(small_buffers(), small_buffers(), shuffled, core);
  for (bench* t : {&sleeping, &awake, &mixed}) load(*t);
  bench::run_ns(400'000);
  const auto expected = story(sleeping);
  EXPECT_GT(sleeping.a.mac.count().tx_pause, 5u);
  EXPECT_GT(sleeping.b.rx.notes.size(), 200u);
  EXPECT_EQ(story(awake), expected);
  EXPECT_EQ(story(mixed), expected);
  EXPECT_LT(sleeping.domain.ticks(), awake.domain.ticks() / 50);
}

}  // namespace
}  // namespace rnic::mac::test
