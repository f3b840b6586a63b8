// SPDX-License-Identifier: Apache-2.0
// Every parameter of a system: its declaration, and that whoever gets a configuration that was made by hand refuses
// what the registry refuses, in its words.
#include "model/sim/parameters.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "host_driver/hosts/two_nodes.h"
#include "model/adapter/adapter_config.h"
#include "model/sim/check.h"

namespace rnic {
namespace {

/// Largest value that a field can hold.
std::uint64_t widest(const sim::field& f) {
  using kind = sim::field::kind;
  switch (f.type) {
    case kind::u8:
    case kind::choice:
      return std::numeric_limits<std::uint8_t>::max();
    case kind::u16:
      return std::numeric_limits<std::uint16_t>::max();
    case kind::u32:
      return std::numeric_limits<std::uint32_t>::max();
    case kind::u64:
      return std::numeric_limits<std::uint64_t>::max();
    case kind::boolean:
      return 1;
  }
  return 0;
}

class InProfile : public testing::TestWithParam<std::string> {};

TEST_P(InProfile, EachHasASourceAndALegalValue) {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config(GetParam());
  sim::parameter_set all;
  hosts::announce(all, c);
  EXPECT_GT(all.all().size(), 250u);
  for (const auto& [path, p] : all.all()) {
    EXPECT_FALSE(p.source.empty()) << path;
    EXPECT_LE(p.declared->lowest, p.declared->highest) << path;
    EXPECT_LE(p.declared->highest, widest(p)) << path << ": some of its range cannot be held";
    EXPECT_TRUE(p.legal(p.load())) << path << " = " << p.load();
  }
}

TEST_P(InProfile, TheAdapterRefusesWhatTheRegistryRefuses) {
  adapter::config c = adapter::profile(GetParam());
  sim::parameter_set all;
  adapter::announce(all, c);
  const auto both = [&](const sim::field& f, std::uint64_t bad) {
    const auto refusal = [](auto what) -> std::string {
      try {
        what();
      } catch (const sim::config_error& e) {
        return e.what();
      }
      return "accepted";
    };
    const std::uint64_t good = f.load();
    const std::string by_registry = refusal([&] { all.set(f.path, std::to_string(bad)); });
    f.store(bad);
    EXPECT_EQ("--set: " + refusal([&] { sim::checked(c, "adapter"); }), by_registry) << f.path << " = " << bad;
    f.store(good);
  };
  unsigned refused = 0;
  for (const sim::field& f : sim::fields_of("adapter", c)) {
    if (f.declared->lowest > 0) both(f, f.declared->lowest - 1), ++refused;
    if (f.declared->highest < widest(f)) both(f, f.declared->highest + 1), ++refused;
  }
  EXPECT_GT(refused, 300u);
  EXPECT_NO_THROW(sim::checked(c, "adapter"));
}

INSTANTIATE_TEST_SUITE_P(Each, InProfile, testing::ValuesIn(adapter::profile_names()),
                         [](const auto& profile) { return profile.param; });

TEST(ParametersOfASystem, AreLookedAtWhenItIsBuilt) {
  const auto refusal = [](auto change) -> std::string {
    hosts::two_nodes_config c;
    c.node = hosts::make_node_config("connectx3pro_40g");
    change(c.node);
    try {
      const hosts::two_nodes system(c);
    } catch (const sim::config_error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](hosts::node_config&) {}), "accepted");
  EXPECT_EQ(refusal([](hosts::node_config& c) { c.adapter.responder.contexts.ways = 1; }),
            "a.adapter.responder.contexts.ways: '1' is not legal, expected 2 to 64 ways");
  EXPECT_EQ(refusal([](hosts::node_config& c) { c.adapter.channel_depth = 0; }),
            "a.adapter.channel_depth: '0' is not legal, expected 1 to 4096 items");
  EXPECT_EQ(refusal([](hosts::node_config& c) { c.root_complex.store_buffer = 1025; }),
            "a.root_complex.store_buffer: '1025' is not legal, expected 1 to 1024 stores");
  EXPECT_EQ(refusal([](hosts::node_config& c) { c.root_complex.memory.io_cache_ways = 0; }),
            "a.root_complex.io_cache_ways: '0' is not legal, expected 1 to 32 ways");
}

}  // namespace
}  // namespace rnic
