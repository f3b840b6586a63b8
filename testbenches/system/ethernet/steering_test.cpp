// SPDX-License-Identifier: Apache-2.0
// Who gets a plain frame: rules by address, promiscuous ones, filters, loopback, drops and their counters.
#include <gtest/gtest.h>

#include "host_driver/address_rule.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

const bytes other_address{2, 0, 0, 0, 0x0b, 2}, group{0x01, 0x00, 0x5e, 1, 2, 3}, other_group{0x33, 0x33, 0, 0, 0, 9};

template <class Body>
void with_two_rings(Body body) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a()), b(system.b());
    station c(system.b());
    b.post_receives(16);
    c.post_receives(16);
    body(system, a, b, c);
  });
}

TEST(EthernetSteering, ByAddress) {
  with_two_rings([](hosts::two_nodes& system, station& a, station& b, station& c) {
    b.steer(frames_destination);
    c.steer(other_address);
    a.send(frames::udp4);
    EXPECT_EQ(b.receive().frame, frames::udp4);
    const bytes second = with_destination(frames::udp4, other_address);
    a.send(second);
    EXPECT_EQ(c.receive().frame, second);
    EXPECT_EQ(tally(system, "b.adapter.steering.drop.no_match"), 0u);
    a.send(with_destination(frames::udp4, {2, 0, 0, 0, 0x0b, 3}));
    a.send(with_destination(frames::udp4, group));
    EXPECT_TRUE(b.silent());
    EXPECT_TRUE(c.silent());
    EXPECT_EQ(tally(system, "b.adapter.steering.drop.no_match"), 2u);
  });
}

TEST(EthernetSteering, ManyAddressesInOneBucket) {
  with_two_rings([](hosts::two_nodes&, station& a, station& b, station& c) {
    // More addresses than the small driver profile has buckets (128), so chains have several entries.
    std::vector<host_driver::steering_flow*> rules;
    for (unsigned i = 0; i < 200; ++i)
      rules.push_back(
          (i % 2 == 0 ? b : c).steer({2, 0, 0, 1, static_cast<std::uint8_t>(i / 3), static_cast<std::uint8_t>(i)}));
    const auto expect = [&](unsigned i) {
      const bytes frame =
          with_destination(frames::udp6, {2, 0, 0, 1, static_cast<std::uint8_t>(i / 3), static_cast<std::uint8_t>(i)});
      a.send(frame);
      station& to = i % 2 == 0 ? b : c;
      EXPECT_EQ(to.receive().frame, frame) << i;
      to.post_receives(1);
    };
    for (unsigned i = 0; i < 200; i += 7) expect(i);
    // Some go: the others stay.
    for (unsigned i = 0; i < 200; i += 3) ASSERT_EQ(b.dev().destroy_flow(rules[i]), 0);
    for (unsigned i = 1; i < 200; i += 9) expect(i);
    a.send(with_destination(frames::udp6, {2, 0, 0, 1, 1, 3}));
    EXPECT_TRUE(b.silent() && c.silent());
  });
}

TEST(EthernetSteering, GroupsAndBroadcastGoToAllThatAsk) {
  with_two_rings([](hosts::two_nodes&, station& a, station& b, station& c) {
    b.steer(broadcast);
    b.steer(group);
    host_driver::steering_flow* second = c.steer(group);
    a.send(frames::arp);
    EXPECT_EQ(b.receive().frame, frames::arp);
    const bytes frame = with_destination(frames::udp4, group);
    a.send(frame);
    EXPECT_EQ(b.receive().frame, frame);
    EXPECT_EQ(c.receive().frame, frame);
    ASSERT_EQ(c.dev().destroy_flow(second), 0);
    a.send(frame);
    EXPECT_EQ(b.receive().frame, frame);
    EXPECT_TRUE(c.silent());
  });
}

TEST(EthernetSteering, Promiscuous) {
  with_two_rings([](hosts::two_nodes&, station& a, station& b, station& c) {
    b.steer(frames_destination);
    host_driver::steering_flow* all = c.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.steer(group);  // the promiscuous one gets what comes to rules made after it as well
    for (const bytes& frame : {frames::udp4, with_destination(frames::udp4, group)}) {
      a.send(frame);
      EXPECT_EQ(b.receive().frame, frame);
      EXPECT_EQ(c.receive().frame, frame);
    }
    for (const bytes& frame : {with_destination(frames::udp4, other_address), frames::arp}) {
      a.send(frame);
      EXPECT_EQ(c.receive().frame, frame);
      EXPECT_TRUE(b.silent());
    }
    ASSERT_EQ(c.dev().destroy_flow(all), 0);
    a.send(frames::udp4);
    EXPECT_EQ(b.receive().frame, frames::udp4);
    a.send(frames::arp);
    EXPECT_TRUE(c.silent());
  });
}

