// SPDX-License-Identifier: Apache-2.0
// Which seeds a random test runs with.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "model/sim/timebase.h"

namespace rnic::bench {

/// A number in the environment, or `otherwise`.
inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

/// f(seed) for `count` seeds from 1 on and those that have found something before, or for RNIC_RANDOM_SEEDS from
/// RNIC_RANDOM_FIRST_SEED on. It says what is wrong, if anything.
template <class F>
void for_seeds(std::uint64_t count, std::vector<std::uint64_t> seeds, F f) {
  const std::uint64_t first = from_environment("RNIC_RANDOM_FIRST_SEED", 1);
  const std::uint64_t chosen = from_environment("RNIC_RANDOM_SEEDS", 0);
  if (chosen != 0) seeds.clear();
  for (std::uint64_t seed = first; seed != first + (chosen != 0 ? chosen : count); ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : seeds) {
    const std::string wrong = f(seed);
    if (!wrong.empty()) ADD_FAILURE() << "seed " << seed << ": " << wrong;
  }
}

/// What is wrong with a run that sleeps, with one that ticks every block at every edge, with one that ticks the blocks
/// of an edge in another order; or what differs between them. `run` takes options of time, its outcome has faults.
template <class Run, class Difference>
std::string fault_in_any_mode(std::uint64_t seed, Run run, Difference first_difference) {
  const auto asleep = run(sim::timebase::options{});
  if (!asleep.faults.empty()) return asleep.faults.front();
  const std::string ticked = first_difference(asleep, run(sim::timebase::options{true, 0}));
  if (!ticked.empty()) return "with every block at every edge, " + ticked;
  const std::string shuffled = first_difference(asleep, run(sim::timebase::options{false, seed + 1}));
  return shuffled.empty() ? "" : "with blocks in another order, " + shuffled;
}

}  // namespace rnic::bench
