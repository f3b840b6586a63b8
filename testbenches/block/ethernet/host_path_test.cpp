// SPDX-License-Identifier: Apache-2.0
// Plain frames to and from software: which ones, when, and what happens when there is no room.
#include "model/ethernet/host_path.h"

#include <gtest/gtest.h>

#include <deque>
#include <systemc>
#include <utility>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/sim/timebase.h"
#include "testbenches/block/icm/two_ways.h"

namespace rnic::ethernet {
namespace {

constexpr sim::time_ps cycle = 1000;

/// Parser and egress: gives frames and credits, takes frames while there is room.
class rim : public sim::clocked_block {
 public:
  rim(sim::clock_domain& d, host_path& h)
      : clocked_block("rim", d),
        in("in", d, 8),
        out("out", d, 8),
        credits("credits", d, 8),
        to_host(*this),
        credit_out(*this),
        from_host(*this) {
    to_host.bind(in);
    h.rx_in[0].bind(in);
    credit_out.bind(credits);
    h.credit_in[0].bind(credits);
    h.tx_out.bind(out);
    from_host.bind(out);
  }
  sim::fifo<tlm::frame_ptr> in, out;
  sim::fifo<transport::egress_credit> credits;
  sim::fifo_out<tlm::frame_ptr> to_host;
  sim::fifo_out<transport::egress_credit> credit_out;
  sim::fifo_in<tlm::frame_ptr> from_host;
  std::deque<tlm::frame_ptr> to_send;
  std::vector<std::pair<sim::time_ps, tlm::frame_ptr>> got;
  unsigned credits_to_give = 0;

 private:
  void tick() override {
    while (from_host.can_pop()) got.emplace_back(now_ps(), from_host.pop());
    while (!to_send.empty() && to_host.can_push()) {
      to_host.push(std::move(to_send.front()));
      to_send.pop_front();
    }
    for (; credits_to_give != 0 && credit_out.can_push(); --credits_to_give) credit_out.push({0, 3});
  }
};

struct bench final : frame_client_if {
  explicit bench(const host_path::config& cfg = {}, const sim::timebase::options& how = {})
      : base(how), core("core", base, {cycle, 1, 0}), h("host", core, cfg, {&gids, &gids}, frames, stats), r(core, h) {
    gids.cr_write(gid::cr::mac_word(0, 0), gid::cr::mac_valid | 0x0200);
    gids.cr_write(gid::cr::mac_word(0, 1), 1);
    h.set_client(this);
    sc_core::sc_start(sc_core::sc_time(500, sc_core::SC_PS));  // what the test does, it does between the edges
  }
  void frame_received(unsigned port, tlm::frame_ptr frame) override {
    EXPECT_EQ(port, 0u);
    received.emplace_back(base.now_ps(), std::move(frame));
  }
  void arrive(std::uint8_t first, std::uint8_t last) {
    tlm::frame_ptr f = frames.get();
    f->length = 60;
    std::fill_n(f->data(), 60, std::uint8_t{0});
    f->data()[0] = first;
    f->data()[5] = last;
    r.to_send.push_back(std::move(f));
    r.wake_next();
  }
  bool send(unsigned priority, std::size_t length = 60) {
    const std::vector<std::uint8_t> bytes(length, 0x5a);
    return h.send(0, priority, bytes.data(), length);
  }
  void run(std::uint64_t ns) { sc_core::sc_start(sc_core::sc_time(static_cast<double>(ns), sc_core::SC_NS)); }

