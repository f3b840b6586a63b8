// SPDX-License-Identifier: Apache-2.0
// QP1: management datagrams between two hosts in both versions of RoCE, and what must not get in.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "testbenches/system/verbs/gsi.h"

namespace rnic::system_test {
namespace {

using host_driver::roce_types;
using hosts::connection_options;

constexpr std::uint32_t mad = 256, gsi_key = 0x80010000, mad_place = 4096, slots = 16;

/// QP1 of port 1 of a host, with receives.
struct manager {
  side s;
  hosts::buffer memory;

  explicit manager(const side& like) : s(like) {
    open_gsi(s, slots);
    memory = hosts::make_buffer(s.at, mad_place * slots);
  }
  void expect(unsigned count, std::uint32_t bytes = grh_bytes + mad) const {
    for (unsigned i = 0; i < count; ++i)
      post_receive(s, {{memory.address(i * mad_place), bytes, memory.region->lkey}}, i);
  }
  const std::uint8_t* data(std::uint64_t id) const { return memory.at() + id * mad_place + grh_bytes; }
  std::uint8_t* outgoing() const { return memory.at() + (slots - 1) * mad_place; }
  host_driver::address_handle* handle(const side& to) const {
    ibv_ah_attr a{};
    a.is_global = 1;
    std::copy(to.at.gid.begin(), to.at.gid.end(), a.grh.dgid.raw);
    a.grh.sgid_index = static_cast<std::uint8_t>(s.at.gid_index);
    a.grh.hop_limit = 7;
    a.grh.traffic_class = 0x20;
    a.port_num = 1;
    const host_driver::mac_address mac = to.dev().port(1).mac;
    host_driver::address_handle* h = s.dev().create_ah(s.at.pd, &a, &mac);
    EXPECT_NE(h, nullptr);
    return h;
  }
  int send(ibv_ah* to, std::uint32_t bytes = mad, std::uint32_t qpn = 1, std::uint32_t key = gsi_key) const {
    ibv_sge sge{memory.address((slots - 1) * mad_place), bytes, memory.region->lkey};
    ibv_send_wr wr = datagram_request(sge, to, qpn, key), *bad = nullptr;
    wr.wr_id = 77;
    return s.dev().post_send(s.qp, &wr, &bad);
  }
};

/// A datagram queue pair of an ordinary program that has come by QP1's Q_Key.
struct intruder {
  side s;
  hosts::buffer memory;
  explicit intruder(const side& like, std::uint32_t key) : s(like) {
    s.send_cq = s.dev().create_cq(64);
    s.receive_cq = s.dev().create_cq(64);
    s.qp = make_datagram_qp(s, key, 8, 1);
    memory = hosts::make_buffer(s.at, mad_place);
  }
  void send(ibv_ah* to, std::uint32_t qpn, std::uint32_t bytes, std::uint32_t key) const {
    ibv_sge sge{memory.address(0), bytes, memory.region->lkey};
    ibv_send_wr wr = datagram_request(sge, to, qpn, key), *bad = nullptr;
    hosts::require(s.dev().post_send(s.qp, &wr, &bad), "post_send");
    EXPECT_EQ(s.wait_send().status, IBV_WC_SUCCESS);
  }
};

connection_options addresses(roce_types type, unsigned ip, std::uint16_t vlan) {
  connection_options o;
  o.roce = type;
  o.ip = ip;
  o.vlan = vlan;
  return o;
}

void settle() { sc_core::wait(sc_core::sc_time(50, sc_core::SC_US)); }

TEST(special, datagrams_of_both_versions_and_address_kinds) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    std::mt19937_64 random(4711);
    unsigned hosts = 1;
    std::unique_ptr<manager> a, b;
    for (const auto type : {roce_types::v1, roce_types::v2})
      for (const unsigned ip : {4u, 6u})
        for (const std::uint16_t vlan : {host_driver::no_vlan, std::uint16_t{55}}) {
          const link l = make_link(system, addresses(type, ip, vlan), hosts++);
          if (!a) {
            a = std::make_unique<manager>(l.a);
            b = std::make_unique<manager>(l.b);
          }
          a->s.at = l.a.at;
          b->s.at = l.b.at;
          b->expect(1);
          fill_random(a->outgoing(), mad, random);
          ASSERT_EQ(a->send(a->handle(b->s)), 0);
          const ibv_wc sent = a->s.wait_send(), got = b->s.wait_receive();
          ASSERT_EQ(sent.status, IBV_WC_SUCCESS);
          EXPECT_EQ(sent.wr_id, 77u);
          ASSERT_EQ(got.status, IBV_WC_SUCCESS) << static_cast<int>(type) << " IPv" << ip << " VLAN " << vlan;
          EXPECT_EQ(got.byte_len, mad + grh_bytes);
          // What version 2 is sent with has a number of its own (adapter data plane A.9.3).
          EXPECT_EQ(got.src_qp, type == roce_types::v1 ? 1u : a->s.qp->roce_v2_sender->qp_num);
          EXPECT_EQ(std::memcmp(b->data(got.wr_id), a->outgoing(), mad), 0);
        }
  });
}

