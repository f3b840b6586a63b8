// SPDX-License-Identifier: Apache-2.0
// Mapping of ICM pages, and the check of accesses against MPT entries.
#include "model/icm/icm_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "model/icm/mpt.h"

namespace {
using namespace rnic::icm;

TEST(icm_map, translates_inside_of_pages) {
  icm_map m;
  EXPECT_FALSE(m.translate(0));
  m.map(0x10f000000, 0x7654000, 0x3000);
  EXPECT_EQ(m.translate(0x10f000000), 0x7654000u);
  EXPECT_EQ(m.translate(0x10f002abc), 0x7656abcu);
  EXPECT_FALSE(m.translate(0x10f003000));
  EXPECT_FALSE(m.translate(0x10effffff));
  EXPECT_EQ(m.pages(), 3u);
}

TEST(icm_map, unmap_ignores_what_is_not_mapped) {
  icm_map m;
  m.map(0x1000, 0x5000, 0x1000);
  m.unmap(0, 64 * 4096);
  EXPECT_EQ(m.pages(), 0u);
  EXPECT_FALSE(m.translate(0x1000));
  m.map(0x1000, 0x9000, 0x1000);
  EXPECT_EQ(m.translate(0x1004), 0x9004u);
}

TEST(icm_map, ranges_at_the_end_of_the_address_space) {
  icm_map m;
  m.map(~std::uint64_t{0} - 0xfff, 0x4000, 0x10000);
  EXPECT_EQ(m.pages(), 1u);
  EXPECT_EQ(m.translate(~std::uint64_t{0}), 0x4fffu);
  m.unmap(0, ~std::uint64_t{0});
}

TEST(icm_map, agrees_with_a_map_of_pages) {
  icm_map m;
  std::map<std::uint64_t, std::uint64_t> reference;
  std::mt19937_64 rng(1);
  for (int step = 0; step < 4000; ++step) {
    const std::uint64_t page = (rng() % 8 << 24) + rng() % 3000;
    const std::uint64_t count = rng() % 70, bus = rng() % 100000 << 12;
    if (rng() % 3 != 0) {
      m.map(page << 12, bus, count << 12);
      for (std::uint64_t i = 0; i < count; ++i) reference[page + i] = bus + (i << 12);
    } else {
      m.unmap(page << 12, count << 12);
      for (std::uint64_t i = 0; i < count; ++i) reference.erase(page + i);
    }
  }
  ASSERT_EQ(m.pages(), reference.size());
  for (std::uint64_t high = 0; high < 8; ++high)
    for (std::uint64_t low = 0; low < 3100; ++low) {
      const std::uint64_t page = (high << 24) + low;
      const auto found = reference.find(page);
      const auto got = m.translate((page << 12) + 8);
      ASSERT_EQ(got.has_value(), found != reference.end());
      if (got) {
        ASSERT_EQ(*got, found->second + 8);
      }
    }
}

TEST(icm_map, four_gib_of_pages) {
  icm_map m;
  m.map(std::uint64_t{1} << 40, 0, std::uint64_t{1} << 32);
  EXPECT_EQ(m.pages(), std::uint64_t{1} << 20);
  EXPECT_EQ(m.translate((std::uint64_t{1} << 40) + 0xfedcba98), 0xfedcba98u);
}

TEST(icm_map, entries_wrap_at_the_table) {
  icm_map m;
  m.layout(table::qpc) = {0x108000000, 256, 18};
  EXPECT_EQ(m.entry(table::qpc, 0x48), 0x108004800u);
  EXPECT_EQ(m.entry(table::qpc, 0x40048), 0x108004800u);
}

TEST(mpt, key_rotation_as_published) {  // adapter data plane A.11.1: lkey 0x00012345 -> 0x45000123
  EXPECT_EQ(key_to_index(0x00012345), 0x45000123u);
}

struct mpt_check : ::testing::Test {
  mpt_check() {
    e.flags = 1u << 8;
    e.key = 0x45000123;
    e.pd_flags = 3u << 24 | 7;
    e.start = 0x10000;
    e.length = 0x2000;
    e.log_page = 12;
    r.key = 0x00012345;
    r.pd = 7;
    r.va = 0x10000;
    r.length = 16;
  }
  translate_status check() const { return check_mpt(e, r, r.key, false); }
  mpt_entry e;
  translate_request r;
};

TEST_F(mpt_check, rights_matrix) {
  using right = rnic::icm::access;
  const right all[] = {right::local_read, right::local_write, right::remote_read, right::remote_write,
                       right::remote_atomic};
  const unsigned bits[] = {10, 11, 12, 13, 14};  // published positions
  for (unsigned given = 0; given < 5; ++given)
    for (unsigned wanted = 0; wanted < 5; ++wanted) {
      e.flags = 1u << 8 | 1u << bits[given];
      r.access = all[wanted];
      EXPECT_EQ(check(), given == wanted ? translate_status::ok : translate_status::no_rights) << given << wanted;
    }
}

TEST_F(mpt_check, refuses_in_the_documented_ways) {
  e.flags |= 1u << 10;
  EXPECT_EQ(check(), translate_status::ok);
  r.key = 0x00012346;  // another tag
  EXPECT_EQ(check(), translate_status::bad_key);
  r.key = 0x00012345;
  r.pd = 8;
  EXPECT_EQ(check(), translate_status::wrong_pd);
  r.pd = 7;
  for (const std::uint32_t status : {0x3u, 0xfu, 0x1u}) {
    mpt_entry other = e;
    other.flags |= status << 28;
    EXPECT_EQ(check_mpt(other, r, r.key, false), translate_status::bad_key);
  }
  mpt_entry window = e;
  window.flags = 3u << 28 | 1u << 12;
  EXPECT_EQ(check_mpt(window, r, r.key, false), translate_status::window_not_bound);
  window.flags = 1u << 10;
  window.length = 0;
  EXPECT_EQ(check_mpt(window, r, r.key, false), translate_status::window_not_bound);
}

TEST_F(mpt_check, range_without_wrapping) {
  e.flags |= 1u << 10;
  r.va = 0xffff;
  EXPECT_EQ(check(), translate_status::out_of_range);
  r.va = 0x11ff0;
  EXPECT_EQ(check(), translate_status::ok);
  r.length = 17;
  EXPECT_EQ(check(), translate_status::out_of_range);
  r.length = 0;
  r.check_length = 0x11;
  EXPECT_EQ(check(), translate_status::out_of_range);
  e.start = 0x10;
  e.length = ~std::uint64_t{0};
  r.va = ~std::uint64_t{0} - 3;
  r.check_length = ~std::uint64_t{0};
  EXPECT_EQ(check(), translate_status::out_of_range);
}
}  // namespace
