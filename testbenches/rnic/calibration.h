// SPDX-License-Identifier: Apache-2.0
// Published measurements of this adapter family, and the experiments that repeat them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "testbenches/rnic/options.h"

namespace rnic::program {

/// One point of a published figure.
struct calibration_point {
  const char* id;       ///< of the experiment, C01 to C10
  std::string x;        ///< where on the curve
  const char* what;     ///< measured quantity
  const char* unit;     ///< of `expected`
  double expected = 0;  ///< as published
  double band_pct = 0;  ///< deviation either way that measurements of the same test show
  const char* source;
  /// Repeats the measurement. One call in a process.
  std::function<double(const common_options&)> measure;
};

const std::vector<calibration_point>& calibration_points();

}  // namespace rnic::program
