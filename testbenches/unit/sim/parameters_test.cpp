// SPDX-License-Identifier: Apache-2.0
// Parameters by name: what is legal, what is said of what is not, and that the effective ones can be read back.
#include "model/sim/parameters.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "model/sim/check.h"
#include "model/sim/parameter.h"

namespace rnic::sim {
namespace {

enum class colour : std::uint8_t { red, green, blue };

struct inner {
  parameter<std::uint64_t> wide{1'000'000'000'000, {0, 1ull << 40, "bytes", "design"}};
  void list(fields& are) { are("wide", wide); }
};

struct config {
  parameter<std::uint32_t> depth{4, {1, 64, "items", "design: depth"}};
  parameter<std::uint8_t> small{1, {0, 255, "", "design: small"}};
  parameter<bool> on{false, "design: a switch"};
  parameter<colour> paint{colour::green, {"red, green, blue", "design: a choice"}};
  parameter<std::uint16_t> middle{300, {300, 301, "", "design"}};
  inner below, beside;
  void list(fields& are) {
    are("depth", depth);
    are("small", small);
    are("on", on);
    are("paint", paint);
    are("middle", middle);
    are("below", below);
    are("", beside);
  }
};

parameter_set announced(config& c) {
  parameter_set p;
  p.add("block", c);
  return p;
}

std::string refusal(parameter_set& p, const std::string& assignment) {
  try {
    p.set_assignment(assignment);
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Parameters, SetFieldsOfEveryKind) {
  config f;
  parameter_set p = announced(f);
  p.set_assignment("block.depth=0x20");
  p.set_assignment("block.small=255");
  p.set_assignment("block.on=true");
  p.set_assignment("block.paint=blue");
  EXPECT_EQ(f.depth, 32U);
  EXPECT_EQ(f.small, 255U);
  EXPECT_TRUE(f.on);
  EXPECT_EQ(f.paint, colour::blue);
  EXPECT_EQ(p.value("block.paint"), "blue");
  EXPECT_EQ(p.value("block.on"), "true");
}

TEST(Parameters, AreWrittenWithUnitSourceAndNames) {
  config f;
  EXPECT_EQ(announced(f).to_toml(),
            "block.below.wide = 1000000000000  # bytes; design\n"
            "block.depth = 4  # items; design: depth\n"
            "block.middle = 300  # design\n"
            "block.on = false  # design: a switch\n"
            "block.paint = \"green\"  # design: a choice: red, green or blue\n"
            "block.small = 1  # design: small\n"
            "block.wide = 1000000000000  # bytes; design\n");
}

TEST(Parameters, HaveTheSizeOfTheirValueAndOfANumber) {
  EXPECT_EQ(sizeof(parameter<std::uint32_t>), 8u);
  EXPECT_EQ(sizeof(parameter<bool>), 4u);
  EXPECT_EQ(sizeof(parameter<std::uint64_t>), 16u);
}

TEST(Parameters, KeepTheirPlacesDeclarationWhenTheyAreAssigned) {
  config f;
  f.depth = 7;
  EXPECT_EQ(f.depth + 1, 8u);
  parameter<std::uint32_t> other{9, {2, 3, "cycles", "design: elsewhere"}};
  other = f.depth;
  EXPECT_EQ(other, 7u);
  EXPECT_STREQ(other.declared().source, "design: elsewhere");
  const parameter<std::uint32_t> copy = f.depth;
  EXPECT_STREQ(copy.declared().unit, "items");
  EXPECT_EQ(&copy.declared(), &f.depth.declared()) << "a declaration is kept once";
  EXPECT_NE(&config().beside.wide.declared(), &f.depth.declared());
}

std::string refused_by_a_block(const config& c) {
  try {
    checked(c, "block");
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Parameters, AreRefusedByABlockAsByTheRegistry) {
  config f;
  parameter_set p = announced(f);
  EXPECT_EQ(refused_by_a_block(f), "accepted");
  const auto both = [&](auto change, const std::string& assignment) {
    config c;
    change(c);
    EXPECT_EQ("--set: " + refused_by_a_block(c), refusal(p, assignment));
  };
  both([](config& c) { c.depth = 65; }, "block.depth=65");
  both([](config& c) { c.depth = 0; }, "block.depth=0");
  both([](config& c) { c.middle = 299; }, "block.middle=299");
  both([](config& c) { c.below.wide = (1ull << 40) + 1; }, "block.below.wide=1099511627777");
  both([](config& c) { c.beside.wide = ~0ull; }, "block.wide=18446744073709551615");
  both([](config& c) { c.paint = static_cast<colour>(3); }, "block.paint=3");
}

TEST(Parameters, RefuseWithNameAndLegalRange) {
  config f;
  parameter_set p = announced(f);
  EXPECT_EQ(refusal(p, "block.depth=65"), "--set: block.depth: '65' is not legal, expected 1 to 64 items");
  EXPECT_EQ(refusal(p, "block.depth="), "--set: block.depth: '' is not legal, expected 1 to 64 items");
  EXPECT_EQ(refusal(p, "block.depth=99999999999999999999"),
            "--set: block.depth: '99999999999999999999' is not legal, expected 1 to 64 items");
  EXPECT_EQ(refusal(p, "block.paint=pink"), "--set: block.paint: 'pink' is not legal, expected red, green or blue");
  EXPECT_EQ(refusal(p, "block.paint=1"), "--set: block.paint: '1' is not legal, expected red, green or blue");
  EXPECT_EQ(refusal(p, "block.deph=3"), "--set: no parameter block.deph; the nearest is block.depth");
  EXPECT_EQ(refusal(p, "block.depth"), "--set: 'block.depth' is not of the form path=value");
  EXPECT_EQ(f.depth, 4U);
  EXPECT_EQ(f.paint, colour::green);
}

TEST(Parameters, TheNearestIsOfTheSameSection) {
  config one, other;
  parameter_set p;
  p.add("block", one);
  p.add("a.clock.deph", other);
  EXPECT_EQ(refusal(p, "block.deph=3"), "--set: no parameter block.deph; the nearest is block.depth");
  EXPECT_EQ(refusal(p, "a.clok.deph.depth=3"),
            "--set: no parameter a.clok.deph.depth; the nearest is a.clock.deph.depth");
  EXPECT_EQ(refusal(p, "blok.smal=3"), "--set: no parameter blok.smal; the nearest is a.clock.deph.small");
  EXPECT_EQ(refusal(p, "paint=red"), "--set: no parameter paint; the nearest is a.clock.deph.paint");
}

TEST(Parameters, AreSetAsTheyArePrinted) {
  config f;
  parameter_set p = announced(f);
  p.set_assignment("block.paint = \"blue\"");
  p.set_assignment(" block.depth =\t7 ");
  EXPECT_EQ(f.paint, colour::blue);
  EXPECT_EQ(f.depth, 7U);
  EXPECT_EQ(refusal(p, "block.paint = \"pink\""),
            "--set: block.paint: 'pink' is not legal, expected red, green or blue");
  EXPECT_EQ(refusal(p, "block.paint = \"blue"),
            "--set: block.paint: '\"blue' is not legal, expected red, green or blue");
}

TEST(Parameters, AreReadBackFromWhatWasWritten) {
  config f;
  parameter_set p = announced(f);
  p.set_assignment("block.depth=7");
  p.set_assignment("block.paint=red");
  const std::string file = ::testing::TempDir() + "parameters_test.toml";
  std::ofstream(file) << p.to_toml();
  config other;
  parameter_set q = announced(other);
  q.load_toml(file);
  std::remove(file.c_str());
  EXPECT_EQ(other.depth, 7U);
  EXPECT_EQ(other.paint, colour::red);
  EXPECT_EQ(q.to_toml(), p.to_toml());
}

}  // namespace
}  // namespace rnic::sim
