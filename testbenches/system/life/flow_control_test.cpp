// SPDX-License-Identifier: Apache-2.0
// A receiver that is slower than the line: with pause nothing is lost, without it frames are dropped and repeated.
#include <gtest/gtest.h>

#include <cstring>

#include "model/mac/mac_cr.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

constexpr std::uint32_t size = 100'000;
constexpr unsigned messages = 8;

/// Each packet of 1024 bytes takes the receiver 1.4 us, the line brings one in 0.22 us.
hosts::two_nodes_config slow_receiver() {
  hosts::two_nodes_config c = default_system();
  c.node.adapter.responder.write_cycles = 600;
  c.node.adapter.port.ingress_bytes = 32'768;
  c.node.adapter.port.xoff_bytes = 12'000;
  c.node.adapter.port.xon_bytes = 8'000;
  return c;
}

hosts::connection_options on(unsigned priority) {
  hosts::connection_options o;
  o.mtu = 1024;
  o.vlan = 5;  // only a tag carries a priority
  o.priority = priority;
  o.ack_timeout = 12;  // 17 ms
  return o;
}

void transfer(
    const link& l, const std::function<void()>& meanwhile = [] {}) {
  const hosts::buffer from = hosts::make_buffer(l.a.at, messages * size),
                      to = hosts::make_buffer(l.b.at, messages * size);
  std::mt19937_64 random(12);
  fill_random(from.at(), messages * size, random);
  for (unsigned i = 0; i < messages; ++i) post_write(l.a, from, to, size, i, std::uint64_t{i} * size);
  meanwhile();
  for (unsigned i = 0; i < messages; ++i) {
    const ibv_wc wc = l.a.wait_send(1000 * ms);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, i);
  }
  EXPECT_EQ(std::memcmp(from.at(), to.at(), messages * size), 0);
}

host_driver::port_statistics statistics_of(const side& s) {
  host_driver::port_statistics p;
  hosts::require(s.dev().query_statistics(1, &p), "query_statistics");
  return p;
}

TEST(FlowControl, WithoutPauseFramesAreLostAndRepeated) {
  hosts::two_nodes_config c = slow_receiver();
  c.node.driver.lossless_global_pause = false;
  hosts::two_nodes system(c);
  run(system, [&] {
    const link l = make_link(system, on(3));
    transfer(l);
    const host_driver::port_statistics a = statistics_of(l.a), b = statistics_of(l.b);
    EXPECT_GT(b.rx_overflow, 50U);
    EXPECT_EQ(b.rx_overflow, system.statistics().value("b.adapter.port1.drop_overflow"));
    EXPECT_GE(a.tx_frames[3], messages * ((size + 1023) / 1024) + b.rx_overflow) << "each one again";
    EXPECT_EQ(b.rx_frames[3], a.tx_frames[3]);
    for (unsigned p = 0; p < 8; ++p) EXPECT_EQ(b.tx_pause[p].frames + a.rx_pause[p].frames, 0U);
  });
  EXPECT_GT(system.statistics().value("a.adapter.requester.retransmissions"), 0U);
}

TEST(FlowControl, GlobalPauseLosesNothing) {
  hosts::two_nodes system(slow_receiver());
  run(system, [&] {
    const link l = make_link(system, on(3));
    transfer(l);
    const host_driver::port_statistics a = statistics_of(l.a), b = statistics_of(l.b);
    EXPECT_EQ(b.rx_overflow, 0U);
    EXPECT_GT(b.tx_pause[3].transitions, 5U);
    EXPECT_EQ(a.rx_pause[3].transitions, b.tx_pause[3].transitions);
    EXPECT_EQ(a.rx_pause[0].transitions, a.rx_pause[3].transitions) << "it stops them all";
    EXPECT_GT(a.rx_pause[3].duration_us, 500U) << "the line was silent for most of the 1.1 ms";
    EXPECT_GT(a.rx_control, 0U);
    EXPECT_EQ(a.tx_frames[3], messages * ((size + 1023) / 1024)) << "nothing twice";
  });
  EXPECT_EQ(system.statistics().value("a.adapter.requester.retransmissions"), 0U);
  EXPECT_GT(system.statistics().value("a.adapter.port1.blocked_by_pause"), 0U);
}

TEST(FlowControl, PriorityPauseStopsItsPriorityAlone) {
  hosts::two_nodes_config c = slow_receiver();
  c.node.driver.pfc_mask = 1u << 3;
  hosts::two_nodes system(c);
  run(system, [&] {
    const link busy = make_link(system, on(3));
    const link calm = make_sibling(busy, on(5));
    const hosts::buffer from = hosts::make_buffer(calm.a.at, 256), to = hosts::make_buffer(calm.b.at, 256);
    std::mt19937_64 random(13);
    fill_random(from.at(), 256, random);
    unsigned passed = 0, paused = 0;
    transfer(busy, [&] {
      for (unsigned i = 0; i < 40; ++i) {
        calm.a.at.bus->spend_ps(20 * us);
        const std::uint64_t others = system.statistics().value("a.adapter.port1.tx_frames");
        post_write(calm.a, from, to, 256, 0, 0, 0);
        calm.a.at.bus->spend_ps(1500 * 1000);
        const bool held = system.node_a().nic().port(0).cr_read(mac::cr::paused) == 1u << 3;
        if (held) ++paused;
        if (held && system.statistics().value("a.adapter.port1.tx_frames") > others) ++passed;
      }
    });
    EXPECT_GT(paused, 10U);
    EXPECT_GT(passed, 10U) << "the other priority goes on while this one is stopped";
    const host_driver::port_statistics a = statistics_of(busy.a), b = statistics_of(busy.b);
    EXPECT_EQ(b.rx_overflow, 0U);
    EXPECT_GT(a.rx_pause[3].transitions, 5U);
    EXPECT_GT(a.rx_pause[3].duration_us, 500U);
    for (unsigned p = 0; p < 8; ++p) {
      if (p != 3) {
        EXPECT_EQ(a.rx_pause[p].frames, 0U) << "priority " << p;
      }
    }
    EXPECT_EQ(a.tx_frames[3], messages * ((size + 1023) / 1024)) << "nothing twice";
    EXPECT_EQ(a.tx_frames[5], 40U);
  });
}

}  // namespace
}  // namespace rnic::system_test