  sim::timebase base;
  sim::clock_domain core;
  gid::gid_table gids;
  sim::statistics stats;
  tlm::frame_pool frames;
  host_path h;
  rim r;
  std::vector<std::pair<sim::time_ps, tlm::frame_ptr>> received;
};

TEST(host_path, software_gets_what_is_for_the_port) {
  host_path::config cfg;
  cfg.to_host_ns = 500;
  bench b(cfg);
  b.arrive(2, 1);     // its own address
  b.arrive(2, 2);     // another's
  b.arrive(0x33, 9);  // a group
  b.arrive(0xff, 0xff);
  b.run(2000);
  ASSERT_EQ(b.received.size(), 3u);
  EXPECT_EQ(b.stats.value("host.drop.not_our_mac"), 1u);
  EXPECT_EQ(b.received[0].second->data()[0], 2);
  EXPECT_EQ(b.received[1].second->data()[0], 0x33);
  // Pushed at 1 or 2 ns by the rim, taken a cycle later, at software 500 cycles after that.
  EXPECT_GE(b.received[0].first, 502 * cycle);
  EXPECT_LE(b.received[0].first, 504 * cycle);
}

TEST(host_path, a_full_receive_ring_drops) {
  host_path::config cfg;
  cfg.receive_frames = 4;
  bench b(cfg);
  for (int i = 0; i < 20; ++i) b.arrive(2, 1);
  b.run(5000);
  EXPECT_EQ(b.received.size(), 4u);
  EXPECT_EQ(b.stats.value("host.drop.receive_full"), 16u);
  b.arrive(2, 1);
  b.run(5000);
  EXPECT_EQ(b.received.size(), 5u);
}

TEST(host_path, without_software_frames_are_dropped) {
  bench b;
  b.h.set_client(nullptr);
  b.arrive(2, 1);
  b.run(5000);
  EXPECT_EQ(b.stats.value("host.drop.no_client"), 1u);
}

TEST(host_path, sending_takes_its_time_and_a_credit) {
  host_path::config cfg;
  cfg.from_host_ns = 300;
  cfg.egress_frames = 2;
  bench b(cfg);
  b.run(100);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(b.send(3));
  EXPECT_TRUE(b.send(5));  // waits behind the others: software's frames keep their order
  b.run(1000);
  ASSERT_EQ(b.r.got.size(), 2u);
  EXPECT_GE(b.r.got[0].first, 400 * cycle);
  EXPECT_LE(b.r.got[0].first, 402 * cycle);
  EXPECT_EQ(b.r.got[0].second->source, static_cast<std::uint8_t>(transport::egress_source::ethernet));
  EXPECT_EQ(b.r.got[0].second->priority, 3);
  EXPECT_FALSE(b.r.got[0].second->insert_icrc);
  b.r.credits_to_give = 1;
  b.r.wake_next();
  b.run(1000);
  ASSERT_EQ(b.r.got.size(), 4u);
  EXPECT_EQ(b.r.got[3].second->priority, 5);
  EXPECT_EQ(b.stats.value("host.sent"), 4u);
}

TEST(host_path, what_cannot_be_sent_is_refused) {
  host_path::config cfg;
  cfg.send_frames = 3;
  bench b(cfg);
  EXPECT_FALSE(b.send(0, 13));
  EXPECT_FALSE(b.send(0, tlm::frame::capacity + 1));
  EXPECT_TRUE(b.send(0, tlm::frame::capacity));
  EXPECT_TRUE(b.send(0, 14));
  EXPECT_TRUE(b.send(0));
  EXPECT_FALSE(b.send(0));
  EXPECT_EQ(b.stats.value("host.drop.send_full"), 3u);
  b.run(5000);
  EXPECT_TRUE(b.send(0));
}

std::uint64_t digest(const sim::timebase::options& how) {
  host_path::config cfg;
  cfg.egress_frames = 2;
  cfg.receive_frames = 6;
  bench b(cfg, how);
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < 40; ++i) {
    for (unsigned k = 0; k < i % 5; ++k) b.arrive(2, static_cast<std::uint8_t>(k % 2 + 1));
    if (i % 3 == 0) b.send(3, 60 + i);
    if (i % 4 == 0) {
      b.r.credits_to_give = 2;
      b.r.wake_next();
    }
    b.run(37 * i + 1);
  }
  for (const auto& [at, f] : b.received) sum = sum * 31 + at;
  for (const auto& [at, f] : b.r.got) sum = sum * 31 + at + f->length;
  for (const auto& [name, value] : b.stats.all()) sum = sum * 31 + *value;
  return sum;
}

TEST(host_path, sleeping_is_ticking) {
  sim::timebase::options awake;
  awake.always_tick = true;
  sim::timebase::options shuffled;
  shuffled.shuffle_seed = 5;
  const std::uint64_t asleep = rnic::bench::in_child([] { return digest({}); });
  EXPECT_EQ(asleep, rnic::bench::in_child([&] { return digest(awake); }));
  EXPECT_EQ(asleep, rnic::bench::in_child([&] { return digest(shuffled); }));
}

}  // namespace
}  // namespace rnic::ethernet
