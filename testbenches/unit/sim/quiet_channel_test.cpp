// SPDX-License-Identifier: Apache-2.0
// A quiet channel that is its producer's pipeline as well: whether the consumer sleeps cannot be seen (law 3).
#include <gtest/gtest.h>

#include <systemc>

#include "model/sim/fifo.h"
#include "model/sim/simulation.h"
#include "model/sim/timebase.h"

namespace rnic::sim {
namespace {

/// Pushes an item a cycle in cycles 1 to 30, as far as there is room, at the end of a pipeline of eight cycles.
class producer final : public clocked_block {
 public:
  explicit producer(clock_domain& d) : clocked_block("producer", d) { wake_at(1); }
  fifo_out<int> out{*this};
  unsigned pushed = 0;

 private:
  void tick() override {
    if (now() > 30) return;
    if (out.can_push()) {
      out.push_after(1, 8);
      ++pushed;
    }
    wake_next();
  }
};

class consumer final : public clocked_block {
 public:
  explicit consumer(clock_domain& d) : clocked_block("consumer", d) {}
  fifo_in<int> in{*this};

 private:
  void tick() override {
    in.take_due([](int&&) {});
  }
};

unsigned pushed_when(bool always_tick) {
  const simulation kernel;
  timebase base{timebase::options(always_tick)};
  clock_domain core("core", base, clock_period::from_khz(500'000));
  producer from(core);
  consumer to(core);
  fifo<int> channel("channel", core, 11);
  from.out.bind(channel);
  to.in.bind(channel);
  channel.set_quiet(true);
  sc_core::sc_start(200, sc_core::SC_NS);
  return from.pushed;
}

TEST(quiet_channel, of_a_pipeline_does_not_fill_up_while_its_consumer_sleeps) {
  EXPECT_EQ(pushed_when(false), pushed_when(true));
}

}  // namespace
}  // namespace rnic::sim
