// SPDX-License-Identifier: Apache-2.0
// What is written into tc/PORT/traffic_class and ttl, rule by rule of the distribution's manual ("Force DSCP").
#include "host_driver/forced_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

namespace rnic::host_driver {
namespace {

gid_bytes ip(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

const gid_bytes one = ip(1, 1, 1, 1), two = ip(1, 1, 1, 2), far = ip(9, 9, 9, 9);
constexpr auto none = std::nullopt;

TEST(ForcedPath, BeginsWithNothing) {
  const forced_path f;
  EXPECT_EQ(f.traffic_class(one, two), none);
  EXPECT_EQ(f.ttl(), none);
  EXPECT_EQ(f.traffic_class_text(), "");
}

/// "to set DSCP value of 24, set the ToS bit to 96"
TEST(ForcedPath, OneForAllIsForAll) {
  forced_path f;
  EXPECT_EQ(f.write_traffic_class("96\n"), 0);
  EXPECT_EQ(f.traffic_class(one, two), 96);
  EXPECT_EQ(f.traffic_class(far, far), 96);
  EXPECT_EQ(f.write_traffic_class("tclass=255"), 0);
  EXPECT_EQ(f.traffic_class(one, two), 255);
  EXPECT_EQ(f.write_traffic_class("-1"), 0);
  EXPECT_EQ(f.traffic_class(one, two), none);
}

/// "traffic class 16 will be set to any QP with source IP and destination IP"
TEST(ForcedPath, RulesAreForTheirAddresses) {
  forced_path f;
  EXPECT_EQ(f.write_traffic_class("tclass=16,src_ip=1.1.1.1,dst_ip=1.1.1.2"), 0);
  EXPECT_EQ(f.traffic_class(one, two), 16);
  EXPECT_EQ(f.traffic_class(two, one), none);
  EXPECT_EQ(f.traffic_class(one, far), none);
  EXPECT_EQ(f.write_traffic_class("20,src_ip=1.1.1.2"), 0);
  EXPECT_EQ(f.traffic_class(two, far), 20);
  EXPECT_EQ(f.write_traffic_class("tclass=24,dst_ip=9.9.9.9"), 0);
  EXPECT_EQ(f.traffic_class(one, far), 24);
  EXPECT_EQ(f.write_traffic_class("tclass=28,dst_ip=fd00::7"), 0);
  EXPECT_EQ(f.traffic_class(one, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}), 28);
}

/// "A mask can be provided when using destination IPv4 addresses"
TEST(ForcedPath, DestinationsMayHaveAMask) {
  forced_path f;
  EXPECT_EQ(f.write_traffic_class("tclass=32,dst_ip=9.9.8.0/23"), 0);
  EXPECT_EQ(f.traffic_class(one, far), 32);
  EXPECT_EQ(f.traffic_class(one, ip(9, 9, 8, 255)), 32);
  EXPECT_EQ(f.traffic_class(one, ip(9, 9, 10, 0)), none);
  EXPECT_EQ(f.write_traffic_class("tclass=36,dst_ip=0.0.0.0/0"), 0);
  EXPECT_EQ(f.traffic_class(one, two), 36);
  EXPECT_EQ(f.traffic_class(one, far), 32) << "the longer mask";
  EXPECT_EQ(f.traffic_class(one, {0xfd}), none) << "of no IPv4 network";
  for (const char* wrong : {"tclass=4,src_ip=1.1.1.0/24", "tclass=4,dst_ip=fd00::/64", "tclass=4,dst_ip=1.1.1.0/33",
                            "tclass=4,dst_ip=1.1.1.0/", "tclass=4,dst_ip=1.1.1.0/-1"})
    EXPECT_EQ(f.write_traffic_class(wrong), -EINVAL) << wrong;
}

/// "If a global traffic class value is set, it will be applied to all QPs"; without, a rule with both addresses is
/// applied; "The rule precedence is not affected by the order in which rules are inserted".
TEST(ForcedPath, PrecedenceDoesNotDependOnTheOrderOfWriting) {
  std::vector<std::string> texts{"tclass=8,src_ip=1.1.1.1", "tclass=12,dst_ip=1.1.1.2", "tclass=12,dst_ip=1.1.1.0/24",
                                 "tclass=16,src_ip=1.1.1.1,dst_ip=1.1.1.2",
                                 "tclass=40,src_ip=1.1.1.1,dst_ip=1.1.0.0/16"};
  std::sort(texts.begin(), texts.end());
  std::string listed;
  do {
    forced_path f;
    for (const std::string& text : texts) ASSERT_EQ(f.write_traffic_class(text), 0);
    ASSERT_EQ(f.traffic_class(one, two), 16);
    ASSERT_EQ(f.traffic_class(one, ip(1, 1, 7, 7)), 40);
    ASSERT_EQ(f.traffic_class(far, two), 12);
    if (listed.empty()) listed = f.traffic_class_text();
    ASSERT_EQ(f.traffic_class_text(), listed);
    ASSERT_EQ(f.write_traffic_class("64"), 0);
    ASSERT_EQ(f.traffic_class(one, two), 64);
    ASSERT_EQ(f.write_traffic_class("-1"), 0);
    ASSERT_EQ(f.traffic_class(one, two), 16) << "rules stay";
  } while (std::next_permutation(texts.begin(), texts.end()));
}

/// "tclass=-1" will remove the rule from the database.
TEST(ForcedPath, RulesAreReplacedAndRemoved) {
  forced_path f;
  EXPECT_EQ(f.write_traffic_class("tclass=16,src_ip=1.1.1.1,dst_ip=1.1.1.2"), 0);
  EXPECT_EQ(f.write_traffic_class("tclass=20,dst_ip=1.1.1.2,src_ip=1.1.1.1"), 0);
  EXPECT_EQ(f.traffic_class(one, two), 20);
  EXPECT_EQ(f.traffic_class_text(), "tclass=20,src_ip=1.1.1.1,dst_ip=1.1.1.2\n");
  EXPECT_EQ(f.write_traffic_class("tclass=-1,src_ip=1.1.1.1"), -ENOENT);
  EXPECT_EQ(f.write_traffic_class("tclass=-1,src_ip=1.1.1.1,dst_ip=1.1.1.2/31"), -ENOENT) << "a mask of its own";
  EXPECT_EQ(f.write_traffic_class("tclass=-1,src_ip=1.1.1.1,dst_ip=1.1.1.2"), 0);
  EXPECT_EQ(f.traffic_class(one, two), none);
  EXPECT_EQ(f.write_traffic_class("tclass=-1,src_ip=1.1.1.1,dst_ip=1.1.1.2"), -ENOENT);
}

TEST(ForcedPath, NonsenseChangesNothing) {
  forced_path f;
  ASSERT_EQ(f.write_traffic_class("96"), 0);
  for (const char* wrong : {"", "\n", "256", "tclass=", "tclass=1x", "1,2", "tclass=1,tclass=2", "src_ip=1.1.1.1",
                            "tclass=1,src_ip=", "tclass=1,src_ip=1.1.1", "tclass=1,src_ip=1.1.1.1,src_ip=1.1.1.2",
                            "tclass=1,", "tclass=1,port=4", "0x60", " 96", "99999999999999999999"})
    EXPECT_EQ(f.write_traffic_class(wrong), -EINVAL) << wrong;
  EXPECT_EQ(f.traffic_class_text(), "Global tclass=96\n");
}

/// "Valid values range between 0 - 255"
TEST(ForcedPath, TtlIsAByte) {
  forced_path f;
  for (const auto& [text, value] : {std::pair{"0", 0}, std::pair{"7\n", 7}, std::pair{"255", 255}}) {
    EXPECT_EQ(f.write_ttl(text), 0);
    EXPECT_EQ(f.ttl(), value);
    EXPECT_EQ(f.ttl_text(), std::to_string(value));
  }
  for (const char* wrong : {"256", "", "x", "1 2"}) EXPECT_EQ(f.write_ttl(wrong), -EINVAL);
  EXPECT_EQ(f.ttl(), 255);
  EXPECT_EQ(f.write_ttl("-1"), 0);
  EXPECT_EQ(f.ttl(), none);
}

}  // namespace
}  // namespace rnic::host_driver
