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
  const char* id;       ///< of the experiment: C01 to C10, held out V01 to V12
  std::string x;        ///< where on the curve
  const char* what;     ///< measured quantity
  const char* unit;     ///< of `expected`
  double expected = 0;  ///< as published
  double band_pct = 0;  ///< deviation either way that measurements of the same test show
  const char* source;
  /// Repeats the measurement. One call in a process.
  std::function<double(const common_options&)> measure;
};

/// The calibration set: some parameters were chosen by these.
const std::vector<calibration_point>& calibration_points();
/// Points of the same sources by which no parameter was chosen.
const std::vector<calibration_point>& held_out_points();

}  // namespace rnic::program
