// SPDX-License-Identifier: Apache-2.0
// Agents of two hosts find each other, and what they agree on is in the registers of their ports.
#include "testbenches/system/dcb/bridged.h"

namespace rnic::system_test {
namespace {

namespace cr = mac::cr;

/// The table of shared() in a port.
void expect_shares(hosts::node& n, std::uint32_t first) {
  EXPECT_EQ(register_of(n, cr::arbitration), cr::arbitration_ets);
  EXPECT_EQ(register_of(n, cr::prio2tc), 0x00201000u);
  EXPECT_EQ(register_of(n, cr::scheduler + 4 * 1), 7u << 16 | first);
  EXPECT_EQ(register_of(n, cr::scheduler + 4 * 2), 7u << 16 | (100 - first));
  EXPECT_EQ(register_of(n, cr::scheduler + 4 * 7), 0u << 16 | 100) << "the highest class with strict priority is first";
  EXPECT_EQ(register_of(n, cr::scheduler + 4 * 3), 4u << 16 | 100);
  EXPECT_EQ(register_of(n, cr::scheduler + 4 * 0), 5u << 16 | 100);
}

void expect_pfc(hosts::node& n, std::uint32_t priorities) {
  EXPECT_EQ(register_of(n, cr::pfctx), priorities);
  EXPECT_EQ(register_of(n, cr::pfcrx), priorities);
  EXPECT_EQ(register_of(n, cr::pptx), priorities == 0 ? 1u : 0u);
  EXPECT_EQ(register_of(n, cr::pprx), priorities == 0 ? 1u : 0u);
}

TEST(DcbAgreement, WhoIsWillingEndsWithTheOthersConfiguration) {
  hosts::two_nodes system(bridged(default_system(), {shared(70, false), 1u << 3}, {shared(50, true), 0}));
  run(system, [&] {
    expect_pfc(system.node_b(), 0);
    expect_shares(system.node_b(), 50);
    expect_acquainted(system);
    for (hosts::node* n : {&system.node_a(), &system.node_b()}) {
      expect_shares(*n, 70);
      expect_pfc(*n, 1u << 3);
    }
    const auto a = system.node_a().dcb()->current(), b = system.node_b().dcb()->current();
    EXPECT_TRUE(a.now.ets_from == dcb::origin::local && a.now.pfc_from == dcb::origin::local);
    EXPECT_TRUE(b.now.ets_from == dcb::origin::peer && b.now.pfc_from == dcb::origin::peer);
    EXPECT_EQ(a.peer->unit.system_name, "b");
    EXPECT_EQ(b.peer->unit.system_name, "a");
    EXPECT_EQ(b.changes, 1u);
    EXPECT_EQ(a.changes, 0u);
    EXPECT_EQ(a.peer->unit.dcbx.ets->table, b.now.ets) << "what is in force is what is said";
    EXPECT_EQ(a.lldp.frames_discarded + b.lldp.frames_discarded, 0u);
  });
}

TEST(DcbAgreement, TheLowerAddressDecidesBetweenTwoThatAreWilling) {
  hosts::two_nodes system(bridged(default_system(), {shared(70, true), 1u << 3}, {shared(40, true), 1u << 5}));
  run(system, [&] {
    expect_acquainted(system);
    ASSERT_TRUE(system.a().device->port(1).mac < system.b().device->port(1).mac);
    expect_pfc(system.node_a(), 1u << 3);
    expect_pfc(system.node_b(), 1u << 3);
    expect_shares(system.node_a(), 40);  // each has what the other recommends
    expect_shares(system.node_b(), 70);
  });
}

TEST(DcbAgreement, WhoIsNotWillingKeepsItsOwn) {
  hosts::two_nodes system(bridged(default_system(), {shared(70, false), 1u << 3}, {shared(40, false), 0}));
  run(system, [&] {
    expect_acquainted(system);
    expect_shares(system.node_b(), 40);
    expect_pfc(system.node_b(), 0);
    expect_pfc(system.node_a(), 1u << 3);
  });
}

TEST(DcbAgreement, AFarewellBringsTheOwnConfigurationBack) {
  hosts::two_nodes system(bridged(default_system(), {shared(70, false), 1u << 3}, {shared(50, true), 0}));
  run(system, [&] {
    expect_acquainted(system);
    system.node_a().dcb()->stop();
    ASSERT_TRUE(within(system, 1, [&] { return !system.node_b().dcb()->current().peer; }));
    system.a().bus->spend_ps(ms);
    expect_shares(system.node_b(), 50);
    expect_pfc(system.node_b(), 0);
    EXPECT_EQ(system.node_b().dcb()->current().lldp.deletes, 1u);
    EXPECT_TRUE(system.node_a().dcb()->stopped());
  });
}

/// The cable is pulled out: nothing is heard for 121 s.
TEST(DcbAgreement, SilenceBringsTheOwnConfigurationBack) {
  hosts::two_nodes system(bridged(default_system(), {shared(70, false), 1u << 3}, {shared(50, true), 0}));
  run(system, [&] {
    expect_acquainted(system);
    system.cable().set_live(false, system.now_ps());
    system.a().bus->spend_ps(80 * second);
    expect_shares(system.node_b(), 70);
    ASSERT_TRUE(within(system, 42, [&] { return !system.node_b().dcb()->current().peer; }));
    system.a().bus->spend_ps(ms);
    expect_shares(system.node_b(), 50);
    expect_pfc(system.node_b(), 0);
    EXPECT_EQ(system.node_b().dcb()->current().lldp.ageouts, 1u);
    system.cable().set_live(true, system.now_ps());
    expect_acquainted(system);
    expect_shares(system.node_b(), 70);
    expect_pfc(system.node_b(), 1u << 3);
  });
}

/// The cable is out for a second: who knew each other find each other at once, and not when the interval is over.
TEST(DcbAgreement, WhoComesBackIsToldAtOnce) {
  hosts::two_nodes system(bridged(default_system(), {shared(70, false), 1u << 3}, {shared(50, true), 0}));
  run(system, [&] {
    expect_acquainted(system);
    const std::uint64_t before = system.node_a().dcb()->current().lldp.frames_out;
    system.cable().set_live(false, system.now_ps());
    system.a().bus->spend_ps(second);
    EXPECT_EQ(system.node_a().dcb()->current().lldp.frames_out, before);
    system.cable().set_live(true, system.now_ps());
    system.a().bus->spend_ps(ms);
    EXPECT_GT(system.node_a().dcb()->current().lldp.frames_out, before);
    ASSERT_TRUE(system.node_b().dcb()->current().peer);
    expect_shares(system.node_b(), 70);
    expect_pfc(system.node_b(), 1u << 3);
    EXPECT_EQ(system.node_b().dcb()->current().lldp.ageouts, 0u);
  });
}

/// Without the switch nothing of it is there.
TEST(DcbAgreement, IsOffUnlessItIsAskedFor) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    EXPECT_EQ(system.node_a().dcb(), nullptr);
    system.a().bus->spend_ps(60 * second);
    EXPECT_EQ(system.statistics().value("a.adapter.port1.tx_frames"), 0u);
    EXPECT_NE(register_of(system.node_a(), cr::arbitration), cr::arbitration_ets);
  });
}

