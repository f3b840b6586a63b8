// SPDX-License-Identifier: Apache-2.0
// The vectors of adapter data plane C.4.1: fields, bytes and ICRC.
#include <gtest/gtest.h>

#include "model/wire/bytes.h"
#include "model/wire/icrc.h"
#include "testbenches/unit/wire/oracle.h"

namespace rnic::wire::test {
namespace {

/// Decodes, checks the ICRC with both oracles and the built bytes, and gives the headers back.
packet check_vector(const std::string& hex) {
  const bytes frame = from_hex(hex);
  packet p;
  EXPECT_EQ(decode(frame.data(), frame.size(), p), decode_error::none);
  EXPECT_EQ(p.icrc_offset + 4u, frame.size());
  EXPECT_EQ(icrc(frame.data(), p), p.icrc);
  EXPECT_EQ(zlib_icrc(frame, p.icrc_offset), p.icrc);
  bytes again = rebuild(p, frame);
  packet q = p;
  EXPECT_EQ(again.size(), frame.size());
  store_le32(again.data() + q.icrc_offset, icrc(again.data(), q));
  EXPECT_EQ(again, frame);
  return p;
}

TEST(wire_vectors, v1_send_only_ipv4) {
  const packet p = check_vector(
      "020000000002020000000001 0800 4500003c12344000 4011147b 0a000001 0a000002 c12312b700280000"
      "0400ffff0000001180123456 000102030405060708090a0b0c0d0e0f 8343f698");
  EXPECT_EQ(p.encap, encapsulation::roce_v2_ipv4);
  EXPECT_EQ(p.bth.opcode, 0x04);
  EXPECT_TRUE(p.bth.ack_request);
  EXPECT_EQ(p.bth.dest_qp, 0x11u);
  EXPECT_EQ(p.bth.psn.value(), 0x123456u);
  EXPECT_EQ(p.ipv4_id, 0x1234);
  EXPECT_EQ(p.udp_source, 0xc123);
  EXPECT_EQ(p.payload_length, 16u);
  EXPECT_EQ(p.payload_offset, 54);
  EXPECT_EQ(p.sgid[15], 1);
  EXPECT_EQ(p.sgid[10], 0xff);
  EXPECT_EQ(p.dgid[15], 2);
}

TEST(wire_vectors, v2_write_only_ipv6) {
  const packet p = check_vector(
      "020000000002020000000001 86dd 66a12345 0030 11 40 fe80000000000000000000fffe000001"
      "fe80000000000000000000fffe000002 d00d12b700300000 0a30ffff00abcdef80ffffff 00007f0011223344 00012a55 00000005"
      "68656c6c6f 000000 ecc4f9ac");
  EXPECT_EQ(p.encap, encapsulation::roce_v2_ipv6);
  EXPECT_EQ(p.traffic_class, 0x6a);
  EXPECT_EQ(p.flow_label, 0x12345u);
  EXPECT_EQ(p.bth.pad, 3);
  EXPECT_EQ(p.payload_length, 5u);
  EXPECT_EQ(p.bth.dest_qp, 0xabcdefu);
  EXPECT_EQ(p.bth.psn.value(), 0xffffffu);
  EXPECT_EQ(p.reth.va, 0x00007f0011223344u);
  EXPECT_EQ(p.reth.rkey, 0x00012a55u);
  EXPECT_EQ(p.reth.length, 5u);
}

TEST(wire_vectors, v3_ud_send_roce_v1_vlan) {
  const packet p = check_vector(
      "020000000002020000000001 8100 6064 8915 60000000 0020 1b 40 00000000000000000000ffff0a000001"
      "00000000000000000000ffff0a000002 6400ffff0000000100000000 8001000000000001 0000000000000000 2998acff");
  EXPECT_EQ(p.encap, encapsulation::roce_v1);
  EXPECT_TRUE(p.vlan_present);
  EXPECT_EQ(p.vlan_tci, 0x6064);
  EXPECT_EQ(p.deth.qkey, 0x80010000u);
  EXPECT_EQ(p.deth.src_qp, 1u);
  EXPECT_EQ(p.payload_length, 8u);
}

TEST(wire_vectors, v4_acknowledge) {
  const packet p = check_vector(
      "020000000001020000000002 0800 450000300000400040 1126bb 0a000002 0a000001 c12312b7001c0000"
      "1100ffff0000001200123456 1f000001 d84feab4");
  EXPECT_EQ(p.aeth.syndrome, 0x1f);
  EXPECT_EQ(p.aeth.msn, 1u);
  EXPECT_EQ(p.payload_length, 0u);
}

TEST(wire_vectors, v5_cnp) {
  const packet p = check_vector(
      "020000000001020000000002 0800 45c0003c0000400040 1125ef 0a000002 0a000001 c12312b700280000"
      "8100ffff4000001100000000 00000000000000000000000000000000 4107b81e");
  EXPECT_EQ(p.bth.opcode, opcode_cnp);
  EXPECT_TRUE(p.bth.becn);
  EXPECT_FALSE(p.bth.fecn);
  EXPECT_EQ(p.payload_length, 16u);
  EXPECT_EQ(p.traffic_class, 0xc0);
}

TEST(wire_vectors, v6_read_request_migrated) {
  const packet p = check_vector(
      "020000000002020000000001 0800 456a003cbeef400040 11f7e8 c0a8010a c0a80114 ffff12b700280000"
      "0c40ffff0000123480000005 0000000000001000 00020001 00001000 00fc0e68");
  EXPECT_TRUE(p.bth.migration);
  EXPECT_EQ(p.traffic_class, 0x6a);
  EXPECT_EQ(p.reth.length, 4096u);
}

TEST(wire_vectors, hardware_cnp) {
  const packet p = check_vector(
      "020000000001020000000002 0800 45c2003c718c400040119161 0a001101 0a001201 0000 12b7 0028 0000"
      "8100ffff4000011800000000 00000000000000000000000000000000 82fd002a");
  EXPECT_EQ(p.udp_source, 0);
  EXPECT_EQ(p.bth.dest_qp, 0x118u);
}

TEST(wire_vectors, fcs_is_crc32_of_ieee) {
  const bytes text = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  EXPECT_EQ(ethernet_fcs(text.data(), text.size()), 0xcbf43926u);  // the check value of the CRC catalogue
}

}  // namespace
}  // namespace rnic::wire::test
