// SPDX-License-Identifier: Apache-2.0
// Functions of one port each below a bond of their host: its conditions, and what the loss of a port costs.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "host_driver/address_rule.h"
#include "host_driver/bond.h"
#include "testbenches/system/bond/parcel.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/functions/single_port.h"

namespace rnic::system_test {
namespace {

using mode = host_driver::config::bond_mode;
using steering_mode = host_driver::config::steering_mode;

hosts::two_nodes_config bonded_cards(unsigned port_1, unsigned port_2, mode m = mode::balance_xor) {
  hosts::two_nodes_config c = divided_cards(port_1, port_2, 0);
  c.node.driver.steering = steering_mode::device_managed;
  c.node.driver.bond = m;
  return c;
}

hosts::connection_options quick(ibv_qp_type type = IBV_QPT_RC) {
  hosts::connection_options o;
  o.type = type;
  o.ack_timeout = 8;
  o.send_depth = o.receive_depth = 512;
  return o;
}

link between(hosts::two_nodes& system, unsigned function, unsigned host, const hosts::connection_options& o = quick()) {
  hosts::endpoint ends[] = {end_of(system.node_a(), function), end_of(system.node_b(), function)};
  return make_link(ends[0], ends[1], o, host);
}

/// ibv_create_flow for one destination on port 1.
host_driver::steering_flow* rule_of_a_program(const station& s, const bytes& to) {
  host_driver::address_rule rule(to.data(), 1);
  return s.dev().create_flow(s.qp(), &rule.attr);
}

/// The conditions of the product documents, each by the line that names it.
TEST(HighAvailability, ConditionsAreNamed) {
  const auto said = [](const hosts::two_nodes_config& c) {
    return in_child([&c] {
      try {
        hosts::two_nodes system(c);
        run(system, [] {});
      } catch (const sim::config_error& e) {
        return std::string(e.what());
      }
      return std::string();
    });
  };
  hosts::two_nodes_config c = bonded_cards(1, 1);
  EXPECT_EQ(said(c), "");
  c.node.functions = 3;
  EXPECT_EQ(said(c),
            "driver.bond: high availability is not supported for dual-ported virtual functions: 1 of 3 have both ports "
            "(driver.functions.port1, driver.functions.port2)");
  c = bonded_cards(1, 1);
  c.node.driver.steering = steering_mode::b0;
  EXPECT_EQ(said(c),
            "driver.bond: high availability of virtual functions needs flow steering (driver.steering=device_managed, "
            "not b0)");
  EXPECT_EQ(said(bonded_cards(32, 31)), "");
  EXPECT_EQ(said(bonded_cards(32, 32)),
            "driver.bond: high availability is for fewer than 64 virtual functions, not for 64 (host.functions)");
  EXPECT_EQ(said(bonded_cards(1, 0, mode::ecmp)),
            "driver.bond: high availability of virtual functions needs a bond, and ecmp is none");
}

/// The bond is entered amid traffic: the device has its two ports before and after, and what is open goes on.
TEST(HighAvailability, WhatIsOpenStaysOpen) {
  hosts::two_nodes_config c = bonded_cards(1, 1);
  c.node.driver.bond = mode::none;
  hosts::two_nodes system(c);
  run(system, [&] {
    std::vector<link> links;
    for (unsigned f = 0; f <= 2; ++f) links.push_back(between(system, f, 11 + 10 * f));
    hosts::endpoint second[] = {end_of(system.node_a(), 0), end_of(system.node_b(), 0)};
    for (hosts::endpoint& e : second) e.port = 2;
    links.push_back(make_link(second[0], second[1], quick(), 41));
    hosts::endpoint raw_end = end_of(system.node_b(), 1), from_end = end_of(system.node_a(), 0);
    station raw(raw_end), from(from_end);
    const auto& mac = raw.dev().port(1).mac;
    const bytes address(mac.begin(), mac.end());
    ASSERT_NE(raw.steer(address), nullptr);
    raw.post_receives(4);
    hosts::endpoint ring_end = end_of(system.node_b(), 0);
    station ring(ring_end);
    host_driver::steering_flow* const own_flow = rule_of_a_program(ring, frames_destination);
    ASSERT_NE(own_flow, nullptr);
    ring.post_receives(4);
    std::vector<parcel> parcels;
    for (unsigned i = 0; i < links.size(); ++i) parcels.emplace_back(links[i], 400'000, i);
    for (unsigned i = 0; i < links.size(); ++i) parcels[i].send(links[i]);
    host_driver::config bond_config = c.node.driver;
    bond_config.bond = mode::balance_xor;
    std::vector<std::unique_ptr<host_driver::bond>> bonds;
    for (hosts::node* n : {&system.node_a(), &system.node_b()}) {
      EXPECT_EQ(host_driver::bond::obstacle(n->device(0)), "");
      bonds.push_back(std::make_unique<host_driver::bond>(n->device(0), n->bus(0), bond_config, &n->master()));
      ASSERT_EQ(bonds.back()->enslave(), 0);
      EXPECT_EQ(n->device(0).num_ports(), 2u);
      EXPECT_TRUE(n->device(0).mirrors_ports());
      EXPECT_FALSE(n->device(0).is_bonded());
      EXPECT_EQ(n->device(0).mirror_ports(), -EINVAL) << "once";
      const auto &one = n->device(0).port(1), &two = n->device(0).port(2);
      EXPECT_EQ(one.macs, two.macs);
      EXPECT_EQ(one.vlans, two.vlans);
    }
    for (unsigned i = 0; i < links.size(); ++i) {
      EXPECT_EQ(links[i].a.wait_send().status, IBV_WC_SUCCESS) << i;
      EXPECT_TRUE(parcels[i].is_there()) << i;
      expect_works(links[i]);
    }
    // The function's rule and the physical one's were there before, and are on both ports now.
    host_driver::device& host = system.node_a().device(0);
    for (const unsigned port : {1u, 2u}) {
      for (hosts::node* n : {&system.node_a(), &system.node_b()})
        hosts::require(n->device(0).set_port_map(port, port), "VIRT_PORT_MAP");
      EXPECT_EQ(host.num_ports(), 2u);
      const std::uint64_t before = sent_by(system, port);
      const bytes sent = with_destination(frames::udp4, address);
      from.send(sent);
      EXPECT_EQ(raw.receive().frame, sent) << port;
      EXPECT_EQ(sent_by(system, port), before + 1);
      from.send(frames::udp4);
      EXPECT_EQ(ring.receive().frame, frames::udp4) << port;
      for (const link& l : links) expect_works(l);
    }
    EXPECT_EQ(ring.dev().destroy_flow(own_flow), 0);
    for (const unsigned port : {1u, 2u}) {
      hosts::require(host.set_port_map(port, port), "VIRT_PORT_MAP");
      from.send(frames::udp4);
      EXPECT_TRUE(ring.silent()) << port;
    }
  });
}

class OfABond : public testing::TestWithParam<std::tuple<mode, unsigned>> {};

/// A function's port fails amid WRITEs, SENDs and datagrams and comes back: RC loses nothing, UD what was on the line,
/// the function is told of no failure, and its packets go by the other port until its own is there again.
TEST_P(OfABond, AFunctionsPortFailsAndComesBack) {
  const auto [m, function] = GetParam();
  hosts::two_nodes system(bonded_cards(1, 1, m));
  run(system, [&, m = m, function = function] {
    const link l = between(system, function, 11), sends = make_sibling(l, quick());
    const link datagrams = between(system, function, 21, quick(IBV_QPT_UD));
    ibv_async_event e{};
    while (l.a.dev().get_async_event(&e, 10 * us)) {
    }
    std::vector<parcel> parcels;
    for (unsigned i = 0; i < 60; ++i) parcels.emplace_back(l, 30'000 + i, i);
    const hosts::buffer to = hosts::make_buffer(sends.b.at, 60 * 4096),
                        from = hosts::make_buffer(sends.a.at, 60 * 4096);
    std::mt19937_64 random(4);
    fill_random(from.at(), 60 * 4096, random);
    for (unsigned i = 0; i < 60; ++i) post_receive(sends.b, {{to.address() + i * 4096, 4096, to.region->lkey}});
    // Of active-backup the active port is port 1, for everybody.
    const unsigned victim = m == mode::active_backup ? 1 : function;
    const sim::time_ps cut = system.now_ps() + 60 * us, back = cut + 200 * us;
    system.cable(victim - 1).set_live(false, cut);
    system.cable(victim - 1).set_live(true, back);
    for (unsigned i = 0; i < 60; ++i) {
      parcels[i].send(l);
      request r;
      r.opcode = IBV_WR_SEND;
      r.sges.push_back({from.address() + i * 4096, 4096, from.region->lkey});
      post(sends.a, r);
    }
    for (unsigned i = 0; i < 120; ++i) ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS) << i;  // of both
    for (unsigned i = 0; i < 60; ++i) {
      ASSERT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS) << i;
      ASSERT_TRUE(parcels[i].is_there()) << i;
    }
    EXPECT_EQ(std::memcmp(from.at(), to.at(), 60 * 4096), 0) << "in their order";
    // Datagrams while the port is down, none of which is lost.
    const hosts::buffer d_from = hosts::make_buffer(datagrams.a.at, 4096),
                        d_to = hosts::make_buffer(datagrams.b.at, 8192);
    const auto datagram = [&] {
      post_receive(datagrams.b, {{d_to.address(), 2048, d_to.region->lkey}});
      EXPECT_EQ(send_datagram(datagrams.a, quick(IBV_QPT_UD), datagrams.b.at, datagrams.b.qp->qp_num, d_from, 900),
                IBV_WC_SUCCESS);
      EXPECT_EQ(datagrams.b.wait_receive().status, IBV_WC_SUCCESS);
    };
    while (system.now_ps() < back + 100 * us) datagram();
    while (l.a.dev().get_async_event(&e, us))
      EXPECT_EQ(e.event_type, IBV_EVENT_PORT_ACTIVE) << "the function's port has not failed";
    const auto& changes = system.node_a().bond()->changes();
    const bool backup = m == mode::active_backup;
    const unsigned other = 3 - victim;
    ASSERT_EQ(changes.size(), 3u);
    EXPECT_EQ(changes[0].map, backup ? (std::array{1u, 1u}) : (std::array{1u, 2u}));
    EXPECT_EQ(changes[1].map, (std::array{other, other}));
    EXPECT_GE(changes[1].seen_ps, cut);
    EXPECT_LT(changes[1].done_ps, cut + 20 * us) << "event, interrupt, command";
    EXPECT_EQ(changes[2].map, backup ? (std::array{2u, 2u}) : (std::array{1u, 2u}));
    // Back on its own port, where the bond has one of its own.
    const std::array<std::uint64_t, 2> before{sent_by(system, 1), sent_by(system, 2)};
    expect_works(l);
    const unsigned own = backup ? 2 : function;
    EXPECT_GT(sent_by(system, own), before[own - 1] + 100);
    EXPECT_EQ(sent_by(system, 3 - own), before[2 - own]);
  });
  EXPECT_EQ(counted(system, "responder.drop.function"), 0u);
  EXPECT_EQ(counted(system, "responder.drop.address"), 0u);
}
INSTANTIATE_TEST_SUITE_P(functions, OfABond,
                         testing::Combine(testing::Values(mode::balance_xor, mode::active_backup),
                                          testing::Values(1u, 2u)));

/// Both ports again and again, with a time without any: nobody loses a message.
TEST(HighAvailability, LinksThatFlap) {
  hosts::two_nodes system(bonded_cards(1, 1));
  run(system, [&] {
    std::vector<link> links;
    for (unsigned f = 0; f <= 2; ++f) links.push_back(between(system, f, 11 + 10 * f));
    hosts::endpoint second[] = {end_of(system.node_a(), 0), end_of(system.node_b(), 0)};
    for (hosts::endpoint& e : second) e.port = 2;
    links.push_back(make_link(second[0], second[1], quick(), 41));  // the physical function's applications
    std::vector<parcel> parcels;
    for (unsigned i = 0; i < 40 * links.size(); ++i) parcels.emplace_back(links[i % links.size()], 20'000 + i, i);
    const sim::time_ps start = system.now_ps() + 30 * us;
    for (unsigned i = 0; i < 6; ++i) {
      system.cable(i % 2).set_live(false, start + i * 80 * us);
      system.cable(i % 2).set_live(true, start + (i * 80 + 70) * us);
    }
    system.cable(0).set_live(false, start + 500 * us);
    system.cable(1).set_live(false, start + 520 * us);
    system.cable(1).set_live(true, start + 560 * us);
    system.cable(0).set_live(true, start + 600 * us);
    for (std::size_t i = 0; i < parcels.size(); ++i) parcels[i].send(links[i % links.size()]);
    for (std::size_t i = 0; i < parcels.size(); ++i)
      ASSERT_EQ(links[i % links.size()].a.wait_send().status, IBV_WC_SUCCESS) << i;
    for (std::size_t i = 0; i < parcels.size(); ++i) ASSERT_TRUE(parcels[i].is_there()) << i;
    while (system.now_ps() < start + 700 * us) links[0].a.at.bus->spend_ps(10 * us);
    for (const link& l : links) expect_works(l);
    EXPECT_EQ(system.node_a().bond()->changes().back().map, (std::array{1u, 2u}));
  });
}

/// The function's view of its link: down when both are, with the event that says so.
TEST(HighAvailability, TheFunctionsLinkIsThatOfBoth) {
  hosts::two_nodes system(bonded_cards(1, 1));
  run(system, [&] {
    host_driver::device& guest = system.node_a().device(2);
    const auto events = [&] {
      std::vector<int> all;
      ibv_async_event e{};
      while (guest.get_async_event(&e, 50 * us))
        all.push_back(static_cast<int>(e.event_type) * 10 + e.element.port_num);
      return all;
    };
    const auto state = [&] {
      ibv_port_attr port{};
      hosts::require(guest.query_port(1, &port), "query_port");
      return port.state;
    };
    events();
    system.cable(1).set_live(false, system.now_ps() + us);
    EXPECT_TRUE(events().empty()) << "its own port is gone, the other one stands in";
    EXPECT_EQ(state(), IBV_PORT_ACTIVE);
    system.cable(0).set_live(false, system.now_ps() + us);
    EXPECT_EQ(events(), std::vector{IBV_EVENT_PORT_ERR * 10 + 1});
    EXPECT_EQ(state(), IBV_PORT_DOWN);
    system.cable(0).set_live(true, system.now_ps() + us);
    EXPECT_EQ(events(), std::vector{IBV_EVENT_PORT_ACTIVE * 10 + 1});
    EXPECT_EQ(state(), IBV_PORT_ACTIVE);
  });
}

/// Functions of different ports, of one adapter and of two, while one port does for both; what is one's stays one's.
TEST(HighAvailability, FunctionsOfBothPortsOnOne) {
  hosts::two_nodes system(bonded_cards(2, 2));
  run(system, [&] {
    hosts::node &a = system.node_a(), &b = system.node_b();
    for (const unsigned dead : {1u, 2u}) {
      system.cable(dead - 1).set_live(false, system.now_ps() + us);
      a.bus(0).spend_ps(100 * us);
      const unsigned host = 10 * dead;
      expect_works(connect(a, 1, b, 3, host + 1));
      expect_works(connect(a, 4, b, 2, host + 3));
      expect_works(connect(a, 1, a, 4, host + 5));
      expect_works(connect(a, 0, b, 4, host + 7));
      // Where row 16 of one port is not row 16 of the other: what is for function 1 does not reach function 3.
      hosts::connection_options o;
      o.type = IBV_QPT_UD;
      const link first = connect(a, 0, b, 1, 100 + host, o), third = connect(a, 0, b, 3, 120 + host, o);
      const hosts::buffer from = hosts::make_buffer(first.a.at, 4096), to = hosts::make_buffer(third.b.at, 4096);
      post_receive(third.b, {{to.address(), 2048, to.region->lkey}});
      const std::uint64_t before = at_b(system, "responder.drop.function");
      EXPECT_EQ(send_datagram(first.a, o, first.b.at, third.b.qp->qp_num, from, 64), IBV_WC_SUCCESS) << "it leaves";
      third.b.at.bus->spend_ps(20 * us);
      EXPECT_EQ(at_b(system, "responder.drop.function"), before + 1);
      EXPECT_TRUE(third.b.silent());
      system.cable(dead - 1).set_live(true, system.now_ps() + us);
      a.bus(0).spend_ps(100 * us);
    }
    // An address that another function has, of the other port: it is taken.
    const auto& theirs = b.device(1).port(1).gids[0].id;
    EXPECT_LT(b.device(3).add_address(1, theirs), 0);
  });
}

/// Rules that come and go while ports are mirrored, and with a function that is reset.
TEST(HighAvailability, RulesAreOnBothPorts) {
  hosts::two_nodes system(bonded_cards(1, 1));
  run(system, [&] {
    hosts::node &a = system.node_a(), &b = system.node_b();
    hosts::endpoint end = end_of(b, 2), from_end = end_of(a, 0);
    station own(end), from(from_end);
    const auto& mac = own.dev().port(1).mac;
    const bytes address(mac.begin(), mac.end()), sent = with_destination(frames::udp4, address);
    own.post_receives(8);
    const auto by = [&](unsigned port) {
      hosts::require(a.device(0).set_port_map(port, port), "VIRT_PORT_MAP");
      from.send(sent);
    };
    host_driver::steering_flow* const flow = own.steer(address);
    ASSERT_NE(flow, nullptr);
    EXPECT_EQ(b.master().tracker().of(2, host_driver::resource_flow).size(), 1u) << "it knows of one";
    for (const unsigned port : {1u, 2u, 1u}) {
      by(port);
      EXPECT_EQ(own.receive().frame, sent) << port;
    }
    EXPECT_EQ(own.dev().destroy_flow(flow), 0);
    for (const unsigned port : {1u, 2u}) {
      by(port);
      EXPECT_TRUE(own.silent()) << port;
    }
    ASSERT_NE(own.steer(address), nullptr) << "no twin is left";
    by(2);
    EXPECT_EQ(own.receive().frame, sent);
    // A program's of the physical function, too.
    hosts::endpoint ring_end = end_of(b, 0);
    station ring(ring_end);
    const bytes group{0x33, 0x33, 0, 0, 0, 9}, to_group = with_destination(frames::udp4, group);
    ASSERT_NE(rule_of_a_program(ring, group), nullptr);
    ring.post_receives(4);
    for (const unsigned port : {1u, 2u}) {
      hosts::require(a.device(0).set_port_map(port, port), "VIRT_PORT_MAP");
      from.send(to_group);
      EXPECT_EQ(ring.receive().frame, to_group) << port;
    }
  });
}

}  // namespace
}  // namespace rnic::system_test
