// SPDX-License-Identifier: Apache-2.0
// Opcodes, lengths and errors of the decoder.
#include <gtest/gtest.h>

#include "model/wire/bytes.h"
#include "model/wire/icrc.h"
#include "testbenches/unit/wire/every_packet.h"
#include "testbenches/unit/wire/oracle.h"

namespace rnic::wire::test {
namespace {

bytes frame_of(const packet& p) {
  bytes payload(p.payload_offset + p.payload_length, 0);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::uint8_t>(i * 7 + 1);
  return rebuild(p, payload);
}

bytes sample() { return frame_of(make_packet(0x0a, encapsulation::roce_v2_ipv4, false, 8)); }

void fix_ipv4_checksum(bytes& f) {
  std::uint32_t sum = 0;
  f[24] = f[25] = 0;
  for (unsigned i = 14; i < 34; i += 2) sum += load_be16(f.data() + i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  store_be16(f.data() + 24, static_cast<std::uint16_t>(~sum));
}

decode_error decode_of(const bytes& f) {
  packet p;
  return decode(f.data(), f.size(), p);
}

TEST(wire_opcodes, numbers_of_known_codes) {
  unsigned count[8] = {};
  for (unsigned i = 0; i < 256; ++i)
    if (traits(static_cast<std::uint8_t>(i)).known) ++count[i >> 5];
  EXPECT_EQ(count[0], 23u);  // RC: 00..14, 16, 17
  EXPECT_EQ(count[1], 12u);
  EXPECT_EQ(count[2], 22u);  // RD: 40..55
  EXPECT_EQ(count[3], 2u);
  EXPECT_EQ(count[4], 1u);
  EXPECT_EQ(count[5], 23u);
  EXPECT_EQ(count[6], 2u);  // manufacturer: masked atomics
  EXPECT_EQ(count[7], 0u);
  EXPECT_STREQ(traits(0x00).name, "RC SEND First");
  EXPECT_STREQ(traits(0x81).name, "CNP");
}

/// Bytes of headers after the BTH, written out from adapter data plane C.3.
TEST(wire_opcodes, extension_lengths) {
  const std::pair<unsigned, std::size_t> expected[] = {
      {0x00, 0},  {0x03, 4},  {0x05, 4},  {0x06, 16}, {0x0a, 16}, {0x0b, 20}, {0x0c, 16}, {0x0d, 4},
      {0x0e, 0},  {0x11, 4},  {0x12, 12}, {0x13, 28}, {0x14, 28}, {0x16, 4},  {0x17, 4},  {0x64, 8},
      {0x65, 12}, {0x40, 12}, {0x46, 28}, {0x4d, 8},  {0x51, 8},  {0x55, 12}, {0xa4, 4},  {0xaa, 20},
      {0xb1, 4},  {0xb3, 32}, {0xb7, 8},  {0x81, 0},  {0x2b, 20}};
  for (const auto& [opcode, length] : expected) {
    packet p;
    p.bth.opcode = static_cast<std::uint8_t>(opcode);
    EXPECT_EQ(header_length(p), 14u + 28u + 12u + length) << std::hex << opcode;
    p.vlan_present = true;
    p.encap = encapsulation::roce_v2_ipv6;
    EXPECT_EQ(header_length(p), 18u + 48u + 12u + length) << std::hex << opcode;
  }
}

TEST(wire_packet, every_kind_survives_build_and_decode) {
  unsigned number = 0;
  for_every_packet([&](const packet& p) {
    ++number;
    const bytes f = frame_of(p);
    packet q;
    ASSERT_EQ(decode(f.data(), f.size(), q), decode_error::none) << traits(p.bth.opcode).name;
    EXPECT_EQ(q.payload_length, p.payload_length);
    EXPECT_EQ(q.bth.pad, (4 - p.payload_length % 4) % 4);
    EXPECT_EQ(f.size(), header_length(p) + p.payload_length + q.bth.pad + 4);
    EXPECT_EQ(icrc(f.data(), q), zlib_icrc(f, q.icrc_offset));
    EXPECT_EQ(rebuild(q, f), f) << traits(p.bth.opcode).name;
  });
  EXPECT_EQ(
      number,
      3u * 2u * (66u * 4u + 19u));  // encapsulations, VLAN or not; opcodes with payload and four pads, opcodes without
}

TEST(wire_packet, ethernet_padding_is_not_payload) {
  bytes f = frame_of(make_packet(0x11, encapsulation::roce_v1, false, 0));
  const std::size_t length = f.size();
  f.resize(length + 30, 0x55);
  packet p;
  ASSERT_EQ(decode(f.data(), f.size(), p), decode_error::none);
  EXPECT_EQ(p.icrc_offset + 4u, length);
  EXPECT_EQ(p.payload_length, 0u);
}

TEST(wire_packet, other_port_and_other_traffic_is_not_roce) {
  bytes f = sample();
  f[37] = 0xb8;
  EXPECT_EQ(decode_of(f), decode_error::not_roce);
  packet p;
  EXPECT_EQ(decode(f.data(), f.size(), p, 4792), decode_error::none);
  f = sample();
  f[23] = 6;
  EXPECT_EQ(decode_of(f), decode_error::not_roce);
  f = sample();
  f[12] = 0x88, f[13] = 0xcc;
  EXPECT_EQ(decode_of(f), decode_error::not_roce);
}

TEST(wire_packet, errors_have_names) {
  bytes f = sample();
  f[14] = 0x55;
  EXPECT_EQ(decode_of(f), decode_error::bad_ip_version);
  f = sample();
  f[25] ^= 1;
  EXPECT_EQ(decode_of(f), decode_error::bad_ip_checksum);
  f = sample();
  f[20] = 0x20;
  fix_ipv4_checksum(f);
  EXPECT_EQ(decode_of(f), decode_error::fragment);
  f = sample();
  f[39] ^= 4;  // UDP length
  EXPECT_EQ(decode_of(f), decode_error::bad_length);
  f = sample();
  f[17] = 40, f[39] = 20;  // IP ends before the RETH does
  f[16] = f[38] = 0;
  fix_ipv4_checksum(f);
  EXPECT_EQ(decode_of(f), decode_error::bad_length);
  f = sample();
  f[42] = 0x1f;
  EXPECT_EQ(decode_of(f), decode_error::unknown_opcode);
  f = sample();
  f.pop_back();
  EXPECT_EQ(decode_of(f), decode_error::truncated);
  f = frame_of(make_packet(0x11, encapsulation::roce_v2_ipv4, false, 0));
  f[43] |= 0x30;  // pad without payload
  EXPECT_EQ(decode_of(f), decode_error::bad_pad);
  f = frame_of(make_packet(0x11, encapsulation::roce_v1, false, 0));
  f[20] = 17;
  EXPECT_EQ(decode_of(f), decode_error::bad_next_header);
  f = frame_of(make_packet(0x11, encapsulation::roce_v1, false, 0));
  f[14] = 0x40;
  EXPECT_EQ(decode_of(f), decode_error::bad_ip_version);
}

TEST(wire_packet, ipv4_options_are_refused) {
  bytes f = sample();
  f.insert(f.begin() + 34, {1, 1, 1, 0});
  f[14] = 0x46;
  EXPECT_EQ(decode_of(f), decode_error::bad_ip_header_length);
}

TEST(wire_psn, window_arithmetic) {
  EXPECT_EQ(psn_t(0) - psn_t(0xffffff), 1);
  EXPECT_EQ(psn_t(0xffffff) - psn_t(0), -1);
  EXPECT_EQ(psn_t(0x800000) - psn_t(0), -0x800000);
  EXPECT_EQ(psn_t(0x7fffff) - psn_t(0), 0x7fffff);
  EXPECT_EQ((psn_t(0xffffff) + 2u).value(), 1u);
  EXPECT_TRUE(psn_t(0xfffff0).before(psn_t(5)));
}

}  // namespace
}  // namespace rnic::wire::test
