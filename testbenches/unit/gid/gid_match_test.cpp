// SPDX-License-Identifier: Apache-2.0
// Cycles of the GID match, and that those which a caller is told are those which it has when it is clocked.
#include "model/gid/gid_match.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "model/gid/gid_cr.h"

namespace rnic::gid {
namespace {

wire::gid ipv4(unsigned host) {
  return {0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0xff,
          0xff,
          10,
          0,
          static_cast<std::uint8_t>(host >> 8),
          static_cast<std::uint8_t>(host)};
}

void put(gid_table& t, unsigned i, unsigned host, bool valid = true) {
  t.cr_write(cr::gid_word(i, 2), 0xffff);
  t.cr_write(cr::gid_word(i, 3), 0x0a000000 | host);
  t.cr_write(cr::gid_word(i, 4), (valid ? cr::gid_valid : 0) | 2u << cr::gid_type_shift);
}

match_config of(match_method method, std::uint8_t compare_cycles, std::uint8_t probe_cycles) {
  match_config c;
  c.method = method;
  c.compare_cycles = compare_cycles;
  c.probe_cycles = probe_cycles;
  return c;
}

TEST(gid_match, parallel_takes_one_a_cycle) {
  gid_table t;
  put(t, 5, 1);
  put(t, 90, 1);
  gid_match m(of(match_method::parallel, 3, 2), t);
  const auto hit = m.look_up(ipv4(1), roce_type::v2), miss = m.look_up(ipv4(1), roce_type::v1);
  EXPECT_EQ(hit.index, std::optional<unsigned>(5));
  EXPECT_EQ(hit.cycles, 3u);
  EXPECT_EQ(hit.interval, 1u);
  EXPECT_EQ(miss.index, std::nullopt);
  EXPECT_EQ(miss.cycles, 3u);
  EXPECT_EQ(m.pass_cycles(), 3u);
}

TEST(gid_match, hashed_pays_for_each_entry_of_the_bucket) {
  gid_table t;
  std::vector<unsigned> together;
  for (unsigned host = 1; host < 0x4000 && together.size() < 3; ++host)
    if (bucket_of(ipv4(host), roce_type::v2) == bucket_of(ipv4(1), roce_type::v2)) together.push_back(host);
  ASSERT_EQ(together.size(), 3u);
  gid_match m(of(match_method::hashed, 2, 4), t);
  EXPECT_EQ(m.look_up(ipv4(1), roce_type::v2).cycles, 1u + 4u) << "an empty bucket is read once";
  for (unsigned i = 0; i < 3; ++i) put(t, 10 * i, together[i]);
  for (unsigned i = 0; i < 3; ++i) {
    const auto r = m.look_up(ipv4(together[i]), roce_type::v2);
    EXPECT_EQ(r.index, std::optional<unsigned>(10 * i));
    EXPECT_EQ(r.cycles, 1u + 4u * (i + 1));
    EXPECT_EQ(r.interval, 4u * (i + 1));
  }
  put(t, 0, together[0], false);
  const auto gone = m.look_up(ipv4(together[0]), roce_type::v2);
  EXPECT_EQ(gone.index, std::nullopt);
  EXPECT_EQ(gone.cycles, 1u + 4u * 2) << "both that are left are read in vain";
}

TEST(gid_match, clocked_it_has_the_cycles_that_it_tells) {
  for (const match_method method : {match_method::parallel, match_method::hashed}) {
    gid_table t;
    std::mt19937 rng(7);
    const auto host = [&rng] { return static_cast<unsigned>(rng() % 300); };
    for (unsigned i = 0; i < table_size; ++i) put(t, i, host(), rng() % 4 != 0);
    gid_match clocked(of(method, 3, 2), t), told(of(method, 3, 2), t);
    struct due {
      unsigned cycle;
      std::optional<unsigned> index;
    };
    std::vector<due> expected, got;
    unsigned free_at = 0;
    match_inputs in;
    for (unsigned cycle = 0; cycle < 3000; ++cycle) {
      if (!in.valid && rng() % 3 != 0) in = {true, ipv4(host()), roce_type::v2};
      const match_outputs out = clocked.step(in);
      EXPECT_EQ(out.ready, cycle >= free_at) << cycle;
      if (out.result_valid) got.push_back({cycle, out.hit ? std::optional<unsigned>(out.index) : std::nullopt});
      if (!in.valid || !out.ready) continue;
      const auto r = told.look_up(in.dgid, in.type);
      expected.push_back({cycle + r.cycles, r.index});
      free_at = cycle + r.interval;
      in.valid = false;
    }
    ASSERT_GE(got.size() + 3, expected.size());
    ASSERT_GT(got.size(), 300u);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].cycle, expected[i].cycle);
      EXPECT_EQ(got[i].index, expected[i].index);
    }
  }
}

}  // namespace
}  // namespace rnic::gid
