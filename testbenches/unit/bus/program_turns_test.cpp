// SPDX-License-Identifier: Apache-2.0
// Programs that go on in the same picosecond do so in the order in which they began to wait.
#include "host_driver/bus/program_turns.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
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

/// A host that is a partition of its own. Its block rings its alarm at each of some edges.
class host final : public sim::clocked_block {
 public:
  program_turns turns;
  program_turns::alarm alarm;
  order seen;

  host(const std::string& name, sim::clock_domain& clock, sim::cycle_t every)
      : clocked_block(name, clock), turns(clock.base()), every_(every) {
    wake_at(every_);
  }
  void note(unsigned who) { seen.emplace_back(who, domain().base().now_ps()); }

 private:
  void tick() override {
    alarm.ring(domain().base(), now_ps());
    wake_at(now() + every_);
  }
  sim::cycle_t every_;
};

struct apart_outcome {
  std::vector<order> seen;
  std::uint64_t activations = 0;
};

/// Three programs a host that meet in the same instants, wait for times that have come, and for what their host tells
/// them; one of each visits the next host after a lookahead.
apart_outcome run_apart(bool run_ahead, unsigned threads) {
  constexpr unsigned hosts = 4;
  constexpr sim::time_ps lookahead = 50'000, length = 100'000'000;
  const sim::simulation kernel;
  sim::timebase::options options;
  options.run_ahead = run_ahead;
  sim::timebase base(options);
  std::vector<std::unique_ptr<sim::clock_domain>> clocks;
  std::vector<std::unique_ptr<host>> all;
  for (unsigned i = 0; i < hosts; ++i) {
    const std::string name = "host" + std::to_string(i);
    base.parts().begin();
    clocks.push_back(
        std::make_unique<sim::clock_domain>(name + "_clock", base, sim::clock_period::from_khz(250'000 + 1'000 * i)));
    all.push_back(std::make_unique<host>(name, *clocks.back(), 101 + i));
  }
  base.parts().set_lookahead(lookahead);
  base.apart().serve_with(threads);
  base.run_ahead_until(length);
  for (unsigned i = 0; i < hosts; ++i)
    for (unsigned who = 0; who < 3; ++who)
      sc_core::sc_spawn([&all, &base, i, who] {
        host &mine = *all[i], &next = *all[(i + 1) % hosts];
        for (unsigned round = 1;; ++round) {
          turn t(mine.turns, who == 1 ? &mine.alarm : nullptr);
          t.wait(who == 1 ? program_turns::no_time : sim::time_ps{round} * 300'000);
          mine.note(who);
          t.wait(base.now_ps());  // its turn is the same
          mine.note(10 + who);
          if (who != 2) continue;
          turn(next.turns, nullptr, turn::rank::visitor).wait(base.now_ps() + lookahead);
          next.note(100 + i);
          turn(mine.turns, nullptr, turn::rank::visitor).wait(base.now_ps() + lookahead);
          mine.note(20);
        }
      });
  sc_core::sc_start(sc_core::sc_time::from_value(length));
  apart_outcome o;
  for (const auto& h : all) o.seen.push_back(h->seen);
  o.activations = base.kernel_activations();
  return o;
}

TEST(ProgramTurns, ApartFromTheKernelTheyAreTheSame) {
  const apart_outcome in_kernel = run_apart(false, 1);
  std::size_t steps = 0;
  for (const order& seen : in_kernel.seen) {
    EXPECT_GT(seen.size(), 1'500u);
    steps += seen.size();
  }
  for (const unsigned threads : {1u, 2u, 4u}) {
    const apart_outcome apart = run_apart(true, threads);
    EXPECT_EQ(in_kernel.seen, apart.seen) << threads << " threads";
    EXPECT_LT(apart.activations, steps / 3);  // those of several hosts go on behind one
  }
}

}  // namespace
}  // namespace rnic::host_driver::test
