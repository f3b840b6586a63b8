// SPDX-License-Identifier: Apache-2.0
// The functions behind the slot: the physical one, and the virtual ones that it has enabled.
#pragma once

#include <cstdint>
#include <vector>

#include "model/pcie/config_space.h"
#include "model/pcie/line_interrupt.h"
#include "model/pcie/msix_table.h"
#include "model/pcie/virtual_function.h"

namespace rnic::pcie {

/// Function 0 is the physical one, 1 to enabled_vfs the virtual ones, whose routing IDs follow (SR-IOV: first offset
/// and stride are 1). A virtual function that firmware holds does nothing on the bus of itself, from its reset on until
/// the host's driver has cleaned up behind it (adapter control plane 8.1, INFORM_FLR_DONE).
class functions {
 public:
  explicit functions(const config_space::config& c);

  config_space& physical() { return physical_; }
  const config_space& physical() const { return physical_; }
  const config_space::state& now() const { return physical_.now(); }

  bool exists(unsigned function) const { return function <= now().enabled_vfs; }
  /// Software lets it be a bus master.
  bool masters_bus(unsigned function) const {
    if (function == 0) return now().bus_master;
    return exists(function) && virtual_[function - 1].now().bus_master && !held_[function - 1];
  }
  bool interrupts_on(unsigned function) const {
    return function == 0 ? now().msix_enabled : exists(function) && virtual_[function - 1].now().msix_enabled;
  }
  bool interrupts_masked(unsigned function) const {
    return function == 0 ? now().msix_masked : virtual_[function - 1].now().msix_masked;
  }
  /// INTA, which the physical function alone has.
  line_interrupt& line() { return line_; }
  /// Of a function that exists.
  msix_table& vectors(unsigned function) { return function == 0 ? vectors_ : virtual_[function - 1].vectors(); }
  const msix_table& vectors(unsigned function) const {
    return function == 0 ? vectors_ : virtual_[function - 1].vectors();
  }

  /// Configuration accesses to a function that exists. When virtual functions come or go, they are as after power-on.
  std::uint32_t read32(unsigned function, std::uint16_t offset) const;
  config_effect write32(unsigned function, std::uint16_t offset, std::uint32_t value, unsigned byte_enables);
  /// Function-level reset of a function that exists: registers and vectors. That of the physical one takes the virtual
  /// ones away (SR-IOV 2.2.2).
  void reset(unsigned function);
  void report_unsupported(unsigned function);

  bool held(unsigned function) const { return function != 0 && exists(function) && held_[function - 1]; }
  void hold(unsigned function, bool on) {
    if (function != 0 && function <= held_.size()) held_[function - 1] = on;
  }
  void drop_pending();

 private:
  config_space physical_;
  msix_table vectors_;
  line_interrupt line_;
  std::vector<virtual_function> virtual_;  // as many as there can be
  std::vector<bool> held_;
};

}  // namespace rnic::pcie
