// SPDX-License-Identifier: Apache-2.0
// Programs that go on in the same picosecond do so in the order in which they began to wait.
#include "host_driver/bus/program_turns.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/simulation.h"
#include "model/sim/timebase.h"

namespace rnic::host_driver::test {
namespace {

using turn = program_turns::turn;
constexpr sim::time_ps meeting = 9'000'000;

/// Who went on, and when.
using order = std::vector<std::pair<unsigned, sim::time_ps>>;

struct programs {
  sim::simulation kernel;
  sim::timebase base;
  program_turns turns{base};
  program_turns::alarm alarm;
  order seen;

  void note(unsigned who) { seen.emplace_back(who, base.now_ps()); }
  static void let_pass(sim::time_ps ps) { sc_core::wait(sc_core::sc_time::from_value(ps)); }
  void spawn(std::function<void()> what) const { sc_core::sc_spawn(std::move(what)); }
  static void run() { sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_MS)); }
};

/// The kernel's queue of times is a heap: of many equal ones hardly any is in the place of its turn.
TEST(ProgramTurns, TheOneThatBeganFirstIsFirst) {
  programs p;
  constexpr unsigned many = 23;
  for (unsigned i = 0; i < many; ++i)
    p.spawn([&p, i] {
      const unsigned nth = i * 7 % many;  // not the order in which the kernel knows them
      programs::let_pass(1'000 + 10 * nth);
      turn(p.turns).wait(meeting);
      p.note(nth);
      turn(p.turns).wait(2 * meeting);  // in the order of before
      p.note(nth);
    });
  programs::run();
  order expected;
  for (const sim::time_ps when : {meeting, 2 * meeting})
    for (unsigned nth = 0; nth < many; ++nth) expected.emplace_back(nth, when);
  EXPECT_EQ(p.seen, expected);
}

TEST(ProgramTurns, OneThatIsCalledAtThatTimeHasItsTurnToo) {
  programs p;
  p.spawn([&p] {
    turn(p.turns, &p.alarm).wait(program_turns::no_time);
    p.note(0);
  });
  for (const unsigned i : {1u, 3u, 4u})
    p.spawn([&p, i] {
      programs::let_pass(i);
      turn(p.turns).wait(meeting);
      if (i == 1) p.alarm.ring(p.base);  // goes on in front of the others, which began behind it
      p.note(i);
    });
  p.spawn([&p] {  // the same of what is called ahead of time
    programs::let_pass(2);
    program_turns::alarm own;
    p.spawn([&p, &own] {
      programs::let_pass(100);
      own.ring(p.base, meeting);
    });
    turn(p.turns, &own).wait(program_turns::no_time);
    p.note(2);
  });
  programs::run();
  EXPECT_EQ(p.seen, (order{{1, meeting}, {0, meeting}, {2, meeting}, {3, meeting}, {4, meeting}}));
}

TEST(ProgramTurns, AVisitorIsLast) {
  programs p;
  p.spawn([&p] {
    turn(p.turns, nullptr, turn::rank::visitor).wait(meeting);
    p.note(9);
  });
  for (const unsigned i : {1u, 2u})
    p.spawn([&p, i] {
      programs::let_pass(i);
      turn(p.turns).wait(meeting);
      p.note(i);
    });
  programs::run();
  EXPECT_EQ(p.seen, (order{{1, meeting}, {2, meeting}, {9, meeting}}));
}

/// Pieces of a long patience cannot be seen.
TEST(ProgramTurns, ALongPatienceEndsWithTheAlarmOrInTime) {
  programs p;
  constexpr sim::time_ps rung = 777'777'777;
  for (const unsigned i : {0u, 1u})
    p.spawn([&p, i] {
      turn mine(p.turns, &p.alarm);
      mine.wait(i == 0 ? 800'000'000 : 600'000'001);
      p.note(i);
      mine.wait(900'000'000);
      p.note(i);
    });
  p.spawn([&p] {
    programs::let_pass(rung);
    p.alarm.ring(p.base);
  });
  programs::run();
  EXPECT_EQ(p.seen, (order{{1, 600'000'001}, {0, rung}, {1, rung}, {0, 900'000'000}}));
}

}  // namespace
}  // namespace rnic::host_driver::test
