// SPDX-License-Identifier: Apache-2.0
// What the user may write for a link, and the text of the address exchange.
#include <gtest/gtest.h>

#include <stdexcept>

#include "testbenches/serve/links/frame_link.h"
#include "testbenches/serve/pingpong/address_exchange.h"

namespace rnic::serve {
namespace {

TEST(link_spec, every_form) {
  link_spec s = parse_link("listen:tcp:[::1]:7000");
  EXPECT_EQ(s.how, link_spec::kind::listen);
  EXPECT_EQ(s.local, "::1");
  EXPECT_EQ(s.local_port, "7000");
  s = parse_link("connect:unix:/a:b");
  EXPECT_EQ(s.how, link_spec::kind::connect);
  EXPECT_TRUE(s.unix_path);
  EXPECT_EQ(s.remote, "/a:b");
  s = parse_link("datagram:udp:localhost:1,10.0.0.1:2");
  EXPECT_EQ(s.how, link_spec::kind::datagram);
  EXPECT_EQ(s.local_port, "1");
  EXPECT_EQ(s.remote, "10.0.0.1");
  EXPECT_EQ(s.remote_port, "2");
  s = parse_link("datagram:unix:/x,/y");
  EXPECT_EQ(s.local, "/x");
  EXPECT_EQ(s.remote, "/y");
  s = parse_link("tap:tap0");
  EXPECT_EQ(s.how, link_spec::kind::tap);
  EXPECT_EQ(s.local, "tap0");
}

TEST(link_spec, what_is_none_of_them) {
  for (const char* text :
       {"", ":", "listen", "listen:", "listen:tcp:", "listen:tcp:host", "listen:tcp:host:", "listen:tcp::5",
        "listen:tcp:host:70000", "listen:tcp:host:5x", "listen:unix:", "connect:udp:h:1", "datagram:udp:h:1",
        "datagram:tcp:h:1,h:2", "datagram:unix:/x", "tap:", "tap:a_name_that_is_too_long", "ftp:unix:/x"})
    EXPECT_THROW(parse_link(text), std::invalid_argument) << text;
}

TEST(peer_address, is_the_text_of_the_verbs_examples) {
  peer_address a{0, 0x11, 0xf6e99f, {}};
  a.gid = host_driver::ipv4_gid(0x0a000001);
  const std::string text = "0000:000011:f6e99f:00000000000000000000ffff0a000001";
  EXPECT_EQ(to_text(a), text);
  EXPECT_EQ(text.size() + 1, address_exchange::message_bytes);
  const auto back = parse_peer(text + '\0');
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->qpn, a.qpn);
  EXPECT_EQ(back->psn, a.psn);
  EXPECT_EQ(back->gid, a.gid);
  EXPECT_EQ(to_line(a), "LID 0x0000, QPN 0x000011, PSN 0xf6e99f, GID ::ffff:10.0.0.1");
  EXPECT_FALSE(parse_peer(text.substr(0, 50)).has_value());
  EXPECT_FALSE(parse_peer("0000-" + text.substr(5)).has_value());
  EXPECT_FALSE(parse_peer("00g0" + text.substr(4)).has_value());
  EXPECT_FALSE(parse_peer(text.substr(0, 50) + "x").has_value());
}

}  // namespace
}  // namespace rnic::serve
