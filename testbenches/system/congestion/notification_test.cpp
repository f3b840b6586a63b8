// SPDX-License-Identifier: Apache-2.0
// Who is told of congestion, how often, and by what packet.
#include <gtest/gtest.h>

#include "testbenches/system/congestion/watch.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;
using hosts::make_buffer;

constexpr std::uint32_t large = 1'000'000;

/// WRITEs of `bytes` one after the other, each waited for.
void write_all(const link& l, unsigned count, std::uint32_t bytes) {
  const hosts::buffer near = make_buffer(l.a.at, bytes), far = make_buffer(l.b.at, bytes);
  for (unsigned i = 0; i < count; ++i) {
    post_write(l.a, near, far, bytes);
    ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  }
  l.a.at.bus->spend_ps(10 * us);
}

TEST(Notification, OffUnlessEnabled) {
  hosts::two_nodes system(default_system());
  watch w(system);
  run(system, [&] {
    const link l = make_link(system, {});
    w.left = ~0ull;
    write_all(l, 1, large);
    EXPECT_TRUE(w.cnps().empty());
    EXPECT_EQ(counted(system, "np_ecn_marked_roce_packets"), 0U);
    for (const seen_packet& s : w.all) ASSERT_EQ(s.packet.traffic_class, 0);
  });
}

