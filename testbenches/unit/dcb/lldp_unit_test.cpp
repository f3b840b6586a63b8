// SPDX-License-Identifier: Apache-2.0
// Data units of LLDP against one that scapy has built and tshark has read, and what is to be discarded of bad ones.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/wire/lldp.h"

namespace rnic::wire {
namespace {

using bytes = std::vector<std::uint8_t>;

bytes from_hex(const std::string& text) {
  bytes b;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    b.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return b;
}

const std::string mandatory =
    "0207040200000000010407030200000000020602"
    "0079";
const std::string basic = "0804657468310a01610c04526f43450e0400800080";
const std::string ets =
    "fe190080c2098001234567003c28000000000000020200000000"
    "00";
const std::string recommendation =
    "fe190080c20a000112000200461e0000000000000202000000"
    "00ff";
const std::string pfc = "fe060080c20bc808";
const std::string applications = "fe0b0080c20c00618915a312b7";
const std::string largest = "fe0600120f04107e";
const std::string end = "0000";

/// scapy.contrib.lldp: Chassis ID 02:00:00:00:00:01, Port ID 02:00:00:00:00:02, 121 s, eth1, "a", "RoCE", station; then
/// as generic TLVs of an organisation what tshark reads as the values below.
const std::string whole = mandatory + basic + ets + recommendation + pfc + applications + largest + end;

lldp_unit unit_of_scapy() {
  lldp_unit u;
  u.chassis = {lldp_id::chassis_mac, {2, 0, 0, 0, 0, 1}};
  u.port = {lldp_id::port_mac, {2, 0, 0, 0, 0, 2}};
  u.ttl_s = 121;
  u.port_description = "eth1";
  u.system_name = "a";
  u.system_description = "RoCE";
  u.capabilities = lldp_unit::station_only;
  u.largest_frame = 4222;
  ets_configuration e;
  e.willing = true;
  e.table.percent = {0, 60, 40};
  e.table.algorithm = {selection::strict, selection::ets, selection::ets};
  u.dcbx.ets = e;
  ets_table r;
  r.class_of = {0, 1, 1, 2, 0, 0, 0, 2};
  r.percent = {0, 70, 30};
  r.algorithm = {selection::strict, selection::ets, selection::ets};
  r.algorithm[7] = selection::vendor;
  u.dcbx.recommendation = r;
  u.dcbx.pfc = pfc_configuration{true, true, 8, 1u << 3};
  using kind = application_priority::kind;
  u.dcbx.applications = {{kind::ethertype, 0x8915, 3}, {kind::udp_port, 4791, 5}};
  return u;
}

struct outcome {
  std::optional<lldp_unit> unit;
  lldp_faults faults;
};
outcome decode(const bytes& b) {
  outcome o;
  o.unit = decode_lldp(b.data(), b.size(), o.faults);
  return o;
}
outcome decode(const std::string& hex) { return decode(from_hex(hex)); }

TEST(LldpUnit, IsWhatScapyBuilds) { EXPECT_EQ(encode_lldp(unit_of_scapy()), from_hex(whole)); }

TEST(LldpUnit, IsReadAsScapyHasWrittenIt) {
  const outcome o = decode(whole);
  ASSERT_TRUE(o.unit);
  EXPECT_EQ(o.faults.tlvs_discarded + o.faults.tlvs_unrecognized, 0u);
  const lldp_unit u = *o.unit, expected = unit_of_scapy();
  EXPECT_TRUE(u.chassis == expected.chassis && u.port == expected.port);
  EXPECT_EQ(u.ttl_s, 121);
  EXPECT_EQ(u.port_description + "," + u.system_name + "," + u.system_description, "eth1,a,RoCE");
  EXPECT_EQ(u.capabilities, expected.capabilities);
  EXPECT_EQ(u.largest_frame, 4222);
  ASSERT_TRUE(u.dcbx.ets && u.dcbx.recommendation && u.dcbx.pfc && u.dcbx.applications);
  EXPECT_TRUE(u.dcbx.ets->willing);
  EXPECT_FALSE(u.dcbx.ets->credit_based);
  EXPECT_EQ(u.dcbx.ets->classes, 8);
  EXPECT_EQ(u.dcbx.ets->table, expected.dcbx.ets->table);
  EXPECT_EQ(*u.dcbx.recommendation, *expected.dcbx.recommendation);
  EXPECT_TRUE(u.dcbx.pfc->willing && u.dcbx.pfc->macsec_bypass);
  EXPECT_EQ(u.dcbx.pfc->capability, 8);
  EXPECT_EQ(u.dcbx.pfc->enabled, 8);
  EXPECT_EQ(*u.dcbx.applications, *expected.dcbx.applications);
}

TEST(LldpUnit, WithoutTimeToLiveIsAFarewell) {
  lldp_unit u = unit_of_scapy();
  u.ttl_s = 0;
  EXPECT_EQ(encode_lldp(u), from_hex("020704020000000001040703020000000002060200000000"));
  const outcome o = decode(
      "0207040200000000010407030200000000020602"
      "0000"
      "ffff");
  ASSERT_TRUE(o.unit) << "what follows does not count";
  EXPECT_EQ(o.unit->ttl_s, 0);
}

/// 802.1AB 9.2.7: the whole unit.
TEST(LldpUnit, IsDiscardedWhenItsBeginningIsWrong) {
  const std::string chassis = mandatory.substr(0, 18), port = mandatory.substr(18, 18), ttl = mandatory.substr(36);
  ASSERT_TRUE(decode(chassis + port + ttl + end).unit);
  for (const std::string& bad :
       {std::string(), end, chassis, chassis + port,             // not there
        port + chassis + ttl + end, chassis + ttl + port + end,  // in another order
        chassis + port +
            "0804657468310602"
            "0079" +
            end,                                                                 // something in between
        "020104" + port + ttl + end, chassis + "040103" + ttl + end,             // without a value
        chassis + port + "060179" + end,                                         // a short time to live
        chassis + port + ttl + chassis + end, chassis + port + ttl + ttl + end,  // twice
        chassis + port + ttl + port + end, chassis + port + ttl + "00010000",    // an end with a value
        chassis + port + ttl + "08ff6574", chassis + port + ttl + "08"})         // beyond the end
    EXPECT_FALSE(decode(bad).unit) << bad;
  EXPECT_TRUE(decode(chassis + port + ttl).unit) << "the end TLV may be left out";
  EXPECT_TRUE(decode(chassis + port + ttl + end + "0102030405").unit) << "padding";
  EXPECT_TRUE(decode(chassis + port + "06030079aa" + end).unit) << "the first two octets count";
  std::string longest = chassis + port + ttl;
  EXPECT_FALSE(decode("030104" + std::string(2 * 256, '1') + port + ttl).unit) << "a Chassis ID of 256 octets";
  EXPECT_TRUE(decode("030004" + std::string(2 * 255, '1') + port + ttl).unit);
}

/// The TLV alone, and it is counted.
TEST(LldpUnit, BadTlvsAreLeftOut) {
  struct row {
    const char* what;
    std::string tlv;
  };
  const std::string table =
      "0001234567003c280000000000000202000000"
      "0000";
  for (const row& r :
       {row{"short ETS", "fe180080c209" + table.substr(0, 40)}, row{"long ETS", "fe1a0080c209" + table + "00"},
        row{"shares of 99",
            "fe190080c2098001234567003b280000000000000202000000"
            "0000"},
        row{"shares of 101",
            "fe190080c20a8001234567003d280000000000000202000000"
            "0000"},
        row{"class 8",
            "fe190080c2098081234567003c280000000000000202000000"
            "0000"},
        row{"a share of 200 %",
            "fe190080c2090001234567c83c280000000000000202000000"
            "0000"},
        row{"algorithm 3",
            "fe190080c2098001234567003c280000000000000202000300"
            "0000"},
        row{"short recommendation", "fe050080c20a00"}, row{"short PFC", "fe050080c20b88"},
        row{"long PFC", "fe070080c20b880800"}, row{"PFC of 9 classes", "fe060080c20b8908"},
        row{"half an application", "fe0a0080c20c00618915a312"}, row{"no applications", "fe040080c20c"},
        row{"no subtype", "fe030080c2"}, row{"empty", "fe00"}, row{"empty name", "0a00"},
        row{"short capabilities", "0e020080"}, row{"uses what it has not", "0e0400800081"},
        row{"long frame size", "fe0700120f04107e00"}}) {
    const outcome o = decode(mandatory + r.tlv + "080131" + end);
    ASSERT_TRUE(o.unit) << r.what;
    EXPECT_EQ(o.faults.tlvs_discarded, 1u) << r.what;
    EXPECT_EQ(o.faults.tlvs_unrecognized, 0u) << r.what;
    EXPECT_FALSE(o.unit->dcbx.any() || o.unit->capabilities || o.unit->largest_frame) << r.what;
    EXPECT_EQ(o.unit->port_description, "1") << r.what << ": what follows is read";
  }
}

TEST(LldpUnit, TheFirstOfTwoCounts) {
  const outcome o = decode(mandatory + pfc + "fe060080c20b0801" + basic + "0a0162" + ets + ets + recommendation +
                           recommendation + applications + applications + largest + largest + end);
  ASSERT_TRUE(o.unit);
  EXPECT_EQ(o.faults.tlvs_discarded, 6u);
  EXPECT_EQ(o.unit->dcbx.pfc->enabled, 8);
  EXPECT_EQ(o.unit->system_name, "a");
}

TEST(LldpUnit, OthersTlvsAreCounted) {
  const outcome o = decode(mandatory +
                           "fe0700120f0103c036"
                           "fe050080c20201"
                           "fe0400000001"
                           "1400"
                           "100c0501c0000201020000000100" +
                           pfc + end);
  ASSERT_TRUE(o.unit);
  EXPECT_EQ(o.faults.tlvs_unrecognized, 4u) << "802.3 MAC/PHY, PPVID, no organisation of ours, a reserved type";
  EXPECT_EQ(o.faults.tlvs_discarded, 0u);
  EXPECT_TRUE(o.unit->dcbx.pfc);
}

TEST(LldpUnit, StrictClassesNeedNoShares) {
  const outcome o = decode(mandatory +
                           "fe190080c2098001234567640000000000000000000000"
                           "00000000" +
                           end);
  ASSERT_TRUE(o.unit);
  EXPECT_TRUE(o.unit->dcbx.ets) << "100 % of a class with strict priority mean nothing";
}

TEST(LldpUnit, SelectorsOfLaterEditionsAreNoEntries) {
  const outcome o = decode(mandatory + "fe0e0080c20c00608915671234a512b7" + end);
  ASSERT_TRUE(o.unit && o.unit->dcbx.applications);
  ASSERT_EQ(o.unit->dcbx.applications->size(), 1u);
  EXPECT_EQ(o.unit->dcbx.applications->front().selector, application_priority::kind::dscp);
}

/// Whatever comes: what was read can be written and read again, and is the same then.
TEST(LldpUnit, TakesAnything) {
  std::mt19937 random(5);
  const bytes good = from_hex(whole);
  unsigned read = 0;
  for (unsigned n = 0; n < 20'000; ++n) {
    bytes b = good;
    for (unsigned i = random() % 4; i-- != 0;) b[random() % b.size()] = static_cast<std::uint8_t>(random());
    b.resize(b.size() - (random() % 3 == 0 ? random() % b.size() : 0));
    const outcome o = decode(b);
    if (!o.unit) continue;
    ++read;
    const bytes again = encode_lldp(*o.unit);
    const outcome second = decode(again);
    ASSERT_TRUE(second.unit);
    EXPECT_EQ(second.faults.tlvs_discarded + second.faults.tlvs_unrecognized, 0u);
    EXPECT_EQ(encode_lldp(*second.unit), again);
  }
  EXPECT_GT(read, 3000u);
}

}  // namespace
}  // namespace rnic::wire
