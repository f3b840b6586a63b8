// SPDX-License-Identifier: Apache-2.0
// Reports of multicast groups, as tshark reads them; queries are scapy's.
#include "host_driver/groups/memberships.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace rnic::host_driver::groups {
namespace {

using strings = std::vector<std::string>;

constexpr std::uint64_t second = 1'000'000'000'000;

// Packets of scapy 2.5.0: IGMP, IGMPv3/IGMPv3mq, ICMPv6MLQuery, ICMPv6MLQuery2, ICMPv6MLReport from 10.0.0.9, fe80::99.
constexpr const char* query2 =
    "01005e0000010200000000990800460000200001000001023acd0a000009e0000001940400001164ee9b00000000";  // within 10 s
constexpr const char* query2_of_group =
    "01005e09080702000000009908004600002000010000010223be0a000009ef09080794040000110af7e4ef090807";  // 239.9.8.7, 1 s
constexpr const char* query3 =
    "01005e000001020000000099080046c000240001000001023a090a000009e0000001940400001114eb6e00000000037d0000";  // 2 s, QRV
                                                                                                             // 3
constexpr const char* query3_of_group =
    "01005e090807020000000099080046c0002400010000010222fa0a000009ef09080794040000110af567ef090807027d0000";  // 1 s
constexpr const char* report2 =
    "01005e09080702000000009908004600002000010000010223be0a000009ef090807940400001600f2eeef090807";
constexpr const char* mld2_query =
    "33330000000102000000009986dd6000000000240001fe800000000000000000000000000099ff0200000000000000000000000000013a0005"
    "02"
    "000001008200792603e8000000000000000000000000000000000000027d0000";  // within 1 s
constexpr const char* mld1_query =
    "33330000000102000000009986dd6000000000200001fe800000000000000000000000000099ff0200000000000000000000000000013a0005"
    "02"
    "0000010082007ba703e8000000000000000000000000000000000000";
constexpr const char* mld1_report =
    "33330001000302000000009986dd6000000000200001fe800000000000000000000000000099ff0e00000000000000000000000100033a0005"
    "02"
    "0000010083007f6d00000000ff0e0000000000000000000000010003";

std::vector<std::uint8_t> bytes_of(const std::string& hex) {
  std::vector<std::uint8_t> b;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    b.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return b;
}

gid_bytes group(const char* text) {
  gid_bytes g{};
  if (inet_pton(AF_INET6, text, g.data()) == 1) return g;
  in_addr four{};
  inet_pton(AF_INET, text, &four);
  return ipv4_gid(ntohl(four.s_addr));
}

/// An interface, 02:00:00:00:00:02 with 10.0.0.2, and what it has sent.
struct interface : frame_output_if {
  explicit interface(igmp_version version = igmp_version::by_querier, std::optional<std::uint16_t> vlan = std::nullopt)
      : members({{2, 0, 0, 0, 0, 2}, vlan, group("10.0.0.2"), default_gid({2, 0, 0, 0, 0, 2})}, *this, version) {}
  void transmit(const std::uint8_t* frame, std::size_t length) override {
    frames.emplace_back(frame, frame + length);
    times.push_back(now);
  }
  void wait(std::uint64_t ps) {
    const std::uint64_t until = now + ps;
    while (members.deadline_ps() <= until) {
      ASSERT_GE(members.deadline_ps(), now);
      now = members.deadline_ps();
      members.tick(now);
    }
    now = until;
  }
  void join(const char* text) { ASSERT_EQ(members.join(group(text), now), 0); }
  void leave(const char* text) { ASSERT_EQ(members.leave(group(text), now), 0); }
  bool hear(const std::string& hex) {
    const auto b = bytes_of(hex);
    return members.receive(b.data(), b.size(), now);
  }
  /// Frames since the last call, a line each with the fields by tshark, which finds nothing wrong in them.
  strings read(const std::string& fields) {
    const std::string name =
        testing::TempDir() + "groups." + testing::UnitTest::GetInstance()->current_test_info()->name() + ".pcap";
    pcap_t* const link = pcap_open_dead(DLT_EN10MB, 65535);
    pcap_dumper_t* const file = pcap_dump_open(link, name.c_str());
    for (const auto& f : frames) {
      pcap_pkthdr header{};
      header.caplen = header.len = static_cast<bpf_u_int32>(f.size());
      pcap_dump(reinterpret_cast<u_char*>(file), &header, f.data());
    }
    pcap_dump_close(file);
    pcap_close(link);
    frames.clear();
    times.clear();
    const std::string checks = "tshark -o ip.check_checksum:TRUE -r '" + name + "' ";
    EXPECT_EQ(lines(checks + "-Y '_ws.malformed or ip.checksum.status == 0 or igmp.checksum.status == 0 or "
                             "icmpv6.checksum.status == 0'"),
              strings{});
    return lines(checks + "-T fields " + fields);
  }

