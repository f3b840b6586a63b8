// SPDX-License-Identifier: Apache-2.0
// The READ engine by itself: literal cycles idle, back to back, both halves at once, with grants that nobody takes.
#include "model/transport/read_engine/read_engine.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"

namespace {

using namespace rnic;
using transport::read_engine;
using cycle = sim::cycle_t;
using cycles = std::vector<cycle>;

constexpr cycle always = 0;

/// A half with READs, `interval` cycles of the engine each: as many as `left` says, from the cycle `begins` on. It
/// starts one when there is a grant and it may (`starts_from`), and asks for the next one in the same cycle.
struct half : sim::clocked_block {
  half(const std::string& name, sim::clock_domain& d, read_engine& e, unsigned number)
      : clocked_block(name, d), requests(name + "_requests", d, 2), grants(name + "_grants", d, 2) {
    port.request.bind(requests);
    e.request[number].bind(requests);
    e.grant[number].bind(grants);
    port.grant.bind(grants);
  }
  void reads(cycle from, unsigned how_many, unsigned cycles_each) {
    begins = from;
    left = how_many;
    interval = cycles_each;
    wake_at(from);
  }
  sim::fifo<transport::read_engine_request> requests;
  sim::fifo<transport::read_engine_grant> grants;
  transport::read_engine_port port{*this};
  cycle begins = sim::never, starts_from = always;
  unsigned left = 0, interval = 0;
  unsigned missing = 0;  ///< of the first one
  cycles started;

 private:
  void tick() override {
    if (port.granted() && now() >= starts_from && left != 0) {
      started.push_back(now());
      port.use(std::exchange(missing, 0));
      --left;
    }
    if (now() >= begins && left != 0) port.ask(interval);
    if (now() < starts_from) wake_at(starts_from);
  }
};

/// 1 GHz: a cycle is 1 ns.
struct rig {
  explicit rig(const sim::timebase::options& o = {})
      : base(o),
        clock("core", base, {1000, 1, 0}),
        dut("read_engine", clock, stats),
        requester("requester", clock, dut, read_engine::requester),
        responder("responder", clock, dut, read_engine::responder) {}
  void run(unsigned ns) { sc_core::sc_start(static_cast<double>(ns), sc_core::SC_NS); }
  std::uint64_t count(const std::string& name) const { return stats.value("read_engine." + name); }
  const sim::server& engine() const { return *clock.servers().front(); }
  std::map<std::string, std::uint64_t> blocked() const {
    std::map<std::string, std::uint64_t> all;
    for (const sim::server::hold_up& h : engine().blocked_cycles()) all[h.by] = h.cycles;
    return all;
  }

