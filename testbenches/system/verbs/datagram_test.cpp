// SPDX-License-Identifier: Apache-2.0
// Datagrams: address handles, the GRH in front, multicast groups; and packets that come back inside the adapter.
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using host_driver::roce_types;
using hosts::connection_options;

constexpr std::uint32_t qkey = 0x11112222, place = 4096;

/// A datagram queue pair with its completions and a buffer.
struct talker {
  side s;
  hosts::buffer memory;

  talker(const side& like, std::uint32_t key = qkey) : s(like) {
    s.send_cq = s.dev().create_cq(256);
    s.receive_cq = s.dev().create_cq(256);
    s.qp = make_datagram_qp(s, key, 32, 2, 5);
    memory = hosts::make_buffer(s.at, place * 32);
  }
  void expect(unsigned count, std::uint32_t bytes = place) const {
    for (unsigned i = 0; i < count; ++i) {
      ibv_sge sge{memory.address(i * place), bytes, memory.region->lkey};
      ibv_recv_wr wr{}, *bad = nullptr;
      wr.wr_id = i;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      hosts::require(s.dev().post_recv(s.qp, &wr, &bad), "post_recv");
    }
  }
  host_driver::address_handle* handle(const ibv_gid& to, const host_driver::mac_address* mac,
                                      unsigned traffic_class = 0x28) const {
    ibv_ah_attr a{};
    a.is_global = 1;
    a.grh.dgid = to;
    a.grh.sgid_index = static_cast<std::uint8_t>(s.at.gid_index);
    a.grh.hop_limit = 9;
    a.grh.traffic_class = static_cast<std::uint8_t>(traffic_class);
    a.grh.flow_label = 0x54321;
    a.port_num = 1;
    host_driver::address_handle* h = s.dev().create_ah(s.at.pd, &a, mac);
    EXPECT_NE(h, nullptr);
    return h;
  }
  void send(ibv_ah* to, std::uint32_t qpn, std::uint32_t bytes, std::uint32_t key = qkey,
            std::uint32_t immediate = 0) const {
    ibv_sge sge{memory.address(31 * place), bytes, memory.region->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.sg_list = &sge;
    wr.num_sge = bytes != 0 ? 1 : 0;
    wr.opcode = immediate != 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    wr.imm_data = __builtin_bswap32(immediate);
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = to;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = key;
    hosts::require(s.dev().post_send(s.qp, &wr, &bad), "post_send");
    EXPECT_EQ(s.wait_send().status, IBV_WC_SUCCESS);
  }
  std::uint8_t* out() const { return memory.at(31 * place); }
  bool quiet() const {
    s.at.bus->spend_ps(20 * us);
    return s.silent();
  }
};

ibv_gid to_gid(const host_driver::gid_bytes& g) {
  ibv_gid out{};
  std::memcpy(out.raw, g.data(), 16);
  return out;
}

/// What lies in front of the payload (adapter data plane A.9.2). `ib`: bytes from BTH to ICRC.
void check_grh(const std::uint8_t* area, roce_types roce, unsigned ip, const side& from, const ibv_gid& to,
               std::uint32_t ib) {
  if (roce == roce_types::v2 && ip == 4) {
    for (unsigned i = 0; i < 20; ++i) ASSERT_EQ(area[i], 0);
    const std::uint8_t* h = area + 20;
    EXPECT_EQ(h[0], 0x45);
    EXPECT_EQ(h[1], 0x28);
    EXPECT_EQ(h[2] << 8 | h[3], static_cast<int>(20 + 8 + ib));
    EXPECT_EQ(h[8], 9);
    EXPECT_EQ(h[9], 17);
    unsigned sum = 0;
    for (unsigned i = 0; i < 20; i += 2) sum += static_cast<unsigned>(h[i] << 8 | h[i + 1]);
    EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffU);
    EXPECT_EQ(std::memcmp(h + 12, from.at.gid.data() + 12, 4), 0);
    EXPECT_EQ(std::memcmp(h + 16, to.raw + 12, 4), 0);
    return;
  }
  EXPECT_EQ(area[0], 0x62);
  EXPECT_EQ(area[1], 0x85);
  EXPECT_EQ(area[2] << 8 | area[3], 0x4321);
  EXPECT_EQ(area[4] << 8 | area[5], static_cast<int>(roce == roce_types::v1 ? ib : ib + 8));
  EXPECT_EQ(area[6], roce == roce_types::v1 ? 0x1b : 17);
  EXPECT_EQ(area[7], 9);
  EXPECT_EQ(std::memcmp(area + 8, from.at.gid.data(), 16), 0);
  EXPECT_EQ(std::memcmp(area + 24, to.raw, 16), 0);
}