TEST(DcbAgreement, EachPortHasItsOwnAgent) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  hosts::two_nodes system(bridged(c, {shared(70, false), 0}, {shared(50, true), 0}));
  run(system, [&] {
    ASSERT_TRUE(within(system, 40, [&] { return system.node_b().dcb(2)->current().peer.has_value(); }));
    system.a().bus->spend_ps(second);
    EXPECT_EQ(system.node_b().nic().port(1).cr_read(cr::scheduler + 4 * 1), 7u << 16 | 70);
    EXPECT_EQ(system.node_b().dcb(2)->current().peer->unit.port_description, "eth2");
    EXPECT_EQ(system.node_b().dcb(2)->current().neighbours.size(), 1u);
  });
}

TEST(DcbAgreement, SharesThatAreNoWholeAreRefused) {
  hosts::two_nodes_config c = default_system();
  c.node.driver.dcb = shared(70, false);
  c.node.driver.dcb.classes[2].percent = 31;
  try {
    hosts::two_nodes system(c);
    FAIL() << "101 % were taken";
  } catch (const sim::config_error& e) {
    EXPECT_STREQ(e.what(), "driver.dcb.ets.tc1.percent, driver.dcb.ets.tc2.percent: 101 together, expected 100 %");
  }
}

}  // namespace
}  // namespace rnic::system_test
