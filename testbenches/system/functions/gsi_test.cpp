// SPDX-License-Identifier: Apache-2.0
// Connections of virtual functions: their management datagrams through proxies, tunnels and QP1 of the wire.
#include <gtest/gtest.h>

#include "testbenches/system/functions/connects.h"
#include "testbenches/system/functions/gsi_host.h"

namespace rnic::system_test {
namespace {

using event_kind = cm::event::kind;

const host_driver::mad_tunnel::counters& mads_of(hosts::node& n) { return n.master().mads().counts(); }

hosts::connection_options addresses_of(const encapsulation_case& e) {
  hosts::connection_options o;
  o.roce = e.roce;
  o.ip = e.ip;
  return o;
}

TEST(FunctionConnections, OfTwoHosts) {
  for (const encapsulation_case& e : encapsulations) {
    EXPECT_EQ(in_child([&e] {
                hosts::two_nodes system(shared_cards(2));
                run(system, [&] {
                  gsi_end a(system.node_a(), 1, 1, addresses_of(e)), b(system.node_b(), 2, 2, addresses_of(e));
                  expect_connects(a, b);
                  expect_connects(b, a);
                  EXPECT_GT(mads_of(system.node_a()).to_wire, 0u);
                  EXPECT_EQ(mads_of(system.node_a()).to_wire, mads_of(system.node_b()).to_functions);
                });
                return std::string("done");
              }),
              "done");
  }
}

TEST(FunctionConnections, ToThePhysicalFunctionOfAnotherHost) {
  hosts::two_nodes system(shared_cards(1));
  run(system, [&] {
    gsi_end a(system.node_a(), 1, 1), b(system.node_b(), 0, 2);
    expect_connects(a, b);
    expect_connects(b, a);
  });
}

/// The port's own addresses: nothing of this is on the cable.
TEST(FunctionConnections, OfOneHost) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    const std::uint64_t sent = system.statistics().value("a.adapter.port1.tx_frames");
    gsi_end a(system.node_a(), 1, 1), b(system.node_a(), 2, 2), c(system.node_a(), 0, 3);
    expect_connects(a, b);
    expect_connects(b, c);
    expect_connects(c, a);
    EXPECT_EQ(system.statistics().value("a.adapter.port1.tx_frames"), sent);
  });
}

/// Each function numbers its connections as if it were alone, here with the same numbers; the peer has one table.
TEST(FunctionConnections, SameNumbersOfTwoFunctionsDoNotMeet) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    gsi_end first(system.node_a(), 1, 1, {}, 500), second(system.node_a(), 2, 2, {}, 500), b(system.node_b(), 0, 3);
    b.manager.listen(some_service);
    const std::uint64_t now = b.s.at.bus->now_ps();
    const auto ask = [&](gsi_end& from, std::uint32_t qpn) {
      cm::connection_data d = request_from(from, b).connection;
      d.qpn = qpn;
      return from.manager.connect(from.to(b), d, {}, now);
    };
    ASSERT_EQ(ask(first, 11), 500u);
    ASSERT_EQ(ask(second, 22), 500u);
    settle({&first, &second, &b});
    const cm::event one = b.next(event_kind::request), other = b.next(event_kind::request);
    EXPECT_NE(one.message.local_id, other.message.local_id) << "one QP1, two connections";
    for (const cm::event& e : {one, other}) {
      cm::connection_data d;
      d.qpn = e.message.connection.qpn + 100;
      ASSERT_TRUE(b.manager.accept(e.id, d, {}, now));
    }
    settle({&first, &second, &b});
    EXPECT_EQ(first.next(event_kind::reply).message.connection.qpn, 111u);
    EXPECT_EQ(second.next(event_kind::reply).message.connection.qpn, 122u);
    EXPECT_EQ(first.manager.state_of(500), cm::state::rep_received);
    EXPECT_EQ(second.manager.state_of(500), cm::state::rep_received);
  });
}

