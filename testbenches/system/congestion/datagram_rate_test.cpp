// SPDX-License-Identifier: Apache-2.0
// Datagrams: rates of address handles, and congestion of a queue pair without a connection.
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/system/congestion/watch.h"

namespace rnic::system_test {
namespace {

constexpr std::uint32_t qkey = 0x11223344, bytes = 1000;

/// A UD queue pair on one side of a link.
struct talker {
  side s;
  hosts::buffer memory;

  explicit talker(const side& base) : s(base) {
    s.qp = make_datagram_qp(s, qkey, 256, 1);
    memory = hosts::make_buffer(s.at, 4096);
  }
  ibv_ah* handle(const side& to, ibv_rate rate) const {
    ibv_ah_attr a{};
    a.is_global = 1;
    std::memcpy(a.grh.dgid.raw, to.at.gid.data(), 16);
    a.grh.sgid_index = static_cast<std::uint8_t>(s.at.gid_index);
    a.grh.hop_limit = 9;
    a.static_rate = static_cast<std::uint8_t>(rate);
    a.port_num = 1;
    ibv_ah* h = s.dev().create_ah(s.at.pd, &a, &to.at.mac);
    EXPECT_NE(h, nullptr);
    return h;
  }
  void post(ibv_ah* to, std::uint32_t qpn, unsigned count) const {
    for (unsigned i = 0; i < count; ++i) {
      ibv_sge sge{memory.address(), bytes, memory.region->lkey};
      ibv_send_wr wr{}, *bad = nullptr;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.wr.ud.ah = to;
      wr.wr.ud.remote_qpn = qpn;
      wr.wr.ud.remote_qkey = qkey;
      hosts::require(s.dev().post_send(s.qp, &wr, &bad), "post_send");
    }
  }
  void wait(unsigned count) const {
    for (unsigned i = 0; i < count; ++i) ASSERT_EQ(s.wait_send().status, IBV_WC_SUCCESS);
  }
};

TEST(DatagramRate, IsThatOfTheAddressHandle) {
  hosts::two_nodes system(default_system());
  watch w(system);
  run(system, [&] {
    const link l = make_link(system, {});
    const talker a(l.a), b(l.b);
    for (const auto& [code, kbps] :
         {std::pair<ibv_rate, double>{IBV_RATE_2_5_GBPS, 2.5e6}, {IBV_RATE_5_GBPS, 5e6}, {IBV_RATE_10_GBPS, 10e6}}) {
      w.all.clear();
      a.post(a.handle(l.b, code), b.s.qp->qp_num, 60);
      a.wait(60);
      EXPECT_NEAR(static_cast<double>(w.rate_kbps(0, b.s.qp->qp_num, 0, ~0ull)), kbps, kbps * 0.02);
    }
    // Without a rate again, and by turns: a packet of the slow one keeps its distance to what follows it.
    w.all.clear();
    ibv_ah* slow = a.handle(l.b, IBV_RATE_2_5_GBPS);
    ibv_ah* fast = a.handle(l.b, IBV_RATE_MAX);
    a.post(fast, b.s.qp->qp_num, 20);
    a.wait(20);
    EXPECT_GT(w.rate_kbps(0, b.s.qp->qp_num, 0, ~0ull), 15'000'000U);
    w.all.clear();
    for (unsigned i = 0; i < 20; ++i) {
      a.post(slow, b.s.qp->qp_num, 1);
      a.post(fast, b.s.qp->qp_num, 1);
    }
    a.wait(40);
    EXPECT_NEAR(static_cast<double>(w.rate_kbps(0, b.s.qp->qp_num, 0, ~0ull)), 5e6, 0.5e6);
  });
}

TEST(DatagramRate, CongestionOfAQueuePair) {
  hosts::two_nodes system(congested_system());
  watch w(system);
  run(system, [&] {
    const link l = make_link(system, {});
    const talker a(l.a), b(l.b);
    for (unsigned i = 0; i < 200; ++i) post_receive(b.s, {{b.memory.address(), 2048, b.memory.region->lkey}});
    w.only_qpn = b.s.qp->qp_num;
    w.left = 1;
    ibv_ah* to = a.handle(l.b, IBV_RATE_MAX);
    a.post(to, b.s.qp->qp_num, 60);
    a.wait(60);
    const auto cnps = w.cnps();
    ASSERT_EQ(cnps.size(), 1U);
    EXPECT_EQ(cnps[0].from, 1U);
    EXPECT_EQ(cnps[0].packet.bth.dest_qp, a.s.qp->qp_num);
    EXPECT_EQ(counted(system, "rp_cnp_handled"), 1U);
    const sim::time_ps t = cnps[0].at;
    EXPECT_NEAR(static_cast<double>(w.rate_kbps(0, b.s.qp->qp_num, t + 3 * us, t + 40 * us)), 20e6, 0.6e6);
  });
}

}  // namespace
}  // namespace rnic::system_test
