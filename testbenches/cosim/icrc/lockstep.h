// SPDX-License-Identifier: Apache-2.0
// Model and RTL side by side: same inputs, outputs compared in every cycle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rtl/icrc/icrc_rtl.h"
#include "testbenches/cosim/icrc/stimulus.h"

namespace rnic::cosim {

struct difference {
  std::uint64_t cycle = 0;
  std::string port;  ///< in_ready, result_valid, result_crc, or oracle
  std::uint64_t model = 0;
  std::uint64_t rtl = 0;
  std::string report;    ///< cycle, port, both values, the last sixteen events
  std::string waveform;  ///< FST of the cycles around the first difference
};

struct outcome {
  std::optional<difference> first_difference;
  std::uint64_t cycles = 0;
  bool finished = false;  ///< all packets went in and all results came out
};

using rtl_factory = std::function<std::unique_ptr<rtl::icrc_rtl_if>()>;

/// Runs `t` through a new model and the RTL of `make`, up to the first difference or `max_cycles`. `name` becomes the
/// name of the waveform, written into the working directory.
outcome run_lockstep(const traffic& t, const rtl_factory& make, const std::string& name,
                     std::uint64_t max_cycles = 2'000'000);

}  // namespace rnic::cosim
