// SPDX-License-Identifier: Apache-2.0
// The far end of the cable: frames from outside become frames of a cable, and the other way.
#include "testbenches/serve/links/bridge_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <systemc>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "model/wire/icrc.h"

namespace rnic::serve {
namespace {

struct bench final : outside_if, payload::frame_sink_if {
  explicit bench(std::uint32_t rate_mbps = 10'000, std::size_t queue = 16)
      : core("core", base, {1000, 1, 0}), port("bridge", core, {rate_mbps, queue}, frames, *this, stats) {
    port.attach(*this);
  }
  void leave(const std::uint8_t* frame, std::size_t length) override {
    left.emplace_back(base.now_ps(), std::vector<std::uint8_t>(frame, frame + length));
  }
  std::size_t queued() const override { return waiting; }
  void half_empty() override { ++half_emptied; }
  void takes(std::size_t bytes_left) {
    waiting = bytes_left;
    port.relieved();
  }
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override {
    line.emplace_back(arrival, std::move(frame));
  }
  void inject(std::size_t length, sim::time_ps at) {
    const std::vector<std::uint8_t> bytes(length, 0x11);
    port.inject(bytes.data(), length, at);
  }
  void from_adapter(const std::vector<std::uint8_t>& bytes, sim::time_ps at) {
    payload::frame_ptr f = frames.get();
    f->length = static_cast<std::uint32_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), f->data());
    port.deliver(std::move(f), at);
  }
  void pause(std::uint16_t quanta, sim::time_ps at) {
    wire::pause_frame p;
    p.quanta[0] = quanta;
    std::vector<std::uint8_t> bytes(wire::pause_frame_length);
    wire::encode_pause(p, {2, 0, 0, 0, 0, 1}, bytes.data());
    from_adapter(bytes, at);
  }
  void run_until_ns(std::uint64_t ns) {
    sc_core::sc_start(sc_core::sc_time(static_cast<double>(ns), sc_core::SC_NS) - sc_core::sc_time_stamp());
  }

  sim::timebase base;
  sim::clock_domain core;
  sim::statistics stats;
  payload::frame_pool frames;
  bridge_port port;
  std::vector<std::pair<sim::time_ps, std::vector<std::uint8_t>>> left;
  std::vector<std::pair<sim::time_ps, payload::frame_ptr>> line;
  std::size_t waiting = 0;  // outside
  unsigned half_emptied = 0;