void received(const talker& t, std::uint64_t id, const talker& from, roce_types roce, unsigned ip, const ibv_gid& to,
              std::uint32_t bytes, std::uint32_t immediate = 0) {
  const ibv_wc wc = t.s.wait_receive(ms);
  ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, id);
  EXPECT_EQ(wc.byte_len, bytes + grh_bytes);
  EXPECT_EQ(wc.src_qp, from.s.qp->qp_num);
  EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0U);
  if (immediate != 0) {
    EXPECT_EQ(__builtin_bswap32(wc.imm_data), immediate);
  }
  EXPECT_EQ(std::memcmp(t.memory.at(id * place + grh_bytes), from.out(), bytes), 0);
  const std::uint32_t ib = 12 + 8 + (immediate != 0 ? 4 : 0) + (bytes + 3) / 4 * 4 + 4;
  check_grh(t.memory.at(id * place), roce, ip, from.s, to, ib);
}

TEST(Datagrams, CarryTheirHeaderAndBytes) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    unsigned hosts = 1;
    for (const encapsulation_case& e : encapsulations) {
      connection_options options;
      options.roce = e.roce;
      options.ip = e.ip;
      const link l = make_link(system, options, std::exchange(hosts, hosts + 10));
      talker a(l.a), b(l.b);
      std::mt19937_64 random(2);
      fill_random(a.out(), place, random);
      const ibv_gid to = to_gid(b.s.at.gid);
      host_driver::address_handle* ah = a.handle(to, &b.s.at.mac);
      const std::uint32_t sizes[] = {0, 1, 63, 500, 2047, 4096 - grh_bytes};
      b.expect(6);
      for (unsigned i = 0; i < 6; ++i) {
        a.send(ah, b.s.qp->qp_num, sizes[i], qkey, i % 2);
        received(b, i, a, e.roce, e.ip, to, sizes[i], i % 2);
      }
      // Wrong key, no such queue pair, no receive: dropped, and nobody is told.
      b.expect(1);
      a.send(ah, b.s.qp->qp_num, 10, qkey + 1);
      a.send(ah, b.s.qp->qp_num ^ 0x8000, 10);
      EXPECT_TRUE(b.quiet());
      a.send(ah, b.s.qp->qp_num, 10);
      received(b, 0, a, e.roce, e.ip, to, 10);
      a.send(ah, b.s.qp->qp_num, 10);
      EXPECT_TRUE(b.quiet());
      EXPECT_EQ(a.s.dev().destroy_ah(ah), 0);
      EXPECT_EQ(a.s.dev().destroy_ah(ah), -EINVAL);
    }
  });
}

/// By groups, or by rules of the device.
class MulticastBy : public testing::TestWithParam<host_driver::config::steering_mode> {
 protected:
  static hosts::two_nodes_config steered() {
    hosts::two_nodes_config c = default_system();
    c.node.driver.steering = GetParam();
    return c;
  }
};
INSTANTIATE_TEST_SUITE_P(modes, MulticastBy,
                         testing::Values(host_driver::config::steering_mode::b0,
                                         host_driver::config::steering_mode::device_managed));

