// SPDX-License-Identifier: Apache-2.0
// Windows of the functions against the Linux driver's rule, register access, receive match.
#include "model/gid/gid_table.h"

#include <gtest/gtest.h>

#include "model/gid/gid_cr.h"

namespace rnic::gid {
namespace {

// The two branches of the driver's mlx4_get_slave_num_gids and mlx4_get_base_gid_ix, as the control plane (8.6) states
// them.
window kernel_rule(unsigned slave, unsigned vfs) {
  if (slave == 0) return {0, 16};
  const unsigned n = 112 / vfs;
  const unsigned remainder = 112 % vfs;
  if (slave <= remainder) return {16 + (n + 1) * (slave - 1), n + 1};
  return {16 + (n + 1) * remainder + n * (slave - 1 - remainder), n};
}

TEST(gid_window, follows_the_drivers_rule_for_every_count) {
  for (unsigned vfs = 0; vfs <= 126; ++vfs) {
    unsigned next = 0;
    for (unsigned f = 0; f <= vfs; ++f) {
      const window w = window_of(f, vfs);
      const window k = kernel_rule(f, vfs);
      ASSERT_EQ(w.first, k.first) << vfs << " functions, function " << f;
      ASSERT_EQ(w.count, k.count) << vfs << " functions, function " << f;
      ASSERT_EQ(w.first, next);
      next += w.count;
    }
    ASSERT_EQ(next, vfs == 0 ? 16u : 128u);
  }
}

TEST(gid_window, examples_by_hand) {
  EXPECT_EQ(window_of(1, 1).count, 112u);
  EXPECT_EQ(window_of(1, 5).count, 23u);  // 112 = 5 * 22 + 2: two of 23, three of 22
  EXPECT_EQ(window_of(3, 5).first, 62u);
  EXPECT_EQ(window_of(3, 5).count, 22u);
  EXPECT_EQ(window_of(126, 126).count, 0u);
  EXPECT_EQ(window_of(6, 5).count, 0u);  // no such function
}

void put_gid(gid_table& t, unsigned i, std::uint8_t last, std::uint32_t attributes) {
  t.cr_write(cr::gid_word(i, 0), 0xfe800000);
  t.cr_write(cr::gid_word(i, 1), 0);
  t.cr_write(cr::gid_word(i, 2), 0x11223344);
  t.cr_write(cr::gid_word(i, 3), 0x55667700u | last);
  t.cr_write(cr::gid_word(i, 4), attributes);
}

wire::gid id(std::uint8_t last) {
  return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, last};
}

TEST(gid_table, matches_gid_and_version) {
  gid_table t;
  put_gid(t, 3, 1, cr::gid_valid);
  put_gid(t, 100, 1, cr::gid_valid | 2u << cr::gid_type_shift | cr::gid_vlan_valid | 77);
  EXPECT_EQ(t.match(id(1), roce_type::v1), std::optional<unsigned>(3));
  EXPECT_EQ(t.match(id(1), roce_type::v2), std::optional<unsigned>(100));
  EXPECT_EQ(t.match(id(2), roce_type::v1), std::nullopt);
  EXPECT_TRUE(t[100].vlan_valid);
  EXPECT_EQ(t[100].vlan, 77u);
  EXPECT_EQ(t.cr_read(cr::gid_word(100, 2)), 0x11223344u);
  EXPECT_EQ(t.cr_read(cr::gid_word(100, 4)), cr::gid_valid | 2u << cr::gid_type_shift | cr::gid_vlan_valid | 77);
  put_gid(t, 3, 1, 0);
  EXPECT_EQ(t.match(id(1), roce_type::v1), std::nullopt);
}

TEST(gid_table, first_match_wins) {
  gid_table t;
  put_gid(t, 127, 9, cr::gid_valid);
  put_gid(t, 64, 9, cr::gid_valid);
  EXPECT_EQ(t.match(id(9), roce_type::v1), std::optional<unsigned>(64));
}

TEST(gid_table, accepts_own_and_group_addresses) {
  gid_table t;
  const wire::mac_address mine{0x02, 0xc9, 1, 2, 3, 4};
  EXPECT_FALSE(t.accepts(mine));
  t.cr_write(cr::mac_word(70, 1), 0x01020304);
  t.cr_write(cr::mac_word(70, 0), cr::mac_valid | 0x02c9);
  EXPECT_TRUE(t.accepts(mine));
  EXPECT_EQ(t.mac(70), mine);
  EXPECT_TRUE(t.mac_valid(70));
  EXPECT_EQ(t.cr_read(cr::mac_word(70, 0)), cr::mac_valid | 0x02c9);
  EXPECT_EQ(t.cr_read(cr::mac_word(70, 1)), 0x01020304u);
  EXPECT_TRUE(t.accepts({0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
  EXPECT_TRUE(t.accepts({0x33, 0x33, 0, 0, 0, 1}));
  t.cr_write(cr::mac_word(70, 0), 0x02c9);
  EXPECT_FALSE(t.accepts(mine));
}

TEST(gid_table, vlan_table_and_windows_by_register) {
  gid_table t;
  t.cr_write(cr::vlan_word(5), cr::vlan_valid | 0xf123);
  EXPECT_EQ(t.vlan(5), std::optional<std::uint16_t>(0x123));
  EXPECT_EQ(t.vlan(6), std::nullopt);
  t.cr_write(cr::num_vfs, 5);
  EXPECT_EQ(t[15].function, 0u);
  EXPECT_EQ(t[16].function, 1u);
  EXPECT_EQ(t[62].function, 3u);
  EXPECT_EQ(t[127].function, 5u);
  t.cr_write(cr::num_vfs, 0);
  EXPECT_EQ(t[127].function, 0u);
  EXPECT_EQ(t.cr_read(0x7ffc), 0u);  // nothing there
}

}  // namespace
}  // namespace rnic::gid
