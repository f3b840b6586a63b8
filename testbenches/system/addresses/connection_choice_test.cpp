// SPDX-License-Identifier: Apache-2.0
// cm::cma: which row of the GID table connections begin with, and which requests are taken (core/cma.c).
#include <gtest/gtest.h>

#include <cerrno>

#include "host_driver/cm/cma.h"
#include "testbenches/system/addresses/captured.h"

namespace rnic::system_test {
namespace {

using host_driver::roce_types;
using host_driver::cm::cma;
using host_driver::cm::name_of;
using host_driver::cm::type_named;
constexpr auto v1 = IBV_GID_TYPE_ROCE_V1, v2 = IBV_GID_TYPE_ROCE_V2;

const host_driver::gid_bytes address = host_driver::ipv4_gid(0x0a000001);

void on_host(const hosts::two_nodes_config& c, const std::function<void(host_driver::device&)>& look) {
  hosts::two_nodes system(c);
  run(system, [&] { look(*system.a().device); });
}

/// The RHEL guides read and write these words in default_roce_mode.
TEST(ConnectionChoice, HasTheKernelsNames) {
  EXPECT_STREQ(name_of(v1), "IB/RoCE v1");
  EXPECT_STREQ(name_of(v2), "RoCE v2");
  EXPECT_EQ(type_named("IB/RoCE v1\n"), v1);
  EXPECT_EQ(type_named("RoCE v2"), v2);
  for (const char* wrong : {"", "RoCE v1", "v2", "RoCE v2 ", "RoCE v2\n\n", "IB/RoCE"})
    EXPECT_EQ(type_named(wrong), std::nullopt) << wrong;
}

/// "# cat default_roce_mode: RoCE v2"; changing it is for that port alone.
TEST(ConnectionChoice, BeginsWithVersionTwo) {
  on_host(default_system(), [](host_driver::device& d) {
    cma c(d);
    EXPECT_EQ(c.default_roce_mode(1), v2);
    EXPECT_EQ(c.default_roce_tos(1), 0);
    EXPECT_EQ(c.set_default_roce_mode(1, v1), 0);
    EXPECT_EQ(c.default_roce_mode(1), v1);
    EXPECT_EQ(c.default_roce_mode(2), v2);
    EXPECT_EQ(c.set_default_roce_tos(2, 96), 0);
    EXPECT_EQ(c.default_roce_tos(1), 0);
    for (const unsigned port : {0u, 3u}) {
      EXPECT_EQ(c.set_default_roce_mode(port, v1), -EINVAL);
      EXPECT_EQ(c.set_default_roce_tos(port, 1), -EINVAL);
    }
    EXPECT_EQ(c.set_default_roce_mode(1, IBV_GID_TYPE_IB), -EINVAL);
  });
}

TEST(ConnectionChoice, TakesTheRowOfTheDefaultVersion) {
  on_host(default_system(), [](host_driver::device& d) {
    const int first = d.add_address(1, address);
    const int tagged = d.add_address(1, address, roce_types::both, 7);
    cma c(d);
    EXPECT_EQ(c.source_row(1, address), first + 1);
    EXPECT_EQ(c.source_row(1, address, 7), tagged + 1);
    EXPECT_EQ(c.source_row(2, address), -ENODEV);
    ASSERT_EQ(c.set_default_roce_mode(1, v1), 0);
    EXPECT_EQ(c.source_row(1, address), first);
    EXPECT_TRUE(c.admits(1, first) && c.admits(1, first + 1)) << "a request's version is the connection's";
    EXPECT_FALSE(c.admits(1, 100) || c.admits(1, -1) || c.admits(3, first));
  });
}

/// The table has version 1 only, and connections are to be made in version 2, as after loading with roce_mode=0: no
/// connection begins, and requests, which come in version 1, are not taken.
TEST(ConnectionChoice, HasNothingForAVersionWithoutGids) {
  hosts::two_nodes_config config = default_system();
  config.node.driver.roce_mode = host_driver::config::roce_versions::v1;
  on_host(config, [](host_driver::device& d) {
    const int row = d.add_address(1, address);
    ASSERT_GE(row, 0);
    cma c(d);
    EXPECT_EQ(c.default_roce_mode(1), v2);
    EXPECT_EQ(c.source_row(1, address), -ENODEV);
    EXPECT_FALSE(c.admits(1, row));
    ASSERT_EQ(c.set_default_roce_mode(1, v1), 0);
    EXPECT_EQ(c.source_row(1, address), row);
    EXPECT_TRUE(c.admits(1, row));
  });
}

/// An adapter of the first generation (cma_add_one: what the device has).
TEST(ConnectionChoice, IsVersionOneWhereThereIsNoOther) {
  hosts::two_nodes_config config = default_system();
  config.node.adapter.parser.roce_v2 = false;
  on_host(config, [](host_driver::device& d) {
    cma c(d);
    EXPECT_EQ(c.default_roce_mode(1), v1);
    EXPECT_EQ(c.set_default_roce_mode(1, v2), -EINVAL);
    EXPECT_EQ(c.default_roce_mode(1), v1);
  });
}

/// "SL = TOS >> 5 (e.g., take the 3 most significant bits of the TOS field)"
TEST(ConnectionChoice, ServiceLevelIsTheTopOfTheTos) {
  EXPECT_EQ(host_driver::cm::service_level_of(0), 0);
  EXPECT_EQ(host_driver::cm::service_level_of(0x1f), 0);
  EXPECT_EQ(host_driver::cm::service_level_of(96), 3);
  EXPECT_EQ(host_driver::cm::service_level_of(255), 7);
}

}  // namespace
}  // namespace rnic::system_test