TEST_P(MulticastBy, EachMemberHasItsCopy) {
  hosts::two_nodes system(steered());
  run(system, [&] {
    unsigned hosts = 1;
    for (const encapsulation_case& e : encapsulations) {
      connection_options options;
      options.roce = e.roce;
      options.ip = e.ip;
      const link l = make_link(system, options, std::exchange(hosts, hosts + 10));
      talker sender(l.a), neighbour(l.a), b1(l.b), b2(l.b), b3(l.b), stranger(l.b, qkey + 5), absent(l.b);
      host_driver::gid_bytes group{};
      host_driver::mac_address mac{};
      if (e.roce == roce_types::v2 && e.ip == 4) {  // 239.1.2.3
        group = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
        mac = {0x01, 0x00, 0x5e, 1, 2, 3};
      } else {
        group = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
        mac = {0x33, 0x33, 239, 1, 2, 3};
      }
      const ibv_gid to = to_gid(group);
      std::mt19937_64 random(7);
      fill_random(sender.out(), place, random);
      host_driver::address_handle* ah = sender.handle(to, &mac);
      const auto attach = [&](const talker& t, bool block = false) {
        ASSERT_EQ(t.s.dev().attach_mcast(t.s.qp, &to, block), 0);
      };
      for (const talker* t : {&b1, &b2, &b3, &stranger}) attach(*t);
      attach(b1);  // twice is once
      attach(neighbour);
      attach(sender, true);
      for (const talker* t : {&sender, &neighbour, &b1, &b2, &b3, &stranger, &absent}) t->expect(4);
      for (unsigned n = 0; n < 3; ++n) {
        sender.send(ah, 0xffffff, 100 + 900 * n, qkey, 7);
        for (const talker* t : {&neighbour, &b1, &b2, &b3}) received(*t, n, sender, e.roce, e.ip, to, 100 + 900 * n, 7);
      }
      EXPECT_TRUE(stranger.quiet()) << "another Q_Key";
      EXPECT_TRUE(sender.quiet()) << "its own datagrams, which it does not want";
      EXPECT_TRUE(absent.quiet()) << "never attached";
      ASSERT_EQ(b2.s.dev().detach_mcast(b2.s.qp, &to), 0);
      EXPECT_EQ(b2.s.dev().detach_mcast(b2.s.qp, &to), -EINVAL);
      sender.send(ah, 0xffffff, 33);
      for (const talker* t : {&neighbour, &b1, &b3}) received(*t, 3, sender, e.roce, e.ip, to, 33);
      EXPECT_TRUE(b2.quiet()) << "detached";
      for (const talker* t : {&b1, &b3, &stranger, &neighbour, &sender})
        ASSERT_EQ(t->s.dev().detach_mcast(t->s.qp, &to), 0);
      b1.expect(1);
      sender.send(ah, 0xffffff, 33);
      EXPECT_TRUE(b1.quiet()) << "the group has no members";
      // A datagram to the group's number but to a host's own address is not for the group.
      host_driver::address_handle* direct = sender.handle(to_gid(b1.s.at.gid), &b1.s.at.mac);
      attach(b1);
      sender.send(direct, 0xffffff, 33);
      EXPECT_TRUE(b1.quiet());
      ASSERT_EQ(b1.s.dev().detach_mcast(b1.s.qp, &to), 0);
    }
  });
  EXPECT_GT(counted(system, "drop.no_group"), 0U);
}

