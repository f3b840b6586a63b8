// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/virtual_function.h"

namespace rnic::pcie {

virtual_function::virtual_function(const config_space::config& c) : config_(c), vectors_(c.vf_msix_vectors) { reset(); }

void virtual_function::reset() {
  clear();
  vectors_.reset();
  set32(0x00, ~0u);
  writable16(cfg::command, cfg::command_bus_master);
  set16(cfg::status, 0x0010);  // capability list
  clearable16(cfg::status, 0xf900);
  set32(0x08, config_.class_code << 8 | config_.revision);
  set16(0x2c, config_.vendor_id);
  set16(0x2e, config_.subsystem_id);
  set8(0x34, cfg::express);
  set32(cfg::express, 0x0002'0010u | std::uint32_t{cfg::msix} << 8);
  set32(cfg::express + 0x04, config_space::device_capabilities(config_));
  clearable16(cfg::device_status, 0x000f);
  writable16(cfg::device_control, 0x8000);  // nothing but the function-level reset (3.5.4)
  set32(cfg::express + 0x0c, config_.link_generation | config_.link_width << 4);
  set32(cfg::msix, 0x11u | static_cast<std::uint32_t>(config_.vf_msix_vectors - 1) << 16);
  writable16(cfg::msix_control, 0xc000);
  set32(cfg::msix + 4, config_.vf_msix_table_offset | bar_indicator);
  set32(cfg::msix + 8, config_.vf_msix_pba_offset | bar_indicator);
  set32(cfg::ari, 0x0001'000e);  // the only extended capability
  decode();
}

config_effect virtual_function::write32(std::uint16_t offset, std::uint32_t value, unsigned byte_enables) {
  write(offset, value, byte_enables);
  config_effect e;
  e.function_level_reset = takes_reset(offset, byte_enables);
  e.msix_changed = touches(cfg::msix_control + 1, offset, byte_enables);
  decode();
  return e;
}

void virtual_function::report_unsupported() {
  set16(cfg::device_status, static_cast<std::uint16_t>(get16(cfg::device_status) | 0x000a));  // non-fatal, UR
}

void virtual_function::decode() {
  state_.bus_master = (get16(cfg::command) & cfg::command_bus_master) != 0;
  state_.msix_enabled = (get16(cfg::msix_control) & 0x8000) != 0;
  state_.msix_masked = (get16(cfg::msix_control) & 0x4000) != 0;
}

}  // namespace rnic::pcie
