// SPDX-License-Identifier: Apache-2.0
// Firmware's interrupt lines: at which edge a pulse is seen, whatever came before it.
#include "model/register_bus/interrupt_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/simulation.h"
#include "model/sim/timebase.h"

namespace rnic::register_bus {
namespace {

using seen = std::vector<std::pair<sim::cycle_t, unsigned>>;  // edge, bits

class taker final : public sim::clocked_block {
 public:
  explicit taker(sim::clock_domain& clock) : clocked_block("taker", clock), lines("lines", *this) {}
  interrupt_lines lines;
  seen taken;

 private:
  void tick() override {
    if (const unsigned bits = lines.take(); bits != 0) taken.emplace_back(now(), bits);
  }
};

struct pulse {
  sim::cycle_t from;  // edge of the block that gives it
  notice line;
  sim::time_ps after;
};

/// Of another domain, whose edges are those of the taker, or half a period beside.
class giver final : public sim::clocked_block {
 public:
  giver(sim::clock_domain& clock, interrupt_lines& to, std::vector<pulse> pulses)
      : clocked_block("giver", clock), to_(to), pulses_(std::move(pulses)) {
    for (const pulse& p : pulses_) wake_at(p.from);
  }

 private:
  void tick() override {
    for (const pulse& p : pulses_)
      if (p.from == now()) to_.pulse(p.line, now_ps() + p.after);
  }
  interrupt_lines& to_;
  std::vector<pulse> pulses_;
};

/// `before`: the giver is ticked before the taker where their edges meet.
seen run(const std::vector<pulse>& pulses, sim::time_ps phase, bool before) {
  const sim::simulation kernel;
  sim::timebase base;
  if (before) {
    sim::clock_domain a("a", base, {2000, 1, phase});
    sim::clock_domain b("b", base, {2000, 1, 0});
    taker t(b);
    const giver g(a, t.lines, pulses);
    sc_core::sc_start(sc_core::sc_time(100, sc_core::SC_NS));
    return t.taken;
  }
  sim::clock_domain b("b", base, {2000, 1, 0});
  sim::clock_domain a("a", base, {2000, 1, phase});
  taker t(b);
  const giver g(a, t.lines, pulses);
  sc_core::sc_start(sc_core::sc_time(100, sc_core::SC_NS));
  return t.taken;
}

constexpr unsigned bit(notice n) { return 1U << static_cast<unsigned>(n); }

TEST(InterruptLines, IsSeenAtTheFirstEdgeThatIsNotBeforeThePulse) {
  EXPECT_EQ(run({{10, notice::link, 999}}, 1000, true), (seen{{11, bit(notice::link)}}));
  EXPECT_EQ(run({{10, notice::link, 1000}}, 1000, true), (seen{{11, bit(notice::link)}}));
  EXPECT_EQ(run({{10, notice::link, 1001}}, 1000, true), (seen{{12, bit(notice::link)}}));
}

TEST(InterruptLines, AllLinesAreTakenAtOnceAndPulsesOfALineAreOne) {
  EXPECT_EQ(
      run({{10, notice::link, 1}, {10, notice::reset, 1}, {10, notice::link, 2}, {10, notice::drained, 1}}, 0, true),
      (seen{{11, bit(notice::link) | bit(notice::reset) | bit(notice::drained)}}));
}

/// One that is on its way when an earlier one is taken is not lost, nor is one that is told of first and comes later.
TEST(InterruptLines, APulseAtTheInstantOfTheTakingIsForTheNextEdge) {
  const std::vector<pulse> twice{{10, notice::link, 1}, {11, notice::link, 1}};
  const seen both{{11, bit(notice::link)}, {12, bit(notice::link)}};
  EXPECT_EQ(run(twice, 0, true), both);
  EXPECT_EQ(run(twice, 0, false), both);
  EXPECT_EQ(run({{10, notice::link, 7000}, {10, notice::link, 1}}, 0, true),
            (seen{{11, bit(notice::link)}, {14, bit(notice::link)}}));
}

}  // namespace
}  // namespace rnic::register_bus