  /// Quanta of the PAUSE frames that the adapter was sent.
  std::vector<unsigned> pauses() const {
    std::vector<unsigned> found;
    for (const auto& [at, frame] : line) {
      wire::pause_frame p;
      if (wire::decode_pause(frame->data(), frame->length, p) == wire::pause_kind::pause) found.push_back(p.quanta[0]);
    }
    return found;
  }
};

TEST(bridge_port, frames_from_outside_have_the_form_of_a_cables) {
  bench b;
  b.inject(42, 5'000'000);
  b.inject(1000, 5'000'000);
  b.run_until_ns(4999);
  EXPECT_TRUE(b.line.empty());
  b.run_until_ns(20'000);
  ASSERT_EQ(b.line.size(), 2u);
  const payload::frame& first = *b.line[0].second;
  EXPECT_EQ(first.length, 60u);
  EXPECT_EQ(first.fcs, wire::ethernet_fcs(first.data(), 60));
  EXPECT_TRUE(std::all_of(first.data() + 42, first.data() + 60, [](std::uint8_t x) { return x == 0; }));
  EXPECT_EQ(first.stamp, 5'000'000u);
  // 0.8 ns a byte: preamble and FCS are on the line before the last bit, a gap of 12 bytes is behind it.
  EXPECT_EQ(b.line[0].first, 5'000'000u + (8 + 60 + 4) * 800u);
  EXPECT_GE(b.line[1].second->stamp, 5'000'000u + (8 + 60 + 4 + 12) * 800u);
  EXPECT_LT(b.line[1].second->stamp, 5'000'000u + (8 + 60 + 4 + 12) * 800u + 1000u);
}

TEST(bridge_port, frames_leave_when_their_last_bit_is_there) {
  bench b;
  b.from_adapter(std::vector<std::uint8_t>(70, 0x22), 3'000'000);
  b.run_until_ns(2999);
  EXPECT_TRUE(b.left.empty());
  b.run_until_ns(4000);
  ASSERT_EQ(b.left.size(), 1u);
  EXPECT_EQ(b.left[0].first, 3'000'000u);
  EXPECT_EQ(b.left[0].second, std::vector<std::uint8_t>(70, 0x22));
}

TEST(bridge_port, pause_is_obeyed_and_stays_on_the_cable) {
  bench b;
  b.pause(1000, 1'000'000);  // 1000 * 512 bits at 10 Gb/s: 51.2 us
  b.inject(100, 2'000'000);
  b.run_until_ns(52'000);
  EXPECT_TRUE(b.line.empty());
  EXPECT_TRUE(b.left.empty());
  b.run_until_ns(60'000);
  ASSERT_EQ(b.line.size(), 1u);
  EXPECT_GE(b.line[0].second->stamp, 52'200'000u);
  b.pause(0xffff, 61'000'000);
  b.inject(100, 62'000'000);
  b.pause(0, 100'000'000);  // and taken back
  b.run_until_ns(200'000);
  ASSERT_EQ(b.line.size(), 2u);
  EXPECT_EQ(b.line[1].second->stamp, 100'000'000u);
  EXPECT_EQ(b.stats.value("bridge.pauses"), 3u);
}

TEST(bridge_port, the_adapter_is_held_while_the_world_outside_does_not_keep_up) {
  bench b(40'000);
  const std::vector<std::uint8_t> frame(1000, 0x22);
  b.waiting = 500'000;
  b.from_adapter(frame, 1'000'000);
  b.run_until_ns(100'000);
  EXPECT_TRUE(b.pauses().empty());
  b.waiting = 600'000;
  b.from_adapter(frame, 100'000'000);
  b.run_until_ns(101'000);
  EXPECT_EQ(b.pauses(), std::vector<unsigned>{0xffff});
  EXPECT_EQ(b.line[0].second->fcs, wire::ethernet_fcs(b.line[0].second->data(), b.line[0].second->length));
  b.run_until_ns(1'500'000);  // said again before the 839 us have passed, and every half of them
  EXPECT_EQ(b.pauses(), (std::vector<unsigned>{0xffff, 0xffff, 0xffff, 0xffff}));
  b.takes(200'000);
  b.run_until_ns(1'600'000);
  EXPECT_EQ(b.pauses().back(), 0xffffu);
  b.takes(1000);
  b.run_until_ns(1'700'000);
  EXPECT_EQ(b.pauses().back(), 0u);
  const std::size_t said = b.line.size();
  b.run_until_ns(5'000'000);
  EXPECT_EQ(b.line.size(), said);
  EXPECT_EQ(b.stats.value("bridge.pauses_said"), said);
}

TEST(bridge_port, a_peer_that_never_reads_does_not_hold_the_adapter_for_ever) {
  bench b(40'000);
  b.waiting = 600'000;
  b.from_adapter(std::vector<std::uint8_t>(100, 0x22), 1'000'000);
  b.run_until_ns(199'000'000);
  EXPECT_EQ(b.pauses().back(), 0xffffu);
  b.run_until_ns(202'000'000);
  EXPECT_EQ(b.pauses().back(), 0u);
  const std::size_t said = b.line.size();
  EXPECT_LT(b.core.ticks(), 2 * said + 10);  // between two PAUSE frames there is nothing to do
  const std::uint64_t ticks = b.core.ticks();
  b.run_until_ns(400'000'000);
  EXPECT_EQ(b.line.size(), said);
  EXPECT_EQ(b.core.ticks(), ticks);
  b.takes(0);  // it reads again: the next time counts anew
  b.run_until_ns(401'000'000);
  b.waiting = 600'000;
  b.from_adapter(std::vector<std::uint8_t>(100, 0x22), 402'000'000'000);
  b.run_until_ns(403'000'000);
  EXPECT_GT(b.line.size(), said);
  EXPECT_EQ(b.pauses().back(), 0xffffu);
}

TEST(bridge_port, a_peer_that_reads_slowly_holds_the_adapter_as_long_as_it_does) {
  bench b(40'000);
  b.waiting = 900'000;
  b.from_adapter(std::vector<std::uint8_t>(100, 0x22), 1'000'000);
  for (unsigned ms = 100; ms <= 2000; ms += 100) {
    b.run_until_ns(std::uint64_t{ms} * 1'000'000);
    EXPECT_EQ(b.pauses().back(), 0xffffu) << ms;
    b.takes(900'000 - ms * 100);
  }
  b.run_until_ns(2'199'000'000);
  EXPECT_EQ(b.pauses().back(), 0xffffu);
  b.run_until_ns(2'202'000'000);
  EXPECT_EQ(b.pauses().back(), 0u);
}

TEST(bridge_port, room_is_told_when_half_of_a_queue_is_gone) {
  bench b(10'000, 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(b.port.has_room());
    b.inject(1000, 1'000'000);
  }
  EXPECT_FALSE(b.port.has_room());
  b.run_until_ns(1010);
  EXPECT_EQ(b.port.waiting_frames(), 3u);
  EXPECT_EQ(b.half_emptied, 0u);
  b.run_until_ns(2000);  // 826 ns each
  EXPECT_EQ(b.port.waiting_frames(), 2u);
  EXPECT_EQ(b.half_emptied, 1u);
  b.run_until_ns(20'000);
  EXPECT_EQ(b.half_emptied, 1u);
  EXPECT_EQ(b.port.dropped(), 0u);
}

TEST(bridge_port, a_full_queue_drops) {
  bench b(10'000, 4);
  for (int i = 0; i < 10; ++i) b.inject(60, 1'000'000);
  b.run_until_ns(10'000);
  EXPECT_EQ(b.line.size(), 4u);
  EXPECT_EQ(b.stats.value("bridge.drop.queue_full"), 6u);
  b.inject(60, 1'000'000);  // came before what is simulated already: it goes as soon as it can
  b.run_until_ns(20'000);
  ASSERT_EQ(b.line.size(), 5u);
  EXPECT_GE(b.line[4].second->stamp, 10'000'000u);
}

}  // namespace
}  // namespace rnic::serve
