// SPDX-License-Identifier: Apache-2.0
// Delay, observers and faults of a cable.
#include "model/fabric/cable.h"

#include <gtest/gtest.h>

#include "testbenches/block/mac/bench.h"

namespace rnic::fabric::test {
namespace {

/// A connector that notes what arrives.
struct plug : payload::frame_port_if, payload::frame_sink_if {
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override { got.emplace_back(std::move(frame), arrival); }
  payload::frame_sink_if& receiver() override { return *this; }
  void attach(payload::frame_sink_if& to) override { line = &to; }
  payload::frame_sink_if* line = nullptr;
  std::vector<std::pair<payload::frame_ptr, sim::time_ps>> got;
};

struct lose_second : cable_fault_if {
  fate on_frame(unsigned from, payload::frame&) override {
    seen[from]++;
    return from == 1 && seen[1] == 2 ? fate::lose : fate::pass;
  }
  unsigned seen[2] = {};
};

payload::frame_ptr small_frame(payload::frame_pool& pool, sim::time_ps first_bit) {
  payload::frame_ptr f = pool.get();
  f->length = 60;
  f->stamp = first_bit;
  return f;
}

TEST(fabric_cable, propagation_both_ways) {
  payload::frame_pool pool;
  plug a, b;
  cable c(a, b, {100, 5'050});
  a.line->deliver(small_frame(pool, 1'000), 17'800);
  b.line->deliver(small_frame(pool, 2'000), 18'800);
  ASSERT_EQ(b.got.size(), 1u);
  EXPECT_EQ(b.got[0].second, 17'800u + 505'000u);
  ASSERT_EQ(a.got.size(), 1u);
  EXPECT_EQ(a.got[0].second, 18'800u + 505'000u);
  EXPECT_EQ(c.frames(0), 1u);
  EXPECT_EQ(c.frames(1), 1u);
}

TEST(fabric_cable, faults_lose_what_observers_have_seen) {
  payload::frame_pool pool;
  plug a, b;
  cable c(a, b);
  mac::test::line_log log;
  lose_second fault;
  c.add_observer(log);
  c.set_fault(&fault);
  for (unsigned i = 0; i < 3; ++i) b.line->deliver(small_frame(pool, i * 20'000), i * 20'000 + 14'400);
  EXPECT_EQ(a.got.size(), 2u);
  EXPECT_EQ(a.got[1].second, 40'000u + 14'400u + 15'150u);
  EXPECT_EQ(c.lost(1), 1u);
  EXPECT_EQ(c.lost(0), 0u);
  ASSERT_EQ(log.notes.size(), 3u);
  EXPECT_EQ(log.notes[2].from, 1u);
  EXPECT_EQ(log.notes[2].first_bit, 40'000u);
}

}  // namespace
}  // namespace rnic::fabric::test
