// SPDX-License-Identifier: Apache-2.0
// Ports of a memory: accesses a cycle, who waits, what is counted.
#include "model/sim/memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"

namespace rnic::sim::test {
namespace {

enum user : unsigned { first, second, third };

/// Users of a memory who want a number of accesses each, one a cycle, in fixed order.
class users final : public clocked_block {
 public:
  users(clock_domain& domain, unsigned ports)
      : clocked_block("users", domain), memory(*this, "memory", ports, {"first", "second", "third"}) {
    wake_at(1);
  }
  memory_ports memory;
  unsigned wants[3] = {0, 0, 0};
  unsigned at_once = 1;
  std::function<void(cycle_t)> also = [](cycle_t) {};  // in each of its ticks
  std::vector<std::pair<cycle_t, unsigned>> served;

 private:
  void tick() override {
    if (now() < 1) return;
    also(now());
    for (unsigned u : {first, second, third})
      for (unsigned n = 0; n < at_once && wants[u] != 0; ++n) {
        if (!memory.try_access(u)) break;
        --wants[u];
        served.emplace_back(now(), u);
      }
    if (wants[0] + wants[1] + wants[2] != 0) wake_next();
  }
};

struct bench {
  explicit bench(unsigned ports, bool always = false)
      : base({always, 0}), clock("core", base, {1000, 1, 0}), dut(clock, ports) {}
  void run(std::initializer_list<unsigned> wants) {
    unsigned u = 0;
    for (unsigned n : wants) dut.wants[u++] = n;
    sc_core::sc_start(sc_core::sc_time::from_value(100'000));
  }
  using list = std::vector<std::pair<cycle_t, unsigned>>;
  timebase base;
  clock_domain clock;
  users dut;
};

TEST(memory, one_port_serves_one_a_cycle_and_who_was_refused_is_next) {
  bench b(1);
  b.run({3, 1, 1});
  // First has priority at cycle 1 only: second and third were refused before it asked again.
  EXPECT_EQ(b.dut.served, (bench::list{{1, first}, {2, second}, {3, third}, {4, first}, {5, first}}));
  EXPECT_EQ(b.dut.memory.accesses(first), 3u);
  EXPECT_EQ(b.dut.memory.waits(first), 2u);
  EXPECT_EQ(b.dut.memory.waits(second), 1u);
  EXPECT_EQ(b.dut.memory.waits(third), 2u);
}

TEST(memory, two_ports_serve_two_a_cycle) {
  bench b(2);
  b.run({2, 2, 1});
  EXPECT_EQ(b.dut.served, (bench::list{{1, first}, {1, second}, {2, first}, {2, third}, {3, second}}));
  EXPECT_EQ(b.dut.memory.waits(third), 1u);
}

TEST(memory, one_user_may_have_all_ports_of_a_cycle) {
  bench b(3);
  b.dut.at_once = 4;
  b.run({4, 0, 0});
  EXPECT_EQ(b.dut.served, (bench::list{{1, first}, {1, first}, {1, first}, {2, first}}));
  EXPECT_EQ(b.dut.memory.waits(first), 1u);
}

TEST(memory, with_enough_ports_nobody_waits) {
  bench b(3);
  b.run({2, 2, 2});
  EXPECT_EQ(b.dut.served, (bench::list{{1, first}, {1, second}, {1, third}, {2, first}, {2, second}, {2, third}}));
  for (unsigned u : {first, second, third}) EXPECT_EQ(b.dut.memory.waits(u), 0u);
}

TEST(memory, ticks_without_work_change_nothing) {
  bench b(1, true);
  b.run({3, 1, 1});
  EXPECT_EQ(b.dut.served, (bench::list{{1, first}, {2, second}, {3, third}, {4, first}, {5, first}}));
  EXPECT_EQ(b.dut.memory.waits(first) + b.dut.memory.waits(second) + b.dut.memory.waits(third), 5u);
}

TEST(memory, asking_changes_nothing_and_more_than_the_ports_ends_the_run) {
  bench b(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(b.dut.memory.can_access(first));
  b.dut.memory.access(first);
  EXPECT_FALSE(b.dut.memory.can_access(first));
  EXPECT_FALSE(b.dut.memory.can_access(second));
  EXPECT_THROW(b.dut.memory.access(second), invariant_error);
  EXPECT_EQ(b.dut.memory.waits(second), 0u);
  EXPECT_EQ(b.dut.memory.accesses(second), 0u);
  EXPECT_THROW(memory_ports(b.dut, "none", 0, {"first"}), config_error);
}

TEST(memory, ports_of_their_own_take_one_access_a_cycle_of_each) {
  bench b(1);
  memory_ports own(b.dut, "own", port_each{}, {"first", "second"});
  b.dut.also = [&own](cycle_t now) {
    own.access_own(second);
    if (now == 2) return;
    own.access_own(first);
    EXPECT_THROW(own.access_own(first), invariant_error);
    EXPECT_THROW(own.access_own(second), invariant_error);
  };
  b.run({2, 0, 0});
  EXPECT_EQ(own.accesses(first), 1u);
  EXPECT_EQ(own.accesses(second), 2u);
  EXPECT_EQ(own.busy_cycles(), 2u) << "of the busiest port";
}

TEST(memory, one_user_with_a_port_of_its_own_does_not_take_the_others) {
  bench b(1);
  memory_ports own(b.dut, "own", port_each{}, {"first", "second", "third"});
  b.dut.also = [&own](cycle_t) {
    own.access_own(first);
    EXPECT_THROW(own.access_own(first), invariant_error);  // though two ports of three are free
  };
  b.run({1, 0, 0});
  EXPECT_EQ(own.accesses(first), 1u);
}

TEST(memory, announces_each_user_by_name) {
  bench b(1);
  statistics stats;
  b.dut.memory.announce(stats);
  b.run({2, 1, 0});
  EXPECT_EQ(stats.value("users.memory.first.waits"), 1u);
  EXPECT_EQ(stats.value("users.memory.second.waits"), 1u);
  EXPECT_EQ(stats.all().size(), 3u);
}

}  // namespace
}  // namespace rnic::sim::test