  std::vector<std::vector<std::uint8_t>> frames;
  std::vector<std::uint64_t> times;
  std::uint64_t now = 5 * second;
  memberships members;

 private:
  static strings lines(const std::string& command) {
    std::FILE* const out = popen((command + " 2> /dev/null").c_str(), "r");
    strings all;
    std::string line;
    for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out)) {
      if (c != '\n') {
        line += static_cast<char>(c);
        continue;
      }
      all.push_back(line);
      line.clear();
    }
    EXPECT_EQ(pclose(out), 0);
    return all;
  }
};

const std::string records4 = "-e igmp.type -e igmp.record_type -e igmp.maddr";
const std::string old4 = "-e igmp.version -e igmp.type -e igmp.maddr -e ip.dst";
const std::string records6 = "-e icmpv6.type -e icmpv6.mldr.mar.record_type -e icmpv6.mldr.mar.multicast_address";
const std::string old6 = "-e icmpv6.type -e icmpv6.mld.multicast_address -e ipv6.dst";

#define NEEDS_TSHARK() \
  if (std::system("command -v tshark > /dev/null") != 0) GTEST_SKIP() << "no tshark"

TEST(Memberships, JoinIsToldToRouters) {
  NEEDS_TSHARK();
  interface i;
  i.join("239.9.8.7");
  ASSERT_EQ(i.frames.size(), 1u);
  EXPECT_EQ(
      i.read("-e eth.dst -e eth.src -e ip.src -e ip.dst -e ip.ttl -e ip.dsfield -e ip.flags.df -e ip.opt.ra "
             "-e igmp.version -e igmp.type -e igmp.num_grp_recs -e igmp.record_type -e igmp.num_src -e igmp.maddr"),
      (strings{"01:00:5e:00:00:16\t02:00:00:00:00:02\t10.0.0.2\t224.0.0.22\t1\t0xc0\t1\t0\t3\t0x22\t1\t4\t0\t"
               "239.9.8.7"}));
}

/// net/ipv4/igmp.c: mr_qrv is 2, IGMPV3_UNSOLICITED_REPORT_INTERVAL a second.
TEST(Memberships, JoinAndLeaveAreSaidTwice) {
  NEEDS_TSHARK();
  interface i;
  i.join("239.9.8.7");
  i.wait(second);
  ASSERT_EQ(i.times.size(), 2u);
  EXPECT_LE(i.times[1], 6 * second);
  i.wait(100 * second);
  EXPECT_EQ(i.read(records4), (strings{"0x22\t4\t239.9.8.7", "0x22\t4\t239.9.8.7"}));
  i.leave("239.9.8.7");
  i.wait(second);
  ASSERT_EQ(i.times.size(), 2u);
  i.wait(100 * second);
  EXPECT_EQ(i.read(records4), (strings{"0x22\t3\t239.9.8.7", "0x22\t3\t239.9.8.7"}));
  EXPECT_EQ(i.members.deadline_ps(), ~std::uint64_t{0});
}

TEST(Memberships, UsersOfAGroupAreCounted) {
  interface i;
  i.join("239.9.8.7");
  i.wait(2 * second);
  i.frames.clear();
  i.join("239.9.8.7");
  i.leave("239.9.8.7");
  i.wait(2 * second);
  EXPECT_TRUE(i.frames.empty() && i.members.is_member(group("239.9.8.7")));
  i.leave("239.9.8.7");
  EXPECT_EQ(i.frames.size(), 1u);
  EXPECT_EQ(i.members.leave(group("239.9.8.7"), i.now), -EADDRNOTAVAIL);
}

