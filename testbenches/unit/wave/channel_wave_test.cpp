// SPDX-License-Identifier: Apache-2.0
// A channel in a waveform, in literal edges.
#include "testbenches/bench/wave/channel_wave.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/async_fifo.h"
#include "model/sim/fifo.h"
#include "model/sim/simulation.h"
#include "model/sim/timebase.h"
#include "testbenches/unit/wave/read_wave.h"

namespace rnic::bench::test {
namespace {

using cycles = std::vector<sim::cycle_t>;

struct item {
  std::uint32_t qpn = 0;
  bool ok = false;
};

/// Pushes queue pairs 1, 2, 3 ... each at its edge or when there is room.
template <class Channel>
class wave_source final : public sim::clocked_block {
 public:
  wave_source(sim::clock_domain& d, cycles at) : clocked_block("source", d), at_(std::move(at)) { wake_at(at_[0]); }
  Channel* out = nullptr;

 private:
  void tick() override {
    if (done_ == at_.size()) return;
    if (at_[done_] > now()) return wake_at(at_[done_]);
    if (!out->can_push()) return;
    out->push({static_cast<std::uint32_t>(++done_), done_ % 2 == 0});
    if (done_ != at_.size()) wake_at(std::max(now() + 1, at_[done_]));
  }
  cycles at_;
  std::size_t done_ = 0;
};

/// Takes one after the other, none before its edge.
template <class Channel>
class wave_sink final : public sim::clocked_block {
 public:
  wave_sink(sim::clock_domain& d, cycles from) : clocked_block("sink", d), from_(std::move(from)) {}
  Channel* in = nullptr;

