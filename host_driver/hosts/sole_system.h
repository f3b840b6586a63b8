// SPDX-License-Identifier: Apache-2.0
// A SystemC kernel has place for one system.
#pragma once

#include <cstddef>

namespace rnic::hosts {

/// A system's claim to the kernel: the first of its parts.
class sole_system {
 public:
  /// Throws sim::config_error when the kernel has another system, or when it simulates or has simulated one.
  sole_system();
  ~sole_system();
  sole_system(const sole_system&) = delete;
  sole_system& operator=(const sole_system&) = delete;

  /// When the system's run begins. Throws sim::config_error for a second one, and when processes of a system that is
  /// gone are left in the kernel.
  void begin_run();

 private:
  std::size_t orphans_;  // when this one began
  bool has_run_ = false;
};

}  // namespace rnic::hosts
