// SPDX-License-Identifier: Apache-2.0
// What a program says of its user's mistakes.
#pragma once

#include <stdexcept>

namespace rnic {

/// The user's mistake: one line that names file, option or field and what is legal; exit status 2.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rnic
