// SPDX-License-Identifier: Apache-2.0
// The GID match as RTL beside its model, and planted bugs in it.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "host_driver/hosts/gid_twin.h"
#include "model/gid/gid_cr.h"
#include "testbenches/cosim/gid/planted_match.h"
#include "testbenches/cosim/harness/run.h"
#include "testbenches/cosim/harness/stream_driver.h"

namespace rnic::cosim {
namespace {

using pins = rtl::gid_match_pins;
using reference = hosts::gid_match_reference;

wire::gid some_gid(std::mt19937_64& rng) {
  wire::gid g{0xfe, 0x80};
  g[7] = static_cast<std::uint8_t>(rng() % 3);
  g[15] = static_cast<std::uint8_t>(rng() % 60);
  return g;
}
gid::roce_type some_type(std::mt19937_64& rng) { return rng() % 2 == 0 ? gid::roce_type::v1 : gid::roce_type::v2; }

/// Each item writes some entries and looks one up; the oracle is a list that is searched.
plan<pins> make_plan(std::uint64_t seed, unsigned items) {
  plan<pins> p;
  p.seed = seed;
  std::mt19937_64 rng(seed);
  std::vector<pins::entry_write> entries(gid::table_size);
  for (unsigned n = 0; n < items; ++n) {
    plan<pins>::item item;
    for (auto writes = rng() % 4; writes != 0; --writes) {
      pins::inputs beat;
      beat.write = {true, static_cast<std::uint8_t>(rng() % gid::table_size), some_gid(rng), some_type(rng),
                    rng() % 4 != 0};
      entries[beat.write.index] = beat.write;
      item.beats.push_back(beat);
    }
    pins::inputs beat;
    beat.look_up = {true, some_gid(rng), some_type(rng)};
    item.beats.push_back(beat);
    item.result = pins::no_entry;
    for (unsigned i = gid::table_size; i-- > 0;)
      if (entries[i].entry_valid && entries[i].id == beat.look_up.dgid && entries[i].type == beat.look_up.type)
        item.result = i;
    p.items.push_back(std::move(item));
  }
  return p;
}

using bug = match_bug;

TEST(GidLockstep, AgreesInEveryCycle) {
  unsigned hits = 0;
  for (const pattern offer : {pattern::always, pattern::alternate, pattern::bursts, pattern::random})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      plan<pins> p = make_plan(seed, 2000);
      p.offer = offer;
      for (const auto& i : p.items) hits += i.result != pins::no_entry ? 1 : 0;
      const outcome o = run_lockstep<pins>(
          stream_driver<pins>(std::move(p)), std::make_unique<reference>(), [] { return rtl::make_gid_match_rtl(); },
          "gid_agrees");
      ASSERT_FALSE(o.first_difference) << o.first_difference->what();
      ASSERT_TRUE(o.finished);
    }
  EXPECT_GT(hits, 2000u);
}

/// What firmware writes into a port's table, whenever it does, the drop-in finds as the model does, in its cycles.
TEST(GidDropIn, FindsWhatTheTableHolds) {
  gid::gid_table table;
  gid::gid_match model(reference::config(), table);
  hosts::gid_match_rtl rtl(rtl::make_gid_match_rtl(), table);
  std::mt19937_64 rng(7);
  unsigned hits = 0;
  for (unsigned n = 0; n < 3000; ++n) {
    if (n == 1500) table.device_reset();
    for (auto writes = rng() % 3; writes != 0; --writes) {
      const auto index = static_cast<unsigned>(rng() % gid::table_size);
      const wire::gid g = some_gid(rng);
      for (unsigned i = 0; i < 4; ++i)
        table.cr_write(gid::cr::gid_word(index, i), static_cast<std::uint32_t>(g[4 * i]) << 24 |
                                                        static_cast<std::uint32_t>(g[4 * i + 1]) << 16 |
                                                        static_cast<std::uint32_t>(g[4 * i + 2]) << 8 | g[4 * i + 3]);
      table.cr_write(gid::cr::gid_word(index, 4),
                     (rng() % 4 != 0 ? gid::cr::gid_valid : 0) | static_cast<std::uint32_t>(some_type(rng))
                                                                     << gid::cr::gid_type_shift);
    }
    const wire::gid g = some_gid(rng);
    const gid::roce_type t = some_type(rng);
    const auto m = model.look_up(g, t), r = rtl.look_up(g, t);
    ASSERT_EQ(m.index, r.index) << n;
    ASSERT_EQ(m.cycles, r.cycles);
    ASSERT_EQ(m.interval, r.interval);
    hits += m.index.has_value() ? 1 : 0;
  }
  EXPECT_GT(hits, 500u);
}

TEST(GidLockstep, FindsPlantedBugs) {
  for (const bug b : {bug::none, bug::short_compare, bug::any_version, bug::wrong_index}) {
    const outcome o = run_lockstep<pins>(
        stream_driver<pins>(make_plan(5, 2000)), std::make_unique<reference>(),
        [b] { return std::make_unique<planted_match>(b); }, "gid_planted");
    ASSERT_EQ(o.first_difference.has_value(), b != bug::none);
    if (!o.first_difference) continue;
    const auto& where = o.first_difference->where();
    EXPECT_TRUE(where.port == "hit" || where.port == "index") << o.first_difference->what();
    EXPECT_NE(std::string(o.first_difference->what()).find("RoCE v"), std::string::npos) << o.first_difference->what();
    EXPECT_GT(std::filesystem::file_size(where.waveform), 100u);
    std::filesystem::remove(where.waveform);
  }
}

}  // namespace
}  // namespace rnic::cosim
