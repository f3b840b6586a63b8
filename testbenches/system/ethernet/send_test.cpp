// SPDX-License-Identifier: Apache-2.0
// What an Ethernet queue pair puts on the wire: whole frames, tags, checksums, segmentation. All is compared with
// frames made by scapy.
#include <gtest/gtest.h>

#include "testbenches/system/ethernet/station.h"

namespace rnic::system_test {
namespace {

/// A sends to B, which takes everything as it is on the wire.
struct pair_of_stations {
  explicit pair_of_stations(hosts::two_nodes& system, unsigned inline_bytes = 0)
      : a(system.a(), with_inline(inline_bytes)), b(system.b()) {
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(16);
  }
  static station::options with_inline(unsigned n) {
    station::options o;
    o.inline_bytes = n;
    return o;
  }
  void expect(const bytes& sent, const send_options& o, const bytes& wanted) {
    a.send(sent, o);
    EXPECT_EQ(a.wait_sent().status, IBV_WC_SUCCESS);
    EXPECT_EQ(b.receive().frame, padded(wanted));
    b.post_receives(1);
  }
  station a, b;
};

template <class Body>
void with_pair(Body body, unsigned inline_bytes = 0) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    pair_of_stations p(system, inline_bytes);
    body(p);
  });
}

TEST(EthernetSend, FramesArriveAsTheyWereSent) {
  with_pair([](pair_of_stations& p) {
    for (const bytes* f : {&frames::udp4, &frames::tcp6, &frames::arp, &frames::icmp6, &frames::udp4_ctag,
                           &frames::udp4_stag, &frames::snap, &frames::fragment1})
      p.expect(*f, {}, *f);
  });
}

TEST(EthernetSend, GatherOfManyPieces) {
  with_pair([](pair_of_stations& p) {
    send_options o;
    for (const std::vector<std::uint32_t>& cuts :
         {std::vector<std::uint32_t>{1}, {6, 12, 14}, {14, 34, 35, 36, 37, 100, 101}}) {
      o.cuts = cuts;
      p.expect(frames::tcp4, o, frames::tcp4);
    }
  });
}

TEST(EthernetSend, InlineFrames) {
  with_pair(
      [](pair_of_stations& p) {
        send_options o;
        o.flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
        p.expect(frames::tcp6, o, frames::tcp6);
        o.flags |= IBV_SEND_IP_CSUM;
        p.expect(frames::tcp6_raw, o, frames::tcp6);
        o.flags |= host_driver::send_insert_ctag;
        o.tci = 5 << 13 | 100;
        p.expect(bytes(frames::arp.begin(), frames::arp.begin() + 20), o, [] {
          bytes f(frames::arp.begin(), frames::arp.begin() + 20);
          const bytes tag{0x81, 0x00, 0xa0, 0x64};
          f.insert(f.begin() + 12, tag.begin(), tag.end());
          return f;
        }());
      },
      256);
}

TEST(EthernetSend, ChecksumsAreFilledIn) {
  with_pair([](pair_of_stations& p) {
    send_options o;
    o.flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
    p.expect(frames::udp4_raw, o, frames::udp4);
    p.expect(frames::udp6_raw, o, frames::udp6);
    p.expect(frames::tcp4_raw, o, frames::tcp4);
    p.expect(frames::tcp6_raw, o, frames::tcp6);
    p.expect(frames::tcp4_options_raw, o, frames::tcp4_options);
    p.expect(frames::udp6_hop_raw, o, frames::udp6_hop);
    p.expect(frames::udp4_ffff_raw, o, frames::udp4_ffff);
    p.expect(frames::icmp4_raw, o, frames::icmp4);
    // A partial checksum, as a network stack leaves it, makes no difference.
    bytes partial = frames::tcp4_raw;
    partial[14 + 20 + 16] = 0x12;
    p.expect(partial, o, frames::tcp4);
  });
}

TEST(EthernetSend, NothingIsFilledInWithoutTheFlagOrWhereThereIsNothing) {
  with_pair([](pair_of_stations& p) {
    p.expect(frames::udp4_raw, {}, frames::udp4_raw);
    send_options o;
    o.flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
    for (const bytes* f : {&frames::arp, &frames::snap, &frames::fragment0, &frames::fragment1}) p.expect(*f, o, *f);
    // Headers that lie about their lengths stay as they are.
    bytes lie = frames::tcp4_raw;
    lie[14] = 0x44;
    p.expect(lie, o, lie);
    bytes longer = frames::udp4_raw;
    longer[16] = 0x7f;
    p.expect(longer, o, longer);
  });
}

