// SPDX-License-Identifier: Apache-2.0
// The end of a bond without virtual functions: two ports again, each for itself, and another bond after it.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <functional>
#include <vector>

#include "host_driver/bond.h"
#include "testbenches/system/bond/parcel.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using mode = host_driver::config::bond_mode;
constexpr std::uint64_t five_seconds = 5000 * ms;

hosts::two_nodes_config to_release(mode m) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  c.node.driver.bond = m;
  return c;
}

hosts::connection_options impatient() {
  hosts::connection_options o;
  o.ack_timeout = 8;
  o.send_depth = 256;
  return o;
}

std::array<std::uint64_t, 2> frames_of(hosts::node& n) {
  return {n.nic().port(0).count().tx_frames, n.nic().port(1).count().tx_frames};
}

link at_port(hosts::two_nodes& system, unsigned port, unsigned host) {
  hosts::endpoint ends[] = {system.a(), system.b()};
  for (hosts::endpoint& e : ends) e.port = port;
  return make_link(ends[0], ends[1], impatient(), host);
}

void destroy(const link& l) {
  for (const side* s : {&l.a, &l.b}) hosts::require(s->dev().destroy_qp(s->qp), "destroy_qp");
}

void expect_delivered(const link& l, unsigned seed) {
  const parcel p(l, 100'000, seed);
  p.send(l);
  EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(p.is_there());
}

/// What a driver keeps of a port, and hardware has too.
void expect_tables(const host_driver::port_state& now, const host_driver::port_state& expected) {
  EXPECT_EQ(now.mac, expected.mac);
  EXPECT_EQ(now.macs, expected.macs);
  EXPECT_EQ(now.vlans, expected.vlans);
  EXPECT_EQ(now.gid_rows, expected.gid_rows);
  for (std::size_t i = 0; i < now.gids.size(); ++i) {
    const auto &a = now.gids[i], &b = expected.gids[i];
    EXPECT_TRUE(a.id == b.id && a.type == b.type && a.vlan == b.vlan && a.valid == b.valid) << i;
    EXPECT_EQ(now.mac_users[i].all(), expected.mac_users[i].all()) << i;
    EXPECT_EQ(now.vlan_users[i].all(), expected.vlan_users[i].all()) << i;
  }
}

/// Both hosts act, each in its own process; then host a's program checks.
struct stage {
  std::function<void(hosts::node&)> act;
  std::function<void()> check;
};
void run_stages(hosts::two_nodes& system, const std::vector<stage>& stages) {
  const auto program = [&](hosts::node& n, bool checks) {
    for (const stage& s : stages) {
      system.meet();
      s.act(n);
      system.meet();
      if (checks) s.check();
    }
    system.meet();
  };
  system.run([&] { program(system.node_a(), true); }, [&] { program(system.node_b(), false); });
}

/// Packets come in by the port of their path alone; addresses at the other port make that the only thing wrong.
void expect_arrival_is_checked(hosts::two_nodes& system) {
  const link l = at_port(system, 1, 11);
  std::array<int, 2> macs{};
  for (unsigned i = 0; i < 2; ++i) {
    const hosts::endpoint& e = (i == 0 ? l.a : l.b).at;
    const host_driver::gid_row& row = e.device->port(1).gids[static_cast<std::size_t>(e.gid_index)];
    ASSERT_EQ(row.type, IBV_GID_TYPE_ROCE_V2);
    // In the same row: what is before it in the table of port 1 was the bond's.
    unsigned others = 0;
    int at = 0;
    const auto v2 = host_driver::roce_types::v2;
    while ((at = e.device->add_address(2, e.gid, v2)) != e.gid_index) {
      ASSERT_LT(at, e.gid_index);
      ASSERT_EQ(e.device->remove_address(2, e.gid), 0);
      ASSERT_EQ(e.device->add_address(2, host_driver::ipv4_gid(0x0b000000 + ++others), v2), at);
    }
    for (; others != 0; --others) ASSERT_EQ(e.device->remove_address(2, host_driver::ipv4_gid(0x0b000000 + others)), 0);
    std::uint64_t mac = 0;
    for (const std::uint8_t byte : e.mac) mac = mac << 8 | byte;
    macs[i] = e.device->add_mac(2, mac);
    ASSERT_GE(macs[i], 0);
  }
  const std::uint64_t refused = system.statistics().value("b.adapter.responder.drop.address");
  hosts::require(l.a.dev().set_port_map(2, 2), "VIRT_PORT_MAP");
  const parcel p(l, 1000, 9);
  p.send(l);
  l.a.at.bus->spend_ps(2 * ms);
  EXPECT_TRUE(l.a.silent());
  EXPECT_FALSE(p.is_there());
  EXPECT_GT(system.statistics().value("b.adapter.responder.drop.address"), refused);
  hosts::require(l.a.dev().set_port_map(1, 2), "VIRT_PORT_MAP");
  EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(p.is_there());
  destroy(l);
  for (unsigned i = 0; i < 2; ++i) {
    const hosts::endpoint& e = (i == 0 ? l.a : l.b).at;
    EXPECT_EQ(e.device->remove_address(2, e.gid), 0);
    EXPECT_EQ(e.device->remove_mac(2, static_cast<unsigned>(macs[i])), 0);
  }
}

/// Each port's queue pairs go by it alone; when it fails they wait for it, and the other port's do not notice.
void expect_two_devices(hosts::two_nodes& system) {
  expect_arrival_is_checked(system);
  const link links[] = {at_port(system, 1, 11), at_port(system, 2, 21)};
  for (unsigned i = 0; i < 2; ++i) {
    hosts::node* const nodes[] = {&system.node_a(), &system.node_b()};
    std::array<std::uint64_t, 2> before[] = {frames_of(*nodes[0]), frames_of(*nodes[1])};
    expect_works(links[i]);
    for (unsigned n = 0; n < 2; ++n) {
      EXPECT_GT(frames_of(*nodes[n])[i], before[n][i] + 100);
      EXPECT_EQ(frames_of(*nodes[n])[1 - i], before[n][1 - i]);
    }
  }
  for (unsigned victim = 0; victim < 2; ++victim) {
    ibv_async_event e{};
    while (links[0].a.dev().get_async_event(&e, 10 * us)) {
    }
    system.cable(victim).set_live(false, system.now_ps() + us);
    links[0].a.at.bus->spend_ps(50 * us);
    ASSERT_TRUE(links[0].a.dev().get_async_event(&e, us));
    EXPECT_EQ(e.event_type, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(e.element.port_num, static_cast<int>(victim + 1));
    const parcel waits(links[victim], 20'000, victim);
    waits.send(links[victim]);
    expect_delivered(links[1 - victim], 5);
    links[0].a.at.bus->spend_ps(200 * us);
    EXPECT_TRUE(links[victim].a.silent());
    system.cable(victim).set_live(true, system.now_ps() + us);
    EXPECT_EQ(links[victim].a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(waits.is_there());
  }
  for (const link& l : links) destroy(l);
}

/// A port fails amid messages of queue pairs on both virtual ports, and all arrive.
void expect_one_device(hosts::two_nodes& system) {
  EXPECT_EQ(system.node_a().device().num_ports(), 1u);
  EXPECT_EQ(system.node_a().bond()->changes().back().active, 3u);
  hosts::endpoint ends[] = {system.a(), system.b()};
  const link first = make_link(ends[0], ends[1], impatient(), 1), other = make_sibling(first, impatient());
  ibv_async_event e{};
  while (first.a.dev().get_async_event(&e, 10 * us)) {
  }
  std::vector<parcel> parcels;
  for (unsigned i = 0; i < 40; ++i) parcels.emplace_back(first, 30'000 + i, i);
  const sim::time_ps cut = system.now_ps() + 60 * us, back = cut + 150 * us;
  system.cable(0).set_live(false, cut);
  system.cable(0).set_live(true, back);
  for (unsigned i = 0; i < parcels.size(); ++i) parcels[i].send(i % 2 == 0 ? first : other);
  for (unsigned i = 0; i < parcels.size(); ++i)
    ASSERT_EQ((i % 2 == 0 ? first : other).a.wait_send().status, IBV_WC_SUCCESS) << i;
  while (system.now_ps() < back + 300 * us) first.a.at.bus->spend_ps(10 * us);
  for (std::size_t i = 0; i < parcels.size(); ++i) EXPECT_TRUE(parcels[i].is_there()) << i;
  EXPECT_FALSE(first.a.dev().get_async_event(&e, us)) << "the device's port has not failed";
  for (hosts::node* n : {&system.node_a(), &system.node_b()}) {
    const host_driver::bond& bond = *n->bond();
    EXPECT_EQ(bond.changes().back().active, 3u);
    bool failed_over = false;
    for (const auto& c : bond.changes()) failed_over |= c.map == std::array{2u, 2u};
    EXPECT_TRUE(failed_over);
    EXPECT_EQ(n->device().leave_bond(), -EBUSY);
    EXPECT_EQ(n->bond()->release(), -EBUSY) << "programs have queue pairs";
  }
  expect_works(first);
  destroy(first);
  destroy(other);
}

class BondEnds : public testing::TestWithParam<mode> {};

/// Bonded, released, bonded, released, with messages in each.
TEST_P(BondEnds, AndBeginsAgain) {
  hosts::two_nodes system(to_release(GetParam()));
  const auto release = [](hosts::node& n) {
    EXPECT_EQ(n.bond()->release(), 0);
    EXPECT_EQ(n.bond()->release(), -EINVAL) << "once";
    EXPECT_EQ(n.bond()->lacp(), nullptr);
    EXPECT_FALSE(n.device().is_bonded());
    EXPECT_EQ(n.device().num_ports(), 2u);
    EXPECT_NE(n.device().port(1).mac, n.device().port(2).mac);
  };
  const auto again = [](hosts::node& n) { EXPECT_EQ(n.start_bond(), 0); };
  run_stages(system, {{[](hosts::node&) {}, [&] { expect_one_device(system); }},
                      {release, [&] { expect_two_devices(system); }},
                      {again, [&] { expect_one_device(system); }},
                      {release, [&] { expect_two_devices(system); }}});
}

/// What was registered for port 2 before is there again, and only that; port 1 has what the bond's port was given.
TEST_P(BondEnds, AndTablesAreThoseOfBefore) {
  hosts::two_nodes_config c = to_release(mode::none);
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::node& n = system.node_a();
    host_driver::device& dev = n.device();
    ASSERT_GE(dev.add_address(1, host_driver::ipv4_gid(0x0a000001), host_driver::roce_types::both, 5), 0);
    ASSERT_GE(dev.add_address(2, host_driver::ipv4_gid(0x0a000002), host_driver::roce_types::both, 6), 0);
    ASSERT_GE(dev.add_mac(2, 0x02'1122'3344), 0);
    const host_driver::port_state before[] = {dev.port(1), dev.port(2)};
    host_driver::config settings = dev.settings();
    settings.bond = GetParam();
    host_driver::bond bond(dev, n.bus(), settings);
    const std::uint64_t pinned = dev.pinned().bytes();
    for (unsigned round = 0; round < 2; ++round) {
      ASSERT_EQ(bond.enslave(), 0);
      EXPECT_EQ(bond.enslave(), -EBUSY);
      ASSERT_GE(dev.add_address(1, host_driver::ipv4_gid(0x0a000003), host_driver::roce_types::both, 7), 0);
      ASSERT_EQ(bond.release(), 0);
      EXPECT_GE(dev.find_gid(1, host_driver::ipv4_gid(0x0a000003), IBV_GID_TYPE_ROCE_V2, 7), 0);
      EXPECT_EQ(dev.find_gid(2, host_driver::ipv4_gid(0x0a000003), IBV_GID_TYPE_ROCE_V2, 7), -ENOENT);
      ASSERT_EQ(dev.remove_address(1, host_driver::ipv4_gid(0x0a000003), 7), 0);
      for (const unsigned port : {1u, 2u}) expect_tables(dev.port(port), before[port - 1]);
      EXPECT_EQ(dev.pinned().bytes(), pinned);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Modes, BondEnds,
                         testing::Values(mode::active_backup, mode::balance_xor, mode::ecmp, mode::ieee_802_3ad));

/// LACP is silent behind a release, and its group address has no rule any more.
TEST(BondRelease, LacpIsSilentThen) {
  hosts::two_nodes system(to_release(mode::ieee_802_3ad));
  run_stages(system, {{[](hosts::node& n) { EXPECT_EQ(n.bond()->release(), 0); },
                       [&] {
                         const auto before = frames_of(system.node_a());
                         system.a().bus->spend_ps(five_seconds);
                         EXPECT_EQ(frames_of(system.node_a()), before);
                       }},
                      {[](hosts::node& n) { EXPECT_EQ(n.start_bond(), 0); }, [&] { expect_one_device(system); }}});
}

}  // namespace
}  // namespace rnic::system_test
