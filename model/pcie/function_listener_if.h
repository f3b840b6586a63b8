// SPDX-License-Identifier: Apache-2.0
// Who is told of what happens to functions.
#pragma once

#include <cstdint>

namespace rnic::pcie {

/// Called in the endpoint's tick, after its own registers have changed.
class function_listener_if {
 public:
  virtual ~function_listener_if() = default;
  /// Software resets the function through its configuration space (Base Specification 3.0, 6.6.2).
  virtual void function_level_reset(std::uint16_t function) = 0;
  /// The physical function has enabled or disabled its virtual ones.
  virtual void functions_enabled() = 0;
};

}  // namespace rnic::pcie
