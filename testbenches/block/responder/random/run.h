// SPDX-License-Identifier: Apache-2.0
// One run from its seed to its end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "testbenches/block/responder/random/journal.h"

namespace rnic::transport::random_test {

struct outcome {
  std::vector<std::string> faults;  ///< a sentence each
  std::vector<observation> seen;    ///< by all neighbours, in the order of cycles
  std::vector<std::pair<std::string, std::uint64_t>> counters;
};

enum class kind_of_run : std::uint8_t {
  requests,  ///< only requests: the reference says what comes of them
  chaos      ///< neighbours fail, firmware and key engine interfere: it must end, and leave nothing behind
};

outcome run(std::uint64_t seed, kind_of_run kind, const sim::timebase::options& options);

/// The first in which the runs differ, or nothing.
std::string first_difference(const outcome& a, const outcome& b);

}  // namespace rnic::transport::random_test
