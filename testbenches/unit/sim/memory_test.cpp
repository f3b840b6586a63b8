// SPDX-License-Identifier: Apache-2.0
// Ports of a memory: accesses a cycle, who waits, what is counted.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/memory_ports.h"
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

/// Asks for a port in fixed cycles, as it is told, and never asks for a tick of its own.
class script final : public clocked_block {
 public:
  using calls = std::map<cycle_t, std::function<void(memory_ports&)>>;
  script(clock_domain& clock, unsigned ports, std::vector<memory_user> users, calls all)
      : clocked_block("script", clock), memory(*this, "memory", ports, std::move(users)), calls_(std::move(all)) {
    wake_at(calls_.begin()->first);  // a later one is there when somebody was refused in the cycle before,
  }
  /// or by this.
  void wake_at_all() {
    for (const auto& call : calls_) wake_at(call.first);
  }
  memory_ports memory;
  std::vector<cycle_t> ticked;

 private:
  void tick() override {
    ticked.push_back(now());
    if (const auto c = calls_.find(now()); c != calls_.end()) c->second(memory);
  }
  calls calls_;
};

struct script_bench {
  script_bench(unsigned ports, script::calls all, std::vector<memory_user> users = {"first", "second", "third"})
      : dut(clock, ports, std::move(users), std::move(all)) {}
  void run() { sc_core::sc_start(sc_core::sc_time::from_value(20'000)); }
  timebase base;
  clock_domain clock{"core", base, {1000, 1, 0}};
  script dut;
};

// In turn begins behind the user that was served last, though it was refused as well.
TEST(memory, who_had_the_last_port_is_the_last_in_turn) {
  script_bench b(1, {{1,
                      [](memory_ports& m) {
                        EXPECT_TRUE(m.try_access(first));
                        EXPECT_FALSE(m.try_access(first));
                        EXPECT_FALSE(m.try_access(second));
                        EXPECT_FALSE(m.try_access(second)) << "refused twice in a cycle";
                      }},
                     {2, [](memory_ports& m) {
                        EXPECT_FALSE(m.can_access(first));
                        EXPECT_TRUE(m.can_access(second)) << "before anything happens in the cycle";
                        EXPECT_FALSE(m.try_access(first));
                        EXPECT_TRUE(m.try_access(second));
                      }}});
  b.run();
  EXPECT_EQ(b.dut.ticked, (std::vector<cycle_t>{1, 2, 3})) << "who is refused is ticked at the next edge";
  EXPECT_EQ(b.dut.memory.waits(second), 1u) << "cycles, not refusals";
  EXPECT_EQ(b.dut.memory.waits(first), 2u);
}

TEST(memory, as_many_who_were_refused_as_there_are_ports_come_first) {
  script_bench b(2, {{1,
                      [](memory_ports& m) {
                        EXPECT_TRUE(m.try_access(first) && m.try_access(first));
                        EXPECT_FALSE(m.try_access(second) || m.try_access(third));
                      }},
                     {2, [](memory_ports& m) {
                        EXPECT_FALSE(m.try_access(first));
                        EXPECT_TRUE(m.try_access(second) && m.try_access(third));
                      }}});
  b.run();
  EXPECT_EQ(b.dut.memory.busy_cycles(), 2u);
}

TEST(memory, a_port_that_was_kept_and_taken_leaves_the_other_one) {
  script_bench b(2, {{1,
                      [](memory_ports& m) {
                        EXPECT_TRUE(m.try_access(first) && m.try_access(first));
                        EXPECT_FALSE(m.try_access(second));
                      }},
                     {2, [](memory_ports& m) { EXPECT_TRUE(m.try_access(second) && m.try_access(first)); }}});
  b.run();
  EXPECT_EQ(b.dut.memory.accesses(first), 3u);
}

TEST(memory, a_port_is_kept_for_one_cycle) {
  script_bench b(1, {{1, [](memory_ports& m) { EXPECT_TRUE(m.try_access(first) && !m.try_access(second)); }},
                     {3, [](memory_ports& m) { EXPECT_TRUE(m.try_access(first) && !m.try_access(second)); }}});
  b.dut.wake_at_all();
  b.run();
  EXPECT_EQ(b.dut.memory.waits(second), 2u);
}

TEST(memory, the_last_of_64_users_is_followed_by_the_first_that_waits) {
  std::vector<memory_user> users;
  for (unsigned u = 0; u < 64; ++u) users.emplace_back("u" + std::to_string(u));
  script_bench b(1,
                 {{1, [](memory_ports& m) { EXPECT_TRUE(m.try_access(63) && !m.try_access(9) && !m.try_access(5)); }},
                  {2, [](memory_ports& m) { EXPECT_TRUE(!m.try_access(9) && m.try_access(5)); }}},
                 users);
  b.run();
  EXPECT_EQ(b.dut.memory.accesses(5), 1u);
  users.emplace_back("u64");
  EXPECT_THROW(memory_ports(b.dut, "more", 1, users), invariant_error);
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
