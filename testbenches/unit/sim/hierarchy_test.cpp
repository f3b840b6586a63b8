// SPDX-License-Identifier: Apache-2.0
// Where blocks, channels and clocks of a name come in SystemC's hierarchy.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <systemc>

#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/timebase.h"
#include "model/sim/timed_inbox.h"

namespace rnic::sim::test {
namespace {

class idler final : public clocked_block {
 public:
  idler(const std::string& name, clock_domain& domain)
      : clocked_block(name, domain), inbox(this->name() + ".inbox", *this) {}
  void tick() override {}
  timed_inbox<int> inbox;
};

TEST(Place, IsBelowTheModuleOfTheName) {
  timebase base;
  const hierarchy_module box("box", "box");
  clock_domain clock("box.clock", base, {1000, 1, 0});
  const idler block("box.block", clock);
  const fifo<int> channel("box.block.channel", clock, 2);
  EXPECT_EQ(sc_core::sc_find_object("box.clock"), &clock);
  EXPECT_EQ(block.get_parent_object(), &box);
  EXPECT_EQ(block.inbox.get_parent_object(), &block);
  EXPECT_EQ(channel.get_parent_object(), &block);
  EXPECT_EQ(channel.name(), "box.block.channel");
  EXPECT_STREQ(channel.basename(), "channel");
  EXPECT_EQ(box.get_child_objects().size(), 2U);
  EXPECT_EQ(block.get_child_objects().size(), 2U);
}

TEST(Place, IsGivenBackWhenAnObjectGoes) {
  timebase base;
  clock_domain clock("clock", base, {1000, 1, 0});
  for (int i = 0; i < 3; ++i) {
    const idler block("block", clock);
    EXPECT_EQ(sc_core::sc_find_object("block.inbox"), &block.inbox);
  }
  EXPECT_EQ(sc_core::sc_find_object("block"), nullptr);
  EXPECT_EQ(sc_core::sc_find_object("block.inbox"), nullptr);
}

TEST(Place, WithoutItsModuleKeepsTheNameForStatistics) {
  timebase base;
  clock_domain clock("lonely.clock", base, {1000, 1, 0});
  EXPECT_EQ(clock.name(), "lonely.clock");
  EXPECT_EQ(sc_core::sc_find_object("lonely_clock"), &clock);
  EXPECT_EQ(clock.get_parent_object(), nullptr);
}

TEST(Place, OfAChannelThatIsMadeWhileTimePasses) {
  timebase base;
  clock_domain clock("clock", base, {1000, 1, 0});
  const idler block("block", clock);
  sc_core::sc_start(sc_core::sc_time(5, sc_core::SC_NS));
  const fifo<int> channel("block.late", clock, 2);
  EXPECT_EQ(channel.get_parent_object(), &block);
  EXPECT_EQ(sc_core::sc_find_object("block.late"), &channel);
}

TEST(Place, IsLeftWhenAConstructorThrows) {
  timebase base;
  clock_domain clock("clock", base, {1000, 1, 0});
  const idler block("block", clock);
  EXPECT_THROW(fifo<int>("block.bad", clock, 0), config_error);
  const hierarchy_module next("next", "box");
  EXPECT_EQ(next.get_parent_object(), nullptr);
  EXPECT_EQ(sc_core::sc_find_object("block.bad"), nullptr);
}

}  // namespace
}  // namespace rnic::sim::test
