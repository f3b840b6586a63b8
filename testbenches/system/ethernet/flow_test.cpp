// SPDX-License-Identifier: Apache-2.0
// Rules that the device manages (driver.steering = device_managed): raw packet queue pairs get exactly the frames that
// their rules say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "testbenches/system/ethernet/station.h"

namespace rnic::system_test {
namespace {

using host_driver::steering_flow;

/// A program's rule: ibv_flow_attr and what follows it in memory.
class rule {
 public:
  explicit rule(unsigned priority = 0, ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL) : bytes_(sizeof(ibv_flow_attr)) {
    attr().type = type;
    attr().priority = static_cast<std::uint16_t>(priority);
    attr().port = 1;
    attr().size = sizeof(ibv_flow_attr);
  }
  ibv_flow_attr& attr() { return *reinterpret_cast<ibv_flow_attr*>(bytes_.data()); }
  rule& ethernet(const bytes& mac, int vid = -1, std::uint8_t last_mask = 0xff) {
    ibv_flow_spec_eth s{};
    s.type = IBV_FLOW_SPEC_ETH;
    s.size = sizeof s;
    std::copy(mac.begin(), mac.end(), s.val.dst_mac);
    std::fill_n(s.mask.dst_mac, 6, std::uint8_t{0xff});
    s.mask.dst_mac[5] = last_mask;
    if (vid >= 0) {
      s.val.vlan_tag = __builtin_bswap16(static_cast<std::uint16_t>(vid));
      s.mask.vlan_tag = __builtin_bswap16(0xfff);
    }
    return add(&s, sizeof s);
  }
  rule& ipv4(std::uint32_t source, std::uint32_t source_mask, std::uint32_t to, std::uint32_t to_mask) {
    ibv_flow_spec_ipv4 s{};
    s.type = IBV_FLOW_SPEC_IPV4;
    s.size = sizeof s;
    s.val = {__builtin_bswap32(source), __builtin_bswap32(to)};
    s.mask = {__builtin_bswap32(source_mask), __builtin_bswap32(to_mask)};
    return add(&s, sizeof s);
  }
  rule& ports(ibv_flow_spec_type type, std::uint16_t from, std::uint16_t from_mask, std::uint16_t to,
              std::uint16_t to_mask) {
    ibv_flow_spec_tcp_udp s{};
    s.type = type;
    s.size = sizeof s;
    s.val = {__builtin_bswap16(to), __builtin_bswap16(from)};
    s.mask = {__builtin_bswap16(to_mask), __builtin_bswap16(from_mask)};
    return add(&s, sizeof s);
  }
  rule& add(const void* spec, std::size_t size) {
    const auto* from = static_cast<const std::uint8_t*>(spec);
    bytes_.insert(bytes_.end(), from, from + size);
    ++attr().num_of_specs;
    attr().size = static_cast<std::uint16_t>(bytes_.size());
    return *this;
  }
  steering_flow* make(station& s) { return s.dev().create_flow(s.qp(), &attr()); }
  steering_flow* must(station& s) {
    steering_flow* f = make(s);
    EXPECT_NE(f, nullptr) << std::strerror(errno);
    return f;
  }
  int refused(station& s) { return make(s) == nullptr ? errno : 0; }

