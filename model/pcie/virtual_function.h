// SPDX-License-Identifier: Apache-2.0
// One virtual function: its configuration registers and its interrupt vectors.
#pragma once

#include <cstdint>

#include "model/pcie/config_registers.h"
#include "model/pcie/config_space.h"
#include "model/pcie/msix_table.h"

namespace rnic::pcie {

/// Single Root I/O Virtualization specification 1.1, 3.4 and 3.5. Vendor and device ID read all ones (3.4.1.1, .2) and
/// BARs zero: software takes both from the physical function's capability. Memory space is enabled there for all
/// virtual functions; bus mastering, MSI-X and the function-level reset are each function's own. Sizes of payload and
/// read request are the physical function's.
class virtual_function : public config_registers {
 public:
  explicit virtual_function(const config_space::config& c);

  struct state {
    bool bus_master = false;
    bool msix_enabled = false;
    bool msix_masked = false;
  };
  config_effect write32(std::uint16_t offset, std::uint32_t value, unsigned byte_enables);
  /// As after power-on.
  void reset();
  /// Sets the status bits of a request that nobody claims.
  void report_unsupported();
  const state& now() const { return state_; }
  msix_table& vectors() { return vectors_; }
  const msix_table& vectors() const { return vectors_; }

 private:
  static constexpr std::uint32_t bar_indicator = 2;  // tables of interrupts are in BAR2
  void decode();

  const config_space::config& config_;  // of the physical function, which lives longer
  msix_table vectors_;
  state state_;
};

}  // namespace rnic::pcie
