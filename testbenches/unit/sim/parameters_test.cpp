// SPDX-License-Identifier: Apache-2.0
// Parameters by name: what is legal, what is said of what is not, and that the effective ones can be read back.
#include "model/sim/parameters.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "model/sim/check.h"

namespace rnic::sim {
namespace {

enum class colour : std::uint8_t { red, green, blue };

struct fields {
  std::uint32_t depth = 4;
  std::uint8_t small = 1;
  bool on = false;
  colour paint = colour::green;
};

parameter_set announced(fields& f) {
  parameter_set p;
  p.add("block.depth", f.depth, 1, 64, "items", "design");
  p.add("block.small", f.small, 0, 255, "", "design");
  p.add("block.on", f.on, "a switch");
  p.add_choice("block.paint", f.paint, {"red", "green", "blue"}, "a choice");
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
  fields f;
  parameter_set p = announced(f);
  p.set_assignment("block.depth=0x20");
  p.set_assignment("block.small=255");
  p.set_assignment("block.on=true");
  p.set_assignment("block.paint=blue");
  EXPECT_EQ(f.depth, 32U);
  EXPECT_EQ(f.small, 255U);
  EXPECT_TRUE(f.on);
  EXPECT_EQ(f.paint, colour::blue);
}

TEST(Parameters, RefuseWithNameAndLegalRange) {
  fields f;
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

TEST(Parameters, AreReadBackFromWhatWasWritten) {
  fields f;
  parameter_set p = announced(f);
  p.set_assignment("block.depth=7");
  p.set_assignment("block.paint=red");
  const std::string file = ::testing::TempDir() + "parameters_test.toml";
  std::ofstream(file) << p.to_toml();
  fields other;
  parameter_set q = announced(other);
  q.load_toml(file);
  std::remove(file.c_str());
  EXPECT_EQ(other.depth, 7U);
  EXPECT_EQ(other.paint, colour::red);
  EXPECT_EQ(q.to_toml(), p.to_toml());
}

}  // namespace
}  // namespace rnic::sim
