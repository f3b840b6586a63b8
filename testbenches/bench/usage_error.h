// SPDX-License-Identifier: Apache-2.0
// What a program says of its user's mistakes.
#pragma once

#include <stdexcept>
#include <string>

#include "model/sim/check.h"

namespace rnic {

/// The user's mistake: one line that names file, option or field and what is legal; exit status 2.
class usage_error : public std::runtime_error {
 public:
  explicit usage_error(const std::string& what) : std::runtime_error(sim::one_line(what)) {}
};

}  // namespace rnic
