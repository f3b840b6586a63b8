// SPDX-License-Identifier: Apache-2.0
// Rates that software sets: kept on the wire, without cost for others and without work while nothing may be sent.
#include <gtest/gtest.h>

#include <cstring>

#include "model/transport/congestion/rates.h"
#include "testbenches/system/congestion/watch.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;
using hosts::make_buffer;

/// The verbs' own table (enum ibv_rate and its Mb/s).
TEST(StaticRate, CodesOfTheVerbs) {
  const std::pair<ibv_rate, unsigned> rates[] = {
      {IBV_RATE_2_5_GBPS, 2500},   {IBV_RATE_5_GBPS, 5000},   {IBV_RATE_10_GBPS, 10000},   {IBV_RATE_20_GBPS, 20000},
      {IBV_RATE_30_GBPS, 30000},   {IBV_RATE_40_GBPS, 40000}, {IBV_RATE_60_GBPS, 60000},   {IBV_RATE_80_GBPS, 80000},
      {IBV_RATE_120_GBPS, 120000}, {IBV_RATE_14_GBPS, 14062}, {IBV_RATE_56_GBPS, 56250},   {IBV_RATE_112_GBPS, 112500},
      {IBV_RATE_168_GBPS, 168750}, {IBV_RATE_25_GBPS, 25781}, {IBV_RATE_100_GBPS, 103125}, {IBV_RATE_200_GBPS, 206250},
      {IBV_RATE_300_GBPS, 309375}, {IBV_RATE_28_GBPS, 28125}, {IBV_RATE_50_GBPS, 53125},   {IBV_RATE_400_GBPS, 425000},
      {IBV_RATE_600_GBPS, 637500}};
  for (const auto& [code, mbps] : rates)
    EXPECT_EQ(transport::static_rate_kbps(static_cast<std::uint8_t>(code + 5)), mbps * 1000) << code;
  for (const unsigned code : {0U, 1U, 5U, 6U, 28U, 255U})
    EXPECT_EQ(transport::static_rate_kbps(static_cast<std::uint8_t>(code)), 0U) << code;
}

