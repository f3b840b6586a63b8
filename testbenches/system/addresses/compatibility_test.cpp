// SPDX-License-Identifier: Apache-2.0
// Connections in RoCE v1 between GIDs that are made of MAC address and VLAN.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/system/addresses/captured.h"

namespace rnic::system_test {
namespace {

using host_driver::no_vlan;
using host_driver::roce_types;

std::string text_of(const host_driver::gid_bytes& g) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, g.data(), text, sizeof text);
}

/// What tshark finds of a connection that both hosts have made by nothing but such GIDs. `in`: VLAN of the interfaces.
struct outcome {
  std::string a, b;
  std::vector<std::string> frames;
};
outcome connect_by_mac(std::uint16_t vlan, std::uint16_t in, const char* name) {
  hosts::two_nodes_config c = default_system();
  capture_into(c, name);
  outcome out;
  {
    hosts::two_nodes system(c);
    run(system, [&] {
      hosts::connection_options o;
      o.roce = roce_types::v1;
      link l;
      unsigned host = 1;
      for (side* s : {&l.a, &l.b}) {
        s->at = host == 1 ? system.a() : system.b();
        hosts::set_address(s->at, o, host++);
        s->at.gid = host_driver::compatibility_gid(s->at.mac, vlan);
        s->at.gid_index = s->dev().add_address(1, s->at.gid, roce_types::v1, in);
        ASSERT_GE(s->at.gid_index, 0);
        s->send_cq = s->dev().create_cq(64);
        s->receive_cq = s->dev().create_cq(64);
        s->qp = hosts::make_qp(s->at, o, *s->send_cq, *s->receive_cq);
      }
      out.a = text_of(l.a.at.gid);
      out.b = text_of(l.b.at.gid);
      host_driver::mac_address found{};
      EXPECT_EQ(l.a.dev().resolve(l.b.at.gid, &found), 0) << "nobody has to be asked";
      EXPECT_EQ(found, l.b.at.mac);
      hosts::connect(l.a.at, o, *l.a.qp, l.b.at, l.b.qp->qp_num, 5, 6);
      hosts::connect(l.b.at, o, *l.b.qp, l.a.at, l.a.qp->qp_num, 6, 5);
      expect_works(l);
    });
  }
  out.frames = frames_of(c.capture, {"eth.type", "ipv6.src", "ipv6.dst", "infiniband.grh.sgid", "infiniband.grh.dgid",
                                     "vlan.id", "vlan.etype"});
  return out;
}

void expect_frames(const outcome& o, const std::string& type, const std::string& tag) {
  ASSERT_GT(o.frames.size(), 100u);
  for (const std::string& f : o.frames) {
    const bool from_a = f == type + "\t\t\t" + o.a + "\t" + o.b + tag,
               from_b = f == type + "\t\t\t" + o.b + "\t" + o.a + tag;
    ASSERT_TRUE(from_a || from_b) << f;
  }
}

/// As the script's -v: the local interface is not that of the VLAN, tags are somebody else's business.
TEST(CompatibilityGids, ConnectUntagged) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  const outcome o = connect_by_mac(7, no_vlan, "compat_untagged.pcap");
  EXPECT_EQ(o.a, "fe80::202:c900:700:101");
  expect_frames(o, "0x8915", "\t\t");
}

/// As its -V: the address is that of the local interface of the VLAN.
TEST(CompatibilityGids, ConnectInTheirVlan) {
  if (!has_tshark()) GTEST_SKIP() << "no tshark";
  const outcome o = connect_by_mac(0x123, 0x123, "compat_tagged.pcap");
  EXPECT_EQ(o.a, "fe80::202:c901:2300:101");
  expect_frames(o, "0x8100", "\t291\t0x8915");
}

}  // namespace
}  // namespace rnic::system_test
