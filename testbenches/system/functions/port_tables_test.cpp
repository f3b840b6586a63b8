// SPDX-License-Identifier: Apache-2.0
// Tables of MAC addresses and VLANs of a port, which all functions share: their limits, who may have what of them, that
// registrations are counted, and that what is in use stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "host_driver/resources.h"
#include "model/abi/device.h"
#include "testbenches/system/functions/shared_card.h"
#include "testbenches/system/functions/statuses.h"

namespace rnic::system_test {
namespace {

using abi::opcode;
using host_driver::command_channel;
using host_driver::resource;
using host_driver::roce_types;

std::uint32_t of_port_1(resource what) { return static_cast<std::uint32_t>(what) | 1u << 8; }

/// ALLOC_RES in the name of the function whose driver this is; the command's status.
unsigned enter(host_driver::device& dev, resource what, std::uint64_t value, std::uint64_t* index = nullptr) {
  std::uint64_t none = 0;
  command_channel& channel = dev.commands();
  const int error = channel.execute(
      {opcode::alloc_res, of_port_1(what), abi::res_op::reserve_and_map, value, 0, index != nullptr ? index : &none});
  return error == 0 ? ok : channel.last_status();
}

unsigned leave(host_driver::device& dev, resource what, std::uint64_t value) {
  command_channel& channel = dev.commands();
  return channel.command(opcode::free_res, of_port_1(what), abi::res_op::reserve_and_map, value) == 0
             ? ok
             : channel.last_status();
}

std::uint64_t number_of(const host_driver::mac_address& mac) {
  std::uint64_t n = 0;
  for (const std::uint8_t byte : mac) n = n << 8 | byte;
  return n;
}

/// VLANs that are in the table.
std::set<std::uint32_t> vlans_of(const host_driver::device& dev) {
  std::set<std::uint32_t> vids;
  for (const std::uint32_t entry : dev.port(1).vlans)
    if ((entry & abi::set_port::vlan_valid) != 0) {
      EXPECT_TRUE(vids.insert(entry & 0xfff).second) << "twice";
    }
  return vids;
}

host_driver::gid_bytes address(std::uint8_t last) {
  host_driver::gid_bytes ip{};
  ip[0] = 0xfd;
  ip[15] = last;
  return ip;
}

/// The physical function takes all that it can get; what is another one's is there, and the table is full then.
TEST(PortTables, HaveTheEntriesThatThePortAnnounces) {
  constexpr unsigned functions = 3;
  hosts::two_nodes system(shared_cards(functions));
  run(system, [&] {
    hosts::node& n = system.node_b();
    host_driver::device& host = n.device(0);
    initiate_reset(n.bus(3));
    host.commands().command(opcode::nop);
    n.bus(0).spend_ps(1000 * us);
    EXPECT_EQ(n.device(3).abandon(), 0);
    int index = 0;
    unsigned macs = 0, vlans = 0;
    std::set<int> places;
    for (; (index = host.add_mac(1, 0x02'aa00'0000 + macs)) >= 0; ++macs)
      EXPECT_TRUE(places.insert(index).second && index < 128) << index;
    EXPECT_EQ(index, -ENOSPC);
    EXPECT_EQ(macs + 1 + functions, 128u) << "and its own address, and one for each function";
    EXPECT_EQ(host.add_mac(1, 0x02'aa00'0000), *places.begin()) << "which it has";
    for (; (index = host.add_vlan(1, static_cast<std::uint16_t>(100 + vlans))) >= 0; ++vlans) {
    }
    EXPECT_EQ(index, -ENOSPC);
    EXPECT_EQ(vlans + 62 / functions * functions + 2, 128u) << "the functions' parts, and two of the hardware";
    ASSERT_EQ(n.device(3).open(), 0) << "its address has a place";
    unsigned got = 0;
    for (unsigned f = 1; f <= functions; ++f)
      for (unsigned i = 0; i < 62 / functions; ++i)
        got += enter(n.device(f), resource::vlan, 1000 * f + i) == ok ? 1 : 0;
    EXPECT_EQ(got, 62 / functions * functions);
    EXPECT_EQ(enter(n.device(1), resource::vlan, 4000), bad_param) << "vlan_add_to_slave: EINVAL";
    EXPECT_EQ(enter(n.device(1), resource::vlan, 1000), ok) << "which it has";
    EXPECT_EQ(vlans_of(host).size(), vlans + got);
    EXPECT_EQ(enter(n.device(2), resource::mac, number_of(n.device(1).port(1).mac)), 0x02u) << "another one's";
    const link l = connect(system.node_a(), 3, n, 3, 31);
    expect_works(l);
  });
}

/// More functions than entries that are theirs: who comes when the table is full gets what the kernel makes of ENOSPC,
/// unless he wants what is there.
TEST(PortTables, FullOnesSaySo) {
  constexpr unsigned functions = 64;
  hosts::two_nodes system(shared_cards(functions));
  run(system, [&] {
    hosts::node& n = system.node_b();
    while (n.device(0).add_vlan(1, static_cast<std::uint16_t>(1000 + vlans_of(n.device(0)).size())) >= 0) {
    }
    for (unsigned f = 1; f <= 62; ++f) ASSERT_EQ(enter(n.device(f), resource::vlan, f), ok) << f;
    EXPECT_EQ(vlans_of(n.device(0)).size(), 126u);
    EXPECT_EQ(enter(n.device(63), resource::vlan, 63), internal_error) << "mlx4_errno_to_status of ENOSPC";
    EXPECT_EQ(enter(n.device(63), resource::vlan, 7), ok) << "function 7's, too";
    EXPECT_EQ(leave(n.device(7), resource::vlan, 7), ok);
    EXPECT_EQ(enter(n.device(64), resource::vlan, 64), internal_error) << "VLAN 7 is function 63's";
    EXPECT_EQ(leave(n.device(63), resource::vlan, 7), ok);
    EXPECT_EQ(enter(n.device(64), resource::vlan, 64), ok);
  });
}

/// More functions than entries that are theirs, and a physical one that comes late: its half is still there, as the
/// kernel guarantees it (mlx4_init_resource_tracker: RES_VLAN).
TEST(PortTables, FunctionsLeaveThePhysicalOneItsHalf) {
  constexpr unsigned functions = 66;
  hosts::two_nodes system(shared_cards(functions));
  run(system, [&] {
    hosts::node& n = system.node_b();
    host_driver::device& host = n.device(0);
    for (unsigned f = 1; f <= 62; ++f) ASSERT_EQ(enter(n.device(f), resource::vlan, f), ok) << f;
    for (unsigned f = 63; f <= functions; ++f)
      EXPECT_EQ(enter(n.device(f), resource::vlan, f), bad_param) << "vlan_add_to_slave: EINVAL";
    EXPECT_EQ(enter(n.device(63), resource::vlan, 7), ok) << "function 7's, too";
    ASSERT_GE(host.add_vlan(1, 500), 0);
    EXPECT_EQ(enter(n.device(64), resource::vlan, 500), ok) << "the physical function's, too";
    EXPECT_EQ(enter(n.device(65), resource::vlan, 65), bad_param);
    for (unsigned i = 1; i < 64; ++i) ASSERT_GE(host.add_vlan(1, static_cast<std::uint16_t>(500 + i)), 0) << i;
    EXPECT_EQ(host.add_vlan(1, 1000), -ENOSPC);
    EXPECT_EQ(vlans_of(host).size(), 126u);
    EXPECT_EQ(leave(n.device(9), resource::vlan, 9), ok);
    EXPECT_EQ(host.add_vlan(1, 1000), -ENOSPC) << "a function's place";
    EXPECT_EQ(enter(n.device(65), resource::vlan, 65), ok);
  });
}

/// The VLAN of a queue pair's path stays until the queue pair has another path or none, whoever gives it back.
TEST(PortTables, VlansInUseStay) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    hosts::node& n = system.node_b();
    hosts::connection_options o;
    o.vlan = 77;
    host_driver::device &host = n.device(0), &one = n.device(1), &two = n.device(2);
    const link physical = connect(system.node_a(), 0, n, 0, 11, o), of_one = connect(system.node_a(), 1, n, 1, 21, o);
    EXPECT_EQ(vlans_of(host), std::set<std::uint32_t>{77});
    // Addresses go, queue pairs stay.
    EXPECT_EQ(host.remove_address(1, physical.b.at.gid, 77), 0);
    EXPECT_EQ(one.remove_address(1, of_one.b.at.gid, 77), 0);
    EXPECT_EQ(vlans_of(host), std::set<std::uint32_t>{77});
    // A driver that gives back what its queue pair needs.
    EXPECT_EQ(leave(one, resource::vlan, 77), resource_busy);
    EXPECT_EQ(leave(one, resource::mac, number_of(one.port(1).mac)), resource_busy);
    EXPECT_EQ(leave(two, resource::vlan, 77), bad_resource) << "it has none";
    EXPECT_EQ(leave(two, resource::mac, number_of(one.port(1).mac)), bad_resource) << "another one's";
    EXPECT_EQ(one.destroy_qp(of_one.b.qp), 0);
    EXPECT_EQ(leave(one, resource::vlan, 77), bad_resource) << "its driver has done so";
    EXPECT_EQ(vlans_of(host), std::set<std::uint32_t>{77}) << "the physical function's queue pair has it";
    EXPECT_EQ(enter(two, resource::vlan, 77), ok);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(host.modify_qp(physical.b.qp, &attr, IBV_QP_STATE), 0);
    EXPECT_EQ(vlans_of(host), std::set<std::uint32_t>{77}) << "function 2's";
    EXPECT_EQ(leave(two, resource::vlan, 77), ok);
    EXPECT_TRUE(vlans_of(host).empty());
  });
}

