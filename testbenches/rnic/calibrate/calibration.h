// SPDX-License-Identifier: Apache-2.0
// Published measurements of this adapter family, and the experiments that repeat them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "testbenches/rnic/calibrate/calibration_experiments.h"
#include "testbenches/rnic/options.h"

namespace rnic::program {

/// One point of a published figure.
struct calibration_point {
  const char* id;       ///< of the experiment: C01 to C11, held out V01 to V16; K01 to K05
  std::string x;        ///< where on the curve
  const char* what;     ///< measured quantity
  const char* unit;     ///< of `expected`
  double expected = 0;  ///< as published
  double band_pct = 0;  ///< deviation either way that measurements of the same test show
  const char* source;
  /// Repeats the measurement. One call in a process.
  std::function<double(const common_options&)> measure;
};

/// Collects points whose differences are their places on a curve and what was measured there.
class point_list {
 public:
  using measurement = std::function<double(const common_options&)>;
  void add(const char* id, const std::string& x, const char* what, const char* unit, double expected, double band_pct,
           const char* source, measurement measure) {
    points_.push_back({id, x, what, unit, expected, band_pct, source, std::move(measure)});
  }
  const std::vector<calibration_point>& points() const { return points_; }

  static std::string bytes(std::uint32_t n) { return std::to_string(n) + " B"; }
  static std::string qps(unsigned n) { return std::to_string(n) + " QPs"; }
  static std::string megabytes(std::uint64_t n) { return std::to_string(n) + " MB"; }
  static measurement rate(const rate_test& t) {
    return [t](const common_options& o) { return message_rate(o, t); };
  }

 private:
  std::vector<calibration_point> points_;
};

/// The calibration set of connectx3pro_40g: some parameters were chosen by these.
const std::vector<calibration_point>& calibration_points();
/// Points of the same sources that were looked at afterwards. What V03, V09, V11 and V12 showed led to changes of the
/// model, so only the others prove anything that the calibration set does not.
const std::vector<calibration_point>& held_out_points();
/// The calibration set of connectx5_100g: of ConnectX-4 and Connect-IB, for want of figures of its own generation.
const std::vector<calibration_point>& connectx5_points();

}  // namespace rnic::program
