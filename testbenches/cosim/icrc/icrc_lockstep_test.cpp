// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "model/icrc/icrc_model.h"
#include "rtl/icrc/icrc_rtl.h"
#include "testbenches/cosim/icrc/stimulus.h"

namespace rnic::cosim {
namespace {

using wire::encapsulation;
constexpr encapsulation all_encapsulations[] = {encapsulation::roce_v1, encapsulation::roce_v2_ipv4,
                                                encapsulation::roce_v2_ipv6};

std::vector<std::size_t> lengths() {
  std::vector<std::size_t> l;
  for (std::size_t n = 1; n <= 84; ++n) l.push_back(n);
  for (const std::size_t n : {256u, 1024u + 40u, 2048u + 56u, 4096u + 60u, 4184u})
    for (std::size_t k = n - 2; k <= n + 16; k += 3) l.push_back(k);
  return l;
}

traffic make_traffic(std::uint64_t seed, pattern offer, pattern take, unsigned width) {
  traffic t;
  t.offer = offer;
  t.take = take;
  t.seed = seed;
  std::mt19937_64 rng(seed);
  for (const std::size_t n : lengths()) add(t, random_packet(rng, all_encapsulations[rng() % 3], n), rng, width);
  std::shuffle(t.items.begin(), t.items.end(), rng);
  return t;
}

rtl::lockstep<rtl::icrc_pins>::factory engine(std::uint64_t seed, unsigned width) {
  return [seed, width] { return rtl::make_icrc_rtl(width, static_cast<std::uint32_t>(seed)); };
}

using patterns = std::tuple<pattern, pattern, unsigned>;
class IcrcLockstep : public ::testing::TestWithParam<patterns> {};

TEST_P(IcrcLockstep, AgreesInEveryCycle) {
  const auto [offer, take, width] = GetParam();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const outcome o = run(make_traffic(seed, offer, take, width), engine(seed, width), "agrees", width);
    ASSERT_FALSE(o.first_difference) << "seed " << seed << "\n" << o.first_difference->what();
    ASSERT_TRUE(o.finished) << "seed " << seed;
  }
}

TEST_P(IcrcLockstep, AgreesAcrossResets) {
  const auto [offer, take, width] = GetParam();
  for (std::uint64_t seed = 11; seed <= 13; ++seed) {
    traffic t = make_traffic(seed, offer, take, width);
    t.reset_one_in = 90;
    const outcome o = run(t, engine(seed, width), "resets", width);
    ASSERT_FALSE(o.first_difference) << "seed " << seed << "\n" << o.first_difference->what();
    ASSERT_TRUE(o.finished) << "seed " << seed;
  }
}

constexpr pattern all_patterns[] = {pattern::always, pattern::alternate, pattern::bursts, pattern::random};
INSTANTIATE_TEST_SUITE_P(Patterns, IcrcLockstep,
                         ::testing::Combine(::testing::ValuesIn(all_patterns), ::testing::ValuesIn(all_patterns),
                                            ::testing::Values(16u, 64u)),
                         [](const auto& combination) {
                           return "Offer_" + to_string(std::get<0>(combination.param)) + "_Take_" +
                                  to_string(std::get<1>(combination.param)) + "_Bytes_" +
                                  std::to_string(std::get<2>(combination.param));
                         });

std::unique_ptr<rtl::icrc_rtl> rtl_engine(unsigned width) {
  return std::make_unique<rtl::icrc_rtl>(rtl::make_icrc_rtl(width), width);
}

void check_whole_packets(unsigned width) {
  icrc::icrc_model model(width);
  const auto rtl = rtl_engine(width);
  std::mt19937_64 rng(5);
  for (std::size_t n = 52; n <= 4200; n += n < 140 ? 1 : 61) {
    for (const encapsulation e : all_encapsulations) {
      const test_packet p = random_packet(rng, e, n);
      const auto m = model.process(e, p.bytes.data(), n);
      const auto r = rtl->process(e, p.bytes.data(), n);
      ASSERT_EQ(m.cycles, r.cycles) << "length " << n;
      ASSERT_EQ(m.crc, oracle_icrc(p)) << "length " << n;
      ASSERT_EQ(r.crc, oracle_icrc(p)) << "length " << n;
    }
  }
}

TEST(IcrcEngine, WholePacketsHaveTheSameCyclesAndZlibsCrc) {
  check_whole_packets(16);
  check_whole_packets(64);
}

TEST(IcrcEngine, ThereIsNoRtlOfOtherWidths) {
  for (const unsigned width : {1u, 8u, 24u, 128u}) EXPECT_EQ(rtl::make_icrc_rtl(width), nullptr);
}

TEST(IcrcEngine, AcknowledgeTakesThreeBeatsAndThreeStages) {
  // IPv4 20 + UDP 8 + BTH 12 + AETH 4 = 44 bytes: beats in cycles 0 to 2; the result three cycles after the last.
  std::mt19937_64 rng(6);
  const test_packet p = random_packet(rng, encapsulation::roce_v2_ipv4, 44);
  EXPECT_EQ(icrc::icrc_model(16).process(p.encap, p.bytes.data(), 44).cycles, 5U);
  EXPECT_EQ(rtl_engine(16)->process(p.encap, p.bytes.data(), 44).cycles, 5U);
  EXPECT_EQ(rtl_engine(64)->process(p.encap, p.bytes.data(), 44).cycles, 3U);
}

std::vector<std::uint8_t> from_hex(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

TEST(IcrcEngine, RtlReproducesPublishedPackets) {
  // From the L3 header to the ICRC, which is the last word. The first is a congestion notification captured from a
  // ConnectX-4 Lx, the others are vectors V1 to V4 of adapter data plane C.4.1.
  const std::tuple<encapsulation, const char*> vectors[] = {
      {encapsulation::roce_v2_ipv4,
       "45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000"
       "0000000000000000000000000000000082fd002a"},
      {encapsulation::roce_v2_ipv4,
       "4500003c123440004011147b0a0000010a000002c12312b7002800000400ffff0000001180123456"
       "000102030405060708090a0b0c0d0e0f8343f698"},
      {encapsulation::roce_v2_ipv6,
       "66a1234500301140fe80000000000000000000fffe000001fe80000000000000000000fffe000002"
       "d00d12b7003000000a30ffff00abcdef80ffffff00007f001122334400012a550000000568656c6c6f000000ecc4f9ac"},
      {encapsulation::roce_v1,
       "6000000000201b4000000000000000000000ffff0a00000100000000000000000000ffff0a000002"
       "6400ffff0000000100000000800100000000000100000000000000002998acff"},
      {encapsulation::roce_v2_ipv4,
       "4500003000004000401126bb0a0000020a000001c12312b7001c00001100ffff00000012001234561f000001d84feab4"},
  };
  const auto rtl = rtl_engine(16);
  for (const auto& [encap, hex] : vectors) {
    const std::vector<std::uint8_t> bytes = from_hex(hex);
    const std::size_t n = bytes.size() - 4;
    std::uint32_t found = 0;
    for (std::size_t i = 4; i-- > 0;) found = found << 8 | bytes[n + i];
    EXPECT_EQ(rtl->process(encap, bytes.data(), n).crc, found) << hex;
    EXPECT_EQ(icrc::icrc_model(16).process(encap, bytes.data(), n).crc, found) << hex;
  }
}

}  // namespace
}  // namespace rnic::cosim
