// SPDX-License-Identifier: Apache-2.0
// Virtual functions send and receive as the physical one does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {
namespace {

TEST(Functions, TalkOverTheCable) {
  hosts::two_nodes system(shared_cards(3));
  run(system, [&] {
    const link physical = connect(system.node_a(), 0, system.node_b(), 0, 1);
    const link first = connect(system.node_a(), 1, system.node_b(), 1, 11);
    const link crossed = connect(system.node_a(), 2, system.node_b(), 3, 21);
    const link mixed = connect(system.node_a(), 0, system.node_b(), 2, 31);
    for (const link* l : {&physical, &first, &crossed, &mixed}) expect_works(*l);
  });
  EXPECT_EQ(counted(system, "responder.drop.function"), 0u);
  EXPECT_EQ(counted(system, "pcie.dma.refused_requests"), 0u);
  EXPECT_EQ(counted(system, "root_complex.unsupported"), 0u);
}

/// Their frames go round inside: nothing leaves the adapter.
TEST(Functions, OfOneAdapterTalkToEachOther) {
  hosts::two_nodes system(shared_cards(2));
  std::uint64_t sent = 0;
  run(system, [&] {
    const std::uint64_t before = system.statistics().value("cable.a_to_b.frames");
    expect_works(connect(system.node_a(), 1, system.node_a(), 2, 41));
    expect_works(connect(system.node_a(), 0, system.node_a(), 2, 51));
    sent = system.statistics().value("cable.a_to_b.frames") - before;
  });
  EXPECT_EQ(sent, 0u);
}

class OfAService : public testing::TestWithParam<encapsulation_case> {};

TEST_P(OfAService, DatagramsNameTheirRows) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    hosts::connection_options o;
    o.type = IBV_QPT_UD;
    o.roce = GetParam().roce;
    o.ip = GetParam().ip;
    const link l = connect(system.node_a(), 2, system.node_b(), 2, 61, o);
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
    std::mt19937_64 random(5);
    fill_random(from.at(), 1024, random);
    post_receive(l.b, {{to.address(), 2048, to.region->lkey}});
    EXPECT_EQ(send_datagram(l.a, o, l.b.at, l.b.qp->qp_num, from, 1024), IBV_WC_SUCCESS);
    const ibv_wc got = l.b.wait_receive();
    EXPECT_EQ(got.status, IBV_WC_SUCCESS);
    EXPECT_EQ(got.byte_len, 1024u + 40);
    EXPECT_EQ(std::memcmp(to.at(40), from.at(), 1024), 0);
    EXPECT_EQ(l.b.dev().last_source(*l.b.receive_cq), l.a.at.mac) << "the function's own address";
  });
}
INSTANTIATE_TEST_SUITE_P(functions, OfAService, testing::ValuesIn(encapsulations));