TEST(EthernetSteering, AllGroups) {
  with_two_rings([](hosts::two_nodes&, station& a, station& b, station& c) {
    c.steer_all(IBV_FLOW_ATTR_MC_DEFAULT);
    b.steer(group);
    a.send(with_destination(frames::udp4, other_group));
    EXPECT_EQ(c.receive().wc.status, IBV_WC_SUCCESS);
    a.send(frames::udp4);
    EXPECT_TRUE(b.silent() && c.silent());
  });
}

TEST(EthernetSteering, ADestroyedRingTakesItsRulesAlong) {
  with_two_rings([](hosts::two_nodes& system, station& a, station& b, station& c) {
    b.steer(frames_destination);
    c.steer(frames_destination);
    c.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    ASSERT_EQ(c.dev().destroy_qp(c.qp()), 0);
    a.send(frames::udp4);
    EXPECT_EQ(b.receive().frame, frames::udp4);
    a.send(frames::arp);
    EXPECT_TRUE(b.silent());
    EXPECT_EQ(tally(system, "b.adapter.steering.drop.no_match"), 1u);
    EXPECT_EQ(tally(system, "responder.drop.no_qp"), 0u);
  });
}

TEST(EthernetSteering, RulesTheDeviceDoesNotHave) {
  with_two_rings([](hosts::two_nodes&, station&, station& b, station&) {
    host_driver::address_rule rule(frames_destination.data(), 1);
    rule.spec.mask.vlan_tag = 0xfff;
    EXPECT_EQ(b.dev().create_flow(b.qp(), &rule.attr), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    rule.spec.mask.vlan_tag = 0;
    rule.spec.mask.src_mac[0] = 1;
    EXPECT_EQ(b.dev().create_flow(b.qp(), &rule.attr), nullptr);
    rule.spec.mask.src_mac[0] = 0;
    rule.spec.mask.dst_mac[5] = 0;
    EXPECT_EQ(b.dev().create_flow(b.qp(), &rule.attr), nullptr);
    rule.spec.mask.dst_mac[5] = 0xff;
    rule.attr.port = 3;
    EXPECT_EQ(b.dev().create_flow(b.qp(), &rule.attr), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST(EthernetSteering, VlanFilter) {
  with_two_rings([](hosts::two_nodes& system, station& a, station& b, station&) {
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    a.send(frames::udp4_ctag200);
    EXPECT_EQ(b.receive().frame, frames::udp4_ctag200);  // until there is a filter
    ASSERT_EQ(b.dev().filter_vlans(1, {0, 100, 4095}), 0);
    for (const bytes* frame : {&frames::udp4, &frames::udp4_ctag, &frames::udp4_ctag0}) {
      a.send(*frame);
      EXPECT_EQ(b.receive().frame, *frame);
    }
    a.send(frames::udp4_ctag200);
    a.send(frames::udp4_stag);
    EXPECT_TRUE(b.silent());
    EXPECT_EQ(tally(system, "steering.drop.vlan_filtered"), 2u);
    ASSERT_EQ(b.dev().filter_vlans(1, {200}), 0);
    a.send(frames::udp4_ctag0);
    EXPECT_TRUE(b.silent());
    a.send(frames::udp4_ctag200);
    EXPECT_EQ(b.receive().frame, frames::udp4_ctag200);
  });
}

TEST(EthernetSteering, GroupFilter) {
  with_two_rings([](hosts::two_nodes& system, station& a, station& b, station&) {
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    ASSERT_EQ(b.dev().filter_groups(1, true, {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0x01, 0, 0x5e, 1, 2, 3}}), 0);
    for (const bytes& frame : {frames::udp4, frames::arp, with_destination(frames::udp4, group)}) {
      a.send(frame);
      EXPECT_EQ(b.receive().frame, frame);
    }
    a.send(with_destination(frames::udp4, other_group));
    EXPECT_TRUE(b.silent());
    EXPECT_EQ(tally(system, "steering.drop.group_filtered"), 1u);
    ASSERT_EQ(b.dev().filter_groups(1, false), 0);
    a.send(with_destination(frames::udp4, other_group));
    EXPECT_EQ(b.receive().wc.status, IBV_WC_SUCCESS);
  });
}

TEST(EthernetSteering, FramesWithoutAReceiveAreDropped) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a()), b(system.b());
    b.steer(frames_destination);
    b.post_receives(2);
    for (unsigned i = 0; i < 5; ++i) a.send(frames::udp4);
    for (unsigned i = 0; i < 2; ++i) EXPECT_EQ(b.receive().frame, frames::udp4);
    EXPECT_TRUE(b.silent());
    EXPECT_EQ(tally(system, "drop.ethernet_no_wqe"), 3u);
    EXPECT_EQ(b.state(), IBV_QPS_RTS);
    b.post_receives(1);
    a.send(frames::tcp4);
    EXPECT_EQ(b.receive().frame, frames::tcp4);
  });
}

