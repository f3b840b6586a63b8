// SPDX-License-Identifier: Apache-2.0
// Windows of the functions against the Linux driver's rule, register access, receive match.
#include "model/gid/gid_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "model/gid/gid_cr.h"
#include "model/gid/gid_source.h"

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

TEST(gid_table, takes_roce_v2_unless_the_register_says_otherwise) {
  gid_table t;
  EXPECT_TRUE(t.takes_roce_v2());
  EXPECT_EQ(t.cr_read(cr::roce_v2), 1u);
  t.cr_write(cr::roce_v2, 0);
  EXPECT_FALSE(t.takes_roce_v2());
  EXPECT_EQ(t.cr_read(cr::roce_v2), 0u);
  t.device_reset();
  EXPECT_TRUE(t.takes_roce_v2());
}

// ---------------------------------------------------------------- function x index x version x VLAN

/// The table as plain rows, and what may be done with them, written down once more.
struct plain_table {
  struct row {
    bool valid = false;
    bool second_version = false;
    unsigned vid = 0;  // 0: none
    std::uint8_t last = 0;
  };
  std::array<row, 128> rows{};
  unsigned vfs = 0;

  unsigned owner(unsigned index) const {
    if (vfs == 0) return 0;
    for (unsigned f = 0; f <= vfs; ++f) {
      const window w = kernel_rule(f, vfs);
      if (index >= w.first && index < w.first + w.count) return f;
    }
    return ~0u;
  }
  refusal leaves(unsigned function, unsigned index, bool second_version) const {
    if (!rows[index].valid) return refusal::invalid;
    if (rows[index].second_version != second_version) return refusal::version;
    if (vfs != 0 && owner(index) != function) return refusal::function;
    return refusal::none;
  }
  std::optional<unsigned> arrives(std::uint8_t last, bool second_version) const {
    for (unsigned i = 0; i < rows.size(); ++i)
      if (rows[i].valid && rows[i].second_version == second_version && rows[i].last == last) return i;
    return std::nullopt;
  }
};

class dice {
 public:
  explicit dice(unsigned seed) : random_(seed) {}
  /// 0 to n - 1.
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  plain_table::row row() {
    return {below(4) != 0, below(2) != 0, below(3) == 0 ? 1 + below(4094) : 0, static_cast<std::uint8_t>(below(200))};
  }

 private:
  std::mt19937 random_;
};

void put_row(gid_table& t, unsigned i, const plain_table::row& r) {
  put_gid(t, i, r.last,
          (r.valid ? cr::gid_valid : 0) | (r.second_version ? 2u << cr::gid_type_shift : 0) |
              (r.vid != 0 ? cr::gid_vlan_valid | r.vid : 0));
}

/// A table of `vfs` functions with random rows, in hardware and in plain.
void fill(gid_table& t, plain_table& plain, unsigned vfs, dice& random) {
  plain.vfs = vfs;
  t.cr_write(cr::num_vfs, vfs);
  for (unsigned i = 0; i < 128; ++i) {
    plain.rows[i] = random.row();
    put_row(t, i, plain.rows[i]);
  }
}

void expect_same(const gid_table& t, gid_source& sources, const plain_table& plain, unsigned function, unsigned index,
                 bool second_version) {
  source_request ask;
  ask.checked = true;
  ask.type = second_version ? roce_type::v2 : roce_type::v1;
  ask.index = static_cast<std::uint8_t>(index);
  ask.function = static_cast<std::uint16_t>(function);
  const source found = sources.look_up(ask);
  const refusal wanted = plain.leaves(function, index, second_version);
  ASSERT_EQ(found.why, wanted) << plain.vfs << " functions, function " << function << ", entry " << index;
  if (wanted == refusal::none) {
    ASSERT_EQ(found.id, id(plain.rows[index].last));
  }
  const std::uint8_t last = plain.rows[index].last;
  const auto match = t.match(id(last), ask.type), expected = plain.arrives(last, second_version);
  ASSERT_EQ(match, expected);
  if (!match) return;
  ASSERT_EQ(t[*match].function, plain.owner(*match)) << plain.vfs << " functions, entry " << *match;
  ASSERT_EQ(t[*match].vlan_valid, plain.rows[*match].vid != 0);
  if (plain.rows[*match].vid != 0) {
    ASSERT_EQ(t[*match].vlan, plain.rows[*match].vid);
  }
}

/// Every function and every entry in both versions, for every number of functions.
TEST(gid_ownership, each_cell_of_the_table) {
  dice random(7);
  gid_table t;
  gid_source sources(source_config{}, t);
  plain_table plain;
  for (unsigned vfs = 0; vfs <= 126; ++vfs) {
    fill(t, plain, vfs, random);
    for (unsigned function = 0; function <= std::max(vfs, 1u); ++function)
      for (unsigned index = 0; index < 128; ++index)
        for (const bool second_version : {false, true})
          ASSERT_NO_FATAL_FAILURE(expect_same(t, sources, plain, function, index, second_version));
  }
}

TEST(gid_ownership, hundred_thousand_configurations) {
  dice random(8);
  gid_table t;
  gid_source sources(source_config{}, t);
  plain_table plain;
  for (unsigned n = 0; n < 100'000; ++n) {
    if (n % 50 == 0) {
      fill(t, plain, random.below(127), random);
    } else {  // what firmware does while frames go: other functions, or another row
      const unsigned i = random.below(128);
      if (random.below(4) == 0) t.cr_write(cr::num_vfs, plain.vfs = random.below(127));
      plain.rows[i] = random.row();
      put_row(t, i, plain.rows[i]);
    }
    for (unsigned k = 0; k < 4; ++k)
      ASSERT_NO_FATAL_FAILURE(
          expect_same(t, sources, plain, random.below(plain.vfs + 2), random.below(128), random.below(2) != 0));
  }
}

}  // namespace
}  // namespace rnic::gid
