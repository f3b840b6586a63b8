// SPDX-License-Identifier: Apache-2.0
// The adapter's internal register bus ("CR space"): how firmware reaches the hardware blocks.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace rnic::register_bus {

/// A block's registers on the internal bus. Word (32-bit) access only; offsets are relative to the block's base.
/// Writing takes effect at once within the calling cycle of the command block; reading has no side effect unless the
/// block's header says so. Unknown offsets read 0 and ignore writes, as on a real bus without a decoder error.
class cr_target_if {
 public:
  virtual ~cr_target_if() = default;
  virtual std::uint32_t cr_read(std::uint32_t offset) = 0;
  virtual void cr_write(std::uint32_t offset, std::uint32_t value) = 0;
};

/// A block with several ranges of registers, each at a base of its own; it names them in its constructor.
class cr_parts {
 public:
  virtual ~cr_parts() = default;
  const std::vector<cr_target_if*>& registers() const { return registers_; }

 protected:
  void has_registers(cr_target_if& of_one) { registers_.push_back(&of_one); }

 private:
  std::vector<cr_target_if*> registers_;
};

/// Bases of the blocks. Each block documents its offsets in its own interface header.
enum class cr_base : std::uint32_t {
  icm = 0x0100'0000,         ///< ICM mapping, context bases, cache control (model/icm/icm_cr.h)
  doorbell = 0x0200'0000,    ///< UAR page size, number of pages (model/doorbell/doorbell_cr.h)
  transport = 0x0300'0000,   ///< QP control, P_Keys, UDP port, diagnostics (model/transport/transport_cr.h)
  completion = 0x0400'0000,  ///< CQ and EQ control, event raising (model/completion/completion_cr.h)
  gid = 0x0500'0000,         ///< + port * 0x1'0000: GID, MAC and VLAN tables (model/gid/gid_cr.h)
  mac = 0x0600'0000,         ///< + port * 0x1'0000: port state, pause, counters (model/mac/mac_cr.h)
  steering = 0x0700'0000,    ///< multicast and unicast groups, filters
  command = 0x0800'0000,     ///< command registers as firmware sees them
  pcie = 0x0900'0000,        ///< functions, MSI-X state
  traffic = 0x0a00'0000,     ///< frames and bytes by counter index (model/transport/traffic_counters.h)
  scheduler = 0x0b00'0000,   ///< owners of send queues (model/scheduler/scheduler_cr.h)
};
inline constexpr std::uint32_t cr_port_stride = 0x1'0000;

}  // namespace rnic::register_bus
