// SPDX-License-Identifier: Apache-2.0
// What a sender does when it is told of congestion, and when somebody only says so.
#include <gtest/gtest.h>

#include "model/transport/congestion/reaction_point.h"
#include "testbenches/system/congestion/watch.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;
using hosts::make_buffer;

constexpr std::uint32_t message = 65'536, line_kbps = 40'000'000;

/// Keeps some queue pairs busy with WRITEs for a time.
class load {
 public:
  load(std::vector<link> lanes) : lanes_(std::move(lanes)) {
    for (const link& l : lanes_) {
      near_.push_back(make_buffer(l.a.at, message));
      far_.push_back(make_buffer(l.b.at, message));
      posted_.push_back(0);
    }
  }
  void run(sim::time_ps duration) {
    host_driver::bus_if& bus = *lanes_[0].a.at.bus;
    const sim::time_ps end = bus.now_ps() + duration;
    for (std::size_t i = 0; i < lanes_.size(); ++i) fill(i);
    while (bus.now_ps() < end) {
      ibv_wc wc{};
      const int n = lanes_[0].a.dev().wait_cq(lanes_[0].a.send_cq, 1, &wc, end - bus.now_ps());
      if (n != 1) continue;
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      --posted_[wc.wr_id];
      fill(wc.wr_id);
    }
    stopped = bus.now_ps();
    drain();
  }
  sim::time_ps stopped = 0;  ///< end of the last run; what was under way then came to its end later

 private:
  void fill(std::size_t i) {
    for (; posted_[i] < 4; ++posted_[i]) post_write(lanes_[i].a, near_[i], far_[i], message, i);
  }
  void drain() {
    for (unsigned& p : posted_)
      for (; p != 0; --p) ASSERT_EQ(lanes_[0].a.wait_send().status, IBV_WC_SUCCESS);
  }
  std::vector<link> lanes_;
  std::vector<hosts::buffer> near_, far_;
  std::vector<unsigned> posted_;
};

connection_options small_packets() {
  connection_options o;
  o.mtu = 1024;
  return o;
}

void expect_rate(std::uint64_t got, std::uint64_t expected, double percent, const char* where) {
  EXPECT_NEAR(static_cast<double>(got), static_cast<double>(expected), static_cast<double>(expected) * percent / 100)
      << where;
}

/// The published example (calibration 7.6), step by step, without anything around it.
TEST(ReactionPoint, WorkedExample) {
  transport::reaction_config c;
  transport::reaction_point p;
  sim::time_ps t = 1 * ms;
  EXPECT_FALSE(p.active());
  p.notified(c, line_kbps, t);
  EXPECT_EQ(p.rate_kbps(c, t), 20'000'000U);
  for (const std::uint32_t rate : {30'000'000U, 35'000'000U, 37'500'000U, 38'750'000U, 39'375'000U}) {
    t += 55 * us;
    EXPECT_NE(p.rate_kbps(c, t - 1), rate);
    EXPECT_EQ(p.rate_kbps(c, t), rate);
  }
  EXPECT_EQ(t, 1 * ms + 275 * us);  // 98.4 % after 275 us
  // alpha: 1 at the CNP; without another one half of it after 177 periods of 55 us.
  c.reduce_period_us = 0;
  transport::reaction_point late;
  late.notified(c, line_kbps, 0);
  late.notified(c, line_kbps, 177 * 55 * us);
  // That reduction took alpha / 2: a quarter of the full rate that was reached again meanwhile.
  expect_rate(late.rate_kbps(c, 177 * 55 * us), 30'000'000, 0.1, "alpha after 177 periods");
}

