// SPDX-License-Identifier: Apache-2.0
// The ICM block as firmware sees it (model/icm/icm_cr.h).
#pragma once

#include <cstdint>

#include "model/icm/icm_map.h"
#include "model/icm/translation_config.h"
#include "model/icm/translation_control.h"
#include "model/register_bus/cr_space.h"

namespace rnic::icm {

/// Writes the mapping and the table layouts, and drops entries of the translation caches.
class icm_registers : public register_bus::cr_target_if {
 public:
  icm_registers(icm_map& map, translation_control_if& tpt) : map_(map), tpt_(&tpt) {}
  /// From now on it is this translation that is dropped from.
  void control(translation_control_if& tpt) { tpt_ = &tpt; }
  std::uint32_t cr_read(std::uint32_t offset) override;
  void cr_write(std::uint32_t offset, std::uint32_t value) override;

 private:
  void map_command(std::uint32_t command);
  void tpt_command(std::uint32_t command);
  void write_table(std::uint32_t offset, std::uint32_t value);
  void reset();

  icm_map& map_;
  translation_control_if* tpt_;
  std::uint64_t icm_address_ = 0, bus_address_ = 0;
  std::uint32_t pages_ = 0;
  std::uint32_t table_ = 0;
  std::uint32_t mpt_index_ = 0;
  std::uint64_t mtt_address_ = 0;
  std::uint32_t mtt_count_ = 0;
};

}  // namespace rnic::icm
