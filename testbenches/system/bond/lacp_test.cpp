// SPDX-License-Identifier: Apache-2.0
// Bonds of mode 802.3ad: the port map follows what LACP has agreed on with the partner.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "host_driver/bond.h"
#include "testbenches/system/bond/parcel.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using mode = host_driver::config::bond_mode;
using host_driver::lacp::lacp_port;
constexpr std::uint64_t second = 1000 * ms;
using map = std::array<unsigned, 2>;

hosts::two_nodes_config aggregated(mode of_b = mode::ieee_802_3ad,
                                   host_driver::lacp::settings::speed rate = host_driver::lacp::settings::speed::slow) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  c.node.driver.bond = mode::ieee_802_3ad;
  c.node.driver.lacp.rate = rate;
  c.node_b = c.node;
  c.node_b->driver.bond = of_b;
  return c;
}

std::array<std::uint64_t, 2> sent_by(hosts::node& n) {
  return {n.nic().port(0).count().tx_frames, n.nic().port(1).count().tx_frames};
}

void expect_arrives(const link& l, unsigned seed) {
  const parcel p(l, 100'000, seed);
  p.send(l);
  EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(p.is_there());
}

/// Both ports distribute two seconds after the links came, and programs begin a second later, on both ports.
TEST(LacpBond, TwoHostsAggregate) {
  hosts::two_nodes system(aggregated());
  run(system, [&] {
    EXPECT_GT(system.now_ps(), 2 * second);
    EXPECT_LT(system.now_ps(), 4 * second);
    for (hosts::node* n : {&system.node_a(), &system.node_b()}) {
      const auto& changes = n->bond()->changes();
      EXPECT_EQ(changes.front().active, 0u);
      EXPECT_EQ(changes.back().active, 3u);
      EXPECT_GT(changes.back().seen_ps, 2 * second);
      EXPECT_LT(changes.back().seen_ps, 2 * second + 100 * ms);
      EXPECT_EQ(changes.back().map, (map{1, 2}));
      EXPECT_EQ(n->device().num_ports(), 1u);
    }
    const link first = make_link(system, {}), second_pair = make_sibling(first, {});
    const auto before = sent_by(system.node_a());
    expect_arrives(first, 1);
    const auto between = sent_by(system.node_a());
    EXPECT_EQ(between[0], before[0]);
    EXPECT_EQ(between[1], before[1] + 49);
    expect_arrives(second_pair, 2);
    EXPECT_EQ(sent_by(system.node_a())[0], before[0] + 49);
    expect_works(first);
  });
  EXPECT_EQ(counted(system, "responder.drop"), 0u);
}

/// An address of a VLAN above the bond is in the tables of both ports: queue pairs of either use it.
TEST(LacpBond, AddressesOfVlansAreAtBothPorts) {
  hosts::two_nodes system(aggregated());
  run(system, [&] {
    hosts::connection_options o;
    o.vlan = 100;
    const link first = make_link(system, o), second_pair = make_sibling(first, o);
    const auto before = sent_by(system.node_a());
    expect_arrives(first, 1);
    expect_arrives(second_pair, 2);
    for (unsigned port = 0; port < 2; ++port) EXPECT_EQ(sent_by(system.node_a())[port], before[port] + 49);
    for (unsigned row = 0; row < 128; ++row) {
      const auto &one = first.a.dev().port(1).gids[row], &two = first.a.dev().port(2).gids[row];
      EXPECT_TRUE(one.id == two.id && one.type == two.type && one.vlan == two.vlan && one.valid == two.valid) << row;
    }
  });
  EXPECT_EQ(counted(system, "responder.drop"), 0u);
}

/// Whoever speaks no LACP has a peer with one port; without LACP on its side it may send by either.
TEST(LacpBond, WithoutLacpAtThePeerOnePortIsUsed) {
  hosts::two_nodes system(aggregated(mode::balance_xor));
  run(system, [&] {
    EXPECT_GT(system.now_ps(), 3 * second) << "until the partner counts as silent";
    EXPECT_EQ(system.node_a().bond()->changes().back().active, 1u);
    EXPECT_EQ(system.node_a().bond()->changes().back().map, (map{1, 1}));
    const link first = make_link(system, {}), second_pair = make_sibling(first, {});
    const auto before = sent_by(system.node_a());
    expect_arrives(first, 1);
    expect_arrives(second_pair, 2);
    EXPECT_EQ(sent_by(system.node_a())[1], before[1]);
    expect_works(first);
    // That port's cable dies: the other one, which was on standby, takes its place.
    system.cable(0).set_live(false, system.now_ps() + 10 * us);
    first.a.at.bus->spend_ps(ms);
    EXPECT_EQ(system.node_a().bond()->changes().back().active, 2u);
    expect_arrives(first, 3);
  });
}

/// A cable dies and comes back amid 60 messages: all arrive, and both ports are in use again at once.
TEST(LacpBond, APortFailsAmidMessages) {
  for (const unsigned victim : {0u, 1u}) {
    const auto outcome = in_child([victim] {
      hosts::two_nodes system(aggregated());
      std::string text = "?";
      run(system, [&] {
        hosts::connection_options o;
        o.ack_timeout = 8;
        o.send_depth = 256;
        const link first = make_link(system, o), second_pair = make_sibling(first, o);
        ibv_async_event e{};
        while (first.a.dev().get_async_event(&e, 10 * us)) {
        }
        std::vector<parcel> parcels;
        for (unsigned i = 0; i < 60; ++i) parcels.emplace_back(first, 30'000 + i, i);
        const std::size_t known = system.node_a().bond()->changes().size();
        const sim::time_ps cut = system.now_ps() + 60 * us, back = cut + 150 * us;
        system.cable(victim).set_live(false, cut);
        system.cable(victim).set_live(true, back);
        for (unsigned i = 0; i < parcels.size(); ++i) parcels[i].send(i % 2 == 0 ? first : second_pair);
        for (unsigned i = 0; i < parcels.size(); ++i)
          EXPECT_EQ((i % 2 == 0 ? first : second_pair).a.wait_send().status, IBV_WC_SUCCESS) << i;
        for (const parcel& p : parcels) EXPECT_TRUE(p.is_there());
        while (system.now_ps() < back + 300 * us) first.a.at.bus->spend_ps(10 * us);
        EXPECT_FALSE(first.a.dev().get_async_event(&e, us)) << "the device's port has not failed";
        const unsigned other = 2 - victim;
        for (hosts::node* n : {&system.node_a(), &system.node_b()}) {
          const auto& changes = n->bond()->changes();
          EXPECT_EQ(changes.size(), known + 3) << "lost; a link; distributing";
          const auto& lost = changes[changes.size() - 3];
          EXPECT_EQ(lost.active, 1u << (other - 1));
          EXPECT_EQ(lost.map, (map{other, other}));
          EXPECT_GE(lost.seen_ps, cut);
          EXPECT_LT(lost.done_ps, cut + 20 * us) << "event, interrupt, command";
          EXPECT_EQ(changes.back().active, 3u);
          EXPECT_EQ(changes.back().map, (map{1, 2}));
          EXPECT_LT(changes.back().done_ps, back + 200 * us) << "a few LACPDUs";
        }
        text = testing::Test::HasFailure() ? "failed" : "works";
      });
      return text;
    });
    EXPECT_EQ(outcome, "works") << "port " << victim + 1;
  }
}

/// The links stay, but the partner's protocol ends: out of its ports after three seconds, then as one without LACP.
TEST(LacpBond, ASilentPartnerTakesThePortsOut) {
  hosts::two_nodes system(aggregated(mode::ieee_802_3ad, host_driver::lacp::settings::speed::fast));
  run(system, [&] {
    const host_driver::bond& bond = *system.node_a().bond();
    const link l = make_link(system, {});
    system.a().bus->spend_ps(5 * second);
    EXPECT_EQ(bond.changes().back().active, 3u) << "it is asked for a unit each second";
    system.node_b().bond()->lacp()->stop();
    const sim::time_ps ended = system.now_ps();
    system.a().bus->spend_ps(19 * second / 10);
    EXPECT_EQ(bond.changes().back().active, 3u);
    system.a().bus->spend_ps(13 * second / 10);
    EXPECT_EQ(bond.changes().back().active, 0u);
    EXPECT_EQ(bond.changes().back().links, 3u);
    EXPECT_EQ(bond.lacp()->agent().port(1).receiving(), lacp_port::receive_state::expired);
    system.a().bus->spend_ps(6 * second);
    EXPECT_EQ(bond.changes().back().active, 1u);
    EXPECT_EQ(bond.changes().back().map, (map{1, 1}));
    EXPECT_LT(bond.changes().back().done_ps, ended + 9 * second);
    expect_arrives(l, 1);
  });
}

/// Lines of different rates cannot be aggregated: the keys say so, and one port is used.
TEST(LacpBond, PortsOfDifferentRatesAreNotAggregated) {
  hosts::two_nodes_config c = aggregated();
  for (hosts::node_config* n : {&c.node, &*c.node_b}) n->adapter.port2.rate_mbps = 10'000;
  hosts::two_nodes system(c);
  run(system, [&] {
    EXPECT_EQ(system.node_a().bond()->changes().back().active, 1u);
    EXPECT_NE(system.node_a().bond()->lacp()->agent().port(1).actor().key,
              system.node_a().bond()->lacp()->agent().port(2).actor().key);
    expect_works(make_link(system, {}));
  });
}

}  // namespace
}  // namespace rnic::system_test
