// SPDX-License-Identifier: Apache-2.0
// Memories, engines and pipelines in a waveform, in literal edges.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <systemc>
#include <type_traits>
#include <utility>

#include "model/sim/memory_ports.h"
#include "model/sim/pipeline.h"
#include "model/sim/server.h"
#include "model/sim/simulation.h"
#include "model/sim/timebase.h"
#include "testbenches/bench/wave/engine_wave.h"
#include "testbenches/bench/wave/memory_wave.h"
#include "testbenches/bench/wave/wave_changes.h"
#include "testbenches/unit/wave/read_wave.h"

namespace rnic::bench::test {
namespace {

/// What is called in the ticks of a block, by edge.
class scripted_block final : public sim::clocked_block {
 public:
  using calls = std::map<sim::cycle_t, std::function<void()>>;
  explicit scripted_block(sim::clock_domain& d) : clocked_block("b", d) {}
  void follow(calls c) {
    calls_ = std::move(c);
    for (const auto& [when, call] : calls_) wake_at(when);
  }

 private:
  void tick() override {
    if (const auto c = calls_.find(now()); c != calls_.end()) c->second();
  }
  calls calls_;
};

struct system_of_parts {
  sim::timebase base;
  sim::clock_domain clock{"clock", base, {1000, 1, 0}};
  scripted_block block{clock};

