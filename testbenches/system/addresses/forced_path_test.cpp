// SPDX-License-Identifier: Apache-2.0
// What an administrator forces on RC queue pairs, on the wire.
#include <gtest/gtest.h>

#include <set>

#include "testbenches/system/addresses/captured.h"

namespace rnic::system_test {
namespace {

using host_driver::roce_types;

/// The values that all frames have of these fields, one connection between 10.0.0.1 (fd00::1) and 10.0.0.2.
std::set<std::string> seen(const hosts::connection_options& o, const std::function<void(hosts::two_nodes&)>& write,
                           const std::vector<std::string>& fields, const char* name) {
  hosts::two_nodes_config c = default_system();
  capture_into(c, name);
  {
    hosts::two_nodes system(c);
    run(system, [&] {
      write(system);
      expect_works(make_link(system, o));
    });
  }
  const auto frames = frames_of(c.capture, fields);
  return {frames.begin(), frames.end()};
}

void at(hosts::endpoint& e, const std::string& text) {
  ASSERT_EQ(e.device->forced(1).write_traffic_class(text), 0) << text;
}

const std::vector<std::string> four{"ip.src", "ip.dsfield.dscp", "ip.dsfield.ecn", "ip.ttl"};
using set = std::set<std::string>;

/// Of the distribution's manual: DSCP 24 is a class of 96. Both hosts are configured by themselves.
TEST(ForcedPathOnTheWire, IsForAllOfOneHost) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  hosts::connection_options o;
  o.traffic_class = 8;
  const auto write = [](hosts::two_nodes& s) {
    at(s.a(), "96");
    ASSERT_EQ(s.a().device->forced(1).write_ttl("9"), 0);
  };
  EXPECT_EQ(seen(o, write, four, "forced_one_host.pcap"), (set{"10.0.0.1\t24\t0\t9", "10.0.0.2\t2\t0\t64"}));
}

TEST(ForcedPathOnTheWire, IsByAddresses) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  const auto write = [](hosts::two_nodes& s) {
    for (hosts::endpoint* e : {&s.a(), &s.b()}) {
      at(*e, "tclass=16,src_ip=10.0.0.1,dst_ip=10.0.0.0/24");
      at(*e, "tclass=32,dst_ip=10.0.0.1");
      at(*e, "tclass=64,src_ip=10.0.0.9");
    }
  };
  EXPECT_EQ(seen({}, write, four, "forced_rules.pcap"), (set{"10.0.0.1\t4\t0\t64", "10.0.0.2\t8\t0\t64"}));
}

TEST(ForcedPathOnTheWire, IsGoneWhenItIsTakenAway) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  hosts::connection_options o;
  o.traffic_class = 0x68;
  const auto write = [](hosts::two_nodes& s) {
    at(s.a(), "tclass=16,dst_ip=10.0.0.2");
    at(s.a(), "tclass=-1,dst_ip=10.0.0.2");
    at(s.b(), "12");
    at(s.b(), "-1");
  };
  EXPECT_EQ(seen(o, write, four, "forced_gone.pcap"), (set{"10.0.0.1\t26\t0\t64", "10.0.0.2\t26\t0\t64"}));
}

/// IPv6, and RoCE v1's GRH, which have the same fields.
TEST(ForcedPathOnTheWire, IsInEveryHeader) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  const auto write = [](hosts::two_nodes& s) {
    for (hosts::endpoint* e : {&s.a(), &s.b()}) {
      at(*e, "200");
      ASSERT_EQ(e->device->forced(1).write_ttl("255"), 0);
    }
  };
  hosts::connection_options six;
  six.ip = 6;
  EXPECT_EQ(seen(six, write, {"ipv6.tclass", "ipv6.hlim"}, "forced_six.pcap"), set{"0x000000c8\t255"});
}

TEST(ForcedPathOnTheWire, IsInTheHeaderOfVersionOne) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  const auto write = [](hosts::two_nodes& s) {
    at(s.a(), "200");
    at(s.b(), "200");
    ASSERT_EQ(s.a().device->forced(1).write_ttl("0"), 0);
    ASSERT_EQ(s.b().device->forced(1).write_ttl("0"), 0);
  };
  hosts::connection_options old;
  old.roce = roce_types::v1;
  EXPECT_EQ(seen(old, write, {"infiniband.grh.tclass", "infiniband.grh.hoplmt"}, "forced_v1.pcap"), set{"200\t0"});
}

/// "for all RC QPs": others have what their programs gave.
TEST(ForcedPathOnTheWire, IsForReliableConnectionsOnly) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  hosts::two_nodes_config c = default_system();
  capture_into(c, "forced_uc.pcap");
  {
    hosts::two_nodes system(c);
    run(system, [&] {
      at(system.a(), "96");
      hosts::connection_options o;
      o.type = IBV_QPT_UC;
      o.traffic_class = 8;
      const link l = make_link(system, o);
      const auto from = hosts::make_buffer(l.a.at, 64), to = hosts::make_buffer(l.b.at, 64);
      post_write(l.a, from, to, 64);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      l.a.at.bus->spend_ps(20 * us);
    });
  }
  EXPECT_EQ(frames_of(c.capture, four), std::vector<std::string>{"10.0.0.1\t2\t0\t64"});
}

}  // namespace
}  // namespace rnic::system_test
