// SPDX-License-Identifier: Apache-2.0
// What the kernel shows of a port beside its state: hw_counters (DIAG_RPRT), and what ethtool prints (PTYS).
#include <map>

#include "host_driver/hw_counters.h"
#include "host_driver/link_settings.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using counters = std::map<std::string, std::uint32_t>;

counters read(host_driver::device& d, unsigned port) {
  std::vector<host_driver::hw_counter> all;
  hosts::require(query_hw_counters(d, port, &all), "query_hw_counters");
  counters by_name;
  for (const auto& c : all) by_name[c.name] = c.value;
  return by_name;
}

/// A WRITE with a key that is not the peer's.
void fail_a_write(const link& l) {
  const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
  request r;
  r.sges.push_back({from.address(), 64, from.region->lkey});
  r.remote = to.address();
  r.rkey = to.region->rkey ^ 0x100;
  post(l.a, r);
  EXPECT_EQ(l.a.wait_send().status, IBV_WC_REM_ACCESS_ERR);
}

}  // namespace

TEST(HwCounters, AreOfThePortThatTheQueuePairHas) {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  hosts::two_nodes system(c);
  run(system, [&] {
    make_link(system, {});
    ASSERT_NE(system.a().other, nullptr);
    hosts::endpoint ends[] = {*system.a().other, *system.b().other};
    fail_a_write(make_link(ends[0], ends[1], {}, 21));
    host_driver::device& a = *system.a().device;
    host_driver::device& b = *system.b().device;
    for (const unsigned port : {0u, 1u, 2u}) {
      const std::uint32_t here = port == 1 ? 0 : 1;
      EXPECT_EQ(read(a, port)["sq_num_rae"], here) << port;
      EXPECT_EQ(read(b, port)["rq_num_rae"], here) << port;
      EXPECT_EQ(read(a, port)["rq_num_rae"], 0u) << port;
      EXPECT_EQ(read(b, port)["sq_num_rae"], 0u) << port;
    }
    fail_a_write(make_link(system.a(), system.b(), {}, 31));
    for (const unsigned port : {0u, 1u, 2u}) EXPECT_EQ(read(a, port)["sq_num_rae"], port == 0 ? 2u : 1u) << port;
    for (const unsigned port : {0u, 1u, 2u}) EXPECT_EQ(read(b, port)["rq_num_rae"], port == 0 ? 2u : 1u) << port;
  });
}

/// ib/main.c: diag_basic and diag_ext for ports, with diag_device_only for the device.
TEST(HwCounters, HaveTheKernelsNames) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    host_driver::device& a = *system.a().device;
    const counters device = read(a, 0), port = read(a, 1);
    EXPECT_EQ(device.size(), 25u);
    EXPECT_EQ(port.size(), 23u);
    for (const char* name : {"num_cqovf", "rq_num_udsdprd"}) {
      EXPECT_EQ(device.count(name), 1u) << name;
      EXPECT_EQ(port.count(name), 0u) << name;
    }
    for (const char* name : {"rq_num_lle", "sq_num_to", "rq_num_dup", "rq_num_oos", "sq_num_rnr"})
      EXPECT_EQ(port.count(name), 1u) << name;
    std::vector<host_driver::hw_counter> all;
    EXPECT_EQ(query_hw_counters(a, 3, &all), -EINVAL);
  });
}

TEST(LinkSettings, AreThoseOfRateAndCable) {
  struct row {
    std::uint32_t mbps;
    unsigned metres;
    const char* mode;
    host_driver::link_settings::connector port;
  };
  using connector = host_driver::link_settings::connector;
  for (const row& r : {row{40'000, 3, "40000baseCR4/Full", connector::direct_attach},
                       row{40'000, 30, "40000baseSR4/Full", connector::fibre},
                       row{10'000, 7, "10000baseCR/Full", connector::direct_attach},
                       row{56'000, 8, "56000baseSR4/Full", connector::fibre}})
    in_child([&r] {
      hosts::two_nodes_config c = default_system();
      c.node.adapter.port.rate_mbps = r.mbps;
      c.cable_metres = r.metres;
      hosts::two_nodes system(c);
      run(system, [&] {
        host_driver::device& d = *system.a().device;
        make_link(system, {});
        host_driver::link_settings s;
        ASSERT_EQ(query_link_settings(d, 1, &s), 0);
        EXPECT_EQ(s.supported, std::vector<std::string>{r.mode});
        EXPECT_EQ(s.advertised, s.supported);
        EXPECT_TRUE(s.partner.empty());
        EXPECT_EQ(s.port, r.port);
        EXPECT_EQ(s.speed_mbps, r.mbps);
        EXPECT_EQ(host_driver::set_link_speed(d, 1, r.mbps), 0) << "what it has";
        EXPECT_EQ(host_driver::set_link_speed(d, 1, 0), 0) << "all that there are";
        EXPECT_EQ(host_driver::set_link_speed(d, 1, 1'000), -EINVAL);
        ASSERT_EQ(query_link_settings(d, 2, &s), 0);
        EXPECT_EQ(s.speed_mbps, 0u) << "no cable";
        EXPECT_EQ(s.supported.size(), 2u) << "for whatever cable comes";
        EXPECT_EQ(query_link_settings(d, 3, &s), -EINVAL);
      });
      return std::string();
    });
}

/// SET_PORT's roce_mode: a port of version 1 takes packets of version 2 for plain UDP, and no queue pair sends them.
TEST(RoceMode, VersionTwoIsNotForAPortOfVersionOne) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    hosts::connection_options first, second;
    first.roce = host_driver::roce_types::v1;
    second.retries = 1;
    second.ack_timeout = 8;
    const link one = make_link(system, first, 1), two = make_link(system, second, 11);
    expect_works(two);
    const auto set_mode = [](const side& s, std::uint8_t mode) {
      host_driver::command_channel::mailbox box(s.dev().commands());
      box.data()[3] = 1 << 4;
      box.data()[4] = mode;
      return s.dev().commands().write(box, abi::opcode::set_port, 1, 1);
    };
    ASSERT_EQ(set_mode(one.b, 0), 0);
    expect_works(one);
    const hosts::buffer from = hosts::make_buffer(two.a.at, 4096), to = hosts::make_buffer(two.b.at, 4096);
    post_write(two.a, from, to, 64);
    EXPECT_EQ(two.a.wait_send(1000 * ms).status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_ANY_THROW(make_link(system, second, 21)) << "RTR on host b";
    ASSERT_EQ(set_mode(one.b, 2 << 4), 0);
    expect_works(make_link(system, second, 31));
    EXPECT_EQ(set_mode(one.b, 1 << 4), -EINVAL);
  });
}

TEST(LinkSettings, AreNotThereForRatesWithoutAMode) {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config("connectx5_100g");
  hosts::two_nodes system(c);
  run(system, [&] {
    host_driver::link_settings s;
    EXPECT_EQ(query_link_settings(*system.a().device, 1, &s), -EOPNOTSUPP);
  });
}

}  // namespace rnic::system_test
