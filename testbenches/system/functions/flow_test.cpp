// SPDX-License-Identifier: Apache-2.0
// Flow steering rules of functions: what a function may ask for, what it may not, and that no rule of it takes
// anything from others.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "testbenches/system/functions/raw_rule.h"

namespace rnic::system_test {
namespace {

namespace f = abi::flow_rule;
using host_driver::command_channel;
using steering_mode = host_driver::config::steering_mode;

/// Function 1 is the victim, function 2 the thief, both of host b, as the ring of the physical function is.
template <class Body>
void with_thief(Body body) {
  hosts::two_nodes system(managed_cards(2));
  run(system, [&] {
    const link victim = connect(system.node_a(), 0, system.node_b(), 1, 11);
    const link thief = connect(system.node_a(), 0, system.node_b(), 2, 21);
    hosts::endpoint physical_a = end_of(system.node_a(), 0), physical_b = end_of(system.node_b(), 0);
    station sender(physical_a), ring(physical_b);
    ring.post_receives(16);
    body(system, victim, thief, sender, ring);
    expect_works(victim);
  });
}

TEST(FunctionFlows, WhatIsNotTheirsIsRefused) {
  with_thief([](hosts::two_nodes&, const link& victim, const link& thief, station&, station& ring) {
    host_driver::device& dev = thief.b.dev();
    ASSERT_EQ(dev.steering(), steering_mode::device_managed);
    const std::uint32_t own = thief.b.qp->qp_num;
    const bytes mine = mac_of(dev), theirs = mac_of(victim.b.dev()), physical = mac_of(ring.dev());
    const bytes group{0x33, 0x33, 0, 0, 0, 9}, second_port{dev.port(2).mac.begin(), dev.port(2).mac.end()};
    bytes but_one(6, 0xff);
    but_one[5] = 0xfe;
    const std::pair<const char*, raw_rule> wrong[] = {
        {"another function's address", raw_rule(own).ethernet(theirs)},
        {"IPv6 alone", raw_rule(own).ipv6(48)},
        {"IPv6 behind its address", raw_rule(own).ethernet(mine).ipv6(24)},
        {"the physical function's address", raw_rule(own).ethernet(physical)},
        {"the address of its other port", raw_rule(own).ethernet(second_port)},
        {"all addresses", raw_rule(own).ethernet(mine, bytes(6, 0))},
        {"its address and its neighbour's", raw_rule(own).ethernet(mine, but_one)},
        {"all groups", raw_rule(own).ethernet({1, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0})},
        {"a group's IPv4", raw_rule(own).ethernet(group).ipv4()},
        {"the victim's queue pair", raw_rule(victim.b.qp->qp_num).ethernet(mine)},
        {"the physical function's queue pair", raw_rule(ring.qp()->qp_num).ethernet(mine)},
        {"a queue pair beyond the table", raw_rule(own | 1u << 30).ethernet(mine)},
        {"all that is left", raw_rule(own).with(f::type, f::type_all_default)},
        {"all groups that are left", raw_rule(own).with(f::type, f::type_group_default)},
        {"copies of all", raw_rule(own).with(f::type, f::type_unicast_sniffer)},
        {"copies of its own", raw_rule(own).ethernet(mine).with(f::type, f::type_unicast_sniffer)},
        {"a mirror", raw_rule(own).ethernet(mine).with(f::type, f::type_mirror_receive)},
        {"all groups of RoCE", raw_rule(own).ib(0xff, 0)},
        {"a unicast GID", raw_rule(own).ib(0xfe, 0xff)},
        {"a group of RoCE and more", raw_rule(own).ib(0xff, 0xff).udp()},
        {"no header", raw_rule(own)},
        {"IPv6", raw_rule(own).ethernet(mine)},
        {"port 0", raw_rule(own).ethernet(mine).with(f::port, std::uint8_t{0})},
        {"port 3", raw_rule(own).ethernet(mine).with(f::port, std::uint8_t{3})}};
    for (auto [what, r] : wrong) {
      if (std::string(what) == "IPv6") abi::set(r.m.data() + f::control_bytes, f::header_id, std::uint16_t{0xe003});
      EXPECT_NE(r.attach(dev), 0) << what;
    }
    raw_rule endless(own);
    endless.ethernet(mine).length = 4100;
    EXPECT_NE(endless.attach(dev), 0);
    // Rules of others are not taken away.
    std::uint64_t id = 0, physical_id = 0;
    ASSERT_EQ(raw_rule(victim.b.qp->qp_num).ethernet(theirs).attach(victim.b.dev(), &id), 0);
    ASSERT_EQ(raw_rule(ring.qp()->qp_num).ethernet(physical).attach(ring.dev(), &physical_id), 0);
    for (const std::uint64_t other : {id, physical_id, id | std::uint64_t{1} << 32, std::uint64_t{0}})
      EXPECT_NE(dev.commands().command(abi::opcode::flow_steering_detach, 0, 0, other), 0) << other;
    EXPECT_EQ(victim.b.dev().commands().command(abi::opcode::flow_steering_detach, 0, 0, id), 0);
    EXPECT_NE(dev.commands().command(abi::opcode::qp_attach, own, 1), 0) << "there is no group table";
  });
}

/// What a function may attach, with the best priority that there is, beside those whose frames it would like.
TEST(FunctionFlows, WhatTheyMayTakesNothingFromOthers) {
  with_thief([](hosts::two_nodes& system, const link&, const link& thief, station& sender, station& ring) {
    host_driver::device& dev = thief.b.dev();
    const std::uint32_t own = thief.b.qp->qp_num;
    const bytes group{0x01, 0x00, 0x5e, 1, 2, 3};
    ring.steer(frames_destination);
    std::vector<std::uint64_t> ids(5);
    EXPECT_EQ(raw_rule(own, 0).ethernet(mac_of(dev)).attach(dev, &ids[0]), 0);
    EXPECT_EQ(raw_rule(own, 0).ethernet(group).attach(dev, &ids[1]), 0);
    EXPECT_EQ(raw_rule(own, 0).ipv4(0x0a090807, 0xffffffff).attach(dev, &ids[2]), 0);
    EXPECT_EQ(raw_rule(own, 0).udp().attach(dev, &ids[3]), 0);
    EXPECT_EQ(raw_rule(own, 0).ethernet(broadcast).attach(dev, &ids[4]), 0);
    ring.steer(group);
    ring.steer(broadcast);
    for (const bytes& frame : {frames::udp4, with_destination(frames::udp4, group), frames::arp}) {
      sender.send(frame);
      EXPECT_EQ(ring.receive().frame, padded(frame));
    }
    // By exclusive rules it cannot keep others from a group either.
    raw_rule alone(own, 0);
    EXPECT_EQ(alone.ethernet({0x33, 0x33, 0, 0, 0, 9}).with(f::flags, f::flag_exclusive).attach(dev), 0);
    EXPECT_NE(ring.steer({0x33, 0x33, 0, 0, 0, 9}), nullptr);
    // Its queue pair has rules: its number is not given to anybody.
    EXPECT_EQ(dev.commands().command(abi::opcode::to_rst_qp, own, 2), 0);
    const auto kind = static_cast<std::uint32_t>(host_driver::resource::qp);
    EXPECT_NE(dev.commands().command(abi::opcode::free_res, kind, abi::res_op::reserve, own | std::uint64_t{1} << 32),
              0);
    EXPECT_EQ(system.node_b().master().tracker().of(2, host_driver::resource_flow).size(), 6u);
    for (const std::uint64_t id : ids)
      EXPECT_EQ(dev.commands().command(abi::opcode::flow_steering_detach, 0, 0, id), 0);
    EXPECT_EQ(system.node_b().master().tracker().of(2, host_driver::resource_flow).size(), 1u);
  });
}

/// Its raw packet queue pair gets what its rules say, with headers behind the address, and a copy of a group's.
TEST(FunctionFlows, BringItsFrames) {
  hosts::two_nodes system(managed_cards(2));
  run(system, [&] {
    hosts::endpoint own_end = end_of(system.node_b(), 1), other_end = end_of(system.node_b(), 2),
                    physical_end = end_of(system.node_b(), 0), sender_end = end_of(system.node_a(), 0);
    station own(own_end), other(other_end), ring(physical_end), sender(sender_end);
    const bytes to_own = with_destination(frames::udp4, mac_of(own.dev()));
    for (station* s : {&own, &other, &ring}) s->post_receives(8);
    const auto qpn = own.qp()->qp_num;
    std::uint64_t id = 0;
    ASSERT_EQ(raw_rule(qpn).ethernet(mac_of(own.dev())).ipv4().attach(own.dev(), &id), 0);
    sender.send(to_own);
    EXPECT_EQ(own.receive().frame, to_own);
    sender.send(with_destination(frames::arp, mac_of(own.dev())));
    EXPECT_TRUE(own.silent()) << "no IPv4";
    ASSERT_EQ(raw_rule(qpn).ethernet(broadcast).attach(own.dev()), 0);
    ring.steer(broadcast);
    sender.send(frames::arp);
    EXPECT_EQ(own.receive().frame, padded(frames::arp));
    EXPECT_EQ(ring.receive().frame, padded(frames::arp));
    EXPECT_TRUE(other.silent());
    EXPECT_EQ(own.dev().commands().command(abi::opcode::flow_steering_detach, 0, 0, id), 0);
    sender.send(to_own);
    EXPECT_TRUE(own.silent()) << "its rule is gone";
    EXPECT_TRUE(ring.silent());
  });
}

TEST(FunctionFlows, QuotasLeaveTheOthersTheirs) {
  with_thief([](hosts::two_nodes& system, const link& victim, const link& thief, station& sender, station& ring) {
    const auto& most = system.node_b().master().tracker().most(2);
    const std::uint32_t quota = most[static_cast<unsigned>(host_driver::resource_flow)];
    unsigned got = 0;
    int error = 0;
    for (; got < 1000; ++got) {
      const bytes group{0x33, 0x33, 1, 0, static_cast<std::uint8_t>(got >> 8), static_cast<std::uint8_t>(got)};
      error = raw_rule(thief.b.qp->qp_num).ethernet(group).attach(thief.b.dev());
      if (error != 0) break;
    }
    EXPECT_EQ(error, -ENOMEM);
    EXPECT_EQ(got, quota);
    EXPECT_EQ(raw_rule(victim.b.qp->qp_num).ethernet(mac_of(victim.b.dev())).attach(victim.b.dev()), 0);
    ring.steer(frames_destination);
    sender.send(frames::udp4);
    EXPECT_EQ(ring.receive().frame, frames::udp4);
  });
}

TEST(FunctionFlows, GoWithTheFunction) {
  with_thief([](hosts::two_nodes& system, const link&, const link& thief, station&, station&) {
    std::vector<std::uint64_t> ids(20);
    const auto attach_all = [&](host_driver::device& dev, std::uint32_t qpn) {
      for (std::uint8_t i = 0; i < 20; ++i)
        ASSERT_EQ(raw_rule(qpn).ethernet({0x33, 0x33, 0, 0, 1, i}).attach(dev, &ids[i]), 0);
    };
    attach_all(thief.b.dev(), thief.b.qp->qp_num);
    const std::uint64_t writes = at_b(system, "steering.flows.writes");
    initiate_reset(system.node_b().bus(2));
    thief.a.at.bus->spend_ps(1000 * us);
    EXPECT_TRUE(system.node_b().master().tracker().of(2, host_driver::resource_flow).empty());
    EXPECT_EQ(at_b(system, "steering.flows.writes"), writes + 20) << "hardware has them no more";
    for (const std::uint64_t id : ids)
      EXPECT_NE(system.node_b().device(0).commands().command(abi::opcode::flow_steering_detach, 0, 0, id), 0);
    EXPECT_EQ(thief.b.dev().abandon(), 0);
    EXPECT_EQ(thief.b.dev().open(), 0);
    const link again = connect(system.node_a(), 0, system.node_b(), 2, 31);
    attach_all(again.b.dev(), again.b.qp->qp_num);
    expect_works(again);
  });
}

TEST(FunctionFlows, AreNotThereWhenGroupsSteer) {
  hosts::two_nodes system(shared_cards(1));
  run(system, [&] {
    const link l = connect(system.node_a(), 0, system.node_b(), 1, 11);
    EXPECT_EQ(l.b.dev().steering(), steering_mode::b0);
    EXPECT_FALSE(l.b.dev().caps().flow_steering);
    EXPECT_NE(raw_rule(l.b.qp->qp_num).ethernet(mac_of(l.b.dev())).attach(l.b.dev()), 0);
    EXPECT_EQ(raw_rule(0x41).ethernet(mac_of(l.b.dev())).attach(system.node_b().device(0)), -ENXIO);
  });
}

}  // namespace
}  // namespace rnic::system_test