TEST(ReactionPoint, IdleForAnHourIsFullRateAndAtOnce) {
  const transport::reaction_config c;
  transport::reaction_point p;
  for (unsigned i = 0; i < 50; ++i) p.notified(c, line_kbps, i * 50 * us);
  EXPECT_EQ(p.rate_kbps(c, 50 * 50 * us), 100'000U);
  EXPECT_EQ(p.rate_kbps(c, 3'600'000 * ms), line_kbps);
}

TEST(ReactionPoint, CnpsWithinAPeriodAreOne) {
  const transport::reaction_config c;
  transport::reaction_point p;
  p.notified(c, line_kbps, 100 * us);
  for (unsigned i = 1; i < 100; ++i) p.notified(c, line_kbps, 100 * us + i * us / 50);
  EXPECT_EQ(p.rate_kbps(c, 104 * us - 1), 20'000'000U);
  EXPECT_EQ(p.rate_kbps(c, 104 * us), 10'000'000U);
  EXPECT_EQ(p.rate_kbps(c, 150 * us), 10'000'000U);
}

/// One of two flows is marked: it alone goes down, and the other takes what it leaves.
TEST(Reaction, OnlyTheFlowThatIsMarked) {
  hosts::two_nodes system(congested_system());
  watch w(system);
  run(system, [&] {
    const link first = make_link(system, small_packets()), second = make_sibling(first, small_packets());
    const std::uint32_t marked = first.b.qp->qp_num, other = second.b.qp->qp_num;
    load l({first, second});
    l.run(200 * us);  // translations are on chip then
    w.only_qpn = marked;
    w.left = 1;
    l.run(400 * us);
    EXPECT_NEAR(static_cast<double>(w.rate_kbps(0, marked, l.stopped - 60 * us, l.stopped)), 20e6, 1e6) << "fair share";
    const auto cnps = w.cnps();
    ASSERT_EQ(cnps.size(), 1U);
    EXPECT_EQ(cnps[0].packet.bth.dest_qp, first.a.qp->qp_num);
    const sim::time_ps t = cnps[0].at;
    EXPECT_LE(w.rate_kbps(0, marked, t + 20 * us, t + 54 * us), 20'200'000U) << "half of the line";
    w.left = ~0ull;
    l.run(500 * us);
    const sim::time_ps end = l.stopped;
    EXPECT_LT(w.rate_kbps(0, marked, end - 100 * us, end - 50 * us), 3'000'000U);
    EXPECT_GT(w.rate_kbps(0, other, end - 100 * us, end - 50 * us), 36'000'000U);
  });
}

TEST(Reaction, LostCnpsAreHarmless) {
  hosts::two_nodes system(congested_system());
  watch w(system);
  w.lose_cnps = true;
  run(system, [&] {
    const link l = make_link(system, small_packets());
    w.left = ~0ull;
    load({l}).run(500 * us);
    EXPECT_GT(counted(system, "np_cnp_sent"), 5U);
    EXPECT_EQ(counted(system, "rp_cnp_handled"), 0U);
    const sim::time_ps end = w.all.back().at;
    EXPECT_GT(w.rate_kbps(0, l.b.qp->qp_num, end - 200 * us, end - 50 * us), 39'000'000U);
    w.left = 0;
    expect_works(l);
  });
}

/// Timers run while a flow has nothing to send.
TEST(Reaction, RecoversWhileIdle) {
  hosts::two_nodes system(congested_system());
  watch w(system);
  run(system, [&] {
    const link l = make_link(system, small_packets());
    load flow({l});
    w.left = ~0ull;
    flow.run(800 * us);
    w.left = 0;
    const sim::time_ps low = flow.stopped;
    EXPECT_LT(w.rate_kbps(0, l.b.qp->qp_num, low - 100 * us, low), 3'000'000U);
    l.a.at.bus->spend_ps(60 * ms);  // 1000 steps of 40 Mb/s in 55 us each
    w.all.clear();
    flow.run(100 * us);
    const sim::time_ps start = w.all.front().at;
    EXPECT_GT(w.rate_kbps(0, l.b.qp->qp_num, start + 10 * us, start + 90 * us), 39'000'000U);
  });
}

/// Losses and marks together: nothing is lost, and what is sent again is paced as well.
TEST(Reaction, RetransmissionsArePaced) {
  hosts::two_nodes_config c = congested_system();
  c.faults = fabric::parse_fault_plan(R"(
seed = 5
[rates]
drop = 1.0
mark_congestion = 20.0
)",
                                      "plan");
  hosts::two_nodes system(c);
  watch w(system);
  run(system, [&] {
    connection_options o = small_packets();
    o.ack_timeout = 6;
    const link l = make_link(system, o);
    load flow({l});
    flow.run(3 * ms);
    EXPECT_GT(counted(system, "requester.retransmissions"), 3U);
    EXPECT_GT(counted(system, "rp_cnp_handled"), 20U);
    EXPECT_LT(w.rate_kbps(0, l.b.qp->qp_num, flow.stopped - 1 * ms, flow.stopped), 5'000'000U);
    expect_works(l);
  });
}