/// A path that is refused leaves no registration behind, and each of two addresses needs its VLAN.
TEST(PortTables, AddressesAndPathsAreCounted) {
  hosts::two_nodes system(shared_cards(1));
  run(system, [&] {
    hosts::node& n = system.node_b();
    for (const unsigned f : {0u, 1u}) {
      host_driver::device& dev = n.device(f);
      const std::uint16_t vid = static_cast<std::uint16_t>(40 + f);
      ASSERT_GE(dev.add_address(1, address(1), roce_types::v1, vid), 0);
      ASSERT_GE(dev.add_address(1, address(1), roce_types::both, vid), 0) << "version 2 of it";
      ASSERT_GE(dev.add_address(1, address(1), roce_types::both, vid), 0) << "there is no more of it";
      ASSERT_GE(dev.add_address(1, address(2), roce_types::v1, vid), 0);
      EXPECT_EQ(vlans_of(n.device(0)), std::set<std::uint32_t>{vid});
      EXPECT_EQ(dev.remove_address(1, address(1), vid), 0);
      EXPECT_EQ(vlans_of(n.device(0)), std::set<std::uint32_t>{vid});
      hosts::connection_options o;
      o.vlan = vid;
      const link l = connect(system.node_a(), f, n, f, 50 + f, o);
      ibv_qp_attr attr{};
      ibv_qp_init_attr init{};
      ASSERT_EQ(dev.query_qp(l.b.qp, &attr, IBV_QP_AV, &init), 0);
      attr.qp_state = IBV_QPS_RTR;  // once more, which hardware refuses
      l.b.qp->state = IBV_QPS_INIT;
      attr.path_mtu = IBV_MTU_1024;
      EXPECT_NE(dev.modify_qp(l.b.qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                0);
      l.b.qp->state = IBV_QPS_RTS;
      EXPECT_EQ(dev.remove_address(1, address(2), vid), 0);
      EXPECT_EQ(dev.remove_address(1, l.b.at.gid, vid), 0);
      EXPECT_EQ(vlans_of(n.device(0)), std::set<std::uint32_t>{vid}) << "the queue pair's path";
      EXPECT_EQ(dev.destroy_qp(l.b.qp), 0);
      EXPECT_TRUE(vlans_of(n.device(0)).empty()) << f;
    }
  });
}

class PortTableSequences : public testing::TestWithParam<unsigned> {};

/// VLANs of the physical function and three others in random order, with resets, against a list of who has what.
TEST_P(PortTableSequences, AreAsTheListSays) {
  constexpr unsigned functions = 3, share = 62 / functions, own_share = 126 - functions * share;
  hosts::two_nodes system(shared_cards(functions));
  run(system, [&] {
    hosts::node& n = system.node_b();
    host_driver::device& host = n.device(0);
    std::mt19937 random(GetParam());
    const auto below = [&random](unsigned limit) { return static_cast<unsigned>(random() % limit); };
    std::array<std::map<unsigned, unsigned>, functions + 1> has;  // by function: VLAN and how often
    std::map<unsigned, std::uint64_t> place;
    unsigned full = 0;
    for (unsigned step = 0; step < 3000; ++step) {
      const unsigned f = below(functions + 1), vid = 1 + below(90 + 60 * (step / 500 % 2));
      auto& own = has[f];
      const bool anybody = std::any_of(has.begin(), has.end(), [vid](const auto& h) { return h.count(vid) != 0; });
      if (f != 0 && below(400) == 0) {
        initiate_reset(n.bus(f));
        n.bus(0).spend_ps(1000 * us);
        EXPECT_EQ(n.device(f).abandon(), 0);
        ASSERT_EQ(n.device(f).open(), 0);
        own.clear();
      } else if (below(8) < (step / 700 % 2 == 0 ? 6u : 3u)) {
        const bool room = own.count(vid) != 0 || own.size() < (f == 0 ? own_share : share);
        std::uint64_t index = 0;
        bool given = false;
        if (f == 0) {
          const int at = host.add_vlan(1, static_cast<std::uint16_t>(vid));
          given = at >= 0;
          if (!given) {
            ASSERT_EQ(at, -ENOSPC);
          }
          index = static_cast<std::uint64_t>(at);
        } else {
          const unsigned status = enter(n.device(f), resource::vlan, vid, &index);
          given = status == ok;
          if (!given) {
            ASSERT_EQ(status, bad_param);
          }
        }
        ASSERT_EQ(given, room) << step << ": function " << f << ", VLAN " << vid;
        full += given ? 0 : 1;
        if (!given) continue;
        ++own[vid];
        if (anybody) {
          ASSERT_EQ(index, place[vid]) << "it stays where it is";
        }
        place[vid] = index;
      } else {
        const bool mine = own.count(vid) != 0;
        const bool taken = f == 0 ? mine && host.remove_vlan(1, static_cast<unsigned>(place[vid])) == 0
                                  : leave(n.device(f), resource::vlan, vid) == ok;
        ASSERT_EQ(taken, mine) << step;
        if (f == 0 && !mine && anybody) {
          ASSERT_EQ(host.remove_vlan(1, static_cast<unsigned>(place[vid])), -EINVAL) << "others' registrations";
        }
        if (mine && --own[vid] == 0) own.erase(vid);
      }
      std::set<std::uint32_t> all;
      for (const auto& h : has)
        for (const auto& [v, times] : h) all.insert(v);
      ASSERT_EQ(vlans_of(host), all) << step;
      for (const std::uint32_t v : all) ASSERT_EQ(host.port(1).vlans[place[v]] & 0xfff, v) << step;
    }
    EXPECT_GT(full, 50u);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, PortTableSequences, testing::Range(1u, 4u));

}  // namespace
}  // namespace rnic::system_test
