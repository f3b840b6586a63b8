// SPDX-License-Identifier: Apache-2.0
// Who is told of a function-level reset.
#pragma once

#include <cstdint>

namespace rnic::pcie {

/// Told when software resets the function through its configuration space (Base Specification 3.0, 6.6.2). Called in
/// the endpoint's tick, after its own registers are reset.
class function_reset_if {
 public:
  virtual ~function_reset_if() = default;
  virtual void function_level_reset(std::uint16_t function) = 0;
};

}  // namespace rnic::pcie