/// More groups than buckets: entries in chains, taken out from their heads and middles.
TEST_P(MulticastBy, GroupsInChains) {
  hosts::two_nodes system(steered());
  run(system, [&] {
    connection_options options;
    options.ip = 6;
    const link l = make_link(system, options);
    talker a(l.a), b(l.b);
    constexpr unsigned groups = 200;  // of 128 buckets
    std::vector<ibv_gid> gids;
    for (unsigned i = 0; i < groups; ++i) {
      gids.push_back(to_gid({0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, static_cast<std::uint8_t>(i >> 8),
                             static_cast<std::uint8_t>(i)}));
      ASSERT_EQ(b.s.dev().attach_mcast(b.s.qp, &gids.back(), false), 0) << i;
    }
    const auto reaches = [&](unsigned i) {
      const host_driver::mac_address mac{
          0x33, 0x33, 1, 2, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)};
      host_driver::address_handle* ah = a.handle(gids[i], &mac);
      a.send(ah, 0xffffff, 8);
      ibv_wc wc{};
      const bool came = b.s.dev().wait_cq(b.s.receive_cq, 1, &wc, 20 * us) == 1;
      if (came) b.expect(1);
      a.s.dev().destroy_ah(ah);
      return came;
    };
    b.expect(8);
    for (unsigned i = 0; i < groups; ++i) ASSERT_TRUE(reaches(i)) << i;
    for (unsigned i = 0; i < groups; i += 2) ASSERT_EQ(b.s.dev().detach_mcast(b.s.qp, &gids[i]), 0) << i;
    for (unsigned i = 0; i < groups; ++i) ASSERT_EQ(reaches(i), i % 2 != 0) << i;
    for (unsigned i = 1; i < groups; i += 2) ASSERT_EQ(b.s.dev().detach_mcast(b.s.qp, &gids[i]), 0) << i;
    for (unsigned i = 0; i < groups; i += 17) ASSERT_FALSE(reaches(i)) << i;
  });
}

/// Two queue pairs of one port, and one with itself: all verbs, no frame on the cable.
TEST(Loopback, QueuePairsOfOnePort) {
  class listener : public fabric::cable_fault_if {
   public:
    fate on_frame(unsigned, payload::frame&) override { return ++frames, fate::pass; }
    unsigned frames = 0;
  };
  hosts::two_nodes system(default_system());
  listener cable;
  system.cable().set_fault(&cable);
  run(system, [&] {
    for (const encapsulation_case& e : encapsulations) {
      connection_options options;
      options.roce = e.roce;
      options.ip = e.ip;
      options.mtu = 1024;
      const link l = make_link(system, options, 50 + 10 * static_cast<unsigned>(&e - encapsulations));
      for (const bool itself : {false, true}) {
        side near = l.a, far = l.a;
        near.qp = hosts::make_qp(near.at, options, *near.send_cq, *near.receive_cq);
        far.qp = itself ? near.qp : hosts::make_qp(far.at, options, *far.send_cq, *far.receive_cq);
        hosts::connect(near.at, options, *near.qp, far.at, far.qp->qp_num, 10, itself ? 10 : 20);
        if (!itself) hosts::connect(far.at, options, *far.qp, near.at, near.qp->qp_num, 20, 10);
        hosts::buffer from = hosts::make_buffer(near.at, 8192), to = hosts::make_buffer(far.at, 8192);
        std::mt19937_64 random(3);
        const unsigned before = cable.frames;
        for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
          fill_random(from.at(), 8192, random);
          fill_random(to.at(), 8192, random);
          request r;
          r.opcode = opcode;
          r.sges.push_back({from.address(), 5000, from.region->lkey});
          r.remote = to.address();
          r.rkey = to.region->rkey;
          if (opcode == IBV_WR_SEND) post_receive(far, {{to.address(), 8192, to.region->lkey}});
          post(near, r);
          EXPECT_EQ(near.wait_send().status, IBV_WC_SUCCESS);
          if (opcode == IBV_WR_SEND) {
            EXPECT_EQ(far.wait_receive().status, IBV_WC_SUCCESS);
          }
          EXPECT_EQ(std::memcmp(from.at(), to.at(), 5000), 0);
        }
        EXPECT_EQ(cable.frames, before);
        if (itself) continue;  // its responder's error would end its requester first
        request bad;
        bad.sges.push_back({from.address(), 8, from.region->lkey});
        bad.remote = to.address();
        bad.rkey = to.region->rkey ^ 1;
        post(near, bad);
        EXPECT_EQ(near.wait_send().status, IBV_WC_REM_ACCESS_ERR);
        EXPECT_EQ(cable.frames, before);
      }
    }
  });
  EXPECT_GT(counted(system, "responder.reads"), 0U);
}

}  // namespace
}  // namespace rnic::system_test