  static std::string path() {
    return (std::filesystem::temp_directory_path() / ("rnic_parts_" + std::to_string(::getpid()) + ".fst")).string();
  }
  /// What the reader finds of a part, from `from` ns on until 20 ns.
  template <class Wave, class Part>
  read_wave shown(Part& part, std::uint64_t from = 0) {
    struct watcher final : sim::edge_watcher_if {
      explicit watcher(std::function<void()> l) : look(std::move(l)) {}
      void served(sim::clock_domain&) override { look(); }
      std::function<void()> look;
    };
    wave_file f(path());
    clock_wave ticks(f, clock);
    Wave w(f, part);
    w.clock_by(ticks);
    if (from != 0) sc_core::sc_start(sc_core::sc_time::from_value(from * 1000));
    wave_changes changes(f, 0, 0, ~std::uint64_t{0});
    ticks.begin(changes);
    w.begin();
    watcher each([&] {
      ticks.show(clock.now());
      if constexpr (!std::is_same_v<Wave, engine_wave>) w.look();
    });
    clock.watch(&each);
    sc_core::sc_start(sc_core::sc_time::from_value((20 - from) * 1000));
    clock.watch(nullptr);
    changes.finish();
    f.close(20'000);
    read_wave r(path());
    std::filesystem::remove(path());
    return r;
  }
};

TEST(MemoryWave, PortsThatUsersShare) {
  system_of_parts s;
  sim::memory_ports m(s.block, "m", 2,
                      {{"look_up", sim::access_kind::read}, {"fills", sim::access_kind::write}, "all"});
  s.block.follow({{2,
                   [&] {
                     m.access(0);
                     m.access(2);
                     EXPECT_FALSE(m.try_access(1));
                   }},
                  {3, [&] { EXPECT_TRUE(m.try_access(1)); }},
                  {4, [&] {
                     m.access(0);
                     m.access(0);
                   }}});
  const read_wave r = s.shown<memory_wave>(m);
  EXPECT_EQ(r.text("b.m.ports [31:0]"), "2");
  EXPECT_EQ(r.text("b.m.read_write_ports [31:0]"), "2") << "a port of any user";
  EXPECT_EQ(r.text("b.m.read_ports [31:0]"), "no b.m.read_ports [31:0]");
  EXPECT_EQ(r.text("b.m.shared [31:0]"), "1");
  EXPECT_EQ(r.text("b.m.reads [1:0]"), "0 2000:1 3000:0 4000:2 5000:0");
  EXPECT_EQ(r.text("b.m.writes [1:0]"), "0 3000:1 4000:0");
  EXPECT_EQ(r.text("b.m.updates [1:0]"), "0 2000:1 3000:0");
  EXPECT_EQ(r.text("b.m.look_up.access [1:0]"), r.text("b.m.reads [1:0]"));
  EXPECT_EQ(r.text("b.m.fills.wait"), "0 2000:1 3000:0");
  EXPECT_EQ(r.text("b.m.all.wait"), "0");
}

TEST(MemoryWave, PortsOfTheirOwn) {
  system_of_parts s;
  sim::memory_ports m(s.block, "m", sim::port_each{},
                      {{"a", sim::access_kind::read}, {"b", sim::access_kind::read}, {"c", sim::access_kind::write}});
  s.block.follow({{1, [&] { m.access_own(0); }},
                  {5,
                   [&] {
                     m.access_own(0);
                     m.access_own(1);
                     m.access_own(2);
                   }},
                  {6, [&] { m.access_own(1); }}});
  const read_wave r = s.shown<memory_wave>(m, 3);
  EXPECT_EQ(r.text("b.m.ports [31:0]"), "3");
  EXPECT_EQ(r.text("b.m.read_ports [31:0]"), "2");
  EXPECT_EQ(r.text("b.m.write_ports [31:0]"), "1");
  EXPECT_EQ(r.text("b.m.shared [31:0]"), "0");
  EXPECT_EQ(r.text("b.m.reads [1:0]"), "0 5000:2 6000:1 7000:0") << "what was before the waveform is not in it";
  EXPECT_EQ(r.text("b.m.b.access"), "0 5000:1 7000:0");
  EXPECT_EQ(r.text("b.m.writes [1:0]"), "0 5000:1 6000:0");
}

TEST(EngineWave, EachOperationHasItsCycle) {
  system_of_parts s;
  sim::server e(s.block, "e");
  s.block.follow({{2, [&] { e.start(3); }},
                  {3,
                   [&] {
                     e.append(2);  // at 5
                     e.append(1);  // at 7
                   }},
                  {8, [&] { e.start(1); }},
                  {12, [&] { e.begin(); }},
                  {15, [&] { e.end(); }}});
  const read_wave r = s.shown<engine_wave>(e);
  EXPECT_EQ(r.text("b.e.start"), "0 2000:1 3000:0 5000:1 6000:0 7000:1 9000:0 12000:1 13000:0");
  EXPECT_EQ(r.text("b.e.busy"), "0 2000:1 9000:0 12000:1 15000:0");
  EXPECT_EQ(r.text("b.e.interval [31:0]"), "0 2000:3 5000:2 7000:1 12000:0") << "the last one's is known at its end";
  EXPECT_EQ(r.text("b.e.blocked"), "0");
  EXPECT_EQ(e.operations(), 5u);
}

TEST(EngineWave, BlockedIsWhenItCouldStart) {
  system_of_parts s;
  sim::server e(s.block, "e");
  s.block.follow({{2, [&] { e.start(4); }},
                  {3, [&] { e.blocked("channel"); }},  // from 6 on
                  {8, [&] { e.blocked("credits"); }},  // goes on
                  {10, [&] { e.start(3); }},
                  {11, [&] { e.blocked("channel"); }},  // would be from 13 on
                  {12, [&] { e.idle(); }},
                  {14, [&] { e.begin(); }},
                  {15, [&] { e.blocked("channel"); }},  // from its end on
                  {17, [&] { e.end(); }},
                  {18, [&] { e.waits_for(nullptr); }}});
  const read_wave r = s.shown<engine_wave>(e);
  EXPECT_EQ(r.text("b.e.blocked"), "0 6000:1 10000:0 17000:1 18000:0");
  EXPECT_EQ(r.text("b.e.busy"), "0 2000:1 6000:0 10000:1 13000:0 14000:1 17000:0");
  std::uint64_t cycles = 0;
  for (const sim::server::hold_up& h : e.blocked_cycles()) cycles += h.cycles;
  EXPECT_EQ(cycles, 5u) << "as counted";
}

TEST(EngineWave, BeginsInTheMiddle) {
  system_of_parts s;
  sim::server e(s.block, "e");
  s.block.follow({{2, [&] { e.start(4); }}, {3, [&] { e.blocked("channel"); }}, {9, [&] { e.start(1); }}});
  const read_wave r = s.shown<engine_wave>(e, 4);
  EXPECT_EQ(r.text("b.e.busy"), "0 4000:1 6000:0 9000:1 10000:0");
  EXPECT_EQ(r.text("b.e.blocked"), "0 6000:1 9000:0");
  EXPECT_EQ(r.text("b.e.start"), "0 9000:1 10000:0");
}

/// Who is watched, and not any more, counts as who never was.
TEST(EngineWave, WatchingChangesNothing) {
  for (const bool watched : {false, true}) {
    const sim::simulation kernel;
    system_of_parts s;
    sim::server e(s.block, "e");
    s.block.follow({{1, [&] { e.blocked("x"); }},
                    {3, [&] { e.start(2); }},
                    {6, [&] { e.idle(); }},
                    {7, [&] { e.begin(); }},
                    {9, [&] { e.end(); }},
                    {11, [&] { e.blocked("y"); }}});
    if (watched)
      s.shown<engine_wave>(e);
    else
      sc_core::sc_start(sc_core::sc_time::from_value(20'000));
    std::string text;
    for (const sim::server::hold_up& h : e.blocked_cycles()) text += h.by + (" " + std::to_string(h.cycles)) + "; ";
    EXPECT_EQ(text, "x 2; y 9; ");
    EXPECT_EQ(e.busy_cycles(), 4u);
    EXPECT_EQ(e.operations(), 2u);
  }
}

TEST(PipelineWave, StagesHoldWhatEntered) {
  system_of_parts s;
  sim::pipeline p(s.block, "p", {{"first one", 2}, {"left out", 0}, {"second", 3}});
  s.block.follow({{2, [&] { EXPECT_EQ(p.enter(), 5u); }}, {3, [&] { p.enter(); }}, {9, [&] { p.enter(); }}});
  const read_wave r = s.shown<pipeline_wave>(p);
  EXPECT_EQ(r.text("b.p.interval [31:0]"), "1");
  EXPECT_EQ(r.text("b.p.cycles [31:0]"), "5");
  EXPECT_EQ(r.text("b.p.start"), "0 2000:1 4000:0 9000:1 10000:0");
  EXPECT_EQ(r.text("b.p.first_one.items [1:0]"), "0 2000:1 3000:2 4000:1 5000:0 9000:1 11000:0");
  EXPECT_EQ(r.text("b.p.second.items [1:0]"), "0 4000:1 5000:2 7000:1 8000:0 11000:1 14000:0");
  EXPECT_EQ(r.text("b.p.second.cycles [31:0]"), "3");
  EXPECT_EQ(r.bits.count("b.p.left_out.items [1:0]"), 0u);
}

}  // namespace
}  // namespace rnic::bench::test