/// The administrator's VLAN is on the wire, and the function knows nothing of it.
TEST(FunctionConnections, InTheVlanOfTheAdministrator) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.function_settings.resize(2);
  c.node.function_settings[0].vlan = 50;
  c.node.function_settings[0].priority = 3;
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::connection_options tagged;
    tagged.vlan = 50;
    gsi_end inside(system.node_a(), 1, 1), physical(system.node_b(), 0, 2, tagged), plain(system.node_b(), 2, 3);
    inside.send(inside.to(physical), cm::encode(request_from(inside, physical)).data());
    const gsi_end::arrival got = physical.receive();
    ASSERT_TRUE(got.any);
    EXPECT_EQ(got.wc.sl, 3u) << "the priority in the tag";
    EXPECT_EQ(got.source, inside.s.at.mac);
    physical.send(physical.to(inside), cm::encode(request_from(physical, inside)).data());
    EXPECT_TRUE(inside.receive().any);
    // What is not of the VLAN is not for the function.
    plain.send(plain.to(inside), cm::encode(request_from(plain, inside)).data());
    EXPECT_FALSE(inside.receive().any);
    using host_driver::mad_rules::fault;
    EXPECT_EQ(mads_of(system.node_a()).from_wire[static_cast<std::size_t>(fault::vlan)], 1u);
  });
}

/// What the way costs: an interrupt of the physical function's driver at each end, and its work.
TEST(FunctionConnections, InterruptsAreOnTheWay) {
  const auto took = [](std::uint64_t interrupt_ns) {
    return in_child([interrupt_ns] {
      hosts::two_nodes_config c = shared_cards(1);
      c.node.driver.interrupt_ns = interrupt_ns;
      hosts::two_nodes system(c);
      std::uint64_t ps = 0;
      run(system, [&] {
        gsi_end a(system.node_a(), 1, 1), b(system.node_b(), 1, 2);
        const std::uint64_t begin = system.now_ps();
        a.send(a.to(b), cm::encode(request_from(a, b)).data());
        EXPECT_TRUE(b.receive().any);
        ps = system.now_ps() - begin;
      });
      return std::to_string(ps);
    });
  };
  const std::uint64_t usual = std::stoull(took(1500)), slow = std::stoull(took(11'500));
  EXPECT_GT(usual, 2 * 1500 * 1000u);
  // Twice 10 us, but for where in a cycle of the adapter each doorbell comes.
  EXPECT_NEAR(static_cast<double>(slow - usual), 2e7, 1e4);
}

/// A driver that has gone leaves nothing behind for the next one of its function, and what comes meanwhile is dropped.
TEST(FunctionConnections, EndWithTheDriverOfTheFunction) {
  hosts::two_nodes system(shared_cards(1));
  run(system, [&] {
    using host_driver::mad_rules::fault;
    gsi_end b(system.node_b(), 0, 2);
    cm::address gone;
    {
      gsi_end a(system.node_a(), 1, 1);
      gone = b.to(a);
      b.send(gone, cm::encode(request_from(b, a)).data());
      EXPECT_TRUE(a.receive().any);
      a.send(a.to(b), cm::encode(request_from(a, b)).data());
      EXPECT_TRUE(b.receive().any);
      EXPECT_EQ(system.node_a().master().mads().ids().size(), 1u);
      EXPECT_EQ(a.s.dev().close(), 0);
    }
    EXPECT_EQ(system.node_a().master().mads().ids().size(), 0u);
    const cm::contents late = [&] {
      cm::contents c;
      c.kind = cm::message::rtu;
      return c;
    }();
    b.send(gone, cm::encode(late).data());
    b.s.at.bus->spend_ps(100 * us);
    const auto& dropped = mads_of(system.node_a()).from_wire;
    EXPECT_EQ(dropped[static_cast<std::size_t>(fault::destination)], 0u) << "hardware has no such address any more";
    ASSERT_EQ(system.node_a().device(1).open(), 0);
    gsi_end again(system.node_a(), 1, 1);
    expect_connects(again, b);
    // QP1 alone goes: there is an address, and nobody there.
    EXPECT_EQ(again.s.dev().destroy_qp(again.s.qp), 0);
    b.send(b.to(again), cm::encode(request_from(b, again)).data());
    b.s.at.bus->spend_ps(100 * us);
    EXPECT_EQ(dropped[static_cast<std::size_t>(fault::inactive)], 1u);
    again.open();
    expect_connects(again, b);
  });
}

TEST(FunctionConnections, EndWithThePhysicalFunctionsDriver) {
  hosts::two_nodes system(shared_cards(1));
  run(system, [&] {
    gsi_end a(system.node_a(), 1, 1), b(system.node_b(), 1, 2);
    expect_connects(a, b);
    EXPECT_EQ(system.node_a().device(0).close(), 0);
    EXPECT_EQ(b.send(b.to(a), cm::encode(request_from(b, a)).data()), IBV_WC_SUCCESS);
    b.s.at.bus->spend_ps(5 * ms);
    EXPECT_EQ(mads_of(system.node_b()).to_wire, mads_of(system.node_a()).to_functions + 1) << "nobody was there";
  });
}

}  // namespace
}  // namespace rnic::system_test
