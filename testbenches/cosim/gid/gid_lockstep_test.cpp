// SPDX-License-Identifier: Apache-2.0
// The GID match as RTL beside its model, and planted bugs in it.
#include <Vgid_planted.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/gid/gid_match.h"
#include "rtl/gid/gid_match_pins.h"
#include "rtl/harness/verilated_block.h"
#include "testbenches/cosim/harness/run.h"
#include "testbenches/cosim/harness/stream_driver.h"

namespace rnic::cosim {
namespace {

using pins = rtl::gid_match_pins;
constexpr gid::match_config two_cycles{gid::match_method::parallel, 2, 2};

/// The model, with the port of firmware that the register bus is there.
class reference final : public rtl::twin<pins> {
 public:
  pins::outputs clock(const pins::inputs& in) override {
    if (in.reset) {
      table_.device_reset();
      match_.reset();
      return {};
    }
    const pins::outputs out = match_.step(in.look_up);
    if (in.write.valid) write(in.write);
    return out;
  }
  pins::outputs sample() const override { return {}; }  // nobody asks

 private:
  void write(const pins::entry_write& w) {
    for (unsigned i = 0; i < 4; ++i) {
      std::uint32_t word = 0;
      for (unsigned b = 0; b < 4; ++b) word = word << 8 | w.id[4 * i + b];
      table_.cr_write(gid::cr::gid_word(w.index, i), word);
    }
    table_.cr_write(gid::cr::gid_word(w.index, 4), (w.entry_valid ? gid::cr::gid_valid : 0) |
                                                       static_cast<std::uint32_t>(w.type) << gid::cr::gid_type_shift);
  }
  gid::gid_table table_;
  gid::gid_match match_{two_cycles, table_};
};

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

enum class bug : std::uint8_t { none, short_compare, any_version };

class planted final : public rtl::verilated_block<Vgid_planted, pins> {
 public:
  explicit planted(bug b) : verilated_block(1) {
    top().bug_i = static_cast<std::uint8_t>(b);
    reset();
  }
};

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

TEST(GidLockstep, FindsPlantedBugs) {
  for (const bug b : {bug::none, bug::short_compare, bug::any_version}) {
    const outcome o = run_lockstep<pins>(
        stream_driver<pins>(make_plan(5, 2000)), std::make_unique<reference>(),
        [b] { return std::make_unique<planted>(b); }, "gid_planted");
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
