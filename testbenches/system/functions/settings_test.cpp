// SPDX-License-Identifier: Apache-2.0
// What the administrator of a host says of its virtual functions: rate, check of source addresses, RoCE off.
#include <algorithm>

#include "model/abi/device.h"
#include "testbenches/system/ethernet/frames.h"
#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/functions/shared_card.h"

namespace rnic::system_test {
namespace {

host_driver::function_settings limited(std::uint32_t mbps, std::uint16_t vlan = 50) {
  host_driver::function_settings s;
  s.vlan = vlan;
  s.max_rate_mbps = mbps;
  return s;
}

/// Bytes on the line a second, in Mb/s, while `pairs` each send `messages` of 4096 bytes at once.
double rate_of(hosts::two_nodes& system, const std::vector<link>& pairs, unsigned messages) {
  std::vector<hosts::buffer> from, to;
  for (const link& l : pairs) {
    from.push_back(hosts::make_buffer(l.a.at, 4096));
    to.push_back(hosts::make_buffer(l.b.at, 4096));
  }
  const auto sent = [&] { return system.statistics().value("a.adapter.port1.tx_bytes"); };
  const std::uint64_t bytes = sent();
  const sim::time_ps begin = system.now_ps();
  for (unsigned i = 0; i < messages; ++i)
    for (std::size_t p = 0; p < pairs.size(); ++p) post_write(pairs[p].a, from[p], to[p], 4096);
  for (const link& l : pairs)
    for (unsigned i = 0; i < messages; ++i) EXPECT_EQ(l.a.wait_send(1000 * ms).status, IBV_WC_SUCCESS);
  return static_cast<double>(sent() - bytes) * 8e6 / static_cast<double>(system.now_ps() - begin);
}

}  // namespace

/// All queue pairs of a function share its rate; those of others have the line.
TEST(FunctionSettings, RateIsTheFunctions) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.function_settings = {limited(2'000), {}};
  c.node.function_settings[1].vlan = 60;
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::connection_options o;
    const link first = connect(system.node_a(), 1, system.node_b(), 1, 11, o);
    const link second = make_sibling(first, o);
    const link other = connect(system.node_a(), 2, system.node_b(), 2, 21, o);
    // The bytes counted have no preamble and gap, 20 of a frame of about 2100; the last frame's time is not waited for.
    const double alone = rate_of(system, {first}, 50);
    EXPECT_GT(alone, 1'950.0);
    EXPECT_LT(alone, 2'010.0);
    const double together = rate_of(system, {first, second}, 50);
    EXPECT_GT(together, 1'950.0);
    EXPECT_LT(together, 2'010.0) << "the two have the rate together";
    EXPECT_GT(rate_of(system, {other}, 50), 20'000.0);
  });
}

TEST(FunctionSettings, RatesThatCannotBeAreRefused) {
  for (const host_driver::function_settings& wrong : {limited(2'000, 0), [] {
                                                        host_driver::function_settings s = limited(2'000);
                                                        s.priority = 3;
                                                        return s;
                                                      }()}) {
    hosts::two_nodes_config c = shared_cards(1);
    c.node.function_settings = {wrong};
    in_child([&c] {
      EXPECT_ANY_THROW({
        hosts::two_nodes system(c);
        run(system, [] {});
      });
      return std::string();
    });
  }
}

/// Raw packet queue pairs of two functions, of which one is checked.
TEST(FunctionSettings, SourceAddressesAreChecked) {
  hosts::two_nodes_config c = shared_cards(2);
  c.node.function_settings.resize(2);
  c.node.function_settings[0].spoof_check = true;
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::endpoint checked_end = end_of(system.node_a(), 1), free_end = end_of(system.node_a(), 2);
    station checked(checked_end), free(free_end), b(system.b());
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(4);
    const auto from = [](const station& s) {
      bytes own = frames::udp4;
      const auto& mac = s.dev().port(1).mac;
      std::copy(mac.begin(), mac.end(), own.begin() + 6);
      return own;
    };
    checked.send(frames::udp4);  // of 02:00:00:00:0a:01
    EXPECT_EQ(checked.wait_sent().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(b.silent());
    EXPECT_EQ(tally(system, "a.adapter.requester.ethernet_blocked"), 1u);
    checked.send(from(free));
    EXPECT_TRUE(b.silent()) << "another function's";
    checked.send(from(checked));
    EXPECT_EQ(b.receive().frame, from(checked));
    free.send(frames::udp4);
    EXPECT_EQ(b.receive().frame, frames::udp4) << "nobody checks it";
  });
}

/// Frames to a function's own address, and to groups, are its to take; those of others are not.
TEST(FunctionSettings, PlainFramesComeToTheirFunction) {
  hosts::two_nodes system(shared_cards(2));
  run(system, [&] {
    hosts::endpoint end = end_of(system.node_b(), 1), other_end = end_of(system.node_b(), 2);
    station a(system.a()), own(end), other(other_end);
    const auto address = [](const station& s) {
      const auto& mac = s.dev().port(1).mac;
      return bytes(mac.begin(), mac.end());
    };
    ASSERT_NE(own.steer(address(own)), nullptr);
    ASSERT_NE(own.steer(broadcast), nullptr);
    EXPECT_EQ(other.dev().create_flow(other.qp(), 1, own.dev().port(1).mac), nullptr) << "another function's";
    ibv_flow_attr everything{};
    everything.type = IBV_FLOW_ATTR_ALL_DEFAULT;
    everything.size = sizeof everything;
    everything.port = 1;
    EXPECT_EQ(other.dev().create_flow(other.qp(), &everything), nullptr) << "the physical function's alone";
    own.post_receives(4);
    other.post_receives(4);
    for (const bytes& to : {address(own), broadcast}) {
      const bytes sent = with_destination(frames::udp4, to);
      a.send(sent);
      EXPECT_EQ(own.receive().frame, sent);
    }
    EXPECT_TRUE(other.silent());
  });
}

/// Ethernet alone: no queue pairs of RDMA, no GIDs, and tables of the host that do not grow with what it asks for.
TEST(FunctionSettings, RoceOffLeavesTheHostItsMemory) {
  const auto lent = [](bool roce) {
    return std::stoull(in_child([roce] {
      hosts::two_nodes_config c = shared_cards(1);
      c.node.function_settings.resize(1);
      c.node.function_settings[0].roce = roce;
      std::string result;
      hosts::two_nodes system(c);
      run(system, [&] {
        hosts::endpoint end = end_of(system.node_a(), 1);
        host_driver::device& d = *end.device;
        host_driver::device& host = system.node_a().device(0);
        EXPECT_EQ(d.port(1).gid_rows != 0, roce);
        EXPECT_EQ(d.caps().has(abi::dev_cap::flag_iboe), roce);
        end.pd = d.alloc_pd();
        host_driver::completion_queue* const cq = d.create_cq(15);
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = cq;
        init.cap = {4, 4, 1, 1, 0};
        for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET}) {
          init.qp_type = type;
          host_driver::queue_pair* const qp = d.create_qp(end.pd, &init);
          ASSERT_NE(qp, nullptr) << "a number";
          ibv_qp_attr attr{};
          attr.qp_state = IBV_QPS_INIT;
          attr.port_num = 1;
          attr.qkey = 1;
          const int mask = IBV_QP_STATE | IBV_QP_PORT |
                           (type == IBV_QPT_RAW_PACKET ? 0
                            : type == IBV_QPT_UD       ? IBV_QP_PKEY_INDEX | IBV_QP_QKEY
                                                       : IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
          EXPECT_EQ(d.modify_qp(qp, &attr, mask) == 0, roce || type == IBV_QPT_RAW_PACKET) << type;
          EXPECT_EQ(d.destroy_qp(qp), 0);
        }
        ibv_srq_init_attr shared{};
        shared.attr = {16, 1, 0};
        EXPECT_EQ(d.create_srq(end.pd, &shared) != nullptr, roce);
        host_driver::gid_bytes ip{};
        ip[0] = 0xfd;
        EXPECT_EQ(d.add_address(1, ip) >= 0, roce);
        init.qp_type = IBV_QPT_RAW_PACKET;
        const std::uint64_t before = host.tables().lent_bytes();
        unsigned pairs = 0;
        while (pairs < 600 && d.create_qp(end.pd, &init) != nullptr) ++pairs;
        EXPECT_EQ(pairs, roce ? 600u : 64u);
        result = std::to_string(host.tables().lent_bytes() - before);
      });
      return result;
    }));
  };
  const std::uint64_t with = lent(true), without = lent(false);
  EXPECT_GT(with, without);
  // 600 queue pairs have contexts of 256 bytes and entries for RDMA of 1 KiB: 256 KiB hold 1024 and 256 of them.
  EXPECT_GE(with - without, 2u * 256 * 1024);
}

}  // namespace rnic::system_test