TEST(EthernetSteering, NothingBeforeReadyToReceive) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station::options o;
    o.start = false;
    station a(system.a()), b(system.b(), o);
    b.steer(frames_destination);
    a.send(frames::udp4);
    EXPECT_TRUE(b.silent());
    b.to_rts();
    b.post_receives(1);
    a.send(frames::tcp4);
    EXPECT_EQ(b.receive().frame, frames::tcp4);
  });
}

TEST(EthernetSteering, FramesToTheOwnAddressComeBack) {
  with_two_rings([](hosts::two_nodes& system, station&, station& b, station& c) {
    const auto& mac = b.dev().port(1).mac;
    const bytes own(mac.begin(), mac.end());
    c.steer(own);
    const bytes frame = with_destination(frames::udp4, own);
    b.send(frame);
    EXPECT_EQ(c.receive().frame, frame);
    EXPECT_EQ(tally(system, "b.adapter.port1.looped"), 1u);
  });
}

TEST(EthernetSteering, GroupsComeBackAndGoOut) {
  with_two_rings([](hosts::two_nodes&, station& a, station& b, station& c) {
    a.steer(group);
    a.post_receives(1);
    c.steer(group);
    const bytes frame = with_destination(frames::udp4, group);
    b.send(frame);
    EXPECT_EQ(c.receive().frame, frame);
    EXPECT_EQ(a.receive().frame, frame);
  });
}

TEST(EthernetSteering, RoceIsNotForRings) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    const link l = make_link(system, {});
    hosts::endpoint at = system.b();
    station ring(at);
    ring.post_receives(8);
    ring.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    const auto& mac = l.b.dev().port(1).mac;
    ring.steer(bytes(mac.begin(), mac.end()));
    expect_works(l);
    EXPECT_TRUE(ring.silent());
    EXPECT_EQ(tally(system, "responder.ethernet"), 0u);
  });
}

TEST(EthernetSteering, RoceForOthersIsForPromiscuousRingsOnly) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    const link l = make_link(system, {});
    const hosts::buffer from = hosts::make_buffer(l.a.at, 64);
    station ring(system.b());
    ring.post_receives(8);
    ring.steer(frames_destination);
    // A queue pair that believes another host to have B's place: its packets carry a foreign address.
    hosts::endpoint stranger = l.b.at;
    const host_driver::mac_address foreign{2, 0, 0, 0, 0x0c, 1};
    const link lane = make_sibling(l, {});
    ibv_qp_attr attr{};
    ASSERT_EQ(lane.a.dev().destroy_qp(lane.a.qp), 0);
    side s = l.a;
    s.qp = hosts::make_qp(s.at, {}, *s.send_cq, *s.receive_cq);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = l.b.qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(s.at.gid_index);
    attr.ah_attr.grh.hop_limit = 64;
    std::copy(stranger.gid.begin(), stranger.gid.end(), attr.ah_attr.grh.dgid.raw);
    ASSERT_EQ(s.dev().modify_qp(s.qp, &attr,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                                &foreign),
              0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 20;
    ASSERT_EQ(s.dev().modify_qp(s.qp, &attr,
                                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                    IBV_QP_MAX_QP_RD_ATOMIC),
              0);
    request r;
    r.opcode = IBV_WR_RDMA_WRITE;  // no answer has to come before the second one
    r.sges = {{from.address(), 64, from.region->lkey}};
    post(s, r);
    EXPECT_TRUE(ring.silent());
    EXPECT_EQ(tally(system, "b.adapter.parser1.unclaimed_frames"), 1u);
    EXPECT_EQ(tally(system, "b.adapter.steering.drop.no_match"), 1u);
    ring.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    post(s, r);
    const arrival got = ring.receive();
    EXPECT_EQ(bytes(got.frame.begin(), got.frame.begin() + 6), bytes(foreign.begin(), foreign.end()));
  });
}

}  // namespace
}  // namespace rnic::system_test
