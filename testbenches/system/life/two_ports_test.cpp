// SPDX-License-Identifier: Apache-2.0
// Two ports with a cable each: what one does is nothing to the other.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

hosts::two_nodes_config two_cables() {
  hosts::two_nodes_config c = default_system();
  c.ports = {1, 2};
  return c;
}

/// A connection at each port.
struct both {
  explicit both(hosts::two_nodes& system, const hosts::connection_options& options = {})
      : first(make_link(system.a(), system.b(), options)),
        second(make_link(*system.a().other, *system.b().other, options)) {}
  link first, second;
};

struct parcel {
  parcel(const link& l, std::uint32_t bytes, unsigned seed)
      : from(hosts::make_buffer(l.a.at, bytes)), to(hosts::make_buffer(l.b.at, bytes)), size(bytes) {
    std::mt19937_64 random(seed);
    fill_random(from.at(), bytes, random);
  }
  void send(const link& l) const { post_write(l.a, from, to, size); }
  void expect_there() const {
    for (std::uint32_t i = 0; i < size; ++i) ASSERT_EQ(from.at()[i], to.at()[i]) << "byte " << i << " of " << size;
  }
  hosts::buffer from, to;
  std::uint32_t size;
};

std::uint64_t of_port(hosts::two_nodes& system, char host, unsigned port, const std::string& counter) {
  return system.statistics().value(std::string(1, host) + ".adapter.port" + std::to_string(port) + "." + counter);
}

