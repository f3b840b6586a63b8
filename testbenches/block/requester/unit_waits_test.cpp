// SPDX-License-Identifier: Apache-2.0
// What processing units wait for host memory.
#include <gtest/gtest.h>

#include <cstdint>

#include "testbenches/bench/child.h"
#include "testbenches/block/requester/bench.h"

namespace {

struct unit_waits {
  std::uint64_t contexts = 0, descriptors = 0, contexts_again = 0;
  bool sent = false;
};
/// Of two WRITEs, one after the other, beside a memory of so many cycles.
unit_waits waits_beside(unsigned memory_cycles) {
  return rnic::bench::in_child([memory_cycles] {
    bench::setup s;
    s.memory_cycles = memory_cycles;
    bench::bench b(s);
    unit_waits w;
    for (unsigned nth = 1; nth <= 2; ++nth) {
      b.post_write(10);
      b.ring_doorbell();
      b.run_ns(20'000);
      w.sent = b.w.sent.size() == nth;
      b.ack(0xfffffd + nth);
      b.run_ns(1000);
      (nth == 1 ? w.contexts : w.contexts_again) = b.stats.value("requester.unit_context_cycles");
      if (nth == 1) w.descriptors = b.stats.value("requester.unit_descriptor_cycles");
    }
    return w;
  });
}

/// Of a unit's time, what contexts and descriptors take that are not on chip.
TEST(limits, the_waits_of_a_unit_for_host_memory_are_counted) {
  const unit_waits quick = waits_beside(100), slow = waits_beside(600);
  EXPECT_TRUE(quick.sent && slow.sent);
  EXPECT_GE(quick.contexts, 200u);
  EXPECT_EQ(slow.contexts - quick.contexts, 1000u) << "its second entry is looked up behind the first";
  EXPECT_GE(quick.descriptors, 100u);
  EXPECT_EQ(slow.descriptors - quick.descriptors, 500u);
  EXPECT_EQ(slow.contexts_again, slow.contexts) << "it is on chip";
}

}  // namespace