TEST(EthernetSend, TagsAreInserted) {
  with_pair([](pair_of_stations& p) {
    send_options o;
    o.flags = IBV_SEND_SIGNALED | host_driver::send_insert_ctag;
    o.tci = 5 << 13 | 100;
    p.expect(frames::udp4, o, frames::udp4_ctag);
    o.flags |= IBV_SEND_IP_CSUM;
    p.expect(frames::udp4_raw, o, frames::udp4_ctag);
    o.flags = IBV_SEND_SIGNALED | host_driver::send_insert_stag;
    o.tci = 2 << 13 | 300;
    p.expect(frames::udp4, o, frames::udp4_stag);
  });
}

TEST(EthernetSend, LongMessagesAreSegmented) {
  with_pair([](pair_of_stations& p) {
    for (const bool v6 : {false, true}) {
      p.a.send_segmented(v6 ? frames::lso6_header : frames::lso4_header, frames::lso_body, 1000);
      const ibv_wc wc = p.a.wait_sent();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.opcode, IBV_WC_TSO);
      for (const bytes* f : v6 ? std::vector<const bytes*>{&frames::lso6_0, &frames::lso6_1, &frames::lso6_2}
                               : std::vector<const bytes*>{&frames::lso4_0, &frames::lso4_1, &frames::lso4_2})
        EXPECT_EQ(p.b.receive().frame, *f);
    }
  });
}

TEST(EthernetSend, OnlySignalledRequestsComplete) {
  with_pair([](pair_of_stations& p) {
    send_options o;
    o.flags = 0;
    for (unsigned i = 0; i < 3; ++i) p.a.send(frames::udp4, o);
    o.flags = IBV_SEND_SIGNALED;
    o.id = 77;
    p.a.send(frames::tcp4, o);
    EXPECT_EQ(p.a.wait_sent().wr_id, 77u);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(p.b.receive().frame, frames::udp4);
    EXPECT_EQ(p.b.receive().frame, frames::tcp4);
  });
}

TEST(EthernetSend, FramesUpToThePortsMtu) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    pair_of_stations p(system);
    // The driver's MTU of 4200, header, tag and FCS.
    bytes longest(4200 + 14 + 4, 0x5a);
    std::copy(frames::udp4.begin(), frames::udp4.begin() + 12, longest.begin());
    longest[12] = 0x88;
    longest[13] = 0xb5;
    p.expect(longest, {}, longest);
    longest.push_back(0);
    p.a.send(longest);
    EXPECT_EQ(p.a.wait_sent().status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(p.a.state(), IBV_QPS_ERR);
    EXPECT_TRUE(p.b.silent());
  });
}

TEST(EthernetSend, ATagCountsForTheMtu) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    pair_of_stations p(system);
    bytes longest(4200 + 14 + 4, 0x5a);
    send_options o;
    o.flags = IBV_SEND_SIGNALED | host_driver::send_insert_ctag;
    p.a.send(longest, o);
    EXPECT_EQ(p.a.wait_sent().status, IBV_WC_LOC_LEN_ERR);
  });
}

TEST(EthernetSend, ShorterThanAHeaderIsAnError) {
  with_pair([](pair_of_stations& p) {
    const bytes shortest(frames::arp.begin(), frames::arp.begin() + 14);
    p.expect(shortest, {}, shortest);
    p.a.send(bytes(13, 1));
    EXPECT_EQ(p.a.wait_sent().status, IBV_WC_LOC_LEN_ERR);
    EXPECT_TRUE(p.b.silent());
  });
}

TEST(EthernetSend, PriorityChoosesTheQueue) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station::options o;
    o.ethernet.priority = 3;
    station a(system.a(), o), b(system.b());
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(2);
    // More than a queue's room: credits come back.
    for (unsigned i = 0; i < 40; ++i) {
      a.send(frames::tcp4);
      EXPECT_EQ(a.wait_sent().status, IBV_WC_SUCCESS);
      EXPECT_EQ(b.receive().frame, frames::tcp4);
      b.post_receives(1);
    }
  });
}

}  // namespace
}  // namespace rnic::system_test