/// What was not said for the second time goes with the next change (RFC 3376, 5.1).
TEST(Memberships, ChangesAreToldTogether) {
  NEEDS_TSHARK();
  interface i;
  i.join("239.1.1.1");
  i.join("239.2.2.2");
  i.leave("239.1.1.1");
  i.wait(100 * second);
  EXPECT_EQ(i.read(records4), (strings{"0x22\t4\t239.1.1.1", "0x22\t4,4\t239.1.1.1,239.2.2.2",
                                       "0x22\t3,4\t239.1.1.1,239.2.2.2", "0x22\t3\t239.1.1.1"}));
}

TEST(Memberships, GeneralQueryIsAnsweredOnceInTime) {
  NEEDS_TSHARK();
  interface i;
  i.join("239.9.8.7");
  i.join("239.1.1.1");
  i.wait(10 * second);
  i.frames.clear();
  i.times.clear();
  EXPECT_TRUE(i.hear(query3));
  EXPECT_TRUE(i.hear(query3));
  i.wait(10 * second);
  ASSERT_EQ(i.times.size(), 1u);
  EXPECT_LE(i.times[0], 17 * second);
  EXPECT_EQ(i.read(records4), (strings{"0x22\t2,2\t239.1.1.1,239.9.8.7"}));
  EXPECT_TRUE(i.hear(query3_of_group));
  i.wait(second);
  EXPECT_EQ(i.read(records4), (strings{"0x22\t2\t239.9.8.7"}));
  i.leave("239.9.8.7");  // QRV of the last general query was 3
  i.hear(query3_of_group);
  i.wait(10 * second);
  EXPECT_EQ(i.frames.size(), 2u) << "the later query said 2";
}

/// A query of version 2: its version for 2 * 125 + 10 s (RFC 3376, 7.2.1).
TEST(Memberships, QuerierOfTheOlderVersionIsObeyed) {
  NEEDS_TSHARK();
  interface i;
  i.join("239.9.8.7");
  i.wait(2 * second);
  i.frames.clear();
  EXPECT_TRUE(i.hear(query2));
  i.wait(10 * second);
  EXPECT_EQ(i.read(old4), (strings{"2\t0x16\t239.9.8.7\t239.9.8.7"}));
  i.hear(query2_of_group);
  i.hear(report2);  // another member was faster
  i.wait(10 * second);
  EXPECT_TRUE(i.frames.empty());
  EXPECT_EQ(i.members.count().suppressed, 1u);
  i.leave("239.9.8.7");
  EXPECT_TRUE(i.frames.empty()) << "the other one was the last reporter";
  i.join("239.9.8.7");
  i.wait(10 * second);
  i.leave("239.9.8.7");
  EXPECT_EQ(i.read(old4), (strings{"2\t0x16\t239.9.8.7\t239.9.8.7", "2\t0x16\t239.9.8.7\t239.9.8.7",
                                   "2\t0x17\t239.9.8.7\t224.0.0.2"}));
  i.wait(300 * second);
  i.join("239.9.8.7");
  EXPECT_EQ(i.read(records4), (strings{"0x22\t4\t239.9.8.7"}));
}

TEST(Memberships, VersionCanBeForced) {
  NEEDS_TSHARK();
  interface two(igmp_version::v2);
  two.join("239.9.8.7");
  two.hear(query3);
  two.wait(100 * second);
  two.leave("239.9.8.7");
  EXPECT_EQ(two.read("-e igmp.type"), (strings{"0x16", "0x16", "0x17"}));
  interface three(igmp_version::v3);
  three.hear(query2);
  three.join("239.9.8.7");
  EXPECT_EQ(three.read("-e igmp.type"), (strings{"0x22"}));
}

