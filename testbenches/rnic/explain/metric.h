// SPDX-License-Identifier: Apache-2.0
// The number of a result that `rnic explain` looks at.
#pragma once

#include <optional>
#include <string>

#include "testbenches/rnic/compare/result_fields.h"

namespace rnic::program {

class metric {
 public:
  metric() = default;
  /// `asked`: the user's pattern, of one number; empty: the first that `usual` fits. `by_time`: rates count the
  /// messages of a given time. Throws usage_error.
  metric(const named_fields& fields, const std::string& asked, const std::string& usual, bool by_time);

  const std::string& name() const { return name_; }
  double value() const { return value_; }
  /// Of another result of the run.
  std::optional<double> value_in(const named_fields& fields) const;
  /// Per cent by which `other` is better than value().
  double gain(double other) const;
  /// Per cent of one message more, the smallest gain that there can be of a count; 0: of other numbers.
  double step() const { return counted_ == 0 ? 0 : 100 / counted_; }
  double messages() const { return counted_; }

 private:
  std::string name_;
  double value_ = 0;
  double counted_ = 0;  ///< messages, which it is the number of or the rate; 0: it is something else
  bool smaller_is_better_ = false;
};

}  // namespace rnic::program
