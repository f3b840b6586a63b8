// SPDX-License-Identifier: Apache-2.0
// The end of a bond below which there are functions, bonds that cannot be, and connections that a function makes while
// its port is the other one.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "host_driver/address_rule.h"
#include "host_driver/bond.h"
#include "model/abi/device.h"
#include "testbenches/system/bond/parcel.h"
#include "testbenches/system/functions/connects.h"
#include "testbenches/system/functions/gsi_host.h"
#include "testbenches/system/functions/raw_rule.h"
#include "testbenches/system/functions/single_port.h"

namespace rnic::system_test {
namespace {

using host_driver::bond;
using mode = host_driver::config::bond_mode;

hosts::two_nodes_config cards_to_bond(unsigned port_1, unsigned port_2) {
  hosts::two_nodes_config c = divided_cards(port_1, port_2, 0);
  c.node.driver.steering = host_driver::config::steering_mode::device_managed;
  return c;
}

std::unique_ptr<bond> bond_of(hosts::node& n, mode m = mode::balance_xor) {
  host_driver::config c = n.device(0).settings();
  c.bond = m;
  return std::make_unique<bond>(n.device(0), n.bus(0), c, &n.master());
}

using both_nodes = std::array<hosts::node*, 2>;
both_nodes nodes_of(hosts::two_nodes& system) { return {&system.node_a(), &system.node_b()}; }

std::vector<std::unique_ptr<bond>> bond_both(hosts::two_nodes& system) {
  std::vector<std::unique_ptr<bond>> bonds;
  for (hosts::node* n : nodes_of(system)) {
    bonds.push_back(bond_of(*n));
    EXPECT_EQ(bonds.back()->enslave(), 0);
  }
  return bonds;
}

/// A connection of the functions of this number, by the port of the device that they have.
link of_function(hosts::two_nodes& system, unsigned function, unsigned host,
                 std::uint16_t vlan = host_driver::no_vlan) {
  hosts::connection_options o;
  o.ack_timeout = 8;
  o.vlan = vlan;
  hosts::endpoint ends[] = {end_of(system.node_a(), function), end_of(system.node_b(), function)};
  return make_link(ends[0], ends[1], o, host);
}

/// What a driver has of its ports that hardware has too.
struct tables_of_ports {
  explicit tables_of_ports(const host_driver::device& dev) : one(dev.port(1)), two(dev.port(2)) {}
  host_driver::port_state one, two;
};
void expect_same(const tables_of_ports& now, const tables_of_ports& before) {
  for (const auto& [a, b] : {std::pair{&now.one, &before.one}, std::pair{&now.two, &before.two}}) {
    EXPECT_EQ(a->macs, b->macs);
    EXPECT_EQ(a->vlans, b->vlans);
    EXPECT_EQ(a->mac, b->mac);
    for (std::size_t i = 0; i < a->macs.size(); ++i) {
      EXPECT_EQ(a->mac_users[i].all(), b->mac_users[i].all()) << i;
      EXPECT_EQ(a->vlan_users[i].all(), b->vlan_users[i].all()) << i;
    }
  }
}

std::uint64_t number_of(const bytes& mac) {
  std::uint64_t n = 0;
  for (const std::uint8_t byte : mac) n = n << 8 | byte;
  return n;
}

/// ibv_create_flow for one destination, which is on both ports of a bond.
host_driver::steering_flow* program_rule(const station& s, const bytes& to, unsigned port) {
  host_driver::address_rule rule(to.data(), port);
  return s.dev().create_flow(s.qp(), &rule.attr);
}

/// Amid the traffic of functions of both ports, twice.
TEST(BondRelease, BringsBackWhatWasThereBefore) {
  hosts::two_nodes system(cards_to_bond(1, 1));
  run(system, [&] {
    std::vector<link> links;
    for (unsigned f = 0; f <= 2; ++f)
      links.push_back(of_function(system, f, 11 + 10 * f, static_cast<std::uint16_t>(5 + f)));
    const auto nodes = nodes_of(system);
    const std::array<tables_of_ports, 2> before{tables_of_ports(nodes[0]->device(0)),
                                                tables_of_ports(nodes[1]->device(0))};
    EXPECT_NE(before[0].one.macs, before[0].two.macs);
    EXPECT_NE(before[0].one.vlans, before[0].two.vlans);
    std::vector<parcel> parcels;
    for (unsigned i = 0; i < links.size(); ++i) parcels.emplace_back(links[i], 4'000'000, i);
    for (unsigned round = 0; round < 2; ++round) {
      for (unsigned i = 0; i < links.size(); ++i) parcels[i].send(links[i]);
      auto bonds = bond_both(system);
      for (unsigned i = 0; i < 2; ++i) {
        const host_driver::device& dev = nodes[i]->device(0);
        EXPECT_EQ(dev.port(1).macs, dev.port(2).macs);
        EXPECT_EQ(dev.port(1).vlans, dev.port(2).vlans);
        EXPECT_EQ(dev.port(1).mac, dev.port(2).mac);
      }
      links[0].a.at.bus->spend_ps(50 * us);
      for (unsigned i = 0; i < links.size(); ++i) EXPECT_TRUE(links[i].a.silent()) << "the bond ends amid it";
      for (unsigned i = 0; i < 2; ++i) {
        EXPECT_EQ(bonds[i]->release(), 0);
        EXPECT_EQ(bonds[i]->release(), -EINVAL) << "once";
        EXPECT_FALSE(nodes[i]->device(0).mirrors_ports());
        expect_same(tables_of_ports(nodes[i]->device(0)), before[i]);
      }
      for (unsigned i = 0; i < links.size(); ++i) {
        EXPECT_EQ(links[i].a.wait_send().status, IBV_WC_SUCCESS) << i;
        EXPECT_TRUE(parcels[i].is_there()) << i;
        expect_works(links[i]);
      }
    }
  });
}

/// Addresses, VLANs and rules that came or went meanwhile are where they belong, and only there.
TEST(BondRelease, KeepsWhatCameMeanwhileOnItsOwnPort) {
  hosts::two_nodes system(cards_to_bond(1, 1));
  run(system, [&] {
    hosts::node &a = system.node_a(), &b = system.node_b();
    host_driver::device& dev = b.device(0);
    const link first = of_function(system, 1, 11, 5);
    hosts::endpoint ends[] = {end_of(a, 0), end_of(a, 0), end_of(b, 2), end_of(b, 0)};
    ends[1].port = 2;
    station by_1(ends[0]), by_2(ends[1]), own(ends[2]), ring(ends[3]);
    own.post_receives(8);
    ring.post_receives(8);
    const bytes of_function_2 = mac_of(own.dev()), group{0x33, 0x33, 0, 0, 0, 9};
    const auto frame = with_destination(frames::udp4, of_function_2), to_group = with_destination(frames::udp4, group);
    auto bonds = bond_both(system);
    EXPECT_GE(dev.add_mac(2, 0x02'1122'3344), 0);
    EXPECT_GE(dev.add_vlan(2, 99), 0);
    ASSERT_NE(own.steer(of_function_2), nullptr);
    ASSERT_NE(program_rule(ring, group, 1), nullptr);
    for (station* by : {&by_1, &by_2}) {
      by->send(to_group);
      EXPECT_EQ(ring.receive().frame, to_group);
    }
    const link second = of_function(system, 2, 31, 6);
    expect_works(second);
    for (const auto& one : bonds) EXPECT_EQ(one->release(), 0);
    const auto has = [&dev](unsigned port, std::uint64_t mac) {
      const auto& macs = dev.port(port).macs;
      return std::count(macs.begin(), macs.end(), abi::set_port::mac_valid | mac);
    };
    const auto tagged = [&dev](unsigned port, std::uint32_t vid) {
      const auto& vlans = dev.port(port).vlans;
      return std::count(vlans.begin(), vlans.end(), abi::set_port::vlan_valid | vid);
    };
    for (const unsigned port : {1u, 2u}) {
      EXPECT_EQ(has(port, 0x02'1122'3344), port == 2 ? 1 : 0);
      EXPECT_EQ(has(port, number_of(of_function_2)), port == 2 ? 1 : 0);
      EXPECT_EQ(tagged(port, 99), port == 2 ? 1 : 0);
      EXPECT_EQ(tagged(port, 5), port == 1 ? 1 : 0);
      EXPECT_EQ(tagged(port, 6), port == 2 ? 1 : 0);
    }
    by_2.send(frame);
    EXPECT_EQ(own.receive().frame, frame) << "its rule is on its port";
    by_1.send(frame);
    EXPECT_TRUE(own.silent()) << "and on no other";
    by_1.send(to_group);
    EXPECT_EQ(ring.receive().frame, to_group) << "the physical function's, too";
    by_2.send(to_group);
    EXPECT_TRUE(ring.silent());
    expect_works(first);
    expect_works(second);
  });
}

/// A port that has no link when the bond ends: its function is told, and its packets wait for that port, and no other.
TEST(BondRelease, FunctionsSeeTheirOwnPortAgain) {
  hosts::two_nodes system(cards_to_bond(1, 1));
  run(system, [&] {
    const link l = of_function(system, 2, 11);
    auto bonds = bond_both(system);
    const auto state = [&l] {
      ibv_port_attr seen{};
      EXPECT_EQ(l.b.dev().query_port(1, &seen), 0);
      return seen.state;
    };
    const auto next_event = [&l] {
      ibv_async_event e{};
      return l.b.dev().get_async_event(&e, 100 * us) ? e.event_type : IBV_EVENT_DEVICE_FATAL;
    };
    ibv_async_event old{};
    while (l.b.dev().get_async_event(&old, 10 * us)) {
    }
    system.cable(1).set_live(false, system.now_ps() + us);
    l.a.at.bus->spend_ps(50 * us);
    EXPECT_EQ(state(), IBV_PORT_ACTIVE) << "by the other port";
    for (hosts::node* n : nodes_of(system)) hosts::require(n->device(0).set_port_map(1, 1), "VIRT_PORT_MAP");
    expect_works(l);
    for (const auto& one : bonds) EXPECT_EQ(one->release(), 0);
    EXPECT_EQ(next_event(), IBV_EVENT_PORT_ERR);
    EXPECT_EQ(state(), IBV_PORT_DOWN);
    const std::uint64_t by_1 = sent_by(system, 1);
    const parcel p(l, 20'000, 7);
    p.send(l);
    l.a.at.bus->spend_ps(200 * us);
    EXPECT_TRUE(l.a.silent());
    system.cable(1).set_live(true, system.now_ps() + us);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(p.is_there());
    EXPECT_EQ(next_event(), IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(sent_by(system, 1), by_1);
    expect_works(l);
  });
}

/// A rule that cannot have a twin: there is no bond, and nothing of it is left.
TEST(BondRelease, BondsThatCannotBeLeaveNothingBehind) {
  hosts::two_nodes system(cards_to_bond(1, 1));
  run(system, [&] {
    hosts::node &a = system.node_a(), &b = system.node_b();
    const link first = of_function(system, 1, 11, 5), second = of_function(system, 2, 21, 6);
    hosts::endpoint ends[] = {end_of(a, 0), end_of(b, 0), end_of(b, 1)};
    ends[0].port = 2;
    station by_2(ends[0]), ring(ends[1]), own(ends[2]);
    ring.post_receives(4);
    own.post_receives(4);
    const bytes group{0x33, 0x33, 0, 0, 0, 9}, own_mac = mac_of(own.dev());
    ASSERT_NE(own.steer(own_mac), nullptr);
    // One queue pair has both ports' frames of a group already.
    host_driver::device& dev = b.device(0);
    host_driver::steering_flow* const flows[2] = {program_rule(ring, group, 1), program_rule(ring, group, 2)};
    ASSERT_NE(flows[0], nullptr);
    ASSERT_NE(flows[1], nullptr);
    const tables_of_ports before(dev);
    const std::uint64_t rules = at_b(system, "steering.flows.writes");
    const auto one = bond_of(b);
    EXPECT_EQ(one->enslave(), -EBUSY);
    EXPECT_FALSE(dev.mirrors_ports());
    expect_same(tables_of_ports(dev), before);
    EXPECT_EQ(at_b(system, "steering.flows.writes"), rules);
    by_2.send(with_destination(frames::udp4, own_mac));
    EXPECT_TRUE(own.silent());
    expect_works(first);
    expect_works(second);
    EXPECT_EQ(dev.destroy_flow(flows[1]), 0);
    EXPECT_EQ(one->enslave(), 0) << "now it can";
    by_2.send(with_destination(frames::udp4, own_mac));
    EXPECT_EQ(own.receive().wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(one->release(), 0);
    expect_works(first);
  });
}

/// A function's rule whose twin has no place: the physical function's table is full.
TEST(BondRelease, FullRuleTablesRefuseABond) {
  hosts::two_nodes_config c = cards_to_bond(1, 1);
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::node& b = system.node_b();
    hosts::endpoint end = end_of(b, 1);
    station own(end);
    ASSERT_NE(own.steer(mac_of(own.dev())), nullptr);
    hosts::endpoint ring_end = end_of(b, 0);
    station ring(ring_end);
    const std::uint32_t qpn = ring.qp()->qp_num;
    unsigned many = 0;
    int error = 0;
    for (; error == 0 && many < 20'000; ++many)
      error = raw_rule(qpn)
                  .ethernet({0x33, 0x33, 7, 0, static_cast<std::uint8_t>(many >> 8), static_cast<std::uint8_t>(many)})
                  .attach(b.device(0));
    ASSERT_EQ(error, -ENOMEM) << many;
    const tables_of_ports before(b.device(0));
    const auto one = bond_of(b);
    EXPECT_EQ(one->enslave(), -ENOMEM);
    EXPECT_FALSE(b.device(0).mirrors_ports());
    expect_same(tables_of_ports(b.device(0)), before);
  });
}

class MadsOfABond : public testing::TestWithParam<std::tuple<unsigned, unsigned>> {};

/// Connections of a function, of either port, when virtual ports stand for one port of each host: made over QP1 of that
/// port, with the function's addresses.
TEST_P(MadsOfABond, FindTheFunctionByEitherPort) {
  const auto [function, port] = GetParam();
  hosts::two_nodes system(cards_to_bond(1, 1));
  run(system, [&, function = function, port = port] {
    gsi_end a(system.node_a(), function, 1), b(system.node_b(), function, 2);
    expect_connects(a, b);
    auto bonds = bond_both(system);
    for (hosts::node* n : nodes_of(system)) hosts::require(n->device(0).set_port_map(port, port), "VIRT_PORT_MAP");
    const std::uint64_t by_other = sent_by(system, 3 - port);
    expect_connects(a, b);
    expect_connects(b, a);
    EXPECT_EQ(sent_by(system, 3 - port), by_other);
    for (const auto& one : bonds) EXPECT_EQ(one->release(), 0);
    expect_connects(b, a);
    EXPECT_EQ(sent_by(system, 3 - port) > by_other, function != port);
  });
}

INSTANTIATE_TEST_SUITE_P(FunctionAndPort, MadsOfABond,
                         testing::Combine(testing::Values(1u, 2u), testing::Values(1u, 2u)));

/// A function that begins behind the bond, too.
TEST(BondRelease, ConnectionsOfAFunctionThatBeginsBelowTheBond) {
  hosts::two_nodes system(cards_to_bond(1, 1));
  run(system, [&] {
    auto bonds = bond_both(system);
    for (hosts::node* n : nodes_of(system)) hosts::require(n->device(0).set_port_map(1, 1), "VIRT_PORT_MAP");
    gsi_end a(system.node_a(), 2, 1), b(system.node_b(), 2, 2);
    expect_connects(a, b);
  });
}

}  // namespace
}  // namespace rnic::system_test