/// What a host says when it goes: at once, of all groups together (RFC 3376, 5.1; RFC 3810, 6.1).
TEST(Memberships, AllAreLeftTogether) {
  NEEDS_TSHARK();
  interface i;
  for (const char* text : {"239.1.1.1", "239.9.8.7", "239.9.8.7", "224.0.0.1", "ff02::1", "ff0e::1:3"}) i.join(text);
  i.wait(10 * second);
  i.frames.clear();
  i.members.leave_all(i.now);
  EXPECT_EQ(i.read("-e ip.dst -e ipv6.dst -e igmp.record_type -e igmp.maddr -e icmpv6.mldr.mar.record_type "
                   "-e icmpv6.mldr.mar.multicast_address"),
            (strings{"224.0.0.22\t\t3,3\t239.1.1.1,239.9.8.7\t\t", "\tff02::16\t\t\t3\tff0e::1:3"}));
  EXPECT_FALSE(i.members.is_member(group("239.9.8.7")) || i.members.is_member(group("ff02::1")));
  i.hear(query3);
  i.hear(mld2_query);
  i.wait(10 * second);
  EXPECT_EQ(i.read("-e igmp.record_type -e icmpv6.mldr.mar.record_type"), (strings{"3,3\t", "\t3"})) << "once more";
}

/// Beside queriers of the older versions: Leave to 224.0.0.2 and Done to ff02::2, of what we were the last to report.
TEST(Memberships, AllAreLeftInTheOlderVersions) {
  NEEDS_TSHARK();
  interface i;
  i.hear(query2);
  i.hear(mld1_query);
  for (const char* text : {"239.1.1.1", "239.9.8.7", "ff0e::1:3", "ff0e::1:4"}) i.join(text);
  i.wait(20 * second);
  i.hear(query2_of_group);
  i.hear(report2);
  i.hear(mld1_report);
  i.frames.clear();
  i.members.leave_all(i.now);
  EXPECT_EQ(i.read("-e ip.dst -e igmp.type -e igmp.maddr -e ipv6.dst -e icmpv6.type -e icmpv6.mld.multicast_address"),
            (strings{"224.0.0.2\t0x17\t239.1.1.1\t\t\t", "\t\t\tff02::2\t132\tff0e::1:4"}));
  i.wait(20 * second);
  EXPECT_TRUE(i.frames.empty());
}

