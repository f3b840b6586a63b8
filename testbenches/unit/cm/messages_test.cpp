// SPDX-License-Identifier: Apache-2.0
// Messages of the connection manager against those of two Linux hosts, as captured.
#include "host_driver/cm/messages.h"

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "model/wire/packet.h"
#include "testbenches/source_tree.h"

namespace rnic::host_driver::cm {
namespace {

/// The management datagrams of a capture of `rping`.
std::vector<mad> captured() {
  char why[PCAP_ERRBUF_SIZE] = "";
  pcap_t* file = pcap_open_offline(rnic::in_source_tree("traces/cm_rping_800B.pcap").c_str(), why);
  EXPECT_NE(file, nullptr) << why;
  std::vector<mad> all;
  if (file == nullptr) return all;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(file, &header, &data) == 1) {
    wire::packet p;
    if (wire::decode(data, header->caplen, p) != wire::decode_error::none || p.payload_length != mad_length ||
        wire::transport_of(p.bth.opcode) != wire::transport::ud)
      continue;
    all.emplace_back();
    std::copy_n(data + p.payload_offset, mad_length, all.back().begin());
  }
  pcap_close(file);
  return all;
}

gid_bytes ipv4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }

TEST(cm_messages, what_linux_has_sent_is_understood_and_written_the_same) {
  const std::vector<mad> all = captured();
  const message kinds[] = {message::req, message::rep, message::rtu, message::dreq, message::drep};
  ASSERT_EQ(all.size(), std::size(kinds));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto c = decode(all[i].data(), all[i].size());
    ASSERT_TRUE(c.has_value());
    EXPECT_EQ(c->kind, kinds[i]);
    EXPECT_EQ(encode(*c), all[i]) << i;
  }
}

// The numbers are tshark's.
TEST(cm_messages, fields_of_a_req) {
  const std::vector<mad> all = captured();
  ASSERT_EQ(all.size(), 5u);
  const auto c = decode(all[0].data(), all[0].size());
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->transaction, 0x297372870u);
  EXPECT_EQ(c->local_id, 0x70283797u);
  const connection_data& d = c->connection;
  EXPECT_EQ(d.service_id, service_id(port_space::tcp, 0x1c06));
  EXPECT_EQ(d.ca_guid, 0x505400fffe00000bu);
  EXPECT_EQ(d.qpn, 0x18u);
  EXPECT_EQ(d.psn, 0x012cb5u);
  EXPECT_EQ(d.responder_resources, 1);
  EXPECT_EQ(d.initiator_depth, 1);
  EXPECT_EQ(d.remote_cm_timeout, 0x14);
  EXPECT_EQ(d.local_cm_timeout, 0x14);
  EXPECT_EQ(d.retry_count, 7);
  EXPECT_EQ(d.rnr_retry_count, 7);
  EXPECT_EQ(d.mtu_code, 3);
  EXPECT_EQ(d.transport, 0);
  EXPECT_EQ(d.pkey, 0xffff);
  EXPECT_EQ(d.path.local, ipv4(2));
  EXPECT_EQ(d.path.remote, ipv4(1));
  EXPECT_EQ(d.path.hop_limit, 0x40);
  EXPECT_EQ(d.path.ack_timeout, 0x13);
  const auto ip = get_ip_header(c->private_data.data());
  ASSERT_TRUE(ip.has_value());
  EXPECT_EQ(ip->source_port, 0xa7c6);
  EXPECT_EQ(ip->source, ipv4(2));
  EXPECT_EQ(ip->destination, ipv4(1));
  std::array<std::uint8_t, ip_header::bytes> again;
  put_ip_header(*ip, again.data());
  EXPECT_TRUE(std::equal(again.begin(), again.end(), c->private_data.begin()));
}

TEST(cm_messages, fields_of_a_rep_and_what_follows) {
  const std::vector<mad> all = captured();
  ASSERT_EQ(all.size(), 5u);
  const auto rep = decode(all[1].data(), all[1].size());
  EXPECT_EQ(rep->local_id, 0xcf651eb4u);
  EXPECT_EQ(rep->remote_id, 0x70283797u);
  EXPECT_EQ(rep->connection.qpn, 0x18u);
  EXPECT_EQ(rep->connection.psn, 0x83dd41u);
  EXPECT_EQ(rep->connection.responder_resources, 1);
  EXPECT_EQ(rep->connection.initiator_depth, 1);
  EXPECT_EQ(rep->connection.rnr_retry_count, 7);
  EXPECT_EQ(rep->connection.ca_guid, 0x505400fffe00000au);
  const auto dreq = decode(all[3].data(), all[3].size());
  EXPECT_EQ(dreq->local_id, 0x70283797u);
  EXPECT_EQ(dreq->remote_id, 0xcf651eb4u);
  EXPECT_EQ(dreq->remote_qpn, 0x18u);
}

