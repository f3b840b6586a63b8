// SPDX-License-Identifier: Apache-2.0
// A switch: learning, cut-through, queues and PAUSE.
#include <gtest/gtest.h>

#include <cstring>
#include <systemc>

#include "model/fabric/cable.h"
#include "model/fabric/network_switch.h"
#include "model/sim/timebase.h"
#include "model/wire/icrc.h"

namespace rnic::fabric::test {
namespace {

constexpr std::uint32_t rate = 40'000;
constexpr sim::time_ps byte_ps = 200, hop = 250'000;
constexpr std::uint32_t overhead = 12, gap = 12;  // preamble and FCS

/// A connector that notes what arrives, with nothing but time between it and the switch.
struct plug final : payload::frame_sink_if {
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override { got.emplace_back(std::move(frame), arrival); }
  std::vector<std::pair<payload::frame_ptr, sim::time_ps>> got;
};

struct rig {
  explicit rig(unsigned ports, network_switch::config c = {}) {
    c.ports = ports;
    c.rate_mbps = rate;
    middle = std::make_unique<network_switch>("switch", domain, c, pool, statistics);
    plugs.resize(ports);
    for (unsigned i = 0; i < ports; ++i) middle->port(i).attach(plugs[i]);
  }
  static void put_address(std::uint8_t* to, unsigned host) {
    const std::uint8_t address[6] = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(host)};
    std::memcpy(to, address, sizeof address);
  }
  /// Its last bit comes at `last_bit` to the port of host `from`.
  void send(unsigned from, unsigned to, std::uint32_t length, sim::time_ps last_bit) {
    payload::frame_ptr f = pool.get();
    f->length = length;
    std::memset(f->data(), static_cast<int>(length), length);
    put_address(f->data(), to);
    put_address(f->data() + 6, from);
    f->stamp = last_bit - (length + overhead) * byte_ps;
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    middle->port(from).receiver().deliver(std::move(f), last_bit);
  }
  void pause(unsigned from, std::uint16_t quanta, sim::time_ps at, std::uint32_t damage = 0) {
    wire::pause_frame p;
    p.quanta[0] = quanta;
    payload::frame_ptr f = pool.get();
    f->length = wire::pause_frame_length;
    wire::encode_pause(p, {2, 0, 0, 0, 0, static_cast<std::uint8_t>(from)}, f->data());
    f->fcs = wire::ethernet_fcs(f->data(), f->length) ^ damage;
    middle->port(from).receiver().deliver(std::move(f), at);
  }
  void run(sim::time_ps until) { sc_core::sc_start(sc_core::sc_time::from_value(until - base.now_ps())); }
  /// Both addresses are known from now on, and the plugs empty.
  void teach() {
    for (unsigned i = 0; i < plugs.size(); ++i) send(i, 99, 60, base.now_ps() + 1'000'000);
    run(base.now_ps() + 5'000'000);
    for (plug& p : plugs) p.got.clear();
  }

  sim::timebase base;
  sim::clock_domain domain{"domain", base, sim::clock_period{1000, 1, 0}};
  sim::statistics statistics;
  payload::frame_pool pool;
  std::unique_ptr<network_switch> middle;
  std::vector<plug> plugs;
};

TEST(network_switch, learns_and_floods) {
  rig r(4);
  r.send(0, 2, 100, 1'000'000);  // nobody knows host 2
  r.run(2'000'000);
  EXPECT_EQ(r.middle->count().flooded, 1u);
  EXPECT_TRUE(r.plugs[0].got.empty());
  for (unsigned i = 1; i < 4; ++i) {
    ASSERT_EQ(r.plugs[i].got.size(), 1u);
    EXPECT_EQ(r.plugs[i].got[0].first->length, 100u);
    EXPECT_EQ(r.plugs[i].got[0].first->data()[99], 100);
  }
  r.send(2, 0, 64, 3'000'000);
  r.send(0, 2, 65, 3'500'000);
  r.send(0, 0, 66, 4'000'000);  // to itself
  r.run(5'000'000);
  EXPECT_EQ(r.middle->count().flooded, 1u);
  EXPECT_EQ(r.plugs[0].got.size(), 1u);
  EXPECT_EQ(r.plugs[1].got.size(), 1u);
  EXPECT_EQ(r.plugs[2].got.size(), 2u);
  EXPECT_EQ(r.plugs[3].got.size(), 1u);
}

TEST(network_switch, a_frame_alone_is_late_by_the_hop) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  r.send(0, 1, 60, start + 1'000'123);
  r.send(0, 1, 9000, start + 9'000'123);
  r.run(start + 20'000'000);
  ASSERT_EQ(r.plugs[1].got.size(), 2u);
  EXPECT_EQ(r.plugs[1].got[0].second, start + 1'000'123 + hop);
  EXPECT_EQ(r.plugs[1].got[1].second, start + 9'000'123 + hop);
  EXPECT_TRUE(r.plugs[2].got.empty());
}