/// Builds a CNP byte by byte and lets it come out of the cable at host a.
class forger {
 public:
  explicit forger(hosts::two_nodes& system) : system_(system) {}
  wire::packet to(const link& l, std::uint32_t qpn) const {
    wire::packet p;
    p.dmac = l.a.at.mac;
    p.smac = l.b.at.mac;
    p.sgid = l.b.at.gid;
    p.dgid = l.a.at.gid;
    p.traffic_class = 0xc2;
    p.bth.opcode = wire::opcode_cnp;
    p.bth.becn = true;
    p.bth.dest_qp = qpn;
    return p;
  }
  void send(wire::packet p, bool good_icrc = true) {
    payload::frame_ptr f = pool_.get();
    p.payload_length = 16;
    std::uint8_t* payload = f->buffer.data() + payload::frame::payload_start;
    std::fill_n(payload, 16, std::uint8_t{0});
    f->begin = static_cast<std::uint32_t>(wire::build(p, payload) - f->buffer.data());
    f->length = p.icrc_offset + 4;
    std::uint32_t crc = wire::icrc(p.encap, f->data() + p.l3_offset, p.icrc_offset - p.l3_offset);
    if (!good_icrc) crc ^= 1;
    for (unsigned i = 0; i < 4; ++i) f->data()[p.icrc_offset + i] = static_cast<std::uint8_t>(crc >> (8 * i));
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    f->stamp = system_.now_ps();
    system_.node_a().nic().port(0).deliver(std::move(f), system_.now_ps() + us);
  }

 private:
  hosts::two_nodes& system_;
  payload::frame_pool pool_;
};

/// Only the peer of a queue pair can slow it down, and nobody can do worse.
TEST(Reaction, ForgedCnps) {
  hosts::two_nodes system(congested_system());
  watch w(system);
  forger forge(system);
  run(system, [&] {
    connection_options o = small_packets();
    const link l = make_link(system, o), raw = make_sibling(l, o);
    host_driver::queue_pair* unconnected =
        hosts::make_qp(const_cast<hosts::endpoint&>(l.a.at), o, *l.a.send_cq, *l.a.receive_cq);
    const std::uint32_t own = l.a.qp->qp_num;
    std::uint64_t ignored = 0;
    const auto expect_ignored = [&](const wire::packet& p, const char* what) {
      forge.send(p);
      l.a.at.bus->spend_ps(20 * us);
      EXPECT_EQ(counted(system, "rp_cnp_ignored"), ++ignored) << what;
      EXPECT_EQ(counted(system, "rp_cnp_handled"), 0U) << what;
    };
    for (const std::uint32_t qpn : {0U, 1U, own + 100, 0xfffffeU, 0xffffffU, 0x40000U + own})
      expect_ignored(forge.to(l, qpn), "no such queue pair");
    expect_ignored(forge.to(l, unconnected->qp_num), "a queue pair in INIT");
    wire::packet p = forge.to(l, own);
    p.sgid[15] ^= 7;
    expect_ignored(p, "from another address");
    forge.send(forge.to(l, own), false);
    l.a.at.bus->spend_ps(20 * us);
    EXPECT_EQ(counted(system, "rp_cnp_ignored"), ignored);
    EXPECT_EQ(counted(system, "rp_cnp_handled"), 0U) << "a wrong ICRC";
    w.all.clear();
    load({l}).run(100 * us);
    const sim::time_ps end = w.all.back().at;
    EXPECT_GT(w.rate_kbps(0, l.b.qp->qp_num, end - 60 * us, end - 10 * us), 39'000'000U) << "none had an effect";
    forge.send(forge.to(l, own));
    l.a.at.bus->spend_ps(20 * us);
    EXPECT_EQ(counted(system, "rp_cnp_handled"), 1U) << "the right one is good";
    expect_works(l);
    expect_works(raw);
  });
}

