// SPDX-License-Identifier: Apache-2.0
// Both ports of an adapter as one device.
#include "host_driver/bond.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "testbenches/system/bond/parcel.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using mode = host_driver::config::bond_mode;

hosts::two_nodes_config bonded(mode m, mode of_b) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  c.node.driver.bond = m;
  c.node_b = c.node;
  c.node_b->driver.bond = of_b;
  return c;
}
hosts::two_nodes_config bonded(mode m) { return bonded(m, m); }

std::uint64_t of_port(hosts::two_nodes& system, char host, unsigned port, const std::string& counter) {
  return system.statistics().value(std::string(1, host) + ".adapter.port" + std::to_string(port) + "." + counter);
}

std::string text_of(const host_driver::mac_address& mac) { return {mac.begin(), mac.end()}; }

/// Frames that host a's ports have sent.
struct sent {
  explicit sent(hosts::two_nodes& s) : system(s) { since(); }
  std::array<std::uint64_t, 2> since() {
    std::array<std::uint64_t, 2> now{}, more{};
    for (unsigned p = 0; p < 2; ++p) {
      now[p] = of_port(system, 'a', p + 1, "tx_frames");
      more[p] = now[p] - before[p];
    }
    before = now;
    return more;
  }
  hosts::two_nodes& system;
  std::array<std::uint64_t, 2> before{};
};

/// To programs it is a device of one port.
TEST(Bond, ShowsOnePort) {
  hosts::two_nodes system(bonded(mode::balance_xor));
  run(system, [&] {
    host_driver::device& dev = *system.a().device;
    ibv_device_attr attr{};
    hosts::require(dev.query_device(&attr), "query_device");
    EXPECT_EQ(attr.phys_port_cnt, 1);
    ibv_port_attr port{};
    EXPECT_EQ(dev.query_port(1, &port), 0);
    EXPECT_EQ(dev.query_port(2, &port), -EINVAL);
    EXPECT_LT(dev.add_address(2, host_driver::ipv4_gid(0x0a000001)), 0);
    expect_works(make_link(system, {}));
  });
}

/// Queue pairs are on virtual ports in turn, the first one on the second (mlx4_ib_bond_next_port), or as they ask.
TEST(Bond, QueuePairsTakeTurnsOrChoose) {
  hosts::two_nodes system(bonded(mode::balance_xor));
  run(system, [&] {
    const link first = make_link(system, {});
    const link second = make_sibling(first, {});
    sent frames(system);
    const parcel p(first, 2048 * 30, 1);
    p.send(first);
    EXPECT_EQ(first.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(frames.since(), (std::array<std::uint64_t, 2>{0, 30}));
    p.send(second);
    EXPECT_EQ(second.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(frames.since(), (std::array<std::uint64_t, 2>{30, 0}));
    EXPECT_TRUE(p.is_there());
  });
  EXPECT_EQ(counted(system, "responder.drop.address"), 0u);
}

TEST(Bond, FlowEntropyChoosesThePort) {
  hosts::two_nodes system(bonded(mode::balance_xor));
  run(system, [&] {
    hosts::endpoint &a = system.a(), &b = system.b();
    hosts::set_address(a, {}, 1);
    hosts::set_address(b, {}, 2);
    sent frames(system);
    host_driver::completion_queue* const cq = a.device->create_cq(64);
    host_driver::completion_queue* const cq_b = b.device->create_cq(64);
    for (const std::uint32_t entropy : {7u, 9u, 4u, 1u, 0u}) {
      hosts::connection_options o;
      o.flow_entropy = entropy;
      link l;
      l.a = {a, cq, cq, hosts::make_qp(a, o, *cq, *cq)};
      l.b = {b, cq_b, cq_b, hosts::make_qp(b, {}, *cq_b, *cq_b)};
      hosts::connect(l.a.at, {}, *l.a.qp, l.b.at, l.b.qp->qp_num, 1, 1);
      hosts::connect(l.b.at, {}, *l.b.qp, l.a.at, l.a.qp->qp_num, 1, 1);
      const parcel p(l, 20 * 2048, entropy);
      p.send(l);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      EXPECT_TRUE(p.is_there());
      const auto by_port = frames.since();
      EXPECT_EQ(by_port[entropy % 2], 20u);
      EXPECT_EQ(by_port[1 - entropy % 2], 0u);
    }
  });
}

/// The answers of a responder go by the port of its own queue pair, whichever port the request came by.
TEST(Bond, AnswersGoByTheirOwnPort) {
  hosts::two_nodes system(bonded(mode::balance_xor, mode::active_backup));
  run(system, [&] {
    const link first = make_link(system, {});  // of a at port 2, of b at port 1
    const std::uint64_t before = of_port(system, 'b', 1, "tx_frames");
    expect_works(first);
    EXPECT_GT(of_port(system, 'a', 2, "tx_frames"), 100u);
    EXPECT_GT(of_port(system, 'b', 1, "tx_frames") - before, 100u);
    EXPECT_EQ(of_port(system, 'b', 2, "tx_frames"), 0u);
  });
}

/// Firmware's check of ports is what keeps packets of the other port out: with it on, nothing arrives.
TEST(Bond, TheCheckOfPortsIsWhatRefuses) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::connection_options o;
    o.ack_timeout = 8;
    hosts::endpoint ends[] = {system.a(), system.b()};
    for (hosts::endpoint& e : ends) e.other = nullptr;
    const link l = make_link(ends[0], ends[1], o);
    // The tables of the second ports are as those of the first, so that nothing but the port is wrong.
    for (const hosts::endpoint* e : {&l.a.at, &l.b.at}) {
      ASSERT_EQ(e->device->add_address(2, e->gid, o.roce), e->gid_index);
      std::uint64_t mac = 0;
      for (const std::uint8_t byte : e->mac) mac = mac << 8 | byte;
      ASSERT_GE(e->device->add_mac(2, mac), 0);
    }
    const parcel p(l, 1000, 3);
    hosts::require(system.a().device->set_port_map(2, 2), "VIRT_PORT_MAP");
    p.send(l);
    l.a.at.bus->spend_ps(5 * ms);
    EXPECT_TRUE(l.a.silent());
    EXPECT_FALSE(p.is_there());
    EXPECT_GT(system.statistics().value("b.adapter.responder.drop.address"), 0u);
    // What enter_bond() says to firmware, and no more. The next repetition is taken; its answer comes by port 1.
    host_driver::command_channel& channel = system.b().device->commands();
    host_driver::command_channel::mailbox box(channel);
    namespace f = abi::config_dev_mailbox;
    abi::set(box.data(), f::update_flags, f::update_rx_port_check);
    abi::set(box.data(), f::roce_flags, f::disable_rx_port_check);
    hosts::require(channel.write(box, abi::opcode::config_dev), "CONFIG_DEV");
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(p.is_there());
  });
}