TEST(TwoPorts, EachHasItsFrames) {
  hosts::two_nodes system(two_cables());
  run(system, [&] {
    hosts::connection_options options;
    options.mtu = 1024;
    const both links(system, options);
    expect_works(links.first);
    expect_works(links.second);
    const std::uint64_t before[2] = {of_port(system, 'a', 1, "tx_frames"), of_port(system, 'a', 2, "tx_frames")};
    const parcel p(links.second, 50'000, 4);
    p.send(links.second);
    ASSERT_EQ(links.second.a.wait_send().status, IBV_WC_SUCCESS);
    p.expect_there();
    EXPECT_EQ(of_port(system, 'a', 1, "tx_frames") - before[0], 0U);
    EXPECT_EQ(of_port(system, 'a', 2, "tx_frames") - before[1], 49U);
  });
  for (const unsigned port : {1u, 2u}) {
    EXPECT_EQ(of_port(system, 'a', port, "tx_frames"), of_port(system, 'b', port, "rx_frames"));
    EXPECT_EQ(of_port(system, 'b', port, "tx_frames"), of_port(system, 'a', port, "rx_frames"));
  }
  EXPECT_EQ(system.statistics().value("cable2.a_to_b.frames"), of_port(system, 'a', 2, "tx_frames"));
}

/// Without a cable at port 1, port 2 works, and port 1 says that it is down.
TEST(TwoPorts, OnlyTheSecondHasACable) {
  hosts::two_nodes_config c = default_system();
  c.ports = {2};
  hosts::two_nodes system(c);
  run(system, [&] {
    const link l = make_link(system, {});
    expect_works(l);
    ibv_port_attr attr{};
    hosts::require(l.a.dev().query_port(1, &attr), "query_port");
    EXPECT_EQ(attr.state, IBV_PORT_DOWN);
    hosts::require(l.a.dev().query_port(2, &attr), "query_port");
    EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  });
}

/// The cable of port 2 is dead while messages are under way on both ports: the one of port 1 is as quick as if nothing
/// had been, the other one comes when the cable is back; the events name the port.
TEST(TwoPorts, OneFailsAndTheOtherGoesOn) {
  const auto took = [](bool fails) {
    return in_child([fails] {
      hosts::two_nodes system(two_cables());
      std::string text;
      run(system, [&] {
        hosts::connection_options options;
        options.ack_timeout = 8;  // 1 ms
        const both links(system, options);
        ibv_async_event e{};
        while (links.first.a.dev().get_async_event(&e, 10 * us)) {
        }
        const parcel near(links.first, 200'000, 1), far(links.second, 200'000, 2);
        if (fails) system.cable(1).set_live(false, system.now_ps() + 1000);
        links.first.a.at.bus->spend_ps(50 * us);
        if (fails) {
          EXPECT_TRUE(links.first.a.dev().get_async_event(&e, 0));
          EXPECT_EQ(e.event_type, IBV_EVENT_PORT_ERR);
          EXPECT_EQ(e.element.port_num, 2);
          far.send(links.second);
        }
        links.first.a.at.bus->spend_ps(50 * us);
        const sim::time_ps start = system.now_ps();
        near.send(links.first);
        EXPECT_EQ(links.first.a.wait_send().status, IBV_WC_SUCCESS);
        text = std::to_string((system.now_ps() - start) / 1000);
        near.expect_there();
        if (!fails) return;
        EXPECT_TRUE(links.second.a.silent());
        system.cable(1).set_live(true, system.now_ps() + 1000);
        EXPECT_TRUE(links.first.a.dev().get_async_event(&e, ms));
        EXPECT_EQ(e.event_type, IBV_EVENT_PORT_ACTIVE);
        EXPECT_EQ(e.element.port_num, 2);
        EXPECT_EQ(links.second.a.wait_send().status, IBV_WC_SUCCESS);
        far.expect_there();
      });
      EXPECT_EQ(of_port(system, 'a', 1, "link_losses"), 0U);
      EXPECT_EQ(of_port(system, 'a', 2, "link_losses"), fails ? 1U : 0U);
      return text;
    });
  };
  // Nanoseconds; the message begins at other edges of the clocks.
  EXPECT_NEAR(std::stod(took(true)), std::stod(took(false)), 20);
}

/// A plan's outages of one port, while both carry messages: every one arrives.
TEST(TwoPorts, AFlappingPort) {
  hosts::two_nodes_config c = two_cables();
  c.faults.outages.push_back({1, 12'000 * us, 20 * us, 100 * us, 5});
  hosts::two_nodes system(c);
  unsigned down = 0, up = 0;
  run(system, [&] {
    hosts::connection_options options;
    options.ack_timeout = 5;  // 131 us
    const both links(system, options);
    ASSERT_LT(system.now_ps(), 12'000 * us) << "the outages are not over yet";
    ibv_async_event e{};
    while (links.first.a.dev().get_async_event(&e, 10 * us)) {
    }
    const parcel near(links.first, 100'000, 1), far(links.second, 100'000, 2);
    links.first.a.at.bus->spend_ps(11'990 * us - system.now_ps());
    while (system.now_ps() < 12'500 * us) {
      for (const link* l : {&links.first, &links.second}) {
        (l == &links.first ? near : far).send(*l);
        ASSERT_EQ(l->a.wait_send().status, IBV_WC_SUCCESS);
      }
      near.expect_there();
      far.expect_there();
    }
    links.first.a.at.bus->spend_ps(ms);
    while (links.first.a.dev().get_async_event(&e, 10 * us)) {
      EXPECT_EQ(e.element.port_num, 1);
      ++(e.event_type == IBV_EVENT_PORT_ERR ? down : up);
    }
  });
  EXPECT_EQ(down, 5U);
  EXPECT_EQ(up, 5U);
  EXPECT_EQ(of_port(system, 'a', 1, "link_losses"), 5U);
  EXPECT_EQ(of_port(system, 'a', 2, "link_losses"), 0U);
  EXPECT_GT(counted(system, "retransmissions"), 0U);
}

TEST(TwoPorts, EachHasItsRate) {
  hosts::two_nodes_config c = two_cables();
  c.node.adapter.port2.rate_mbps = 10'000;
  hosts::two_nodes system(c);
  run(system, [&] {
    const both links(system);
    EXPECT_EQ(links.first.a.dev().port(1).speed, 0x40);
    EXPECT_EQ(links.first.a.dev().port(2).speed, 0x01);
    sim::time_ps took[2];
    for (unsigned i = 0; i < 2; ++i) {
      const link& l = i == 0 ? links.first : links.second;
      const parcel p(l, 1'000'000, 3);
      const sim::time_ps start = system.now_ps();
      p.send(l);
      ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      took[i] = system.now_ps() - start;
      p.expect_there();
    }
    // 489 packets of 2 KiB, each with 82 bytes of headers, FCS, preamble and gap
    EXPECT_NEAR(static_cast<double>(took[0]), 489 * 2130 * 200.0, 5e6);
    EXPECT_NEAR(static_cast<double>(took[1]), 489 * 2130 * 800.0, 5e6);
  });
}

/// What is for the own port turns at the width of the datapath, 16 bytes of 427 MHz, however slow the line is.
TEST(TwoPorts, LoopbackIsNotALine) {
  hosts::two_nodes_config c = default_system();
  c.node.adapter.port.rate_mbps = 1'000;
  hosts::two_nodes system(c);
  run(system, [&] {
    link l = make_link(system, {});
    // Both ends on host a: its second queue pair, connected to its first.
    side twin = l.a;
    twin.qp = hosts::make_qp(l.a.at, {}, *l.a.send_cq, *l.a.receive_cq);
    side first = l.a;
    first.qp = hosts::make_qp(l.a.at, {}, *l.a.send_cq, *l.a.receive_cq);
    hosts::connect(first.at, {}, *first.qp, twin.at, twin.qp->qp_num, 5, 6);
    hosts::connect(twin.at, {}, *twin.qp, first.at, first.qp->qp_num, 6, 5);
    const std::uint64_t lines = of_port(system, 'a', 1, "tx_frames");
    const link own{first, twin};
    const parcel p(own, 1'000'000, 3);
    const sim::time_ps start = system.now_ps();
    p.send(own);
    ASSERT_EQ(first.wait_send().status, IBV_WC_SUCCESS);
    const sim::time_ps took = system.now_ps() - start;
    first.at.bus->spend_ps(10 * us);  // the sender's completion says nothing of when the receiver sees the last bytes
    p.expect_there();
    EXPECT_EQ(of_port(system, 'a', 1, "tx_frames"), lines);
    EXPECT_GE(of_port(system, 'a', 1, "looped"), 489U);
    EXPECT_EQ(of_port(system, 'a', 1, "drop_overflow"), 0U);
    const double gbps = 8e6 * 1000 / static_cast<double>(took);
    EXPECT_GT(gbps, 20);
    EXPECT_LT(gbps, 54.656) << "16 bytes a cycle";
  });
}

}  // namespace
}  // namespace rnic::system_test