/// QUERY_IF_STAT of each function's counter: its own frames and bytes, as the cable has them.
TEST(Functions, CountTheirOwnTraffic) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    hosts::connection_options o;
    o.mtu = 1024;
    const link first = connect(system.node_a(), 1, system.node_b(), 1, 11, o);
    const link second = connect(system.node_a(), 2, system.node_b(), 0, 21, o);
    const auto of = [](const side& s) {
      host_driver::traffic_statistics t;
      hosts::require(s.dev().query_traffic(1, &t), "query_traffic");
      return t;
    };
    const std::uint64_t before[] = {system.statistics().value("a.adapter.port1.tx_frames"),
                                    system.statistics().value("a.adapter.port1.rx_frames")};
    const hosts::buffer from = hosts::make_buffer(first.a.at, 65536), to = hosts::make_buffer(first.b.at, 65536);
    post_write(first.a, from, to, 50'000);
    ASSERT_EQ(first.a.wait_send().status, IBV_WC_SUCCESS);
    const auto sent = of(first.a), received = of(first.b);
    // 49 packets of Ethernet, IPv4, UDP and BTH headers (14 + 20 + 8 + 12 bytes), the first with a RETH of 16; ICRC.
    EXPECT_EQ(sent.tx_frames, 49u);
    EXPECT_EQ(sent.tx_bytes, 49u * (14 + 20 + 8 + 12 + 4) + 16 + 50'000);
    EXPECT_EQ(received.rx_frames, sent.tx_frames);
    EXPECT_EQ(received.rx_bytes, sent.tx_bytes);
    EXPECT_GT(sent.rx_frames, 0u);
    EXPECT_EQ(sent.rx_frames, received.tx_frames) << "acknowledgements";
    EXPECT_EQ(sent.rx_bytes, sent.rx_frames * (14 + 20 + 8 + 12 + 4 + 4));
    EXPECT_EQ(system.statistics().value("a.adapter.port1.tx_frames") - before[0], sent.tx_frames);
    EXPECT_EQ(system.statistics().value("a.adapter.port1.rx_frames") - before[1], sent.rx_frames);
    for (const side* s : {&second.a, &second.b}) {
      EXPECT_EQ(of(*s).tx_frames, 0u);
      EXPECT_EQ(of(*s).rx_frames, 0u);
    }
    request r;
    r.opcode = IBV_WR_RDMA_READ;
    const hosts::buffer near = hosts::make_buffer(second.a.at, 8192), far = hosts::make_buffer(second.b.at, 8192);
    r.sges.push_back({near.address(), 3000, near.region->lkey});
    r.remote = far.address();
    r.rkey = far.region->rkey;
    post(second.a, r);
    ASSERT_EQ(second.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(of(second.a).tx_frames, 1u);
    EXPECT_EQ(of(second.a).rx_frames, 3u);
    EXPECT_EQ(of(second.b).rx_frames, 1u);
    EXPECT_EQ(of(second.b).tx_frames, 3u) << "the physical function's counter, and nothing of the other function's";
    EXPECT_EQ(of(first.b).rx_frames, 49u);
    // A counter that is not the function's: with the device's command, through its channel.
    host_driver::command_channel& channel = first.a.dev().commands();
    host_driver::command_channel::mailbox box(channel);
    const unsigned others = second.a.dev().port(1).counter;
    EXPECT_NE(others, unsigned{first.a.dev().port(1).counter});
    for (const unsigned counter : {0u, 1u, others, 255u})
      EXPECT_NE(channel.read(box, abi::opcode::query_if_stat, counter), 0) << counter;
  });
}

/// A group with members in three functions of two adapters, the sender's own among them.
class FunctionsBy : public testing::TestWithParam<host_driver::config::steering_mode> {};
INSTANTIATE_TEST_SUITE_P(modes, FunctionsBy,
                         testing::Values(host_driver::config::steering_mode::b0,
                                         host_driver::config::steering_mode::device_managed));

TEST_P(FunctionsBy, AreMembersOfGroups) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.driver.steering = GetParam();
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::connection_options o;
    o.type = IBV_QPT_UD;
    o.ip = 6;
    const link first = connect(system.node_a(), 1, system.node_b(), 1, 61, o);
    const link second = connect(system.node_a(), 2, system.node_b(), 0, 71, o);
    ibv_gid group{};
    group.raw[0] = 0xff;
    group.raw[1] = 0x0e;
    group.raw[15] = 9;
    std::vector<const side*> members{&first.a, &first.b, &second.b};
    std::vector<hosts::buffer> to;
    for (const side* m : members) {
      ASSERT_EQ(m->dev().attach_mcast(m->qp, &group), 0);
      to.push_back(hosts::make_buffer(m->at, 4096));
      post_receive(*m, {{to.back().address(), 2048, to.back().region->lkey}});
    }
    const hosts::buffer from = hosts::make_buffer(first.a.at, 4096);
    std::mt19937_64 random(8);
    fill_random(from.at(), 512, random);
    hosts::endpoint everybody = first.b.at;
    std::copy(std::begin(group.raw), std::end(group.raw), everybody.gid.begin());
    everybody.mac = {0x33, 0x33, 0, 0, 0, 9};
    EXPECT_EQ(send_datagram(first.a, o, everybody, 0xffffff, from, 512), IBV_WC_SUCCESS);
    for (std::size_t i = 0; i < members.size(); ++i) {
      EXPECT_EQ(members[i]->wait_receive().status, IBV_WC_SUCCESS) << i;
      EXPECT_EQ(std::memcmp(to[i].at(40), from.at(), 512), 0) << i;
    }
    EXPECT_TRUE(second.a.silent()) << "it is no member";
    // Another function's queue pair is not a function's to attach.
    EXPECT_NE(second.a.dev().attach_mcast(first.a.qp, &group), 0);
    for (const side* m : members) EXPECT_EQ(m->dev().detach_mcast(m->qp, &group), 0);
  });
}

