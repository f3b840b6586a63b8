// SPDX-License-Identifier: Apache-2.0
// What two ends agree on (IEEE 802.1Q clause 38).
#include "host_driver/dcb/dcbx.h"

#include <gtest/gtest.h>

namespace rnic::host_driver::dcb {
namespace {

constexpr mac_address low{2, 0, 0, 0, 0, 1}, high{2, 0, 0, 0, 0, 2};

settings shares(std::uint8_t first, bool willing) {
  settings s;
  s.classes[0] = {settings::algorithm::ets, first};
  s.classes[1] = {settings::algorithm::ets, static_cast<std::uint8_t>(100 - first)};
  s.class_of = {0, 0, 0, 1, 0, 0, 0, 0};
  s.ets_willing = s.pfc_willing = willing;
  return s;
}

lldp_neighbour neighbour(const settings& s, std::uint8_t pfc, const mac_address& mac) {
  lldp_neighbour n;
  n.mac = mac;
  n.unit.dcbx = local_values(s, pfc);
  return n;
}

operational agreed(const settings& own, std::uint8_t pfc, const lldp_neighbour& peer, const mac_address& mac = low) {
  return agree(local_values(own, pfc), mac, &peer);
}

TEST(Dcbx, AloneItIsWhatTheAdministratorSays) {
  const operational o = agree(local_values(shares(70, true), 8), low, nullptr);
  EXPECT_EQ(o.ets.percent[0], 70);
  EXPECT_EQ(o.ets.class_of[3], 1);
  EXPECT_EQ(o.pfc, 8);
  EXPECT_TRUE(o.ets_from == origin::local && o.pfc_from == origin::local);
}

TEST(Dcbx, WhoIsWillingTakesTheRecommendation) {
  const lldp_neighbour peer = neighbour(shares(20, false), 0, high);
  EXPECT_EQ(agreed(shares(70, true), 0, peer).ets.percent[0], 20);
  EXPECT_EQ(agreed(shares(70, true), 0, peer).ets_from, origin::peer);
  EXPECT_EQ(agreed(shares(70, false), 0, peer).ets.percent[0], 70);
}

TEST(Dcbx, AConfigurationIsNoRecommendation) {
  settings s = shares(20, false);
  s.recommend = false;
  EXPECT_EQ(agreed(shares(70, true), 0, neighbour(s, 0, high)).ets_from, origin::local);
}

TEST(Dcbx, TwoThatAreWillingTakeEachOthersShares) {
  EXPECT_EQ(agreed(shares(70, true), 0, neighbour(shares(20, true), 0, high), low).ets.percent[0], 20);
  EXPECT_EQ(agreed(shares(20, true), 0, neighbour(shares(70, true), 0, low), high).ets.percent[0], 70);
}

TEST(Dcbx, AlgorithmsOfOtherAdaptersAreNotTaken) {
  lldp_neighbour peer = neighbour(shares(20, false), 0, high);
  peer.unit.dcbx.recommendation->algorithm[5] = wire::selection::credit_based;
  EXPECT_EQ(agreed(shares(70, true), 0, peer).ets_from, origin::local);
  peer.unit.dcbx.recommendation->algorithm[5] = wire::selection::vendor;
  EXPECT_EQ(agreed(shares(70, true), 0, peer).ets_from, origin::peer);
}

/// Who is willing, whose address is lower, whose priorities are in force on the own side: 1 own, 2 the peer's.
TEST(Dcbx, PfcIsTheSameOnBothSides) {
  struct row {
    bool own, peer;
    const mac_address &own_mac, &peer_mac;
    std::uint8_t expected;
  };
  for (const row& r : {row{false, false, low, high, 1}, row{false, true, high, low, 1}, row{true, false, low, high, 2},
                       row{true, true, low, high, 1}, row{true, true, high, low, 2}}) {
    const operational o = agreed(shares(50, r.own), 1, neighbour(shares(50, r.peer), 2, r.peer_mac), r.own_mac);
    EXPECT_EQ(o.pfc, r.expected) << r.own << r.peer << (r.own_mac < r.peer_mac);
    EXPECT_EQ(o.pfc_from, r.expected == 2 ? origin::peer : origin::local);
  }
}

TEST(Dcbx, ApplicationsOfThePeerComeFirst) {
  settings own = shares(50, true), theirs = shares(50, false);
  own.roce_v1_priority = 1;
  own.roce_v2_priority = 2;
  theirs.roce_v2_priority = 5;
  const operational o = agreed(own, 0, neighbour(theirs, 0, high));
  ASSERT_EQ(o.applications.size(), 2u);
  EXPECT_EQ(o.applications[0].protocol, 4791);
  EXPECT_EQ(o.applications[0].priority, 5);
  EXPECT_EQ(o.applications[1].protocol, 0x8915);
  EXPECT_EQ(o.applications[1].priority, 1);
  own.ets_willing = false;
  EXPECT_EQ(agreed(own, 0, neighbour(theirs, 0, high)).applications[1].priority, 2);
}

TEST(Dcbx, OneTakesPartOrNobody) {
  lldp_neighbour plain;
  plain.mac = high;
  const lldp_neighbour first = neighbour(shares(20, false), 0, high), second = neighbour(shares(30, false), 0, low);
  bool several = true;
  EXPECT_EQ(peer_of({plain}, &several), nullptr);
  EXPECT_FALSE(several);
  const std::vector<lldp_neighbour> one{plain, first}, two{first, second};
  EXPECT_EQ(peer_of(one, &several), &one[1]) << "who says nothing of it does not count";
  EXPECT_FALSE(several);
  EXPECT_EQ(peer_of(two, &several), nullptr);
  EXPECT_TRUE(several);
}

}  // namespace
}  // namespace rnic::host_driver::dcb