TEST(cm_messages, every_kind_comes_back_as_it_was) {
  contents c;
  c.transaction = 0x0123456789abcdef;
  c.local_id = 0x11223344;
  c.remote_id = 0x55667788;
  for (std::size_t i = 0; i < most_private; ++i) c.private_data[i] = static_cast<std::uint8_t>(i * 7 + 1);
  for (std::uint16_t k = 0x10; k <= 0x1a; ++k) {
    c.kind = static_cast<message>(k);
    c.why = reason::consumer;
    c.subject = about::rep;
    c.service_timeout = 21;
    c.service = {0x0000000001111c06, 0xffff, 5, 0x123456, 0x01234567};
    c.path_status = path_answer::wrong_qpn;
    c.remote_qpn = 0x654321;
    c.alternate.local = ipv4(3);
    c.alternate.hop_limit = 1;
    const mad m = encode(c);
    const auto again = decode(m.data(), m.size());
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->kind, c.kind);
    EXPECT_TRUE(std::equal(again->private_data.begin(),
                           again->private_data.begin() + static_cast<std::ptrdiff_t>(private_bytes(c.kind)),
                           c.private_data.begin()));
    EXPECT_EQ(encode(*again), m);
  }
}

// Places by the kernel's rdma/ibta_vol1_c12.h (CM_LAP_*, CM_APR_*), which count from the end of the common header.
constexpr std::size_t header = 24;
void put(mad& m, std::size_t at, std::initializer_list<unsigned> bytes) {
  for (const unsigned b : bytes) m[header + at++] = static_cast<std::uint8_t>(b);
}
mad empty(unsigned attribute) {
  mad m{};
  m[0] = 1, m[1] = 7, m[2] = 2, m[3] = 3;
  m[17] = static_cast<std::uint8_t>(attribute);
  return m;
}

TEST(cm_messages, fields_of_a_lap) {
  mad m = empty(0x19);
  put(m, 0, {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88});
  put(m, 12, {0xab, 0xcd, 0xef, 20 << 3});
  put(m, 20, {0xff, 0xff, 0xff, 0xff});
  put(m, 24, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  put(m, 40, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
  put(m, 56, {0x12, 0x34, 0x50, 0x60, 64, 7, 5 << 4, 19 << 3, 0xaa});
  put(m, 64 + 167, {0xbb});
  const auto c = decode(m.data(), m.size());
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->kind, message::lap);
  EXPECT_EQ(c->local_id, 0x11223344u);
  EXPECT_EQ(c->remote_id, 0x55667788u);
  EXPECT_EQ(c->remote_qpn, 0xabcdefu);
  EXPECT_EQ(c->response_timeout, 20);
  EXPECT_EQ(c->alternate.local[15], 1);
  EXPECT_EQ(c->alternate.remote[15], 2);
  EXPECT_EQ(c->alternate.flow_label, 0x12345u);
  EXPECT_EQ(c->alternate.traffic_class, 0x60);
  EXPECT_EQ(c->alternate.hop_limit, 64);
  EXPECT_EQ(c->alternate.rate, 7);
  EXPECT_EQ(c->alternate.service_level, 5);
  EXPECT_EQ(c->alternate.ack_timeout, 19);
  EXPECT_EQ(c->private_data[0], 0xaa);
  EXPECT_EQ(c->private_data[167], 0xbb);
  EXPECT_EQ(encode(*c), m);
}

TEST(cm_messages, fields_of_an_apr) {
  mad m = empty(0x1a);
  put(m, 0, {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 2});
  put(m, 84, {0xcc});
  const auto c = decode(m.data(), m.size());
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->kind, message::apr);
  EXPECT_EQ(c->local_id, 0x11223344u);
  EXPECT_EQ(c->remote_id, 0x55667788u);
  EXPECT_EQ(c->path_status, path_answer::unsupported);
  EXPECT_EQ(c->private_data[0], 0xcc);
  EXPECT_EQ(encode(*c), m);
}

// The alternate path of a REQ has the shape of the primary one, 44 bytes behind it.
TEST(cm_messages, alternate_path_of_a_req) {
  std::vector<mad> all = captured();
  ASSERT_FALSE(all.empty());
  mad& m = all.front();
  EXPECT_FALSE(decode(m.data(), m.size())->connection.alternate.exists());
  std::copy_n(m.begin() + 76, 44, m.begin() + 120);
  const auto c = decode(m.data(), m.size());
  const path_record &first = c->connection.path, &other = c->connection.alternate;
  EXPECT_TRUE(other.exists());
  EXPECT_EQ(other.local, first.local);
  EXPECT_EQ(other.remote, first.remote);
  EXPECT_EQ(other.hop_limit, first.hop_limit);
  EXPECT_EQ(other.ack_timeout, first.ack_timeout);
  EXPECT_EQ(encode(*c), m);
}

TEST(cm_messages, other_classes_versions_and_lengths_are_not_ours) {
  contents c;
  const mad good = encode(c);
  EXPECT_TRUE(decode(good.data(), good.size()).has_value());
  EXPECT_FALSE(decode(good.data(), 255).has_value());
  EXPECT_FALSE(decode(good.data(), 0).has_value());
  for (const std::size_t at : {0u, 1u, 2u, 3u, 16u, 17u}) {
    mad bad = good;
    bad[at] ^= 0x40;
    EXPECT_FALSE(decode(bad.data(), bad.size()).has_value()) << at;
  }
  std::array<std::uint8_t, ip_header::bytes> ip{};
  ip[1] = 0x40;
  EXPECT_TRUE(get_ip_header(ip.data()).has_value());
  for (const unsigned version : {0x00u, 0x50u, 0x70u}) {
    ip[1] = static_cast<std::uint8_t>(version);
    EXPECT_FALSE(get_ip_header(ip.data()).has_value());
  }
  ip[1] = 0x60;
  ip[0] = 0x10;
  EXPECT_FALSE(get_ip_header(ip.data()).has_value());
}

}  // namespace
}  // namespace rnic::host_driver::cm
