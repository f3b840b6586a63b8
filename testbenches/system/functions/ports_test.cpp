// SPDX-License-Identifier: Apache-2.0
// Functions with one port: they see that one, and by no way in reach the other.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/queue_entries.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/functions/single_port.h"

namespace rnic::system_test {
namespace {

using abi::opcode;
using host_driver::command_channel;

/// Types and ports of the events that a device has had, two digits each.
std::vector<int> events_of(host_driver::device& dev) {
  std::vector<int> all;
  ibv_async_event e{};
  while (dev.get_async_event(&e, 10 * us)) all.push_back(static_cast<int>(e.event_type) * 10 + e.element.port_num);
  return all;
}

TEST(SinglePort, IsTheOnlyOneThatAFunctionSees) {
  hosts::two_nodes system(divided_cards(1, 1, 1));
  run(system, [&] {
    hosts::node& n = system.node_a();
    for (unsigned f = 1; f <= 3; ++f) {
      host_driver::device& dev = n.device(f);
      const unsigned ports = f == 3 ? 2 : 1;
      EXPECT_EQ(dev.num_ports(), ports);
      ibv_device_attr attr{};
      hosts::require(dev.query_device(&attr), "query_device");
      EXPECT_EQ(attr.phys_port_cnt, ports);
      ibv_port_attr port{};
      EXPECT_EQ(dev.query_port(1, &port), 0);
      EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
      EXPECT_EQ(dev.query_port(2, &port), ports == 2 ? 0 : -EINVAL);
      // Two functions divide the 112 rows of each port.
      for (unsigned p = 1; p <= ports; ++p) EXPECT_EQ(dev.port(p).gid_rows, 56u) << f;
      command_channel::mailbox box(dev.commands());
      namespace c = abi::func_cap;
      hosts::require(dev.commands().execute({opcode::query_func_cap, 1, 1, 0, box.address(), nullptr}), "its port");
      EXPECT_EQ(abi::get(box.data(), c::physical_port), 1u) << "by its own number";
      EXPECT_EQ(abi::get(box.data(), c::port_flags), c::port_nic_info);
    }
    // The address of function 2 is in the table of port 2, and its GIDs behind those of nobody.
    const host_driver::device& host = n.device(0);
    const auto mac = n.device(2).port(1).mac;
    std::uint64_t entry = 0;
    for (const std::uint8_t byte : mac) entry = entry << 8 | byte;
    entry |= abi::set_port::mac_valid;
    const auto has = [entry](const host_driver::port_state& p) {
      return std::count(p.macs.begin(), p.macs.end(), entry);
    };
    EXPECT_EQ(has(host.port(1)), 0);
    EXPECT_EQ(has(host.port(2)), 1);
    EXPECT_TRUE(host.port(2).gids[16].valid);
    EXPECT_EQ(host.port(2).gids[16].id, n.device(2).port(1).gids[0].id);
    EXPECT_EQ(n.nic().gids(1)[16].function, 2u) << "so says hardware";
    EXPECT_EQ(n.nic().gids(0)[16].function, 1u);
    EXPECT_EQ(n.nic().gids(0)[72].function, 3u);
    EXPECT_EQ(n.nic().gids(1)[72].function, 3u);
  });
}

TEST(SinglePort, CarriesItsTraffic) {
  hosts::two_nodes system(divided_cards(2, 2, 1));
  run(system, [&] {
    for (unsigned f = 0; f <= 5; ++f) {
      const link l = connect(system.node_a(), f, system.node_b(), f, 10 + 2 * f);
      const std::array<std::uint64_t, 2> before{sent_by(system, 1), sent_by(system, 2)};
      expect_works(l);
      const unsigned port = f == 3 || f == 4 ? 2 : 1;
      EXPECT_GT(sent_by(system, port), before[port - 1] + 100) << f;
      EXPECT_EQ(sent_by(system, 3 - port), before[2 - port]) << f;
      ibv_qp_attr attr{};
      ibv_qp_init_attr init{};
      hosts::require(l.a.dev().query_qp(l.a.qp, &attr, IBV_QP_PORT | IBV_QP_AV, &init), "query_qp");
      EXPECT_EQ(attr.port_num, 1) << "its own number of it";
    }
    expect_works(connect(system.node_a(), 3, system.node_a(), 4, 61));  // within the adapter, by port 2
    expect_works(connect(system.node_a(), 0, system.node_b(), 5, 71));
  });
  EXPECT_EQ(counted(system, "responder.drop.function"), 0u);
  EXPECT_EQ(counted(system, "responder.drop.address"), 0u);
}

TEST(SinglePort, EventsOfTheOtherAreNotItsBusiness) {
  hosts::two_nodes system(divided_cards(1, 1, 1));
  run(system, [&] {
    hosts::node& n = system.node_a();
    for (unsigned f = 0; f <= 3; ++f) events_of(n.device(f));
    system.cable(1).set_live(false, system.now_ps() + us);
    n.bus(0).spend_ps(200 * us);
    constexpr int down = IBV_EVENT_PORT_ERR * 10, up = IBV_EVENT_PORT_ACTIVE * 10;
    EXPECT_EQ(events_of(n.device(0)), std::vector{down + 2});
    EXPECT_TRUE(events_of(n.device(1)).empty());
    EXPECT_EQ(events_of(n.device(2)), std::vector{down + 1});
    EXPECT_EQ(events_of(n.device(3)), std::vector{down + 2});
    ibv_port_attr port{};
    hosts::require(n.device(2).query_port(1, &port), "query_port");
    EXPECT_EQ(port.state, IBV_PORT_DOWN);
    hosts::require(n.device(1).query_port(1, &port), "query_port");
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    // What the administrator says of the link reaches the function by its own number, too.
    EXPECT_EQ(n.master().set_link(2, host_driver::function_link::up), 0);
    n.bus(0).spend_ps(100 * us);
    EXPECT_EQ(events_of(n.device(2)), std::vector{up + 1});
    system.cable(1).set_live(true, system.now_ps() + us);
    n.bus(0).spend_ps(200 * us);
    EXPECT_TRUE(events_of(n.device(2)).empty()) << "its link is up, whatever is";
    EXPECT_EQ(events_of(n.device(3)), std::vector{up + 2});
  });
}

/// Commands of a function that name a port which it has not.
class TheOtherPort : public testing::TestWithParam<unsigned> {};

TEST_P(TheOtherPort, IsNotToBeNamed) {
  hosts::two_nodes system(divided_cards(1, 1, 0));
  run(system, [&] {
    const unsigned function = GetParam();
    host_driver::device& dev = system.node_a().device(function);
    const link l = connect(system.node_a(), function, system.node_b(), function, 11);
    command_channel& channel = dev.commands();
    command_channel::mailbox box(channel), out(channel);
    using host_driver::resource;
    for (const unsigned port : {0u, 2u, 3u, 255u}) {
      const auto refused = [&](opcode op, std::uint32_t modifier, std::uint8_t op_modifier = 0, std::uint64_t in = 0) {
        EXPECT_NE(channel.execute({op, modifier, op_modifier, in, out.address(), nullptr}), 0)
            << std::hex << static_cast<unsigned>(op) << " of port " << port;
      };
      refused(opcode::query_port, port);
      refused(opcode::query_func_cap, port, 1);
      refused(opcode::init_port, port);
      refused(opcode::close_port, port);
      namespace f = abi::set_port;
      for (const auto what : {f::selector::general, f::selector::gid_table, f::selector::roce_addr})
        refused(opcode::set_port, f::modifier(what, port), f::op_ethernet, box.address());
      std::uint64_t mac = 0;
      for (const std::uint8_t byte : dev.port(1).mac) mac = mac << 8 | byte;
      refused(opcode::alloc_res, static_cast<std::uint32_t>(resource::mac) | port << 8, abi::res_op::reserve_and_map,
              mac);
      refused(opcode::alloc_res, static_cast<std::uint32_t>(resource::vlan) | port << 8, abi::res_op::reserve_and_map,
              7);
      refused(opcode::free_res, static_cast<std::uint32_t>(resource::mac) | port << 8, abi::res_op::reserve_and_map,
              dev.port(1).mac_index);
      // A rule for its own address on that port (B0).
      namespace g = abi::mcg;
      std::memset(box.data(), 0, 16);
      box.data()[g::ethernet_port] = static_cast<std::uint8_t>(port);
      std::copy(dev.port(1).mac.begin(), dev.port(1).mac.end(), box.data() + g::ethernet_mac);
      box.data()[g::ethernet_steer] = static_cast<std::uint8_t>(g::steer_unicast << 1);
      refused(opcode::qp_attach, l.a.qp->qp_num | g::protocol_ethernet << 28, 1, box.address());
    }
    expect_works(l);
  });
}
INSTANTIATE_TEST_SUITE_P(functions, TheOtherPort, testing::Values(1, 2));

/// Bit 6 of sched_queue is the port, in the path and in the alternate one, and by itself (OPT_SCHED_QUEUE).
TEST(SinglePort, PathsNameItAlone) {
  hosts::two_nodes system(divided_cards(1, 1, 0));
  run(system, [&] {
    namespace q = abi::qpc;
    namespace p = abi::path;
    namespace m = abi::qp_mailbox;
    for (const unsigned function : {1u, 2u}) {
      const link l = connect(system.node_a(), function, system.node_b(), function, 10 * function + 1);
      host_driver::device& dev = l.a.dev();
      command_channel& channel = dev.commands();
      const std::uint32_t qpn = l.a.qp->qp_num;
      command_channel::mailbox stored(channel);
      hosts::require(channel.read(stored, opcode::query_qp, qpn), "QUERY_QP");
      const auto change = [&](opcode op, std::uint32_t optional, const std::function<void(std::uint8_t*)>& with) {
        command_channel::mailbox box(channel);
        std::memcpy(box.data(), stored.data(), m::context + q::bytes);
        abi::set(box.data(), m::optional, optional);
        with(box.data() + m::context);
        return channel.write(box, op, qpn);
      };
      const auto sched = [](std::size_t path, unsigned port) {
        return [path, port](std::uint8_t* c) { abi::set(c, abi::at(path, p::port), static_cast<std::uint8_t>(port)); };
      };
      EXPECT_EQ(change(opcode::rts2rts_qp, m::opt_sched_queue, sched(q::primary_path, 0)), 0);
      EXPECT_NE(change(opcode::rts2rts_qp, m::opt_sched_queue, sched(q::primary_path, 1)), 0);
      EXPECT_NE(change(opcode::rts2rts_qp, m::opt_primary_path, sched(q::primary_path, 1)), 0);
      EXPECT_NE(change(opcode::rts2rts_qp, m::opt_alt_path, sched(q::alternate_path, 1)), 0);
      EXPECT_NE(change(opcode::rts2rts_qp, m::opt_alt_path, sched(q::alternate_path, 0)), 0) << "there is no migration";
      // From the beginning, with a queue pair that has not been used.
      ASSERT_EQ(channel.command(opcode::to_rst_qp, qpn, m::to_reset_op_modifier), 0);
      EXPECT_NE(change(opcode::rst2init_qp, 0, sched(q::primary_path, 1)), 0);
      ASSERT_EQ(change(opcode::rst2init_qp, 0, sched(q::primary_path, 0)), 0);
      EXPECT_NE(change(opcode::init2rtr_qp, m::opt_primary_path, sched(q::primary_path, 1)), 0);
      EXPECT_NE(change(opcode::init2rtr_qp, 0, sched(q::primary_path, 1)), 0);
      ASSERT_EQ(change(opcode::init2rtr_qp, m::opt_primary_path, sched(q::primary_path, 0)), 0);
      // What hardware has, as the physical function's driver reads it.
      command_channel::mailbox box(system.node_a().device(0).commands());
      hosts::require(system.node_a().device(0).commands().read(box, opcode::query_qp, qpn), "QUERY_QP");
      EXPECT_EQ(abi::get(box.data() + m::context, abi::at(q::primary_path, p::port)), function - 1);
    }
  });
}

/// A dual-ported function's queue pair keeps to the port that its address is of, too.
TEST(SinglePort, ADualOneDoesNotMoveByItsSchedule) {
  hosts::two_nodes system(divided_cards(0, 0, 2));
  run(system, [&] {
    namespace m = abi::qp_mailbox;
    const link l = connect(system.node_a(), 2, system.node_b(), 2, 11);
    command_channel& channel = l.a.dev().commands();
    command_channel::mailbox box(channel);
    for (const unsigned port : {1u, 0u}) {
      abi::set(box.data(), m::optional, m::opt_sched_queue);
      abi::set(box.data() + m::context, abi::at(abi::qpc::primary_path, abi::path::port),
               static_cast<std::uint8_t>(port));
      EXPECT_EQ(channel.write(box, opcode::rts2rts_qp, l.a.qp->qp_num) == 0, port == 0);
    }
    expect_works(l);
  });
}

/// The port of an address vector says nothing: a datagram leaves by its queue pair's.
TEST(SinglePort, AddressVectorsDoNotLeadElsewhere) {
  hosts::two_nodes system(divided_cards(1, 1, 0));
  run(system, [&] {
    hosts::connection_options o;
    o.type = IBV_QPT_UD;
    for (const unsigned function : {1u, 2u}) {
      const link l = connect(system.node_a(), function, system.node_b(), function, 10 * function + 1, o);
      const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 8192);
      l.a.dev().add_neighbour(l.b.at.gid, l.b.at.mac);
      const ibv_ah_attr path = hosts::path_of(l.a.at, o, l.b.at);
      for (unsigned port = 0; port < 4; ++port) {
        host_driver::address_handle* const ah = l.a.dev().create_ah(l.a.at.pd, &path);
        ASSERT_NE(ah, nullptr);
        abi::set(ah->av, abi::wqe::datagram::port, port);
        const std::array<std::uint64_t, 2> before{sent_by(system, 1), sent_by(system, 2)};
        post_receive(l.b, {{to.address(), 2048, to.region->lkey}});
        EXPECT_EQ(send_datagram(l.a, ah, l.b.qp->qp_num, from, 100), IBV_WC_SUCCESS);
        EXPECT_EQ(l.b.wait_receive().status, IBV_WC_SUCCESS);
        EXPECT_EQ(sent_by(system, function), before[function - 1] + 1) << port;
        EXPECT_EQ(sent_by(system, 3 - function), before[2 - function]) << port;
      }
      // The rows of its own window, and no further, whichever number it gives.
      const std::uint64_t refused = system.statistics().value("a.adapter.gather.source_gid.function") +
                                    system.statistics().value("a.adapter.gather.source_gid.invalid");
      host_driver::address_handle* const ah = l.a.dev().create_ah(l.a.at.pd, &path);
      abi::set(ah->av, abi::wqe::datagram::gid_index,
               std::uint8_t{112});  // behind the end of the port's only window, where the physical function's begin
      EXPECT_NE(send_datagram(l.a, ah, l.b.qp->qp_num, from, 100), IBV_WC_SUCCESS);
      EXPECT_EQ(system.statistics().value("a.adapter.gather.source_gid.function") +
                    system.statistics().value("a.adapter.gather.source_gid.invalid"),
                refused + 1);
    }
  });
}

/// Plain frames go by the function's port, also when its context asks for a physical one (FPP).
TEST(SinglePort, RawFramesGoByIt) {
  hosts::two_nodes system(divided_cards(1, 1, 0));
  run(system, [&] {
    for (const unsigned function : {1u, 2u}) {
      hosts::endpoint end = end_of(system.node_a(), function), far = end_of(system.node_b(), function);
      station::options o;
      o.ethernet.physical_port = true;
      station by(end, o), to(far);
      const auto& mac = far.device->port(1).mac;
      const bytes address(mac.begin(), mac.end());
      ASSERT_NE(to.steer(address), nullptr);
      to.post_receives(2);
      const std::array<std::uint64_t, 2> before{sent_by(system, 1), sent_by(system, 2)};
      const bytes sent = with_destination(frames::udp4, address);
      by.send(sent);
      EXPECT_EQ(to.receive().frame, sent);
      EXPECT_EQ(sent_by(system, function), before[function - 1] + 1);
      EXPECT_EQ(sent_by(system, 3 - function), before[2 - function]);
    }
  });
}

/// Groups of RoCE have no port in their table (B0): a member has what comes in by its own.
TEST(SinglePort, GroupsComeByIt) {
  hosts::two_nodes system(divided_cards(1, 1, 0));
  run(system, [&] {
    hosts::connection_options o;
    o.type = IBV_QPT_UD;
    o.ip = 6;
    const link first = connect(system.node_a(), 1, system.node_b(), 1, 11, o);
    const link second = connect(system.node_a(), 2, system.node_b(), 2, 21, o);
    ibv_gid group{};
    group.raw[0] = 0xff;
    group.raw[1] = 0x0e;
    group.raw[15] = 7;
    const hosts::buffer to = hosts::make_buffer(first.b.at, 8192), to_second = hosts::make_buffer(second.b.at, 8192);
    for (const link* l : {&first, &second}) hosts::require(l->b.dev().attach_mcast(l->b.qp, &group), "attach");
    for (const link* l : {&first, &second}) {
      post_receive(first.b, {{to.address(), 2048, to.region->lkey}});
      post_receive(second.b, {{to_second.address(), 2048, to_second.region->lkey}});
      hosts::endpoint all = l->b.at;
      std::copy(std::begin(group.raw), std::end(group.raw), all.gid.begin());
      all.mac = {0x33, 0x33, 0, 0, 0, 7};
      const hosts::buffer from = hosts::make_buffer(l->a.at, 4096);
      EXPECT_EQ(send_datagram(l->a, o, all, 0xffffff, from, 64), IBV_WC_SUCCESS);
      EXPECT_EQ(l->b.wait_receive().status, IBV_WC_SUCCESS);
      l->b.at.bus->spend_ps(20 * us);
      EXPECT_TRUE((l == &first ? second : first).b.silent()) << "it came by the other port";
    }
  });
}

/// Rules that the device manages: on the function's own port, by its own number.
TEST(SinglePort, RulesAreOfIt) {
  hosts::two_nodes_config c = divided_cards(1, 1, 0);
  c.node.driver.steering = host_driver::config::steering_mode::device_managed;
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::endpoint end = end_of(system.node_b(), 2), host_end = end_of(system.node_a(), 0);
    host_end.port = 2;
    station own(end), sender(host_end);
    const auto& mac = own.dev().port(1).mac;
    const bytes address(mac.begin(), mac.end());
    ibv_flow_attr nowhere{};
    nowhere.port = 2;
    nowhere.size = sizeof nowhere;
    EXPECT_EQ(own.dev().create_flow(own.qp(), &nowhere), nullptr);
    ASSERT_NE(own.steer(address), nullptr);
    own.post_receives(2);
    const bytes sent = with_destination(frames::udp4, address);
    sender.send(sent);
    EXPECT_EQ(own.receive().frame, sent);
    // By raw bits.
    namespace f = abi::flow_rule;
    command_channel& channel = own.dev().commands();
    command_channel::mailbox box(channel);
    for (const unsigned port : {0u, 2u, 3u}) {
      abi::set(box.data(), f::port, static_cast<std::uint8_t>(port));
      abi::set(box.data(), f::qpn, own.qp()->qp_num);
      std::uint8_t* const h = box.data() + f::control_bytes;
      abi::set(h, f::header_id, f::id_ethernet);
      abi::set(h, f::header_words, static_cast<std::uint8_t>(f::ethernet_bytes / 4));
      std::copy(mac.begin(), mac.end(), h + f::dmac);
      std::fill_n(h + f::dmac_mask, 6, std::uint8_t{0xff});
      std::uint64_t id = 0;
      const auto words = static_cast<std::uint32_t>((f::control_bytes + f::ethernet_bytes) / 4);
      EXPECT_NE(channel.execute({opcode::flow_steering_attach, words, 0, box.address(), 0, &id}), 0) << port;
    }
  });
}

}  // namespace
}  // namespace rnic::system_test