TEST(Functions, HaveAddressesOfTheirOwn) {
  hosts::two_nodes_config c = shared_cards(4);
  c.node.function_settings = {{}, {0x0200'1122'3344}};
  hosts::two_nodes system(c);
  run(system, [&] {
    std::vector<host_driver::mac_address> macs;
    for (unsigned f = 0; f <= 4; ++f)
      for (unsigned port = 1; port <= 2; ++port) macs.push_back(system.node_a().device(f).port(port).mac);
    for (std::size_t i = 0; i < macs.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) EXPECT_NE(macs[i], macs[k]);
    EXPECT_EQ(macs[4], (host_driver::mac_address{0x02, 0x00, 0x11, 0x22, 0x33, 0x44}));
    EXPECT_EQ(macs[5], (host_driver::mac_address{0x02, 0x00, 0x11, 0x22, 0x33, 0x45}));
    // 112 entries for four: 28 each, of which the default ones are taken.
    for (unsigned f = 1; f <= 4; ++f) {
      ibv_port_attr attr{};
      hosts::require(system.node_a().device(f).query_port(1, &attr), "query_port");
      EXPECT_EQ(attr.gid_tbl_len, 28);
    }
    // An address that another function has is not given twice.
    host_driver::gid_bytes ip{};
    ip[10] = ip[11] = 0xff;
    ip[12] = 10;
    ip[15] = 77;
    EXPECT_GE(system.node_a().device(1).add_address(1, ip), 0);
    EXPECT_EQ(system.node_a().device(2).add_address(1, ip), -EINVAL);
    EXPECT_EQ(system.node_a().device(1).remove_address(1, ip), 0);
    EXPECT_GE(system.node_a().device(2).add_address(1, ip), 0);
    // 28 rows, 2 of them the default address's, 2 of the one above: 12 more in both versions.
    for (unsigned i = 1; i <= 13; ++i) {
      ip[14] = static_cast<std::uint8_t>(i);
      EXPECT_EQ(system.node_a().device(2).add_address(1, ip) >= 0, i <= 12) << i;
    }
  });
}

host_driver::function_settings in_vlan(std::uint16_t vid, std::uint8_t priority = 0) {
  host_driver::function_settings s;
  s.vlan = vid;
  s.priority = priority;
  return s;
}

/// What the administrator says of a function's VLAN its driver does not know: frames have it, and those of others do
/// not reach it.
class TaggedByTheHost : public testing::TestWithParam<ibv_qp_type> {};

