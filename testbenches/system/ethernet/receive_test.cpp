// SPDX-License-Identifier: Apache-2.0
// What completions of received plain frames say: tags, checksums, hashes; how frames are spread over rings.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>

#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/queue_entries.h"
#include "testbenches/system/ethernet/station.h"

namespace rnic::system_test {
namespace {

namespace f = abi::cqe;

template <class Body>
void with_receiver(const station::options& o, Body body, std::uint8_t checksum_mode = 0) {
  hosts::two_nodes_config config = station_system();
  config.node.firmware.rx_checksum_mode = checksum_mode;
  hosts::two_nodes system(config);
  run_stations(system, [&] {
    station a(system.a()), b(system.b(), o);
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(16);
    body(a, b);
  });
}

arrival exchange(station& a, station& b, const bytes& frame) {
  a.send(frame);
  EXPECT_EQ(a.wait_sent().status, IBV_WC_SUCCESS);
  arrival got = b.receive();
  b.post_receives(1);
  return got;
}

station::options stripping() {
  station::options o;
  o.ethernet.strip_vlan = true;
  return o;
}

TEST(EthernetReceive, TagsAreStrippedAndTold) {
  with_receiver(stripping(), [](station& a, station& b) {
    arrival got = exchange(a, b, frames::udp4_ctag);
    EXPECT_EQ(got.frame, frames::udp4);
    EXPECT_TRUE(got.plain.ctag);
    EXPECT_FALSE(got.plain.stag);
    EXPECT_EQ(got.plain.tci, 5 << 13 | 100);
    EXPECT_EQ(got.wc.byte_len, frames::udp4.size());
    EXPECT_NE(got.wc.wc_flags & IBV_WC_IP_CSUM_OK, 0u);
    got = exchange(a, b, frames::udp4_stag);
    EXPECT_EQ(got.frame, frames::udp4);
    EXPECT_TRUE(got.plain.stag);
    EXPECT_EQ(got.plain.tci, 2 << 13 | 300);
    got = exchange(a, b, frames::udp4);
    EXPECT_EQ(got.frame, frames::udp4);
    EXPECT_FALSE(got.plain.ctag || got.plain.stag);
    EXPECT_EQ(got.plain.tci, 0);
  });
}

TEST(EthernetReceive, TagsThatStayAreTold) {
  with_receiver({}, [](station& a, station& b) {
    const arrival got = exchange(a, b, frames::udp4_ctag);
    EXPECT_EQ(got.frame, frames::udp4_ctag);
    EXPECT_TRUE(got.plain.ctag);
    EXPECT_EQ(got.plain.tci, 5 << 13 | 100);
  });
}

TEST(EthernetReceive, RightChecksumsAreTold) {
  with_receiver({}, [](station& a, station& b) {
    const struct {
      const bytes& frame;
      unsigned status;
    } cases[] = {{frames::udp4, f::status_ipv4 | f::status_udp},
                 {frames::udp4_ffff, f::status_ipv4 | f::status_udp},
                 {frames::tcp4, f::status_ipv4 | f::status_tcp},
                 {frames::udp4_ctag, f::status_ipv4 | f::status_udp},
                 {frames::tcp4_options, f::status_ipv4 | f::status_options | f::status_tcp},
                 {frames::udp6, f::status_ipv6 | f::status_udp},
                 {frames::udp6_hop, f::status_ipv6 | f::status_udp},
                 {frames::tcp6, f::status_ipv6 | f::status_tcp}};
    for (const auto& c : cases) {
      const arrival got = exchange(a, b, c.frame);
      EXPECT_EQ(got.plain.status, c.status | f::status_ip_ok);
      EXPECT_EQ(got.plain.checksum, 0xffff);
      EXPECT_EQ(got.plain.encoding, f::encoding_l4_ok);
      EXPECT_EQ((got.wc.wc_flags & IBV_WC_IP_CSUM_OK) != 0, (c.status & f::status_ipv4) != 0);
    }
  });
}

TEST(EthernetReceive, WrongChecksumsAreNotCalledRight) {
  with_receiver({}, [](station& a, station& b) {
    for (const bytes* frame : {&frames::tcp4_bad_payload, &frames::udp6_bad_payload, &frames::udp4_none,
                               &frames::udp4_raw, &frames::tcp6_raw, &frames::tcp4_bad_header}) {
      const arrival got = exchange(a, b, *frame);
      EXPECT_EQ(got.frame, *frame);  // it is software that throws it away
      // Not what the driver takes for a right checksum (A.8.4): TCP or UDP, header right, and a sum of 0xffff.
      const bool taken = (got.plain.status & (f::status_tcp | f::status_udp)) != 0 &&
                         (got.plain.status & f::status_ip_ok) != 0 && got.plain.checksum == 0xffff;
      EXPECT_FALSE(taken);
      EXPECT_EQ(got.plain.encoding & f::encoding_l4_ok, 0);
      EXPECT_EQ(got.wc.wc_flags & IBV_WC_IP_CSUM_OK, 0u);
    }
    EXPECT_EQ(exchange(a, b, frames::tcp4_bad_header).plain.status & f::status_ip_ok, 0);
  });
}

TEST(EthernetReceive, OtherFramesHaveNoChecksums) {
  with_receiver({}, [](station& a, station& b) {
    EXPECT_EQ(exchange(a, b, frames::arp).plain.status, 0);
    EXPECT_EQ(exchange(a, b, frames::icmp4).plain.status, f::status_ipv4 | f::status_ip_ok);
    for (const bytes* frame : {&frames::fragment0, &frames::fragment1})
      EXPECT_EQ(exchange(a, b, *frame).plain.status, f::status_ipv4 | f::status_fragment | f::status_ip_ok);
    EXPECT_EQ(exchange(a, b, frames::snap).plain.encoding, f::encoding_snap);
  });
}

std::uint16_t folded(std::uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::uint64_t sum_of(const bytes& b, std::size_t from, std::size_t end) {
  std::uint64_t sum = 0;
  for (std::size_t i = from; i < end; ++i) sum += i % 2 == from % 2 ? unsigned{b[i]} << 8 : b[i];
  return sum;
}

/// What the kernel makes of the completion's sum (en_rx.c: get_fixed_ipv4_csum, get_fixed_ipv6_csum) is the sum of the
/// packet as it lies in memory, which is what CHECKSUM_COMPLETE means. An IPv4 header adds nothing to it.
TEST(EthernetReceive, SumsOfPacketsThatAreNeitherTcpNorUdp) {
  const auto body = [](station& a, station& b) {
    constexpr std::size_t l3 = 14, v4_addresses = l3 + 12, v6_bytes = 40;
    for (const bytes* frame : {&frames::icmp4, &frames::fragment0, &frames::fragment1, &frames::icmp6}) {
      const arrival got = exchange(a, b, *frame);
      const bytes& x = got.frame;
      std::uint64_t made = 0, wanted = 0;
      if ((got.plain.status & f::status_ipv4) != 0) {
        const std::size_t header = (x[l3] & 0xfu) * 4, total = sum_of(x, l3 + 2, l3 + 4);
        const std::uint64_t pseudo = sum_of(x, v4_addresses, v4_addresses + 8) + x[l3 + 9] + total - header;
        made = got.plain.checksum + (0xffff - folded(pseudo));
        wanted = sum_of(x, l3 + header, l3 + total);
      } else {
        made = got.plain.checksum + sum_of(x, l3, l3 + 4) + sum_of(x, l3 + 6, l3 + 8);
        wanted = sum_of(x, l3, l3 + v6_bytes + sum_of(x, l3 + 4, l3 + 6));
      }
      EXPECT_EQ(folded(made) % 0xffff, folded(wanted) % 0xffff);
      EXPECT_NE(got.plain.checksum, 0);
    }
    EXPECT_EQ(exchange(a, b, frames::tcp4).plain.checksum, 0xffff) << "as without these sums";
    EXPECT_EQ(exchange(a, b, frames::arp).plain.checksum, 0);
    host_driver::command_channel::mailbox box(b.dev().commands());
    hosts::require(b.dev().commands().read(box, abi::opcode::config_dev, 0, 1), "CONFIG_DEV");
    EXPECT_EQ(box.data()[0x83], 0x11) << "both ports (net/fw.c: mlx4_config_dev_retrieval)";
  };
  with_receiver({}, body, 1);
}

TEST(EthernetReceive, NoSumsWithoutTheMode) {
  with_receiver({}, [](station& a, station& b) {
    for (const bytes* frame : {&frames::icmp4, &frames::fragment0, &frames::icmp6})
      EXPECT_EQ(exchange(a, b, *frame).plain.checksum, 0);
  });
}

TEST(EthernetReceive, TheFcsStaysWhenAskedFor) {
  station::options o;
  o.ethernet.keep_fcs = true;
  with_receiver(o, [](station& a, station& b) {
    const arrival got = exchange(a, b, frames::tcp4);
    ASSERT_EQ(got.wc.byte_len, frames::tcp4.size() + 4);
    EXPECT_EQ(bytes(got.frame.begin(), got.frame.end() - 4), frames::tcp4);
    // CRC-32 of a frame with its FCS is a constant (IEEE 802.3, 3.2.9).
    std::uint32_t crc = 0xffffffff;
    for (const std::uint8_t byte : got.frame) {
      crc ^= byte;
      for (unsigned bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320 & (0u - (crc & 1)));
    }
    EXPECT_EQ(crc, 0xdebb20e3u);
  });
}

TEST(EthernetReceive, FramesWithABadFcsOnlyWhenThePortIsTold) {
  hosts::two_nodes_config config = station_system();
  fabric::fault_rule bad;
  bad.action = fabric::fault_action::corrupt;
  bad.part = fabric::frame_part::fcs;
  bad.right = fabric::made_right::nothing;
  bad.directions = 1;
  bad.times = 2;
  config.faults.rules.push_back(bad);
  hosts::two_nodes system(config);
  run_stations(system, [&] {
    station a(system.a()), b(system.b());
    b.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    b.post_receives(4);
    a.send(frames::tcp4);
    EXPECT_TRUE(b.silent());
    namespace s = abi::set_port;
    auto& commands = b.dev().commands();
    host_driver::command_channel::mailbox box(commands);
    abi::set(box.data(), s::flags2, s::flags2_ignore_fcs);
    abi::set(box.data(), s::roce_mode, std::uint8_t{1});
    ASSERT_EQ(commands.write(box, abi::opcode::set_port, s::modifier(s::selector::general, 1), s::op_ethernet), 0);
    a.send(frames::tcp4);
    const arrival got = b.receive();
    EXPECT_EQ(got.frame, frames::tcp4);
    EXPECT_NE(got.plain.encoding & f::encoding_bad_fcs, 0);
    EXPECT_EQ(exchange(a, b, frames::udp4).plain.encoding & f::encoding_bad_fcs, 0);
  });
}

TEST(EthernetReceive, ScatterOverManyBuffers) {
  station::options o;
  o.receive_sges = 4;
  o.receive_bytes = 1024;
  with_receiver(o, [](station& a, station& b) {
    EXPECT_EQ(exchange(a, b, frames::tcp4).frame, frames::tcp4);
    EXPECT_EQ(exchange(a, b, frames::arp).frame, frames::arp);
  });
}

// ---------------------------------------------------------------- spreading

constexpr std::array<std::uint8_t, 40> published_key{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                                     0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                                     0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                                     0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

/// Four rings with one completion queue, and a queue pair that spreads over them.
class rings {
 public:
  rings(hosts::endpoint& at, std::uint8_t fields, bool toeplitz = true) {
    at.pd = at.device->alloc_pd();
    cq_ = at.device->create_cq(64);
    host_driver::spreading how;
    static constexpr std::uint32_t first = 0x300;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t qpn = first + i;
      station::options o;
      o.qpn = &qpn;
      o.receive_cq = cq_;
      ring.push_back(std::make_unique<station>(at, o));
      ring.back()->post_receives(8);
      how.targets.push_back(ring.back()->qp());
    }
    how.otherwise = how.targets[3];
    how.fields = fields;
    how.toeplitz = toeplitz;
    how.key = published_key;
    parent = at.device->create_rss_qp(at.pd, how);
    if (parent == nullptr) throw std::runtime_error("create_rss_qp failed");
    ring[0]->steer(frames_destination, parent);
  }
  /// Ring number and hash.
  std::pair<unsigned, std::uint32_t> next() {
    ibv_wc wc{};
    host_driver::ethernet_receive plain;
    EXPECT_EQ(ring[0]->dev().wait_cq(cq_, 1, &wc, 100 * station_us, &plain), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    return {wc.qp_num - ring[0]->qp()->qp_num, plain.hash};
  }
  std::vector<std::unique_ptr<station>> ring;
  host_driver::queue_pair* parent = nullptr;

 private:
  host_driver::completion_queue* cq_ = nullptr;
};

struct flow {
  const bytes& frame;
  std::uint32_t addresses, ports;  ///< published hashes
};
const std::vector<flow>& published_flows() {
  static const std::vector<flow> all{
      {frames::rss4_0, 0x323e8fc2, 0x51ccc178}, {frames::rss4_1, 0xd718262a, 0xc626b0ea},
      {frames::rss4_2, 0xd2d0a5de, 0x5c2b394a}, {frames::rss4_3, 0x82989176, 0xafc7327f},
      {frames::rss4_4, 0x5d1809c5, 0x10e828a2}, {frames::rss6_0, 0x2cc18cd5, 0x40207d3d},
      {frames::rss6_1, 0x0f0c461c, 0xdde51bbf}, {frames::rss6_2, 0x4b61e985, 0x02d1feef}};
  return all;
}

template <class Body>
void with_rings(std::uint8_t fields, bool toeplitz, Body body) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a());
    rings r(system.b(), fields, toeplitz);
    body(a, r);
  });
}