  sim::timebase base;
  sim::clock_domain clock;
  sim::statistics stats;
  read_engine dut;
  half requester, responder;
};

TEST(ReadEngine, GrantIsThereTwoCyclesAfterTheRequestWhenItIsIdle) {
  rig r;
  r.requester.reads(10, 1, 19);
  r.responder.reads(50, 1, 17);
  r.run(100);
  EXPECT_EQ(r.requester.started, cycles{12});
  EXPECT_EQ(r.responder.started, cycles{52});
  EXPECT_EQ(r.engine().operations(), 2u);
  EXPECT_EQ(r.engine().busy_cycles(), 19u + 17u);
  EXPECT_EQ(r.count("requester.grants"), 1u);
  EXPECT_EQ(r.count("responder.grants"), 1u);
  EXPECT_EQ(r.count("requester.wait_cycles"), 0u);
  EXPECT_EQ(r.count("responder.wait_cycles"), 0u);
  EXPECT_TRUE(r.blocked().empty());
}

/// Taken at 11; the next request is there at 13 and waits until 11 + 17.
TEST(ReadEngine, HalfThatAsksAgainAtOnceLosesNoCycle) {
  rig r;
  r.responder.reads(10, 4, 17);
  r.run(200);
  EXPECT_EQ(r.responder.started, (cycles{12, 29, 46, 63}));
  EXPECT_EQ(r.engine().busy_cycles(), 4 * 17u);
  EXPECT_EQ(r.count("responder.wait_cycles"), 3 * 15u);
}

/// A request is not faster than the way there and back.
TEST(ReadEngine, ShortestIntervalIsTwoCycles) {
  rig r;
  r.requester.reads(10, 4, 1);
  r.run(100);
  EXPECT_EQ(r.requester.started, (cycles{12, 14, 16, 18}));
  EXPECT_EQ(r.count("requester.wait_cycles"), 0u);
}

TEST(ReadEngine, HalvesTakeTurnsAndNoCycleIsLost) {
  rig r;
  r.requester.reads(10, 3, 19);
  r.responder.reads(10, 3, 17);
  r.run(200);
  EXPECT_EQ(r.requester.started, (cycles{12, 48, 84}));        // 11, 11 + 36, 11 + 72 and one on the way
  EXPECT_EQ(r.responder.started, (cycles{31, 67, 103}));       // 11 + 19, ...
  EXPECT_EQ(r.engine().busy_cycles(), 3 * 36u);                // from 11 to 119 without a gap
  EXPECT_EQ(r.count("requester.wait_cycles"), 34u + 34);       // there at 13 and 49
  EXPECT_EQ(r.count("responder.wait_cycles"), 19u + 34 + 34);  // there at 11, 32 and 68
}

/// The first one has missed an entry of its context: the engine stands still behind it, also for the other half.
TEST(ReadEngine, StandsStillForWhatWasMissing) {
  rig r;
  r.requester.missing = 40;
  r.requester.reads(10, 2, 19);
  r.responder.reads(20, 1, 17);
  r.run(200);
  // Taken at 11 for 19; at 30 stands still, though the responder is there since 21; at 70 that, and at 87 the second.
  EXPECT_EQ(r.responder.started, cycles{71});
  EXPECT_EQ(r.requester.started, (cycles{12, 88}));
  EXPECT_EQ(r.engine().busy_cycles(), 19u + 17 + 40 + 19);
  EXPECT_EQ(r.engine().operations(), 4u);
  EXPECT_EQ(r.count("requester.grants"), 2u);
}

/// Halted, for example, between request and grant: the engine goes on with others when the cycles are over, and what
/// starts later finds the grant.
TEST(ReadEngine, GrantThatIsNotTakenWaitsForTheNextOne) {
  rig r;
  r.requester.starts_from = 90;
  r.requester.reads(10, 2, 19);
  r.responder.reads(20, 2, 17);
  r.run(200);
  EXPECT_EQ(r.responder.started, (cycles{31, 48}));
  EXPECT_EQ(r.requester.started, (cycles{90, 92}));
  EXPECT_EQ(r.count("requester.grants"), 2u);
  EXPECT_EQ(r.engine().busy_cycles(), 2 * 19u + 2 * 17);
  EXPECT_TRUE(r.blocked().empty());
}

/// Pushes requests as they come, and takes the grants from one cycle on.
struct greedy : sim::clocked_block {
  greedy(sim::clock_domain& d, half& h) : clocked_block("greedy", d), of(h) {
    to.bind(h.requests);
    from.bind(h.grants);
    wake_at(10);
  }
  half& of;
  sim::fifo_out<transport::read_engine_request> to{*this};
  sim::fifo_in<transport::read_engine_grant> from{*this};
  unsigned left = 0;
  cycle takes_from = 0;
  cycles taken;