/// Crossed maps, ports that do not exist.
TEST(Bond, MapsThatMakeNoSenseAreRefused) {
  hosts::two_nodes system(bonded(mode::balance_xor));
  run(system, [&] {
    host_driver::device& dev = *system.a().device;
    for (const auto& [one, two] : {std::pair{2u, 1u}, {0u, 1u}, {1u, 0u}, {3u, 1u}, {1u, 3u}, {0x101u, 2u}})
      EXPECT_EQ(dev.set_port_map(one, two), -EINVAL) << one << ", " << two;
    for (const auto& [one, two] : {std::pair{1u, 1u}, {2u, 2u}, {1u, 2u}}) EXPECT_EQ(dev.set_port_map(one, two), 0);
    EXPECT_EQ(dev.enter_bond(false), -EINVAL) << "it is bonded";
  });
}

class OfAMode : public testing::TestWithParam<mode> {};

/// A cable dies and comes back amid 60 messages: all arrive, by the port that has a link; nobody is told of a port
/// that failed, since the device's has not.
TEST_P(OfAMode, APortFailsAmidMessages) {
  hosts::two_nodes system(bonded(GetParam()));
  run(system, [&] {
    hosts::connection_options o;
    o.ack_timeout = 8;
    o.send_depth = 256;
    const link first = make_link(system, o), second = make_sibling(first, o);
    ibv_async_event e{};
    while (first.a.dev().get_async_event(&e, 10 * us)) {
    }
    std::vector<parcel> parcels;
    for (unsigned i = 0; i < 60; ++i) parcels.emplace_back(first, 30'000 + i, i);
    const bool backup = GetParam() == mode::active_backup;
    const unsigned victim = backup ? 0 : 1;  // the active one
    const sim::time_ps cut = system.now_ps() + 60 * us, back = cut + 150 * us;
    system.cable(victim).set_live(false, cut);
    system.cable(victim).set_live(true, back);
    for (unsigned i = 0; i < parcels.size(); ++i) parcels[i].send(i % 2 == 0 ? first : second);
    for (unsigned i = 0; i < parcels.size(); ++i)
      ASSERT_EQ((i % 2 == 0 ? first : second).a.wait_send().status, IBV_WC_SUCCESS) << i;
    for (const parcel& p : parcels) EXPECT_TRUE(p.is_there());
    while (system.now_ps() < back + 100 * us) first.a.at.bus->spend_ps(10 * us);
    EXPECT_FALSE(first.a.dev().get_async_event(&e, us)) << "the device's port has not failed";
    for (hosts::node* n : {&system.node_a(), &system.node_b()}) {
      const auto& changes = n->bond()->changes();
      ASSERT_EQ(changes.size(), 3u);
      EXPECT_EQ(changes[0].links, 3u);
      EXPECT_EQ(changes[0].map, backup ? (std::array{1u, 1u}) : (std::array{1u, 2u}));
      EXPECT_EQ(changes[1].links, victim == 0 ? 2u : 1u);
      EXPECT_EQ(changes[1].map, backup ? (std::array{2u, 2u}) : (std::array{1u, 1u}));
      EXPECT_GE(changes[1].seen_ps, cut);
      EXPECT_LT(changes[1].done_ps, cut + 20 * us) << "event, interrupt, command";
      EXPECT_EQ(changes[2].map, backup ? (std::array{2u, 2u}) : (std::array{1u, 2u})) << "active-backup stays";
    }
  });
  EXPECT_EQ(counted(system, "responder.drop.address"), 0u);
}

/// Without any link there is nothing to send by; the device's port goes down and comes up, and the message arrives.
TEST_P(OfAMode, BothPortsFail) {
  hosts::two_nodes system(bonded(GetParam()));
  run(system, [&] {
    hosts::connection_options o;
    o.ack_timeout = 8;
    const link l = make_link(system, o);
    const auto next = [&](std::uint64_t patience) {
      ibv_async_event e{};
      return l.a.dev().get_async_event(&e, patience) ? static_cast<int>(e.event_type) * 10 + e.element.port_num : -1;
    };
    while (next(10 * us) >= 0) {
    }
    const sim::time_ps now = system.now_ps();
    system.cable(0).set_live(false, now + 1000);
    system.cable(1).set_live(false, now + 50 * us);
    EXPECT_EQ(next(40 * us), -1);
    EXPECT_EQ(next(40 * us), IBV_EVENT_PORT_ERR * 10 + 1);
    ibv_port_attr attr{};
    hosts::require(l.a.dev().query_port(1, &attr), "query_port");
    EXPECT_EQ(attr.state, IBV_PORT_DOWN);
    const parcel p(l, 10'000, 1);
    p.send(l);
    system.cable(1).set_live(true, system.now_ps() + 100 * us);
    EXPECT_EQ(next(200 * us), IBV_EVENT_PORT_ACTIVE * 10 + 1);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(p.is_there());
    hosts::require(l.a.dev().query_port(1, &attr), "query_port");
    EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  });
}
INSTANTIATE_TEST_SUITE_P(bonds, OfAMode, testing::Values(mode::active_backup, mode::balance_xor, mode::ecmp));

/// Of a bond both ports send with its address; without one each has its own, and so has a queue pair that moves.
TEST(Bond, AddressesOfTheForms) {
  const auto senders = [](mode m) {
    return in_child([m] {
      hosts::two_nodes system(bonded(m));
      std::string text;
      run(system, [&] {
        const std::string own[] = {text_of(system.node_a().device().port(1).mac),
                                   text_of(system.node_a().device().port(2).mac)};
        hosts::connection_options o;
        o.type = IBV_QPT_UD;
        const link l = make_link(system, o);
        for (const unsigned port : {1u, 2u}) {
          hosts::require(system.a().device->set_port_map(port, port), "VIRT_PORT_MAP");
          const hosts::buffer to = hosts::make_buffer(l.b.at, 4096);
          post_receive(l.b, {{to.address(), 2048, to.region->lkey}});
          const ibv_ah_attr path = hosts::path_of(l.a.at, o, l.b.at);
          l.a.dev().add_neighbour(l.b.at.gid, l.b.at.mac);
          host_driver::address_handle* const ah = l.a.dev().create_ah(l.a.at.pd, &path);
          ibv_send_wr wr{}, *bad = nullptr;
          wr.opcode = IBV_WR_SEND;
          wr.send_flags = IBV_SEND_SIGNALED;
          wr.wr.ud = {ah, l.b.qp->qp_num, hosts::datagram_qkey};
          hosts::require(l.a.dev().post_send(l.a.qp, &wr, &bad), "post_send");
          EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
          EXPECT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
          const auto source = text_of(l.b.dev().last_source(*l.b.receive_cq));
          text += source == own[0] ? "1" : source == own[1] ? "2" : "?";
        }
        ibv_port_attr attr{};
        hosts::require(system.a().device->query_port(1, &attr), "query_port");
        text += " " + std::to_string(attr.gid_tbl_len);
      });
      return text;
    });
  };
  EXPECT_EQ(senders(mode::balance_xor), "11 128");
  EXPECT_EQ(senders(mode::active_backup), "11 128");
  EXPECT_EQ(senders(mode::ecmp), "12 64");
}

/// A ring of a network interface sends by its own port, whatever the map says (MLX4_QP_BIT_FPP), an application's raw
/// packet queue pair by the map.
TEST(Bond, RingsOfInterfacesKeepTheirPort) {
  hosts::two_nodes system(bonded(mode::balance_xor));
  run(system, [&] {
    hosts::require(system.a().device->set_port_map(1, 1), "VIRT_PORT_MAP");
    sent frames(system);
    hosts::endpoint second = system.a();
    second.port = 2;
    station::options o;
    o.ethernet.physical_port = true;
    station ring(second, o);
    const bytes frame(100, 2);
    ring.send(frame);
    EXPECT_EQ(ring.wait_sent().status, IBV_WC_SUCCESS);
    system.a().bus->spend_ps(10 * us);
    EXPECT_EQ(frames.since(), (std::array<std::uint64_t, 2>{0, 1}));
    station other(system.a());  // the first one in turn: virtual port 2
    other.send(frame);
    EXPECT_EQ(other.wait_sent().status, IBV_WC_SUCCESS);
    system.a().bus->spend_ps(10 * us);
    EXPECT_EQ(frames.since(), (std::array<std::uint64_t, 2>{1, 0}));
  });
}

/// An application's rules are on both ports, as are RoCE groups; those of a network interface on its own.
TEST(Bond, RulesAreOnBothPorts) {
  hosts::two_nodes_config c = bonded(mode::balance_xor);
  c.node_b->driver.steering = host_driver::config::steering_mode::device_managed;
  hosts::two_nodes system(c);
  run(system, [&] {
    std::array<hosts::endpoint, 2> ends{system.a(), system.a()};
    ends[1].port = 2;
    station::options o;
    o.ethernet.physical_port = true;
    station first(ends[0], o), second(ends[1], o), both(system.b()), one(system.b());
    both.post_receives(8);
    one.post_receives(8);
    host_driver::steering_flow* const rule = both.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    hosts::endpoint at = one.at();
    const host_driver::mac_address own{2, 0, 0, 0, 0x0b, 1};
    host_driver::steering_flow* const of_port_2 = at.device->create_flow(one.qp(), 2, own);
    ASSERT_NE(of_port_2, nullptr);
    bytes frame(100, 2);
    std::copy(own.begin(), own.end(), frame.begin());
    first.send(frame);
    EXPECT_EQ(both.receive().frame, frame);
    second.send(frame);
    EXPECT_EQ(one.receive().frame, frame);
    ASSERT_EQ(at.device->destroy_flow(of_port_2), 0);
    second.send(frame);
    EXPECT_EQ(both.receive().frame, frame);
    ASSERT_EQ(at.device->destroy_flow(rule), 0);
    for (station* s : {&first, &second}) s->send(frame);
    EXPECT_TRUE(both.silent() && one.silent());
  });
}

/// A function's queue pair goes where its host says: it cannot force a port, nor change the map or the check.
TEST(Bond, AFunctionCannotLeaveTheMap) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  c.node.functions = 1;
  hosts::two_nodes system(c);
  run(system, [&] {
    host_driver::command_channel& channel = system.node_a().device(1).commands();
    host_driver::command_channel::mailbox box(channel);
    abi::set(box.data(), abi::virt_port_map_mailbox::port_1, 2u);
    abi::set(box.data(), abi::virt_port_map_mailbox::port_2, 2u);
    EXPECT_NE(channel.write(box, abi::opcode::virt_port_map, 0, abi::virt_port_map_mailbox::op_set), 0);
    EXPECT_NE(channel.write(box, abi::opcode::config_dev), 0);
    EXPECT_EQ(host_driver::bond::obstacle(system.node_a().device(1)), "a virtual function is bonded by its host");
    EXPECT_EQ(host_driver::bond::obstacle(system.node_a().device())
                  .find("high availability is not supported for dual-ported virtual functions"),
              0u);
  });
}

/// Objects of before would be at ports that are no more.
TEST(Bond, BeginsWithoutObjects) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  hosts::two_nodes system(c);
  run(system, [&] {
    const link l = make_link(system.a(), system.b(), {});
    EXPECT_EQ(l.a.dev().enter_bond(false), -EBUSY);
    expect_works(l);
  });
}

/// Closed and opened again, the device has two ports, each the one of its number.
TEST(Bond, EndsWithTheDevice) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  hosts::two_nodes system(c);
  run(system, [&] {
    host_driver::device& dev = *system.a().device;
    hosts::require(dev.enter_bond(false), "enter_bond");
    hosts::require(dev.set_port_map(2, 2), "VIRT_PORT_MAP");
    hosts::require(dev.close(), "close");
    hosts::require(dev.open(), "open");
    EXPECT_FALSE(dev.is_bonded());
    const link l = make_link(system.a(), system.b(), {});
    sent frames(system);
    expect_works(l);
    EXPECT_EQ(frames.since()[1], 0u);
  });
}

}  // namespace
}  // namespace rnic::system_test