TEST(network_switch, an_input_gives_one_frame_at_an_edge) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  const std::uint64_t before = r.middle->count().frames;
  for (const unsigned to : {1u, 2u}) r.send(0, to, 60, start + 1'000'000);
  r.run(start + 1'000'500);
  EXPECT_EQ(r.middle->count().frames, before + 1);
  r.run(start + 1'001'500);
  EXPECT_EQ(r.middle->count().frames, before + 2);
  r.run(start + 2'000'000);
  for (unsigned i : {1u, 2u}) {
    ASSERT_EQ(r.plugs[i].got.size(), 1u);
    EXPECT_EQ(r.plugs[i].got[0].second, start + 1'000'000 + hop) << "cut through all the same";
  }
}

TEST(network_switch, two_senders_share_a_line) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps(), frame = (1000 + overhead) * byte_ps;
  constexpr unsigned frames = 20;
  for (unsigned i = 1; i <= frames; ++i)
    for (unsigned from : {0u, 1u}) r.send(from, 2, 1000, start + i * (frame + gap * byte_ps));
  r.run(start + 40'000'000);
  const auto& got = r.plugs[2].got;
  ASSERT_EQ(got.size(), 2 * frames);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i].second, start + hop + (frame + gap * byte_ps) * (i + 1)) << i;
  unsigned first = 0;
  for (std::size_t i = 0; i < got.size(); ++i) first += got[i].first->data()[11] == 0 ? 1 : 0;
  EXPECT_EQ(first, frames);
  EXPECT_EQ(r.middle->count().pauses_sent, 0u);
}

TEST(network_switch, a_full_output_pauses_the_others_and_lets_them_go_on) {
  network_switch::config c;
  c.xoff_bytes = 8000;
  c.xon_bytes = 3000;
  rig r(3, c);
  r.teach();
  const sim::time_ps start = r.base.now_ps(), frame = (1000 + overhead + gap) * byte_ps;
  for (unsigned i = 1; i <= 20; ++i)
    for (unsigned from : {0u, 1u}) r.send(from, 2, 1000, start + i * frame);
  r.run(start + 40'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 40u);
  for (unsigned from : {0u, 1u}) {  // stop, and go on
    const auto& told = r.plugs[from].got;
    ASSERT_EQ(told.size(), 2u);
    for (unsigned i = 0; i < 2; ++i) {
      wire::pause_frame p;
      ASSERT_EQ(wire::decode_pause(told[i].first->data(), told[i].first->length, p), wire::pause_kind::pause);
      EXPECT_EQ(p.quanta[0] != 0, i == 0);
      EXPECT_EQ(wire::ethernet_fcs(told[i].first->data(), told[i].first->length), told[i].first->fcs);
    }
    EXPECT_LT(told[0].second, told[1].second);
  }
}

TEST(network_switch, a_paused_output_waits) {
  rig r(3);
  r.teach();
  const sim::time_ps start = r.base.now_ps();
  r.pause(2, 100, start + 1'000'000, 1);  // with a wrong FCS: nothing
  r.send(0, 2, 500, start + 2'000'000);
  r.run(start + 3'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 1u);
  constexpr sim::time_ps quantum = 512 * byte_ps / 8;
  r.pause(2, 1000, start + 4'000'000);
  r.send(0, 2, 500, start + 5'000'000);
  r.send(0, 1, 500, start + 6'000'000);  // another output goes on
  r.run(start + 7'000'000);
  EXPECT_EQ(r.plugs[2].got.size(), 1u);
  EXPECT_EQ(r.plugs[1].got.size(), 1u);
  r.run(start + 30'000'000);
  ASSERT_EQ(r.plugs[2].got.size(), 2u);
  EXPECT_GE(r.plugs[2].got[1].second, start + 4'000'000 + 1000 * quantum);
  // Time 0 ends a pause early.
  r.pause(2, 0xffff, start + 31'000'000);
  r.send(0, 2, 500, start + 32'000'000);
  r.pause(2, 0, start + 34'000'000);
  r.run(start + 36'000'000);
  ASSERT_EQ(r.plugs[2].got.size(), 3u);
  EXPECT_GE(r.plugs[2].got[2].second, start + 34'000'000);
}

}  // namespace
}  // namespace rnic::fabric::test
