// SPDX-License-Identifier: Apache-2.0
// What was agreed on shapes and pauses real traffic.
#include <array>
#include <cstring>

#include "testbenches/system/dcb/bridged.h"

namespace rnic::system_test {
namespace {

hosts::connection_options on(unsigned priority) {
  hosts::connection_options o;
  o.mtu = 1024;
  o.vlan = 5;  // only a tag carries a priority
  o.priority = priority;
  o.ack_timeout = 12;  // 17 ms
  return o;
}

host_driver::port_statistics statistics_of(const side& s) {
  host_driver::port_statistics p;
  hosts::require(s.dev().query_statistics(1, &p), "query_statistics");
  return p;
}

/// Each packet of 1024 bytes takes the receiver 1.4 us, the line brings one in 0.22 us.
hosts::two_nodes_config slow_receiver() {
  hosts::two_nodes_config c = default_system();
  c.node.adapter.responder.write_cycles = 600;
  c.node.adapter.port.ingress_bytes = 32'768;
  c.node.adapter.port.xoff_bytes = 12'000;
  c.node.adapter.port.xon_bytes = 8'000;
  return c;
}

struct outcome {
  host_driver::port_statistics a, b;
};

/// Eight messages of 100 000 bytes, which arrive whatever the port does.
outcome overload(hosts::two_nodes& system, unsigned priority) {
  constexpr std::uint32_t size = 100'000, messages = 8;
  const link l = make_link(system, on(priority));
  const hosts::buffer from = hosts::make_buffer(l.a.at, messages * size),
                      to = hosts::make_buffer(l.b.at, messages * size);
  std::mt19937_64 random(12);
  fill_random(from.at(), messages * size, random);
  for (unsigned i = 0; i < messages; ++i) post_write(l.a, from, to, size, i, std::uint64_t{i} * size);
  for (unsigned i = 0; i < messages; ++i) EXPECT_EQ(l.a.wait_send(1000 * ms).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(from.at(), to.at(), messages * size), 0);
  return {statistics_of(l.a), statistics_of(l.b)};
}

TEST(DcbTraffic, PriorityPauseStopsTheAgreedPriority) {
  hosts::two_nodes system(bridged(slow_receiver(), {shared(50, false), 1u << 3}, {shared(50, true), 0}));
  run(system, [&] {
    expect_acquainted(system);
    const outcome o = overload(system, 3);
    EXPECT_EQ(o.b.rx_overflow, 0u);
    EXPECT_GT(o.b.tx_pause[3].transitions, 5u);
    EXPECT_EQ(o.a.rx_pause[3].transitions, o.b.tx_pause[3].transitions);
    EXPECT_GT(o.a.rx_pause[3].duration_us, 500u);
    for (unsigned p = 0; p < 8; ++p) {
      if (p != 3) {
        EXPECT_EQ(o.a.rx_pause[p].frames, 0u) << "priority " << p;
      }
    }
  });
}

/// Without an agreement one has PFC and the other PAUSE, and neither understands the other.
TEST(DcbTraffic, WithoutAgreementFramesAreLost) {
  hosts::two_nodes system(bridged(slow_receiver(), {shared(50, false), 1u << 3}, {shared(50, false), 0}));
  run(system, [&] {
    expect_acquainted(system);
    const outcome o = overload(system, 3);
    EXPECT_GT(o.b.rx_overflow, 50u);
    EXPECT_EQ(o.a.rx_pause[3].duration_us, 0u);
  });
}

/// Priorities 3 and 5 send as if without end.
class rivals {
 public:
  explicit rivals(hosts::two_nodes& system)
      : three_(make_link(system, on(3))),
        five_(make_sibling(three_, on(5))),
        from_(hosts::make_buffer(three_.a.at, size)),
        to_(hosts::make_buffer(three_.b.at, size)) {
    for (unsigned i = 0; i < messages; ++i)
      for (const link* l : {&three_, &five_}) post_write(l->a, from_, to_, size);
    three_.a.at.bus->spend_ps(ms);
  }
  /// The share of priority 3 in what both send within the next two milliseconds.
  double share_of_three() const {
    const host_driver::port_statistics first = statistics_of(three_.a);
    three_.a.at.bus->spend_ps(2 * ms);
    const host_driver::port_statistics last = statistics_of(three_.a);
    const auto sent = [&](unsigned p) { return static_cast<double>(last.tx_octets[p] - first.tx_octets[p]); };
    EXPECT_GT(sent(3) + sent(5), 2 * 39e9 / 8 / 1000) << "the line is full";
    for (const unsigned p : {3u, 5u})
      EXPECT_LT(last.tx_octets[p], std::uint64_t{messages} * size) << "the measurement ends before the messages do";
    return sent(3) / (sent(3) + sent(5));
  }
  void finish() const {
    for (unsigned i = 0; i < 2 * messages; ++i) EXPECT_EQ(three_.a.wait_send(1000 * ms).status, IBV_WC_SUCCESS);
  }