 private:
  std::vector<std::uint8_t> bytes_;
};

hosts::two_nodes_config managed() {
  hosts::two_nodes_config c = station_system();
  c.node.driver.steering = host_driver::config::steering_mode::device_managed;
  return c;
}

template <class Body>
void with_rings(const hosts::two_nodes_config& config, Body body) {
  hosts::two_nodes system(config);
  run_stations(system, [&] {
    station::options o;
    o.receives = 32;
    station a(system.a()), b(system.b(), o), c(system.b(), o), d(system.b(), o);
    for (station* s : {&b, &c, &d}) s->post_receives(32);
    body(system, a, b, c, d);
  });
}
template <class Body>
void with_rings(Body body) {
  with_rings(managed(), body);
}

/// The frame comes to this one and to nobody else.
void expect_only(station& a, const bytes& frame, station& to, const std::vector<station*>& others) {
  a.send(frame);
  EXPECT_EQ(to.receive().frame, padded(frame));
  for (station* s : others) EXPECT_TRUE(s->silent());
}

/// The UDP frame of frames.h (10.1.2.3:4000 to 10.9.8.7:5000) to another port.
bytes to_port(std::uint16_t port) {
  bytes f = frames::udp4;
  f[36] = static_cast<std::uint8_t>(port >> 8);
  f[37] = static_cast<std::uint8_t>(port);
  return f;
}

TEST(FlowSteering, ByAddressVlanAndPort) {
  with_rings([](hosts::two_nodes& system, station& a, station& b, station& c, station& d) {
    ASSERT_EQ(b.dev().steering(), host_driver::config::steering_mode::device_managed);
    rule(2).ethernet(frames_destination).must(b);
    rule(1).ethernet(frames_destination, 100).must(c);
    rule(0)
        .ethernet(frames_destination)
        .ipv4(0, 0, 0x0a090807, 0xffffffff)
        .ports(IBV_FLOW_SPEC_UDP, 0, 0, 5001, 0xffff)
        .must(d);
    expect_only(a, frames::udp4, b, {&c, &d});
    expect_only(a, to_port(5001), d, {&b, &c});
    expect_only(a, frames::udp4_ctag, c, {&b, &d});
    expect_only(a, frames::udp4_ctag200, b, {&c, &d});
    expect_only(a, frames::tcp4, b, {&c, &d});
    a.send(with_destination(frames::udp4, {2, 0, 0, 0, 0x0b, 9}));
    EXPECT_TRUE(b.silent() && c.silent() && d.silent());
    EXPECT_EQ(tally(system, "b.adapter.steering.drop.no_match"), 1u);
    EXPECT_EQ(tally(system, "b.adapter.steering.flows.matched"), 5u);
    EXPECT_EQ(tally(system, "b.adapter.steering.flows.missed"), 1u);
  });
}

TEST(FlowSteering, MasksOfEveryField) {
  with_rings([](hosts::two_nodes&, station& a, station& b, station& c, station& d) {
    rule(3).ethernet(frames_destination, -1, 0xfe).must(b);  // ...:00 and ...:01
    rule(2).ethernet(frames_destination).ipv4(0x0a010200, 0xffffff00, 0x0a000000, 0xff000000).must(c);
    rule(1).ethernet(frames_destination).ports(IBV_FLOW_SPEC_TCP, 0x0fa0, 0xfff0, 80, 0xffff).must(d);
    expect_only(a, with_destination(frames::arp, {2, 0, 0, 0, 0x0b, 0}), b, {&c, &d});
    expect_only(a, frames::udp4, c, {&b, &d});
    expect_only(a, frames::tcp4, d, {&b, &c});
    bytes elsewhere = frames::udp4;
    elsewhere[28] = 3;  // from 10.1.3.3
    expect_only(a, elsewhere, b, {&c, &d});
    expect_only(a, frames::udp6, b, {&c, &d});
  });
}

TEST(FlowSteering, TheHigherPriorityTakesTheFrameAsLongAsItIsThere) {
  with_rings([](hosts::two_nodes&, station& a, station& b, station& c, station& d) {
    rule(7).ethernet(frames_destination).must(b);
    b.steer(frames_destination);  // a network interface's: below all
    steering_flow* const higher = rule(6).ethernet(frames_destination).must(c);
    steering_flow* const highest = rule(0).ethernet(frames_destination).ports(IBV_FLOW_SPEC_UDP, 0, 0, 0, 0).must(d);
    expect_only(a, frames::udp4, d, {&b, &c});
    expect_only(a, frames::tcp4, c, {&b, &d});
    ASSERT_EQ(d.dev().destroy_flow(highest), 0);
    expect_only(a, frames::udp4, c, {&b, &d});
    ASSERT_EQ(c.dev().destroy_flow(higher), 0);
    expect_only(a, frames::udp4, b, {&c, &d});
    EXPECT_EQ(b.dev().destroy_flow(higher), -EINVAL);
  });
}

TEST(FlowSteering, EqualRulesShareAndOthersQueueUp) {
  with_rings([](hosts::two_nodes&, station& a, station& b, station& c, station& d) {
    const bytes group{0x01, 0x00, 0x5e, 1, 2, 3};
    for (const bytes& to : {group, frames_destination}) {
      rule(1).ethernet(to).must(b);
      rule(1).ethernet(to).ports(IBV_FLOW_SPEC_UDP, 0, 0, 5000, 0xffff).must(d);  // behind it in the queue
      rule(1).ethernet(to).must(c);
      a.send(with_destination(frames::udp4, to));
      for (station* s : {&b, &c}) EXPECT_EQ(s->receive().frame, with_destination(frames::udp4, to));
      EXPECT_TRUE(d.silent());
      EXPECT_EQ(rule(1).ethernet(to).refused(c), EBUSY) << "it has that rule";
    }
  });
}

TEST(FlowSteering, DefaultRulesGetWhatNobodyTakes) {
  with_rings([](hosts::two_nodes&, station& a, station& b, station& c, station& d) {
    const bytes group{0x33, 0x33, 0, 0, 0, 9};
    rule(0).ethernet(frames_destination).must(b);
    c.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    steering_flow* const groups = d.steer_all(IBV_FLOW_ATTR_MC_DEFAULT);
    expect_only(a, frames::udp4, b, {&c, &d});
    expect_only(a, with_destination(frames::udp4, {2, 0, 0, 0, 0x0b, 9}), c, {&b, &d});
    a.send(with_destination(frames::udp4, group));
    for (station* s : {&c, &d}) EXPECT_EQ(s->receive().wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(d.dev().destroy_flow(groups), 0);
    expect_only(a, with_destination(frames::udp4, group), c, {&b, &d});
  });
}

TEST(FlowSteering, SniffersGetCopies) {
  with_rings([](hosts::two_nodes&, station& a, station& b, station& c, station& d) {
    const bytes group{0x33, 0x33, 0, 0, 0, 9};
    rule(3).ethernet(frames_destination).must(b);
    rule all;
    all.attr().flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
    steering_flow* const sniffer = all.must(c);
    rule groups;
    groups.attr().flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
    ibv_flow_spec_eth s{};
    s.type = IBV_FLOW_SPEC_ETH;
    s.size = sizeof s;
    s.val.dst_mac[0] = s.mask.dst_mac[0] = 1;
    groups.add(&s, sizeof s).must(d);
    a.send(frames::udp4);
    for (station* to : {&b, &c}) EXPECT_EQ(to->receive().frame, frames::udp4);
    EXPECT_TRUE(d.silent());
    a.send(with_destination(frames::udp4, group));  // nobody's
    for (station* to : {&c, &d}) EXPECT_EQ(to->receive().wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(c.dev().destroy_flow(sniffer), 0);
    expect_only(a, frames::udp4, b, {&c, &d});
  });
}

TEST(FlowSteering, OwnFramesComeBackToInterfacesOnly) {
  with_rings([](hosts::two_nodes&, station&, station& b, station& c, station& d) {
    const auto& mac = b.dev().port(1).mac;
    const bytes own(mac.begin(), mac.end());
    d.steer(own);
    const bytes frame = with_destination(frames::udp4, own);
    b.send(frame);
    EXPECT_EQ(d.receive().frame, frame);
    rule(0).ethernet(own).must(c);  // takes the frame, and does not want it (mlx4_ib sets no flag)
    b.send(frame);
    EXPECT_TRUE(c.silent() && d.silent());
  });
}

TEST(FlowSteering, ASpreadingQueuePairIsATarget) {
  hosts::two_nodes system(managed());
  run_stations(system, [&] {
    station a(system.a());
    station::options o;
    const std::uint32_t first = 0x180;
    o.qpn = &first;
    station b(system.b(), o);
    b.post_receives(8);
    host_driver::spreading how;
    how.targets = {b.qp()};
    host_driver::queue_pair* const spread = b.dev().create_rss_qp(b.at().pd, how);
    ASSERT_NE(spread, nullptr);
    rule r(0);
    r.ethernet(frames_destination);
    ASSERT_NE(b.dev().create_flow(spread, &r.attr()), nullptr);
    a.send(frames::udp4);
    EXPECT_EQ(b.receive().frame, frames::udp4);
  });
}

TEST(FlowSteering, WhatIsRefused) {
  hosts::two_nodes_config config = managed();
  config.node.adapter.steering.flows.rules = 4;
  with_rings(config, [](hosts::two_nodes&, station&, station& b, station& c, station&) {
    EXPECT_EQ(rule(0x1000).ethernet(frames_destination).refused(b), EINVAL) << "priority";
    EXPECT_EQ(rule(0).refused(b), EINVAL) << "no header";
    rule port(0);
    port.ethernet(frames_destination).attr().port = 3;
    EXPECT_EQ(port.refused(b), EINVAL);
    for (const std::uint32_t flags : {1u, 4u}) {
      rule r(0);
      r.ethernet(frames_destination).attr().flags = flags;
      EXPECT_EQ(r.refused(b), EOPNOTSUPP) << flags;
    }
    rule trap(1);
    trap.attr().flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
    EXPECT_EQ(trap.refused(b), EOPNOTSUPP) << "a sniffer has no priority";
    EXPECT_EQ(rule(0, IBV_FLOW_ATTR_SNIFFER).refused(b), EINVAL) << "the device mirrors no port";
    ibv_flow_spec_ipv6 six{};
    six.type = IBV_FLOW_SPEC_IPV6;
    six.size = sizeof six;
    EXPECT_EQ(rule(0).ethernet(frames_destination).add(&six, sizeof six).refused(b), EINVAL);
    EXPECT_EQ(rule(0).ipv4(0, 0, 0, 0).ethernet(frames_destination).refused(b), EINVAL) << "upside down";
    rule cut(0);
    cut.ethernet(frames_destination).attr().size -= 1;
    EXPECT_EQ(cut.refused(b), EINVAL);
    for (std::uint8_t i = 0; i < 4; ++i) rule(0).ethernet({2, 0, 0, 0, 0, i}).must(b);
    EXPECT_EQ(rule(0).ethernet(frames_destination).refused(b), ENOMEM) << "the table is full";
    EXPECT_EQ(b.dev().destroy_qp(b.qp()), 0) << "takes its rules along";
    EXPECT_EQ(rule(0).ethernet(frames_destination).refused(c), 0);
  });
}

TEST(FlowSteering, GroupsHaveNoPriorities) {
  with_rings(station_system(), [](hosts::two_nodes&, station&, station& b, station&, station&) {
    EXPECT_EQ(b.dev().steering(), host_driver::config::steering_mode::b0);
    EXPECT_EQ(rule(1).ethernet(frames_destination).refused(b), EOPNOTSUPP);
    EXPECT_EQ(rule(0).ethernet(frames_destination).ipv4(0, 0, 0, 0).refused(b), EOPNOTSUPP);
    EXPECT_EQ(rule(0).ethernet(frames_destination).refused(b), 0);
    ibv_device_attr attr{};
    ASSERT_EQ(b.dev().query_device(&attr), 0);
    EXPECT_EQ(attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, 0u);
  });
}

TEST(FlowSteering, IsAnnounced) {
  with_rings([](hosts::two_nodes&, station&, station& b, station&, station&) {
    ibv_device_attr attr{};
    ASSERT_EQ(b.dev().query_device(&attr), 0);
    EXPECT_NE(attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, 0u);
    EXPECT_TRUE(b.dev().caps().flow_steering && b.dev().caps().flow_sniffer);
    EXPECT_EQ(b.dev().caps().max_flow_qps, 248u);
  });
}

/// One ring has the address; another one takes it and gives it back while frames of a kind come without a pause: each
/// frame comes to one of them, once, and whole, and none overtakes another of its ring.
TEST(FlowSteering, RulesComeAndGoUnderTraffic) {
  hosts::two_nodes system(managed());
  run_stations(system, [&] {
    station::options o;
    o.receives = 256;
    station a(system.a()), b(system.b(), o), c(system.b(), o);
    for (station* s : {&b, &c}) s->post_receives(256);
    rule(1).ethernet(frames_destination).must(b);
    bytes frame(4000, 0x5a);
    std::copy(frames::udp4.begin(), frames::udp4.begin() + 12, frame.begin());
    frame[12] = 0x88;
    frame[13] = 0xb5;
    constexpr unsigned turns = 12, burst = 12;
    std::uint8_t sent = 0;
    for (unsigned turn = 0; turn < turns; ++turn) {
      steering_flow* taken = nullptr;
      for (unsigned half = 0; half < 2; ++half) {
        for (unsigned i = 0; i < burst / 2; ++i) {
          frame[14] = frame.back() = sent++;
          a.send(frame);
        }
        if (half == 0) taken = rule(0).ethernet(frames_destination).must(c);
      }
      ASSERT_EQ(c.dev().destroy_flow(taken), 0);
      for (unsigned i = 0; i < burst; ++i) EXPECT_EQ(a.wait_sent().status, IBV_WC_SUCCESS);
    }
    a.at().bus->spend_ps(100 * station_us);
    std::vector<unsigned> seen(256, 0);
    unsigned counts[2] = {};
    for (station* s : {&b, &c}) {
      int last = -1;
      for (;;) {
        const arrival got = s->poll();
        if (got.frame.empty()) break;
        ASSERT_EQ(got.frame.size(), frame.size());
        EXPECT_EQ(got.frame[14], got.frame.back()) << "pieces of two frames";
        EXPECT_GT(int{got.frame[14]}, last);
        last = got.frame[14];
        ++seen[got.frame[14]];
        ++counts[s == &b ? 0 : 1];
      }
    }
    for (unsigned i = 0; i < turns * burst; ++i) EXPECT_EQ(seen[i], 1u) << i;
    EXPECT_GT(counts[0], burst) << "both had their time";
    EXPECT_GT(counts[1], burst);
    EXPECT_EQ(tally(system, "b.adapter.steering.drop.no_match"), 0u);
  });
}

}  // namespace
}  // namespace rnic::system_test
