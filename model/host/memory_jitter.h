// SPDX-License-Identifier: Apache-2.0
// How much longer than usual an access of host memory takes, by chance.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "model/sim/parameter.h"
#include "model/sim/types.h"

namespace rnic::host {

/// e5 and e3: as measured on Xeons E5-2620v2 and E3-1226v3 (memory_jitter.cpp has the figures).
enum class jitter_law : std::uint8_t { none, exponential, e5, e3 };

struct memory_jitter_config {
  sim::parameter<jitter_law> law{
      jitter_law::none,
      {"none, exponential, e5, e3", "calibration 2.4: by how much reads of 8 bytes exceed their median"}};
  /// Of the exponential law.
  sim::parameter<sim::time_ps> mean_ps{20'000, {1, 1'000'000'000, "ps", "design: a mean for what was not measured"}};
  sim::parameter<std::uint64_t> seed{1, {0, ~std::uint64_t{0}, "", "design: another one is another run"}};

  void list(sim::fields& are) {
    are("law", law);
    are("mean_ps", mean_ps);
    are("seed", seed);
  }
};

/// Times to add to accesses, one after the other: the n-th of a memory depends on the seed, the memory's name and n
/// alone, so on nothing that a sleeping block could change. A measured law adds what an access took beyond the median,
/// and nothing to the faster half: medians stay where the latencies of memory_timing put them.
class memory_jitter {
 public:
  /// `owner`: the memory's name. Two memories with one seed and different names differ.
  memory_jitter(const std::string& owner, const memory_jitter_config& c);
  /// For the next access; `beyond_cache`: it is one of memory, not of the LLC.
  sim::time_ps next(bool beyond_cache) { return law_ == jitter_law::none ? 0 : draw(beyond_cache); }

 private:
  sim::time_ps draw(bool beyond_cache);

  jitter_law law_;
  sim::time_ps mean_ps_;
  std::mt19937_64 random_;
};

}  // namespace rnic::host
