// SPDX-License-Identifier: Apache-2.0
// Files, the order of changes, parts that become one, and names; read by GTKWave's reader.
#include "testbenches/bench/wave/wave_file.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>

#include "testbenches/bench/usage_error.h"
#include "testbenches/bench/wave/wave_changes.h"
#include "testbenches/bench/wave/wave_merge.h"
#include "testbenches/bench/wave/wave_names.h"
#include "testbenches/unit/wave/read_wave.h"

namespace rnic::bench::test {
namespace {

struct folder {
  std::filesystem::path at = std::filesystem::temp_directory_path() / ("rnic_wave_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(at); }
  ~folder() { std::filesystem::remove_all(at); }
  std::string file(const char* name) const { return (at / name).string(); }
};

TEST(WaveFile, HasScopesWidthsAndValues) {
  const folder here;
  wave_file f(here.file("a.fst"));
  const auto bit = f.add("h1.adapter.x.valid", 1), wide = f.add("h1.adapter.x.qpn", 24), top = f.add("h2.y", 64);
  const auto rtl = f.add("h1.adapter.block.u_crc.data [127:0]", 128);
  f.add_alias("h1.adapter.block.data_i [127:0]", rtl);
  f.change(0, bit, 0);
  f.change(1000, bit, 1);
  f.change(1000, wide, 0xabcdef);
  f.change(1000, rtl, std::string(64, '1') + std::string(64, '0'));
  f.change(2342, top, ~std::uint64_t{0});
  f.close(5000);
  const read_wave r(here.file("a.fst"));
  EXPECT_EQ(r.timescale, -12);
  EXPECT_EQ(r.end, 5000u);
  EXPECT_EQ(r.bits, (std::map<std::string, std::uint32_t>{{"h1.adapter.x.valid", 1},
                                                          {"h1.adapter.x.qpn [23:0]", 24},
                                                          {"h1.adapter.block.u_crc.data [127:0]", 128},
                                                          {"h1.adapter.block.data_i [127:0]", 128},
                                                          {"h2.y [63:0]", 64}}));
  EXPECT_EQ(r.text("h1.adapter.x.valid"), "0 1000:1");
  EXPECT_EQ(r.values.at("h1.adapter.x.qpn [23:0]").back().second, "101010111100110111101111");
  EXPECT_EQ(r.values.at("h1.adapter.block.data_i [127:0]").back().second, std::string(64, '1') + std::string(64, '0'));
  EXPECT_EQ(r.values.at("h2.y [63:0]").back(), std::make_pair(std::uint64_t{2342}, std::string(64, '1')));
  EXPECT_THROW(wave_file(here.file("no/such/a.fst")), usage_error);
}

TEST(WaveChanges, AreInOrderAndOnlyWhereValuesDiffer) {
  const folder here;
  wave_file f(here.file("b.fst"));
  const auto a = f.add("t.a", 8), b = f.add("t.b", 8);
  wave_changes c(f, 1000, 1000, ~std::uint64_t{0});
  c.set(3000, a, 3);
  c.set(2000, a, 1);
  c.set(2000, a, 2);  // was told last
  c.add(4000, b, 5);
  c.add(2500, b, 2);
  c.set(3500, a, 3);  // as it is
  c.write_before(3000);
  EXPECT_EQ(f.changes(), 4u) << "both at first, and what is earlier";
  c.add(3000, b, ~std::uint64_t{0});  // less one
  c.finish();
  f.close(4000);
  const read_wave r(here.file("b.fst"));
  EXPECT_EQ(r.text("t.a [7:0]"), "0 1000:2 2000:3");
  EXPECT_EQ(r.text("t.b [7:0]"), "0 1500:2 2000:1 3000:6");
}

TEST(WaveChanges, AWindowBeginsWithWhatThereIs) {
  const folder here;
  wave_file f(here.file("c.fst"));
  const auto a = f.add("t.a", 8), b = f.add("t.b", 1);
  wave_changes c(f, 1000, 3000, 5000);
  for (unsigned i = 1; i <= 6; ++i) c.set(i * 1000, a, i);
  c.set(1500, b, 1);
  c.finish();
  f.close(4000);
  const read_wave r(here.file("c.fst"));
  EXPECT_EQ(r.text("t.a [7:0]"), "2000:3 3000:4");
  EXPECT_EQ(r.text("t.b"), "2000:1");
}

TEST(WaveMerge, PutsPartsInOrderOfTime) {
  const folder here;
  {
    wave_file one(here.file("1.fst")), two(here.file("2.fst"));
    const auto a = one.add("h1.a", 4), x = two.add("top.sub.x", 3);
    two.add_alias("top.y", x);
    for (unsigned i = 0; i < 6; ++i) {
      one.change(i * 1000, a, i);
      two.change(i * 1000 + 500, x, i);
    }
    one.close(6000);
    two.close(6000);
  }
  for (const std::uint64_t pieces : {0, 1, 2, 3, 3000}) {
    wave_file whole(here.file("whole.fst"));
    merge({{here.file("1.fst"), ""}, {here.file("2.fst"), "h1.block"}}, whole, 1000, 4000, pieces);
    EXPECT_EQ(whole.changes(), 7u) << pieces;
    whole.close(0);
    const read_wave r(here.file("whole.fst"));
    EXPECT_EQ(r.text("h1.a [3:0]"), "1000:1 2000:2 3000:3") << pieces;
    EXPECT_EQ(r.text("h1.block.top.sub.x [2:0]"), "1000:0 1500:1 2500:2 3500:3") << pieces;
    EXPECT_EQ(r.text("h1.block.top.y [2:0]"), r.text("h1.block.top.sub.x [2:0]")) << pieces;
  }
  wave_file whole(here.file("whole.fst"));
  EXPECT_THROW(merge({{here.file("none.fst"), ""}}, whole, 0, 1), usage_error);
}

// The writer would remove them.
TEST(WaveFile, DevicesAndFoldersStay) {
  const folder here;
  for (const char* const device : {"/dev/null", "/dev/full"}) {
    EXPECT_THROW(wave_file{device}, usage_error);
    EXPECT_TRUE(std::filesystem::is_character_file(device));
  }
  EXPECT_THROW(wave_file{here.at.string()}, usage_error);
}

TEST(WaveFile, ALinkLeadsToTheFile) {
  const folder here;
  std::filesystem::create_symlink(here.file("real.fst"), here.file("link.fst"));
  for (unsigned i = 0; i < 2; ++i) {  // the second time there is a file
    wave_file f(here.file("link.fst"));
    f.change(0, f.add("h1.a", 1), 1);
    f.close(10);
    EXPECT_TRUE(std::filesystem::is_symlink(here.file("link.fst")));
    EXPECT_EQ(read_wave(here.file("real.fst")).end, 10u);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(here.at), {}), 2) << "nothing else is left";
  }
}

TEST(WaveFile, AFullDiskUnderWhatIsMappedEndsTheProgram) {
  const folder here;
  const auto fill = [&] {
    wave_file f(here.file("full.fst"));
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(fill(), ::testing::ExitedWithCode(2), "^rnic: .*full.fst: writing failed, the disk is full\n$");
  { wave_file one(here.file("one.fst")), other(here.file("other.fst")); }
  struct sigaction now {};
  sigaction(SIGBUS, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL) << "whoever handles it otherwise does so again";
}

TEST(WaveFile, AParameterIsOneInEachWindowAndPart) {
  const folder here;
  {
    wave_file f(here.file("p.fst"));
    f.add_constant("h1.c.depth", 12);
    const auto a = f.add("h1.c.a", 8);
    wave_changes c(f, 0, 2000, 9000);
    for (unsigned i = 1; i <= 6; ++i) c.set(i * 1000, a, i);
    c.finish();
    f.close(6000);
  }
  wave_file whole(here.file("whole.fst"));
  merge({{here.file("p.fst"), ""}}, whole, 3000, 5000);
  whole.close(0);
  for (const char* const file : {"p.fst", "whole.fst"}) {
    const read_wave r(here.file(file));
    EXPECT_EQ(r.parameters, (std::set<std::string>{"h1.c.depth [31:0]"})) << file;
    EXPECT_EQ(r.values.at("h1.c.depth [31:0]").size(), 1u) << file;
    EXPECT_EQ(std::stoi(r.values.at("h1.c.depth [31:0]").front().second, nullptr, 2), 12) << file;
  }
}

TEST(WaveNames, PatternsAndParts) {
  EXPECT_TRUE(is_name_in("h1.adapter.gather", "h1.adapter.gather"));
  EXPECT_TRUE(is_name_in("h1", "h1.adapter.gather"));
  EXPECT_TRUE(is_name_in("h*.gather", "h2.adapter.gather"));
  EXPECT_TRUE(is_name_in("*port[12]*", "h1.adapter.port2_to_parser2_frames"));
  EXPECT_FALSE(is_name_in("h1", "h10.adapter"));
  EXPECT_FALSE(is_name_in("h1.adapter.gather", "h1.adapter.gather_to_icrc_insert_frames"));
  EXPECT_FALSE(is_name_in("adapter", "h1.adapter"));
}

TEST(WaveNames, NearestOnes) {
  EXPECT_EQ(no_such_name("h1.adapter.gahter", {"h1.adapter.gather", "h1.adapter.scatter", "h2.adapter.gather", "s1"}),
            "no block or channel h1.adapter.gahter; the nearest are h1.adapter.gather, h1.adapter.scatter, "
            "h2.adapter.gather");
}

}  // namespace
}  // namespace rnic::bench::test
