// SPDX-License-Identifier: Apache-2.0
// Several waveforms as one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/sim/types.h"
#include "testbenches/bench/wave/wave_file.h"

namespace rnic::bench {

struct wave_part {
  std::string file;   ///< FST
  std::string scope;  ///< below which its own scopes go; empty: they stay where they are
};

/// Puts the signals of all parts into `to`, with what they are from time `from` to before `until`: to be called before
/// anything else is added to it. What changes before `from` is told as the value at that time. Throws usage_error for a
/// part that cannot be read. `pieces` of time are in memory one after the other; 0: as many as the parts have blocks.
void merge(const std::vector<wave_part>& parts, wave_file& to, sim::time_ps from, sim::time_ps until,
           std::uint64_t pieces = 0);

}  // namespace rnic::bench