namespace h = abi::rss;

TEST(EthernetSpreading, PublishedHashesWithPorts) {
  with_rings(h::ipv4 | h::tcp_ipv4 | h::ipv6 | h::tcp_ipv6, true, [](station& a, rings& r) {
    for (const flow& x : published_flows()) {
      a.send(x.frame);
      const auto [ring, hash] = r.next();
      EXPECT_EQ(hash, x.ports);
      EXPECT_EQ(ring, x.ports & 3);
    }
  });
}

TEST(EthernetSpreading, PublishedHashesOfAddresses) {
  with_rings(h::ipv4 | h::ipv6, true, [](station& a, rings& r) {
    for (const flow& x : published_flows()) {
      a.send(x.frame);
      const auto [ring, hash] = r.next();
      EXPECT_EQ(hash, x.addresses);
      EXPECT_EQ(ring, x.addresses & 3);
    }
  });
}

TEST(EthernetSpreading, KindsThatAreNotEnabled) {
  with_rings(h::tcp_ipv4 | h::ipv4, true, [](station& a, rings& r) {
    a.send(frames::rss4_udp_0);  // UDP is not: addresses
    EXPECT_EQ(r.next().second, 0x323e8fc2u);
    a.send(frames::rss6_0);  // IPv6 is not: the default ring, no hash
    EXPECT_EQ(r.next(), std::make_pair(3u, 0u));
    a.send(with_destination(frames::arp, frames_destination));
    EXPECT_EQ(r.next(), std::make_pair(3u, 0u));
    a.send(frames::fragment1);  // has no ports
    EXPECT_NE(r.next().second, 0u);
  });
}