/// A storm of CNPs takes a flow to its least rate, where it still works, and no other flow anywhere.
TEST(Reaction, StormOfCnps) {
  hosts::two_nodes_config c = congested_system();
  c.node.adapter.congestion.reaction.min_rate_mbps = 500;
  hosts::two_nodes system(c);
  watch w(system);
  forger forge(system);
  run(system, [&] {
    const link l = make_link(system, small_packets()), other = make_sibling(l, small_packets());
    const hosts::buffer near = make_buffer(l.a.at, message), far = make_buffer(l.b.at, message);
    for (unsigned i = 0; i < 300; ++i) {
      forge.send(forge.to(l, l.a.qp->qp_num));
      l.a.at.bus->spend_ps(1 * us);
    }
    w.all.clear();
    const sim::time_ps start = l.a.at.bus->now_ps();
    post_write(l.a, near, far, 32'768);
    ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    const std::uint64_t rate = w.rate_kbps(0, l.b.qp->qp_num, start, start + 50 * us);
    expect_rate(rate, 500'000, 3, "least rate");  // three packets of 18 us, each up to 0.5 us late
    w.all.clear();
    load({other}).run(100 * us);
    const sim::time_ps end = w.all.back().at;
    EXPECT_GT(w.rate_kbps(0, other.b.qp->qp_num, end - 60 * us, end - 10 * us), 39'000'000U);
  });
}

TEST(ReactionPoint, HyperIncreaseBehindBothThresholds) {
  transport::reaction_config c;
  c.threshold = 1;
  c.byte_counter = 1000;
  c.additive_mbps = 0;
  c.hyper_mbps = 10'000;
  transport::reaction_point p;
  sim::time_ps t = 1 * ms;
  p.notified(c, line_kbps, t);
  p.notified(c, line_kbps, t += 40 * us);
  t += 55 * us;
  static_cast<void>(p.rate_kbps(c, t));  // its timer has come that far
  for (unsigned i = 0; i < 30; ++i) p.sent(c, 1000, t);
  EXPECT_LE(p.rate_kbps(c, t), 20'000'000u);
}

TEST(ReactionPoint, ACnpBeginsTheStagesOfBytesAnew) {
  transport::reaction_config c;
  c.threshold = 1;
  c.byte_counter = 1000;
  c.additive_mbps = 10'000;
  c.hyper_mbps = 0;
  transport::reaction_point p;
  sim::time_ps t = 1 * ms;
  p.notified(c, line_kbps, t);
  for (unsigned i = 0; i < 3; ++i) p.sent(c, 1000, t);
  p.notified(c, line_kbps, t += 10 * us);
  const auto low = p.rate_kbps(c, t);
  p.sent(c, 1000, t);
  // Fast recovery: half the way to what it was.
  EXPECT_EQ(p.rate_kbps(c, t), (37'500'000u + low + 1) / 2);
}

}  // namespace
}  // namespace rnic::system_test