 private:
  void tick() override {
    if (now() >= takes_from && from.can_pop()) {
      taken.push_back(now());
      from.pop();
    }
    if (now() >= 10 && left != 0 && to.claim()) {
      to.push({5, true});
      --left;
    }
    if (now() < 10 || left != 0) wake_next();
    if (now() < takes_from) wake_at(takes_from);
  }
};

/// Two places for grants. Taken at 11 and 16; from 21 on the third request is blocked by its half's grants, and the
/// other half has the engine to itself. A place that comes free at 60 is one at 61.
TEST(ReadEngine, HalfWhoseGrantsAreFullDoesNotHoldUpTheOther) {
  rig r;
  greedy g(r.clock, r.requester);
  g.left = 4;
  g.takes_from = 60;
  r.responder.reads(29, 2, 7);
  r.run(200);
  EXPECT_EQ(r.responder.started, (cycles{31, 38}));
  EXPECT_EQ(g.taken, (cycles{60, 61, 62, 67}));
  EXPECT_EQ(r.blocked(), (std::map<std::string, std::uint64_t>{{"requester grants", (30u - 21) + (61 - 44)}}));
  EXPECT_EQ(r.engine().busy_cycles(), 4 * 5u + 2 * 7);
}

/// Each half has its own engine where they do not share one.
TEST(ReadEngine, OneThatOnlyOneHalfIsBoundToServesIt) {
  sim::timebase base;
  sim::clock_domain clock("core", base, {1000, 1, 0});
  sim::statistics stats;
  read_engine asks("asks", clock, stats), answers("answers", clock, stats);
  half requester("requester", clock, asks, read_engine::requester),
      responder("responder", clock, answers, read_engine::responder);
  requester.reads(10, 2, 19);
  responder.reads(10, 2, 17);
  sc_core::sc_start(100, sc_core::SC_NS);
  EXPECT_EQ(requester.started, (cycles{12, 31}));
  EXPECT_EQ(responder.started, (cycles{12, 29}));
}

/// The engine is taken at 11; at 30 what the requester has missed comes first, at 70 the response before the halves,
/// and another one, there at 73, at 75. It is not in the halves' turn: behind the requester comes the responder.
TEST(ReadEngine, ResponsesGoBeforeWhatWantsToStart) {
  rig r;
  half responses("responses", r.clock, r.dut, read_engine::responses);
  r.requester.missing = 40;
  r.requester.reads(10, 2, 19);
  r.responder.reads(12, 1, 17);
  responses.reads(15, 2, 5);
  r.run(200);
  EXPECT_EQ(responses.started, (cycles{71, 76}));
  EXPECT_EQ(r.responder.started, cycles{81});
  EXPECT_EQ(r.requester.started, (cycles{12, 98}));
  EXPECT_EQ(r.count("responses.grants"), 2u);
  EXPECT_EQ(r.count("responses.wait_cycles"), (70u - 16) + (75 - 72));
  EXPECT_EQ(r.engine().busy_cycles(), 2 * 19u + 40 + 2 * 5 + 17);
}

/// Those that are made come behind those that have come, and before what wants to start.
TEST(ReadEngine, ResponsesThatAreMadeGoBehindThoseThatHaveCome) {
  rig r;
  half responses("responses", r.clock, r.dut, read_engine::responses);
  half generator("generator", r.clock, r.dut, read_engine::generator);
  r.requester.missing = 40;
  r.requester.reads(10, 2, 19);
  r.responder.reads(12, 1, 17);
  generator.reads(14, 2, 8);
  responses.reads(15, 2, 5);
  r.run(200);
  // 11: 19 cycles; 30: 40 that were missing; 70: 5; 75: 5, there since 73; 80 and 88: 8; 96: 17; 113.
  EXPECT_EQ(responses.started, (cycles{71, 76}));
  EXPECT_EQ(generator.started, (cycles{81, 89}));
  EXPECT_EQ(r.responder.started, cycles{97});
  EXPECT_EQ(r.requester.started, (cycles{12, 114}));
  EXPECT_EQ(r.count("generator.grants"), 2u);
  EXPECT_EQ(r.count("generator.wait_cycles"), (80u - 15) + (88 - 82));
}

/// Sleeping and the order of ticks are not seen. The requester's first is granted at 12 and starts at 35; what it has
/// missed goes at 47 before the responder's second, which is there as well.
class ReadEngineTicks : public ::testing::TestWithParam<sim::timebase::options> {};

TEST_P(ReadEngineTicks, AreNotSeen) {
  rig r(GetParam());
  r.requester.missing = 40;
  r.requester.starts_from = 35;
  r.requester.reads(10, 3, 19);
  r.responder.reads(11, 3, 17);
  r.run(300);
  EXPECT_EQ(r.requester.started, (cycles{35, 105, 141}));
  EXPECT_EQ(r.responder.started, (cycles{31, 88, 124}));
  EXPECT_EQ(r.count("requester.wait_cycles"), 11u + 56 + 34);
  EXPECT_EQ(r.count("responder.wait_cycles"), 18u + 55 + 34);
}
INSTANTIATE_TEST_SUITE_P(all, ReadEngineTicks,
                         ::testing::Values(sim::timebase::options{false, 0}, sim::timebase::options{true, 0},
                                           sim::timebase::options{false, 7}, sim::timebase::options{true, 11}));

}  // namespace
