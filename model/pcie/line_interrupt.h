// SPDX-License-Identifier: Apache-2.0
// INTA of the physical function: a wire of older buses, as two messages.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "model/pcie/config_space.h"

namespace rnic::pcie {

/// Base Specification 3.0, 2.2.8.1 and 7.5.1.1. While MSI-X is off, an event queue that interrupts sets the Interrupt
/// Status bit, and software takes it back by CLR_INT (adapter control plane 1.3). The wire follows that bit where the
/// command register does not disable it and MSI-X is off, and each move of the wire is a message: the other end keeps
/// the level. A message is no memory request: it goes out whoever masters the bus.
///
/// Memory: the status bit, and the level that the other end knows.
class line_interrupt {
 public:
  static constexpr std::uint32_t status_bit = 1u << 19;  ///< of the dword of command and status

  void raise() { pending_ = true; }
  void clear() { pending_ = false; }
  bool pending() const { return pending_; }
  /// The other end is to be told of another level.
  bool moves(const config_space::state& s) const { return level(s) != level_; }
  /// Which one, if it is; told from now on.
  std::optional<bool> move(const config_space::state& s) {
    if (!moves(s)) return {};
    level_ = !level_;
    return level_;
  }

 private:
  bool level(const config_space::state& s) const { return pending_ && !s.line_disabled && !s.msix_enabled; }
  bool pending_ = false, level_ = false;
};

}  // namespace rnic::pcie