 private:
  static constexpr std::uint32_t size = 1u << 20, messages = 24;
  link three_, five_;
  hosts::buffer from_, to_;
};

TEST(DcbTraffic, RecommendedSharesHold) {
  for (const std::uint8_t percent : {std::uint8_t{70}, std::uint8_t{20}}) {
    const std::string share = in_child([percent] {
      hosts::two_nodes system(bridged(default_system(), {shared(50, true), 0}, {shared(percent, false), 0}));
      double got = 0;
      run(system, [&] {
        expect_acquainted(system);
        const rivals r(system);
        got = r.share_of_three();
        r.finish();
      });
      return std::to_string(got);
    });
    EXPECT_NEAR(std::stod(share), percent / 100.0, 0.01);
  }
}

/// The peer goes in the middle of it: the own shares hold from then on.
TEST(DcbTraffic, SharesChangeUnderWay) {
  hosts::two_nodes system(bridged(default_system(), {shared(50, true), 0}, {shared(80, false), 0}));
  run(system, [&] {
    expect_acquainted(system);
    const rivals r(system);
    EXPECT_NEAR(r.share_of_three(), 0.80, 0.01);
    system.node_b().dcb()->stop();
    system.a().bus->spend_ps(500 * us);
    ASSERT_FALSE(system.node_a().dcb()->current().peer);
    EXPECT_NEAR(r.share_of_three(), 0.50, 0.01);
    r.finish();
  });
}

/// Who has nobody to agree with has what its administrator says.
TEST(DcbTraffic, OwnSharesHoldWithoutAPeer) {
  dcb::settings off = shared(20, false);
  off.enabled = false;
  hosts::two_nodes system(bridged(default_system(), {shared(60, true), 0}, {off, 0}));
  run(system, [&] {
    system.a().bus->spend_ps(40 * second);
    EXPECT_FALSE(system.node_a().dcb()->current().peer);
    const rivals r(system);
    EXPECT_NEAR(r.share_of_three(), 0.60, 0.01);
    r.finish();
  });
}

/// Frames by priority that both hosts have sent of messages of a connection that names none, unless it is `given`.
std::array<std::array<std::uint64_t, 9>, 2> sent_by_priority(hosts::two_nodes& system, bool given,
                                                             host_driver::roce_types roce) {
  hosts::connection_options o = on(0);
  o.priority_is_given = given;
  o.roce = roce;
  const link l = make_link(system, o);
  const hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
  const auto before_a = statistics_of(l.a).tx_frames, before_b = statistics_of(l.b).tx_frames;
  for (unsigned i = 0; i < 4; ++i) post_write(l.a, from, to, 1024, i, 0);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(l.a.wait_send(1000 * ms).status, IBV_WC_SUCCESS);
  std::array<std::array<std::uint64_t, 9>, 2> all{statistics_of(l.a).tx_frames, statistics_of(l.b).tx_frames};
  for (unsigned p = 0; p < 9; ++p) {
    all[0][p] -= before_a[p];
    all[1][p] -= before_b[p];
  }
  return all;
}

/// a says that RoCE v2 is of priority 5 and RoCE v1 of 2; b is willing and has no entry of its own.
hosts::two_nodes_config with_applications() {
  dcb::settings says = shared(70, false);
  says.roce_v2_priority = 5;
  says.roce_v1_priority = 2;
  return bridged(default_system(), {says, 0}, {shared(50, true), 0});
}

TEST(DcbTraffic, RoceHasThePriorityThatWasAgreedForIt) {
  hosts::two_nodes system(with_applications());
  run(system, [&] {
    expect_acquainted(system);
    const auto sent = sent_by_priority(system, false, host_driver::roce_types::v2);
    EXPECT_EQ(sent[0][5], 4u);
    EXPECT_GT(sent[1][5], 0u) << "b's answers, by what a has told it";
    EXPECT_EQ(sent[0][0] + sent[1][0], 0u);
  });
}

TEST(DcbTraffic, EachVersionHasItsOwn) {
  hosts::two_nodes system(with_applications());
  run(system, [&] {
    expect_acquainted(system);
    const auto sent = sent_by_priority(system, false, host_driver::roce_types::v1);
    EXPECT_EQ(sent[0][2], 4u);
    EXPECT_GT(sent[1][2], 0u);
  });
}

TEST(DcbTraffic, APriorityThatIsGivenStays) {
  hosts::two_nodes system(with_applications());
  run(system, [&] {
    expect_acquainted(system);
    const auto sent = sent_by_priority(system, true, host_driver::roce_types::v2);
    EXPECT_EQ(sent[0][0], 4u);
    EXPECT_EQ(sent[0][5] + sent[1][5], 0u);
  });
}

}  // namespace
}  // namespace rnic::system_test