 private:
  void tick() override {
    if (done_ == from_.size() || !in->can_pop()) return;
    if (from_[done_] > now()) return wake_at(from_[done_]);
    in->pop();
    ++done_;
  }
  cycles from_;
  std::size_t done_ = 0;
};

struct edge_look final : sim::edge_watcher_if {
  edge_look(wave_file& f, sim::clock_domain& d) : shown(f, d) {}
  void served(sim::clock_domain& of) override {
    shown.show(of.now());
    channel->look();
  }
  clock_wave shown;
  channel_wave* channel = nullptr;
};

std::string wave_path() {
  return (std::filesystem::temp_directory_path() / ("rnic_channel_" + std::to_string(::getpid()) + ".fst")).string();
}

/// What the reader finds of a channel between two clocks, which may be one.
read_wave shown(sim::channel& c, sim::clock_domain& from, sim::clock_domain& to, std::uint64_t ns) {
  wave_file f(wave_path());
  channel_wave w(f, c);
  edge_look pushes(f, from);
  std::unique_ptr<edge_look> pops = &from != &to ? std::make_unique<edge_look>(f, to) : nullptr;
  wave_changes changes(f, 0, 0, ~std::uint64_t{0});
  for (edge_look* e : {&pushes, pops.get()}) {
    if (e == nullptr) continue;
    e->channel = &w;
    e->shown.begin(changes);
    e->shown.clock().watch(e);
  }
  w.clock_by(pushes.shown, pops ? pops->shown : pushes.shown);
  w.begin();
  sc_core::sc_start(sc_core::sc_time::from_value(ns * 1000));
  changes.finish();
  f.close(ns * 1000);
  read_wave r(wave_path());
  std::filesystem::remove(wave_path());
  return r;
}

TEST(ChannelWave, AChannelThatFillsAndEmpties) {
  using channel = sim::fifo<item>;
  sim::timebase base;
  sim::clock_domain clock("clock", base, {1000, 1, 0});
  channel c("c", clock, 2);
  wave_source<channel> source(clock, {2, 3, 4, 9});
  wave_sink<channel> sink(clock, {5, 6, 7, 8});
  source.out = sink.in = &c;
  c.bind_producer(source);
  c.bind_consumer(sink);
  const read_wave r = shown(c, clock, clock, 20);
  // Pushed in cycles 2, 3, 6 (full in 4 and 5), 9; popped in 5, 6, 7, 10.
  EXPECT_EQ(r.text("c.push"), "0 2000:1 4000:0 6000:1 7000:0 9000:1 10000:0");
  EXPECT_EQ(r.text("c.pop"), "0 5000:1 8000:0 10000:1 11000:0");
  EXPECT_EQ(r.text("c.occupancy [1:0]"), "0 3000:1 4000:2 6000:1 8000:0 10000:1 11000:0");
  EXPECT_EQ(r.text("c.ready"), "0 1000:1 4000:0 6000:1");
  EXPECT_EQ(r.text("c.valid"), "0 3000:1 8000:0 10000:1 11000:0");
  EXPECT_EQ(r.text("c.qpn [23:0]"), "0 3000:1 6000:2 7000:3 10000:4");
  EXPECT_EQ(r.text("c.ok"), "0 6000:1 7000:0 10000:1");
  EXPECT_EQ(r.bits.at("clock.cycle [63:0]"), 64u);
  EXPECT_EQ(r.text("clock.cycle [63:0]"),
            "0 1000:1 2000:2 3000:3 4000:4 5000:5 6000:6 7000:7 8000:8 9000:9 10000:10 11000:11");
  EXPECT_EQ(r.text("clock.clk").substr(0, 32), "0 1000:1 1500:0 2000:1 2500:0 30");
}

TEST(ChannelWave, ItIsNotReadyWhileAPopIsOnItsWayToTheProducer) {
  using channel = sim::async_fifo<item>;
  sim::timebase base;
  sim::clock_domain from("from", base, {1000, 1, 0}), to("to", base, {1500, 1, 0});
  wave_source<channel> source(from, {1, 2, 3});
  wave_sink<channel> sink(to, {6, 7, 8});
  channel c("c", source, sink, 2, 2);
  source.out = sink.in = &c;
  const read_wave r = shown(c, from, to, 40);
  // Pushed at 1 and 2 ns: the other clock takes the pointer at 1.5 and 3 ns, its logic sees it two edges later, at 4.5
  // and 6 ns. Popped at 9 and 10.5 ns: taken at 10 and 11 ns, seen at 12 and 13 ns, so the third is pushed at 12
  // ns: 13.5, 16.5.
  EXPECT_EQ(r.text("c.push"), "0 1000:1 3000:0 12000:1 13000:0");
  EXPECT_EQ(r.text("c.ready"), "0 1000:1 3000:0 12000:1");
  EXPECT_EQ(r.text("c.valid"), "0 4500:1 12000:0 16500:1 18000:0");
  EXPECT_EQ(r.text("c.pop"), "0 9000:1 12000:0 16500:1 18000:0");
  EXPECT_EQ(r.text("c.qpn [23:0]"), "0 4500:1 10500:2 16500:3");
  EXPECT_EQ(r.text("c.occupancy [1:0]"), "0 2000:1 3000:2 10500:1 12000:0 13000:1 18000:0");
}

TEST(ChannelWave, AWideOneAndAPipeline) {
  using channel = sim::fifo<item>;
  sim::timebase base;
  sim::clock_domain clock("clock", base, {1000, 1, 0});
  channel c("c", clock, 6, 1, {3});
  struct producer final : sim::clocked_block {
    producer(sim::clock_domain& d, channel& to) : clocked_block("p", d), out(to) { wake_at(2); }
    void tick() override {
      if (now() != 2) return;
      out.push_after(item{7, false}, 3);
      out.push_after(item{8, false}, 3);
    }
    channel& out;
  } p(clock, c);
  wave_sink<channel> sink(clock, {0, 0});
  sink.in = &c;
  c.bind_producer(p);
  c.bind_consumer(sink);
  const read_wave r = shown(c, clock, clock, 20);
  EXPECT_EQ(r.text("c.push [1:0]"), "0 2000:2 3000:0");
  EXPECT_EQ(r.text("c.depth [31:0]"), "6");
  EXPECT_EQ(r.text("c.width [31:0]"), "3");
  EXPECT_EQ(r.text("c.occupancy [2:0]"), "0 3000:2 7000:1 8000:0");
  EXPECT_EQ(r.text("c.valid"), "0 6000:1 8000:0") << "seen when they have left the pipeline, in cycle 2 + 3 + 1";
  EXPECT_EQ(r.text("c.qpn [23:0]"), "0 6000:7 7000:8");
}

TEST(ChannelWave, WhoIsWatchedIsNotQuiet) {
  using channel = sim::fifo<item>;
  for (const bool watched : {false, true}) {
    const sim::simulation kernel;
    sim::timebase base;
    sim::clock_domain clock("clock", base, {1000, 1, 0});
    channel c("c", clock, 8);
    wave_source<channel> source(clock, {2, 3, 4});
    struct taker final : sim::clocked_block {
      explicit taker(sim::clock_domain& d) : clocked_block("t", d) {}
      void tick() override {
        in->take_due([this](item&&) { at.push_back(now()); });
      }
      channel* in = nullptr;
      cycles at;
    } sink(clock);
    source.out = sink.in = &c;
    c.bind_producer(source);
    c.bind_consumer(sink);
    c.set_quiet(true);
    if (watched) c.watch();
    c.set_quiet(true);
    sc_core::sc_start(sc_core::sc_time::from_value(20'000));
    EXPECT_EQ(sink.at, watched ? cycles({3, 4, 5}) : cycles{});
  }
}

}  // namespace
}  // namespace rnic::bench::test
