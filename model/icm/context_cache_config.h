// SPDX-License-Identifier: Apache-2.0
// Parameters of a cache of contexts.
#pragma once

#include "model/icm/replacement.h"
#include "model/sim/parameter.h"

namespace rnic::icm {

struct context_cache_config {
  /// Sizes have the source of the cache's place, a literal, and `least_ways` where less would not do there.
  context_cache_config(unsigned contexts, unsigned associativity, unsigned misses, unsigned penalty = 0,
                       unsigned replaced = 8, const char* source = "design", unsigned least_ways = 1)
      : entries(contexts, {least_ways, sim::many, "contexts", source}),
        ways(associativity, {least_ways, 64, "ways", source}),
        fills(misses, {1, 64, "misses", source}),
        miss_cycles(penalty, {0, sim::many, "cycles", "calibration 5: miss penalty beyond the DMA read"}),
        write_backs(replaced, {1, 64, "contexts", "design"}) {}

  sim::parameter<unsigned> entries;      ///< on chip; some contexts take two (context_cache::second)
  sim::parameter<unsigned> ways;         ///< associativity; entries / ways sets, hashed index
  sim::parameter<unsigned> fills;        ///< under way at once (1: a miss blocks)
  sim::parameter<unsigned> miss_cycles;  ///< from the arrival of the data to the context being usable
  sim::parameter<unsigned> write_backs;  ///< replaced contexts on their way to ICM at once
  sim::parameter<replacement> policy{replacement::lru, {replacement_names, "design"}};  ///< within a set

  void list(sim::fields& are) {
    are("entries", entries);
    are("ways", ways);
    are("fills", fills);
    are("miss_cycles", miss_cycles);
    are("write_backs", write_backs);
    are("replacement", policy);
  }
};

}  // namespace rnic::icm
