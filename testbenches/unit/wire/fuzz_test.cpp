// SPDX-License-Identifier: Apache-2.0
// The decoder on anything: truncations, bit flips, noise. Each input lies in an allocation of exactly its size, so that
// the address sanitizer sees a read behind it.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "model/wire/icrc.h"
#include "model/wire/pause.h"
#include "testbenches/unit/wire/every_packet.h"
#include "testbenches/unit/wire/oracle.h"

namespace rnic::wire::test {
namespace {

/// Decodes a copy that ends where its allocation ends, and checks what a decoder may promise.
void feed(const std::uint8_t* data, std::size_t length) {
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[length]);
  std::copy(data, data + length, exact.get());
  packet p;
  pause_frame pause;
  decode_pause(exact.get(), length, pause);
  if (decode(exact.get(), length, p) != decode_error::none) return;
  ASSERT_LE(p.icrc_offset + 4u, length);
  ASSERT_EQ(p.payload_offset + p.payload_length + p.bth.pad, p.icrc_offset);
  ASSERT_TRUE(traits(p.bth.opcode).known);
  icrc(exact.get(), p);
  const bytes original(data, data + length);
  bytes again = rebuild(p, original);
  ASSERT_EQ(again.size(), p.icrc_offset + 4u);
  // All but the pad's value and the ICRC comes back.
  ASSERT_TRUE(std::equal(again.begin(), again.end() - 4 - p.bth.pad, original.begin()));
}

TEST(wire_fuzz, truncations_of_every_kind) {
  for_every_packet([](const packet& p) {
    const bytes whole = rebuild(p, bytes(512, 0x5a));
    for (std::size_t n = 0; n <= whole.size(); ++n) feed(whole.data(), n);
  });
}

TEST(wire_fuzz, damaged_frames) {
  std::mt19937 rng(1);
  std::vector<bytes> all;
  for_every_packet([&](const packet& p) { all.push_back(rebuild(p, bytes(512, 0x5a))); });
  for (unsigned i = 0; i < 300'000; ++i) {
    bytes f = all[rng() % all.size()];
    for (auto hits = 1 + rng() % 3; hits != 0; --hits) f[rng() % f.size()] = static_cast<std::uint8_t>(rng());
    feed(f.data(), f.size() - (rng() % 4 == 0 ? rng() % f.size() : 0));
  }
}

TEST(wire_fuzz, noise) {
  std::mt19937 rng(2);
  for (unsigned i = 0; i < 200'000; ++i) {
    bytes f(rng() % 128);
    for (auto& b : f) b = static_cast<std::uint8_t>(rng());
    if (f.size() > 14) {
      const std::uint16_t types[] = {0x0800, 0x86dd, 0x8915, 0x8100, 0x8808};
      const std::uint16_t type = types[rng() % 5];
      f[12] = static_cast<std::uint8_t>(type >> 8);
      f[13] = static_cast<std::uint8_t>(type);
    }
    feed(f.data(), f.size());
  }
}

TEST(wire_fuzz, icrc_equals_zlib_on_random_packets) {
  std::mt19937 rng(3);
  const encapsulation encaps[] = {encapsulation::roce_v1, encapsulation::roce_v2_ipv4, encapsulation::roce_v2_ipv6};
  for (unsigned i = 0; i < 20'000; ++i) {
    packet p = make_packet(0x04, encaps[rng() % 3], rng() % 2 == 0, static_cast<std::uint32_t>(rng() % 4097));
    p.traffic_class = static_cast<std::uint8_t>(rng());
    p.hop_limit = static_cast<std::uint8_t>(rng());
    p.udp_checksum = static_cast<std::uint16_t>(rng());
    bytes payload(4200);
    for (auto& b : payload) b = static_cast<std::uint8_t>(rng());
    p.payload_offset = 0;
    const bytes f = rebuild(p, payload);
    packet q;
    ASSERT_EQ(decode(f.data(), f.size(), q), decode_error::none);
    ASSERT_EQ(icrc(f.data(), q), zlib_icrc(f, q.icrc_offset));
    ASSERT_EQ(ethernet_fcs(f.data(), f.size()), crc32(0, f.data(), static_cast<uInt>(f.size())));
  }
}

}  // namespace
}  // namespace rnic::wire::test