TEST(EthernetSpreading, UdpWithPorts) {
  with_rings(h::ipv4 | h::udp_ipv4, true, [](station& a, rings& r) {
    const std::uint32_t wanted[] = {0x51ccc178, 0xc626b0ea, 0x5c2b394a, 0xafc7327f, 0x10e828a2};
    const bytes* sent[] = {&frames::rss4_udp_0, &frames::rss4_udp_1, &frames::rss4_udp_2, &frames::rss4_udp_3,
                           &frames::rss4_udp_4};
    for (unsigned i = 0; i < 5; ++i) {
      a.send(*sent[i]);
      EXPECT_EQ(r.next(), std::make_pair(wanted[i] & 3, wanted[i]));
    }
  });
}

TEST(EthernetSpreading, XorGivesAFlowOneRing) {
  with_rings(h::ipv4 | h::tcp_ipv4, false, [](station& a, rings& r) {
    std::set<unsigned> used;
    const std::uint32_t toeplitz[] = {0x51ccc178, 0xc626b0ea, 0x5c2b394a, 0xafc7327f, 0x10e828a2};
    const bytes* sent[] = {&frames::rss4_0, &frames::rss4_1, &frames::rss4_2, &frames::rss4_3, &frames::rss4_4};
    for (unsigned i = 0; i < 5; ++i) {
      const bytes* const frame = sent[i];
      a.send(*frame);
      const auto first = r.next();
      EXPECT_NE(first.second, toeplitz[i]) << "the other function's";
      a.send(*frame);
      EXPECT_EQ(r.next(), first);
      used.insert(first.first);
    }
    EXPECT_GT(used.size(), 1u);
  });
}

TEST(EthernetSpreading, ADestroyedSpreaderGivesNothing) {
  with_rings(h::ipv4, true, [](station& a, rings& r) {
    a.send(frames::rss4_0);
    r.next();
    ASSERT_EQ(r.ring[0]->dev().destroy_qp(r.parent), 0);
    a.send(frames::rss4_0);
    EXPECT_TRUE(r.ring[0]->silent());
  });
}

}  // namespace
}  // namespace rnic::system_test