TEST_P(TaggedByTheHost, FunctionsOfAVlanAreAmongThemselves) {
  hosts::two_nodes_config c = shared_cards(3);
  c.node.function_settings = {in_vlan(50, 3), in_vlan(60), {}};
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::connection_options o;
    o.type = GetParam();
    o.retries = 1;
    const bool datagrams = o.type == IBV_QPT_UD;
    const auto priority_frames = [&](unsigned priority) {
      host_driver::port_statistics s;
      hosts::require(system.node_a().device(0).query_statistics(1, &s), "query_statistics");
      return s.tx_frames[priority];
    };
    const auto reaches = [&](const link& l) {
      const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
      post_receive(l.b, {{to.address(), 2048, to.region->lkey}});
      request r;
      r.opcode = IBV_WR_SEND;
      r.sges.push_back({from.address(), 512, from.region->lkey});
      if (datagrams) {
        send_datagram(l.a, o, l.b.at, l.b.qp->qp_num, from, 512);
      } else {
        post(l.a, r);
        l.a.wait_send(1000 * ms);
      }
      ibv_wc wc{};
      return l.b.dev().wait_cq(l.b.receive_cq, 1, &wc, 50 * us) == 1 && wc.status == IBV_WC_SUCCESS;
    };
    const std::uint64_t before = priority_frames(3);
    EXPECT_TRUE(reaches(connect(system.node_a(), 1, system.node_b(), 1, 11, o)));
    EXPECT_EQ(priority_frames(3), before + 1) << "tagged, with the priority of the settings";
    EXPECT_FALSE(reaches(connect(system.node_a(), 1, system.node_b(), 2, 21, o))) << "another VLAN";
    EXPECT_FALSE(reaches(connect(system.node_a(), 3, system.node_b(), 1, 31, o))) << "no tag";
    EXPECT_FALSE(reaches(connect(system.node_a(), 0, system.node_b(), 1, 41, o)));
    EXPECT_GT(at_b(system, "responder.drop.vlan"), 0u);
    host_driver::gid_bytes ip{};
    ip[0] = 0xfd;
    ip[15] = 99;
    EXPECT_LT(system.node_a().device(1).add_address(1, ip, host_driver::roce_types::both, 7), 0)
        << "no VLANs of its own";
    EXPECT_GE(system.node_a().device(3).add_address(1, ip, host_driver::roce_types::both, 7), 0);
  });
}
INSTANTIATE_TEST_SUITE_P(functions, TaggedByTheHost, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD));

/// With more functions than pairs of entries the first ones have an address in one version, and beyond 112 none.
TEST(Functions, AreAsManyAsTheStandardHas) {
  hosts::two_nodes_config c = shared_cards(126);
  hosts::two_nodes system(c);
  run(system, [&] {
    unsigned of_rows[3] = {};
    for (unsigned f = 1; f <= 126; ++f) ++of_rows[system.node_a().device(f).port(1).gid_rows];
    EXPECT_EQ(of_rows[0], 14u);
    EXPECT_EQ(of_rows[1], 112u);
    hosts::connection_options o;
    o.roce = host_driver::roce_types::v2;
    for (unsigned f = 1; f <= 112; f += 111)
      for (hosts::node* n : {&system.node_a(), &system.node_b()}) {
        const auto& row = n->device(f).port(1).gids[0];
        EXPECT_TRUE(row.valid);
        n->device(f).remove_address(1, row.id);
      }
    expect_works(connect(system.node_a(), 112, system.node_b(), 1, 71, o));
  });
}

/// Idle functions change nothing: a message takes as long as without them, to the picosecond.
TEST(Functions, CostNothingWhenIdle) {
  const auto took = [](unsigned functions) {
    return in_child([functions] {
      hosts::two_nodes system(shared_cards(functions));
      std::string text;
      run(system, [&] {
        const link l = connect(system.node_a(), 0, system.node_b(), 0, 1);
        const hosts::buffer from = hosts::make_buffer(l.a.at, 65536), to = hosts::make_buffer(l.b.at, 65536);
        for (const std::uint32_t bytes : {8u, 4096u, 65536u}) {
          // From an edge of all clocks that are there, so that what went before says nothing.
          constexpr sim::time_ps grid = 1'000'000'000;
          l.a.at.bus->spend_ps(2 * grid - system.now_ps() % grid);
          const sim::time_ps begin = system.now_ps();
          post_write(l.a, from, to, bytes);
          EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
          text += std::to_string(system.now_ps() - begin) + " ";
        }
      });
      return text;
    });
  };
  const std::string alone = took(0);
  EXPECT_FALSE(alone.empty());
  EXPECT_EQ(took(8), alone);
}

}  // namespace
}  // namespace rnic::system_test