TEST(special, answers_reach_the_host_that_asked_and_itself) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    const manager a(l.a), b(l.b);
    a.expect(2);
    b.expect(1);
    ASSERT_EQ(b.send(b.handle(a.s)), 0);
    EXPECT_EQ(b.s.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a.s.wait_receive().status, IBV_WC_SUCCESS);
    ASSERT_EQ(a.send(a.handle(a.s)), 0);  // the own port's address comes back inside the adapter
    EXPECT_EQ(a.s.wait_receive().byte_len, mad + grh_bytes);
    EXPECT_TRUE(b.s.silent());
  });
}

TEST(special, foreign_keys_lengths_and_numbers_do_not_get_in) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    const manager target(l.b);
    target.expect(4);
    const intruder privileged(l.a, gsi_key), ordinary(l.a, 0x11111111);
    const manager a(l.a);
    ibv_ah* to = a.handle(target.s);
    const std::uint32_t real = target.s.qp->qp_num;
    ordinary.send(to, 1, mad, gsi_key);  // its own Q_Key goes out: bit 31 is for the privileged
    ordinary.send(to, 1, mad, 0x00010000);
    privileged.send(to, 1, mad - 4, gsi_key);
    privileged.send(to, 1, mad + 4, gsi_key);
    privileged.send(to, 1, 1024, gsi_key);
    privileged.send(to, real, mad, gsi_key);  // the number inside the adapter is not one of the wire
    privileged.send(to, real - 2, mad, gsi_key);
    privileged.send(to, real + 1, mad, gsi_key);
    privileged.send(to, target.s.qp->roce_v2_sender->qp_num, mad, gsi_key);  // only sends
    privileged.send(to, 0, mad, gsi_key);
    settle();
    EXPECT_TRUE(target.s.silent());
    EXPECT_EQ(counted(system, "drop.qkey"), 2u);
    EXPECT_EQ(counted(system, "drop.mad_length"), 3u);
    EXPECT_EQ(counted(system, "drop.no_qp"), 4u);
    EXPECT_EQ(counted(system, "drop.service"), 1u);
    privileged.send(to, 1, mad, gsi_key);
    EXPECT_EQ(target.s.wait_receive().status, IBV_WC_SUCCESS);
    EXPECT_EQ(target.s.state(), IBV_QPS_RTS);
  });
}

TEST(special, without_a_receive_a_datagram_is_dropped_and_the_next_arrives) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    const manager a(l.a), b(l.b);
    ibv_ah* to = a.handle(b.s);
    ASSERT_EQ(a.send(to), 0);
    EXPECT_EQ(a.s.wait_send().status, IBV_WC_SUCCESS);
    settle();
    b.expect(1);
    a.outgoing()[0] = 0x5a;
    ASSERT_EQ(a.send(to), 0);
    const ibv_wc wc = b.s.wait_receive();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(b.data(wc.wr_id)[0], 0x5a);
  });
}

TEST(special, what_is_no_roce_packet_is_not_sent) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    const manager a(l.a), b(l.b);
    b.expect(4);
    ibv_ah* to = a.handle(b.s);
    EXPECT_EQ(a.send(to, mad + 4), -EINVAL);
    EXPECT_EQ(a.send(to, 3), -EINVAL);
    // Behind the driver's back: a length in the UDP header that is not the frame's.
    ASSERT_EQ(a.send(to), 0);
    EXPECT_EQ(a.s.wait_send().status, IBV_WC_SUCCESS);
    host_driver::queue_pair& sender = *a.s.qp->roce_v2_sender;
    std::uint8_t* next = sender.send_entry(sender.sq.head);
    std::memcpy(next, sender.send_entry(sender.sq.head - 1), 256);
    next[64 + 4 + 2] ^= 0x10;  // second inline segment: the rest of the headers
    next[16 + 4 + 17] ^= 0x10;
    next[3] = 0x0a;
    next[0] = (sender.sq.head & sender.sq.count) != 0 ? 0x80 : 0;
    ++sender.sq.head;
    ASSERT_EQ(a.send(to), 0);  // rings the doorbell
    EXPECT_EQ(a.s.wait_send().status, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(a.s.wait_send().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(b.s.wait_receive().status, IBV_WC_SUCCESS);
    settle();
    EXPECT_TRUE(b.s.silent());
  });
}

TEST(special, there_is_one_and_it_can_be_made_again) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    const manager b(l.b);
    b.expect(2);
    for (int round = 0; round < 2; ++round) {
      const manager a(l.a);
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = a.s.send_cq;
      init.cap.max_send_wr = init.cap.max_recv_wr = 4;
      init.cap.max_send_sge = init.cap.max_recv_sge = 1;
      EXPECT_EQ(a.s.dev().create_gsi(a.s.at.pd, &init, 1), nullptr);
      EXPECT_EQ(errno, EBUSY);
      ASSERT_EQ(a.send(a.handle(b.s)), 0);
      EXPECT_EQ(b.s.wait_receive().status, IBV_WC_SUCCESS);
      EXPECT_EQ(a.s.dev().destroy_qp(a.s.qp), 0);
    }
  });
}

}  // namespace
}  // namespace rnic::system_test