void expect_cnp(unsigned ip) {
  {
    hosts::two_nodes system(congested_system());
    watch w(system);
    run(system, [&] {
      connection_options o;
      o.ip = ip;
      const link l = make_link(system, o);
      w.left = 1;
      write_all(l, 1, 100'000);
      const auto cnps = w.cnps();
      ASSERT_EQ(cnps.size(), 1U);
      const wire::packet& p = cnps[0].packet;
      EXPECT_EQ(cnps[0].from, 1U);
      EXPECT_EQ(p.bth.dest_qp, l.a.qp->qp_num);
      EXPECT_TRUE(p.bth.becn);
      EXPECT_FALSE(p.bth.fecn);
      EXPECT_FALSE(p.bth.ack_request);
      EXPECT_FALSE(p.bth.solicited);
      EXPECT_EQ(p.bth.psn.value(), 0U);
      EXPECT_EQ(p.bth.pkey, 0xffff);
      EXPECT_EQ(p.payload_length, 16U);
      EXPECT_EQ(p.traffic_class, 0xc2);
      EXPECT_EQ(p.encap, ip == 4 ? wire::encapsulation::roce_v2_ipv4 : wire::encapsulation::roce_v2_ipv6);
      EXPECT_EQ(p.dmac, l.a.at.mac);
      EXPECT_EQ(p.smac, l.b.at.mac);
      EXPECT_EQ(p.dgid, l.a.at.gid);
      EXPECT_EQ(p.sgid, l.b.at.gid);
      EXPECT_EQ(counted(system, "np_ecn_marked_roce_packets"), 1U);
      EXPECT_EQ(counted(system, "np_cnp_sent"), 1U);
      EXPECT_EQ(counted(system, "rp_cnp_handled"), 1U);
      EXPECT_EQ(counted(system, "rp_cnp_ignored"), 0U);
    });
  }
}

TEST(Notification, CnpAsTheStandardHasIt) { expect_cnp(4); }
TEST(Notification, CnpOverIpv6) { expect_cnp(6); }

TEST(Notification, PacketsSayThatTheyAreCapable) {
  hosts::two_nodes_config c = default_system();
  c.node.adapter.congestion.reaction.priorities = 1 << 3;
  hosts::two_nodes system(c);
  watch w(system);
  run(system, [&] {
    connection_options o;
    o.vlan = 9;
    o.traffic_class = 0x68 | 1;
    for (const unsigned priority : {3U, 4U}) {
      o.priority = priority;
      const link l = make_link(system, o, 2 * priority);
      w.all.clear();
      expect_works(l);
      ASSERT_GT(w.all.size(), 100U);
      for (const seen_packet& s : w.all) ASSERT_EQ(s.packet.traffic_class, priority == 3 ? 0x6a : 0x69);
    }
    o.priority = 3;
    o.roce = host_driver::roce_types::v1;  // no ECN there: the class is the verbs'
    const link l = make_link(system, o, 20);
    w.all.clear();
    expect_works(l);
    for (const seen_packet& s : w.all) ASSERT_EQ(s.packet.traffic_class, 0x69);
  });
}

TEST(Notification, NeverForRoceV1) {
  hosts::two_nodes system(congested_system());
  watch w(system);
  run(system, [&] {
    connection_options o;
    o.roce = host_driver::roce_types::v1;
    o.ip = 6;
    const link l = make_link(system, o);
    w.left = ~0ull;
    write_all(l, 1, large);
    EXPECT_TRUE(w.cnps().empty());
    EXPECT_EQ(counted(system, "np_ecn_marked_roce_packets"), 0U);
  });
}

/// Everything is marked: one CNP per interval and flow, and it comes as soon as it may.
TEST(Notification, IntervalIsKept) {
  hosts::two_nodes_config c = congested_system();
  c.node.adapter.congestion.reaction.priorities = 0;  // full rate: a packet each 0.5 us
  c.node.adapter.congestion.notification.interval_us = 20;
  hosts::two_nodes system(c);
  watch w(system);
  run(system, [&] {
    const link l = make_link(system, {});
    w.left = ~0ull;
    write_all(l, 2, large);
    const auto cnps = w.cnps();
    ASSERT_GT(cnps.size(), 15U);
    for (std::size_t i = 1; i < cnps.size(); ++i) {
      EXPECT_GE(cnps[i].at + us / 100, cnps[i - 1].at + 20 * us);
      EXPECT_LT(cnps[i].at, cnps[i - 1].at + 28 * us);
    }
    EXPECT_EQ(counted(system, "np_cnp_sent"), cnps.size());
    EXPECT_EQ(counted(system, "rp_cnp_ignored"), cnps.size());
    EXPECT_EQ(counted(system, "rp_cnp_handled"), 0U);
    EXPECT_GT(counted(system, "np_ecn_marked_roce_packets"), 900U);
  });
}

/// Two flows to the same address: each has its interval, or both have one.
std::size_t cnps_of_two_flows(transport::cnp_scope scope) {
  hosts::two_nodes_config c = congested_system();
  c.node.adapter.congestion.reaction.priorities = 0;
  c.node.adapter.congestion.notification.scope = scope;
  hosts::two_nodes system(c);
  watch w(system);
  run(system, [&] {
    const link first = make_link(system, {}), second = make_sibling(first, {});
    const hosts::buffer near = make_buffer(first.a.at, large), far = make_buffer(first.b.at, large);
    w.left = ~0ull;
    for (const link* l : {&first, &second}) post_write(l->a, near, far, large);
    for (unsigned i = 0; i < 2; ++i) ASSERT_EQ(first.a.wait_send().status, IBV_WC_SUCCESS);
    const auto cnps = w.cnps();
    if (scope == transport::cnp_scope::qp) return;
    for (std::size_t i = 1; i < cnps.size(); ++i) EXPECT_GE(cnps[i].at + us / 100, cnps[i - 1].at + 50 * us);
  });
  return w.cnps().size();
}

// 2 MB take 420 us: nine intervals.
TEST(Notification, IntervalOfQueuePairs) { EXPECT_EQ(cnps_of_two_flows(transport::cnp_scope::qp), 18U); }
TEST(Notification, IntervalOfAddresses) { EXPECT_EQ(cnps_of_two_flows(transport::cnp_scope::address), 9U); }
TEST(Notification, IntervalOfPorts) { EXPECT_EQ(cnps_of_two_flows(transport::cnp_scope::port), 9U); }

/// Priorities of the two points are enabled apart; the CNP has a priority of its own.
TEST(Notification, PrioritiesAreEnabledApart) {
  hosts::two_nodes_config c = default_system();
  c.node.adapter.congestion.notification.priorities = 1 << 2 | 1 << 3;
  c.node.adapter.congestion.reaction.priorities = 1 << 3 | 1 << 4;
  c.node.adapter.congestion.notification.cnp_priority = 5;
  c.node.adapter.congestion.notification.cnp_dscp = 46;
  c.node.adapter.congestion.notification.cnp_ecn = 0;
  hosts::two_nodes system(c);
  watch w(system);
  run(system, [&] {
    connection_options o;
    o.vlan = 9;
    std::uint64_t handled = 0, ignored = 0;
    for (const unsigned priority : {2U, 3U, 4U}) {
      o.priority = priority;
      const link l = make_link(system, o, 2 * priority);
      w.all.clear();
      w.left = 1;
      write_all(l, 1, 50'000);
      const bool told = priority != 4, reacts = priority != 2;
      handled += told && reacts ? 1 : 0;
      ignored += told && !reacts ? 1 : 0;
      ASSERT_EQ(w.cnps().size(), told ? 1U : 0U) << priority;
      EXPECT_EQ(counted(system, "rp_cnp_handled"), handled);
      EXPECT_EQ(counted(system, "rp_cnp_ignored"), ignored);
      if (!told) continue;
      EXPECT_EQ(w.cnps()[0].priority, 5);
      EXPECT_EQ(w.cnps()[0].packet.traffic_class, 46 << 2);
      EXPECT_EQ(w.cnps()[0].packet.vlan_tci & 0xfff, 9);
    }
  });
}

/// READ responses carry the data: the one who asked tells the one who answers.
TEST(Notification, MarkedReadResponses) {
  hosts::two_nodes system(congested_system());
  watch w(system);
  run(system, [&] {
    const link l = make_link(system, {});
    const hosts::buffer near = make_buffer(l.a.at, large), far = make_buffer(l.b.at, large);
    w.mark_from = 1;
    w.left = 1;
    request r;
    r.opcode = IBV_WR_RDMA_READ;
    r.sges = {{near.address(), large, near.region->lkey}};
    r.remote = far.address();
    r.rkey = far.region->rkey;
    post(l.a, r);
    ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    const auto cnps = w.cnps();
    ASSERT_EQ(cnps.size(), 1U);
    EXPECT_EQ(cnps[0].from, 0U);
    EXPECT_EQ(cnps[0].packet.bth.dest_qp, l.b.qp->qp_num);
    const sim::time_ps t = cnps[0].at;
    EXPECT_NEAR(static_cast<double>(w.rate_kbps(1, l.a.qp->qp_num, t + 30 * us, t + 54 * us)), 20e6, 0.2e6);
    EXPECT_NEAR(static_cast<double>(w.rate_kbps(1, l.a.qp->qp_num, t + 60 * us, t + 109 * us)), 30e6, 0.3e6);
  });
}

}  // namespace
}  // namespace rnic::system_test