/// Nobody has heard what was said before the cable had another end.
TEST(Memberships, AreReportedAgain) {
  NEEDS_TSHARK();
  interface i;
  for (const char* text : {"239.9.8.7", "ff02::1", "ff0e::1:3"}) i.join(text);
  i.wait(10 * second);
  i.frames.clear();
  i.members.report_again(i.now);
  i.wait(10 * second);
  const strings four{"4\t239.9.8.7\t\t", "4\t239.9.8.7\t\t"}, six{"\t\t4\tff0e::1:3", "\t\t4\tff0e::1:3"};
  strings rows = i.read(
      "-e igmp.record_type -e igmp.maddr -e icmpv6.mldr.mar.record_type "
      "-e icmpv6.mldr.mar.multicast_address");
  std::sort(rows.begin(), rows.end());
  strings all = six;
  all.insert(all.end(), four.begin(), four.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(rows, all);
}

/// RFC 4861, 7.2.1 and RFC 3810, 6: of the groups that everybody is in, only ff02::1 is not reported.
TEST(Memberships, OfAddressesAreReported) {
  NEEDS_TSHARK();
  interface i;
  i.join("ff02::1:ff00:2");
  i.wait(10 * second);
  EXPECT_EQ(i.read(records6), (strings{"143\t4\tff02::1:ff00:2", "143\t4\tff02::1:ff00:2"}));
  i.hear(mld2_query);
  i.wait(second);
  EXPECT_EQ(i.read(records6), (strings{"143\t2\tff02::1:ff00:2"}));
  i.leave("ff02::1:ff00:2");
  EXPECT_EQ(i.read(records6), (strings{"143\t3\tff02::1:ff00:2"}));
}

TEST(Memberships, OfIpv6AreMulticastListeners) {
  NEEDS_TSHARK();
  interface i;
  i.join("ff0e::1:3");
  EXPECT_EQ(i.read("-e eth.dst -e ipv6.src -e ipv6.dst -e ipv6.hlim -e ipv6.opt.router_alert -e icmpv6.type "
                   "-e icmpv6.mldr.nb_mcast_records -e icmpv6.mldr.mar.record_type "
                   "-e icmpv6.mldr.mar.multicast_address"),
            (strings{"33:33:00:00:00:16\tfe80::ff:fe00:2\tff02::16\t1\t0\t143\t1\t4\tff0e::1:3"}));
  i.wait(2 * second);
  i.frames.clear();
  EXPECT_TRUE(i.hear(mld2_query));
  i.wait(second);
  EXPECT_EQ(i.read(records6), (strings{"143\t2\tff0e::1:3"}));
  i.leave("ff0e::1:3");
  i.wait(2 * second);
  EXPECT_EQ(i.read(records6), (strings{"143\t3\tff0e::1:3", "143\t3\tff0e::1:3"}));
}

TEST(Memberships, OfIpv6ObeyTheOlderVersion) {
  NEEDS_TSHARK();
  interface i;
  EXPECT_TRUE(i.hear(mld1_query));
  i.join("ff0e::1:3");
  i.wait(20 * second);
  i.leave("ff0e::1:3");
  EXPECT_EQ(i.read(old6),
            (strings{"131\tff0e::1:3\tff0e::1:3", "131\tff0e::1:3\tff0e::1:3", "132\tff0e::1:3\tff02::2"}));
  i.join("ff0e::1:3");
  i.wait(20 * second);
  i.frames.clear();
  i.hear(mld1_query);
  i.hear(mld1_report);
  i.wait(20 * second);
  i.leave("ff0e::1:3");
  EXPECT_TRUE(i.frames.empty());
}

TEST(Memberships, AreThoseOfTheirVlan) {
  NEEDS_TSHARK();
  interface i(igmp_version::by_querier, 7);
  i.join("239.9.8.7");
  EXPECT_EQ(i.read("-e vlan.id -e vlan.priority -e igmp.maddr"), (strings{"7\t0\t239.9.8.7"}));
  i.wait(2 * second);
  i.frames.clear();
  EXPECT_TRUE(i.hear(query3)) << "untagged: it is IGMP, and not for this interface";
  i.wait(10 * second);
  EXPECT_TRUE(i.frames.empty());
  i.hear(std::string(query3).insert(24, "8100a007"));
  i.wait(10 * second);
  EXPECT_EQ(i.frames.size(), 1u);
}

TEST(Memberships, OfAllHostsAreNotReported) {
  interface i;
  for (const char* text : {"224.0.0.1", "ff02::1", "ff01::5"}) i.join(text);
  i.hear(query3);
  i.hear(mld2_query);
  i.wait(10 * second);
  EXPECT_TRUE(i.frames.empty());
  EXPECT_EQ(i.members.join(group("10.0.0.1"), i.now), -EINVAL);
  EXPECT_EQ(i.members.join(group("fd00::1"), i.now), -EINVAL);
}

TEST(Memberships, HaveARoomOfTwenty) {
  interface i;
  for (unsigned n = 1; n <= memberships::most_groups; ++n)
    ASSERT_EQ(i.members.join(ipv4_gid(0xef000000u + n), i.now), 0);
  EXPECT_EQ(i.members.join(group("239.9.9.9"), i.now), -ENOBUFS);
  EXPECT_EQ(i.members.join(ipv4_gid(0xef000001u), i.now), 0);
  EXPECT_EQ(i.members.join(group("ff02::1:ff00:2"), i.now), 0) << "of an address: not one of those";
}

/// Every shorter frame, and every frame with a wrong bit, is dropped or is another one: nothing else happens.
TEST(Memberships, BadFramesAreDropped) {
  for (const char* hex : {query2, query3, report2, mld2_query, mld1_query, mld1_report}) {
    const auto good = bytes_of(hex);
    for (std::size_t length = 0; length < good.size(); ++length) {
      const std::vector<std::uint8_t> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_FALSE(parse(cut.data(), cut.size()).has_value()) << length;
    }
    for (std::size_t bit = 14 * 8; bit < good.size() * 8; ++bit) {
      auto bad = good;
      bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1u << bit % 8);
      const bool covered = bit >= 8 * (good.size() - 8);  // what a checksum is over, in all of them
      if (covered) {
        EXPECT_FALSE(parse(bad.data(), bad.size()).has_value()) << bit;
      } else {
        parse(bad.data(), bad.size());
      }
    }
  }
}

}  // namespace
}  // namespace rnic::host_driver::groups
