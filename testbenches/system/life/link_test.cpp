// SPDX-License-Identifier: Apache-2.0
// The cable is pulled out and plugged in again: software is told, frames are lost, connections go on.
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

void expect_port_event(const side& s, ibv_event_type type) {
  ibv_async_event e{};
  ASSERT_TRUE(s.dev().get_async_event(&e, ms)) << "no event within a millisecond";
  EXPECT_EQ(e.event_type, type);
  EXPECT_EQ(e.element.port_num, 1);
}

ibv_port_state port_state(const side& s) {
  ibv_port_attr attr{};
  hosts::require(s.dev().query_port(1, &attr), "query_port");
  return attr.state;
}

void drop_old_events(const side& s) {
  ibv_async_event e{};
  while (s.dev().get_async_event(&e, 10 * us)) {
  }
}

void set_live(hosts::two_nodes& system, bool live) { system.cable().set_live(live, system.now_ps() + 1000); }

TEST(Link, PullAndPlug) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    for (const side* s : {&l.a, &l.b}) drop_old_events(*s);
    for (unsigned round = 0; round < 3; ++round) {
      ASSERT_EQ(port_state(l.a), IBV_PORT_ACTIVE);
      set_live(system, false);
      for (const side* s : {&l.a, &l.b}) {
        expect_port_event(*s, IBV_EVENT_PORT_ERR);
        EXPECT_EQ(port_state(*s), IBV_PORT_DOWN);
      }
      set_live(system, true);
      for (const side* s : {&l.a, &l.b}) {
        expect_port_event(*s, IBV_EVENT_PORT_ACTIVE);
        EXPECT_EQ(port_state(*s), IBV_PORT_ACTIVE);
      }
      ibv_async_event e{};
      EXPECT_FALSE(l.a.dev().get_async_event(&e, 100 * us)) << "the other port has no cable and has not changed";
    }
  });
  EXPECT_EQ(system.statistics().value("a.adapter.port1.link_losses"), 3U);
}

/// Frames on the cable are lost, however short it was dead; the transport repeats them.
TEST(Link, BlinkUnderTraffic) {
  hosts::two_nodes_config c = default_system();
  c.cable_metres = 1000;  // 5 us: some forty frames are on it at a time
  hosts::two_nodes system(c);
  run(system, [&] {
    hosts::connection_options options;
    options.mtu = 1024;
    options.ack_timeout = 6;
    const link l = make_link(system, options);
    constexpr std::uint32_t size = 200'000;
    const hosts::buffer from = hosts::make_buffer(l.a.at, size), to = hosts::make_buffer(l.b.at, size);
    std::mt19937_64 random(8);
    fill_random(from.at(), size, random);
    post_write(l.a, from, to, size);
    l.a.at.bus->spend_ps(20 * us);
    const std::uint64_t lost = system.statistics().value("b.adapter.port1.drop_link_down");
    system.cable().set_live(false, system.now_ps() + 1000);
    system.cable().set_live(true, system.now_ps() + 101'000);  // dead for 100 ns, less than a frame lasts
    ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(from.at(), to.at(), size), 0);
    const std::uint64_t now_lost = system.statistics().value("b.adapter.port1.drop_link_down") - lost;
    EXPECT_GE(now_lost, 15U) << "what was on the cable is gone";
    EXPECT_LE(now_lost, 30U) << "and no more: 5.05 us of frames of 1024 bytes at 40 Gb/s are 23";
  });
  EXPECT_GT(counted(system, "retransmissions"), 0U);
}

/// Nothing goes into a port without a cable; what was posted meanwhile goes when there is one again.
TEST(Link, PostedWhileDown) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    hosts::connection_options options;
    options.ack_timeout = 10;  // 4.2 ms
    const link l = make_link(system, options);
    const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
    std::mt19937_64 random(9);
    fill_random(from.at(), 4096, random);
    set_live(system, false);
    l.a.at.bus->spend_ps(us);
    post_write(l.a, from, to, 4096);
    l.a.at.bus->spend_ps(ms);
    EXPECT_TRUE(l.a.silent());
    set_live(system, true);
    ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(from.at(), to.at(), 4096), 0);
  });
  EXPECT_GT(system.statistics().value("a.adapter.port1.drop_tx_link_down"), 0U);
}

}  // namespace
}  // namespace rnic::system_test