TEST(QpRate, UnitsOfTheContext) {
  EXPECT_EQ(transport::qp_rate_kbps(0x0fff), 0U);
  EXPECT_EQ(transport::qp_rate_kbps(1 << 14 | 4095), 4095U);
  EXPECT_EQ(transport::qp_rate_kbps(2 << 14 | 700), 700'000U);
  EXPECT_EQ(transport::qp_rate_kbps(static_cast<std::uint16_t>(3 << 14 | 4095)), 4'095'000'000U);
  EXPECT_EQ(transport::lower_rate(0, 5), 5U);
  EXPECT_EQ(transport::lower_rate(7, 0), 7U);
  EXPECT_EQ(transport::lower_rate(7, 5), 5U);
}

struct paced {
  ibv_rate code;
  std::uint64_t kbps;
};

/// 200 KB at each rate: mean rate, and no packet before its time.
TEST(StaticRate, OnTheWire) {
  hosts::two_nodes system(default_system());
  watch w(system);
  run(system, [&] {
    unsigned host = 1;
    for (const paced& r : {paced{IBV_RATE_2_5_GBPS, 2'500'000}, paced{IBV_RATE_5_GBPS, 5'000'000},
                           paced{IBV_RATE_10_GBPS, 10'000'000}, paced{IBV_RATE_20_GBPS, 20'000'000},
                           paced{IBV_RATE_30_GBPS, 30'000'000}, paced{IBV_RATE_40_GBPS, 40'000'000}}) {
      connection_options o;
      o.mtu = 1024;
      o.static_rate = r.code;
      const link l = make_link(system, o, host);
      host += 2;
      const hosts::buffer near = make_buffer(l.a.at, 200'000), far = make_buffer(l.b.at, 200'000);
      std::mt19937_64 random(host);
      fill_random(near.at(), 200'000, random);
      for (unsigned warm = 2; warm-- != 0;) {  // the first time fills the translation cache
        w.all.clear();
        post_write(l.a, near, far, 200'000);
        ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      }
      EXPECT_EQ(std::memcmp(near.at(), far.at(), 200'000), 0);
      const double got = static_cast<double>(w.rate_kbps(0, l.b.qp->qp_num, 0, ~0ull));
      EXPECT_NEAR(got, static_cast<double>(r.kbps), static_cast<double>(r.kbps) * 0.005);
      // What a packet waits for its payload may differ by half a microsecond between two of them.
      sim::time_ps start = 0;
      std::uint64_t bits = 0;
      for (const seen_packet& s : w.all) {
        if (s.from != 0) continue;
        if (start == 0) start = s.at;
        EXPECT_GE(s.at + us / 2, start + bits * 1'000'000'000 / r.kbps);
        bits += s.line_bytes * 8;
      }
    }
  });
}

/// A queue pair at 2.5 Gb/s beside one without limit: the line is full.
TEST(StaticRate, OthersGoOn) {
  hosts::two_nodes system(default_system());
  watch w(system);
  run(system, [&] {
    connection_options o;
    o.mtu = 1024;
    const link fast = make_link(system, o);
    o.static_rate = IBV_RATE_2_5_GBPS;
    std::vector<link> slow;
    for (unsigned i = 0; i < 10; ++i) slow.push_back(make_sibling(fast, o, 50 * i));  // more than processing units
    const hosts::buffer near = make_buffer(fast.a.at, 1'000'000), far = make_buffer(fast.b.at, 1'000'000);
    for (const link& l : slow) post_write(l.a, near, far, 30'000);
    post_write(fast.a, near, far, 1'000'000);
    for (unsigned i = 0; i < 11; ++i) ASSERT_EQ(fast.a.wait_send().status, IBV_WC_SUCCESS);
    const sim::time_ps start = w.all.front().at;
    for (const link& l : slow)
      EXPECT_NEAR(static_cast<double>(w.rate_kbps(0, l.b.qp->qp_num, start, ~0ull)), 2.5e6, 0.1e6);
    EXPECT_GT(w.rate_kbps(0, fast.b.qp->qp_num, start + 20 * us, start + 80 * us), 13'000'000U);
    EXPECT_GT(w.rate_kbps(0, fast.b.qp->qp_num, start + 120 * us, start + 180 * us), 37'000'000U);
  });
}

/// Responses obey the rate of the responder's path.
TEST(StaticRate, ReadResponses) {
  hosts::two_nodes system(default_system());
  watch w(system);
  run(system, [&] {
    connection_options o;
    o.mtu = 1024;
    o.static_rate = IBV_RATE_5_GBPS;
    const link l = make_link(system, o);
    const hosts::buffer near = make_buffer(l.a.at, 200'000), far = make_buffer(l.b.at, 200'000);
    request r;
    r.opcode = IBV_WR_RDMA_READ;
    r.sges = {{near.address(), 200'000, near.region->lkey}};
    r.remote = far.address();
    r.rkey = far.region->rkey;
    post(l.a, r);
    ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_NEAR(static_cast<double>(w.rate_kbps(1, l.a.qp->qp_num, 0, ~0ull)), 5e6, 0.02e6);
    expect_works(l);
  });
}

/// While a queue pair waits for its time, nothing happens: 488 packets of 6.8 us, 2900 cycles each.
TEST(StaticRate, WaitingCostsNoTicks) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options o;
    const link fast = make_link(system, o);
    o.static_rate = IBV_RATE_2_5_GBPS;
    const link slow = make_sibling(fast, o);
    const hosts::buffer near = make_buffer(fast.a.at, 1'000'000), far = make_buffer(fast.b.at, 1'000'000);
    const auto ticks = [&](const link& l) {
      const std::uint64_t before = system.node_a().nic().clock().ticks();
      post_write(l.a, near, far, 1'000'000);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      return system.node_a().nic().clock().ticks() - before;
    };
    ticks(fast);
    const std::uint64_t without = ticks(fast), with = ticks(slow);
    EXPECT_LT(with, without + 488 * 60);
  });
}

/// A queue pair that waits is stopped, put into the error state, and used again like any other.
TEST(StaticRate, StoppedWhileItWaits) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options o;
    o.static_rate = IBV_RATE_2_5_GBPS;
    o.mtu = 4096;
    const link l = make_link(system, o);
    const hosts::buffer near = make_buffer(l.a.at, 1'000'000), far = make_buffer(l.b.at, 1'000'000);
    for (unsigned i = 0; i < 3; ++i) post_write(l.a, near, far, 500'000, i);
    l.a.at.bus->spend_ps(100 * us);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    hosts::require(l.a.dev().modify_qp(l.a.qp, &attr, IBV_QP_STATE), "modify_qp to ERR");
    for (unsigned i = 0; i < 3; ++i) {
      const ibv_wc wc = l.a.wait_send();
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(wc.wr_id, i);
    }
    o.static_rate = IBV_RATE_MAX;
    const link next = make_sibling(l, o);
    expect_works(next);
  });
}

}  // namespace
}  // namespace rnic::system_test
