// SPDX-License-Identifier: Apache-2.0
// When a cable is dead.
#include <gtest/gtest.h>

#include <systemc>
#include <utility>
#include <vector>

#include "model/fabric/carrier_schedule.h"
#include "model/sim/timebase.h"

namespace rnic::fabric::test {
namespace {

struct connector final : payload::frame_port_if, payload::frame_sink_if {
  frame_sink_if& receiver() override { return *this; }
  void attach(frame_sink_if&) override {}
  void deliver(payload::frame_ptr, sim::time_ps) override {}
  void carrier(bool up, sim::time_ps at) override { changes.emplace_back(up, at); }
  std::vector<std::pair<bool, sim::time_ps>> changes;
};

std::vector<std::pair<bool, sim::time_ps>> changes_of(const std::vector<outage>& outages, unsigned port = 1) {
  sim::timebase base;
  sim::clock_domain domain("domain", base, {1000, 1, 0});
  connector ends[2];
  cable c(ends[0], ends[1]);
  carrier_schedule schedule("carrier", domain, c, outages, port);
  sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_MS));
  EXPECT_EQ(ends[0].changes, ends[1].changes);
  return ends[0].changes;
}

using changes = std::vector<std::pair<bool, sim::time_ps>>;
constexpr sim::time_ps us = sim::ps_per_us;

TEST(carrier_schedule, once_and_for_good) {
  // Seen an edge later than it is due.
  EXPECT_EQ(changes_of({{0, 5 * us, outage::for_good, 0, 1}}), (changes{{false, 5 * us + 1000}}));
}

TEST(carrier_schedule, again_and_again) {
  EXPECT_EQ(changes_of({{1, 5 * us, 2 * us, 10 * us, 3}}), (changes{{false, 5 * us + 1000},
                                                                    {true, 7 * us + 1000},
                                                                    {false, 15 * us + 1000},
                                                                    {true, 17 * us + 1000},
                                                                    {false, 25 * us + 1000},
                                                                    {true, 27 * us + 1000}}));
}

TEST(carrier_schedule, what_overlaps_or_touches_is_one) {
  EXPECT_EQ(changes_of({{0, 5 * us, 3 * us, 0, 1}, {1, 6 * us, 1 * us, 0, 1}, {1, 8 * us, 4 * us, 0, 1}}),
            (changes{{false, 5 * us + 1000}, {true, 12 * us + 1000}}));
}

TEST(carrier_schedule, of_this_port) { EXPECT_EQ(changes_of({{2, 5 * us, 3 * us, 0, 1}}), changes{}); }

}  // namespace
}  // namespace rnic::fabric::test
