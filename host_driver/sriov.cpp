// SPDX-License-Identifier: Apache-2.0
// A physical function's virtual ones: SR-IOV, and the entries of the ports' tables that are theirs (net/main.c:
// mlx4_enable_sriov; net/port.c).
#include <algorithm>
#include <cerrno>

#include "host_driver/device.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {

// Single Root I/O Virtualization specification 1.1, 3.3: offsets in the capability.
constexpr std::uint32_t capability_sriov = 0x0010;
constexpr unsigned reg_control = 0x08, reg_total = 0x0c, reg_number = 0x10, reg_offset = 0x14, reg_device_id = 0x18,
                   reg_page_size = 0x20, reg_bar2 = 0x2c;
constexpr std::uint32_t control_enable = 1u << 0, control_memory = 1u << 3, control_ari = 1u << 4;
constexpr unsigned physical_gids = 16;  // MLX4_ROCE_PF_GIDS

unsigned find_sriov(bus_if& bus) {
  unsigned at = 0x100;
  for (unsigned guard = 0; at >= 0x100 && guard < 48; ++guard) {
    const std::uint32_t header = bus.config_read32(static_cast<std::uint16_t>(at));
    if ((header & 0xffff) == capability_sriov) return at;
    at = header >> 20;
  }
  return 0;
}

}  // namespace

int device::query_function_eqs() {
  command_channel::mailbox box(channel_);
  if (const int error = channel_.read(box, abi::opcode::query_func, 0)) return error;
  caps_.reserved_eqs = abi::get(box.data(), abi::query_func_mailbox::reserved_eqs);
  caps_.max_eqs = abi::get(box.data(), abi::query_func_mailbox::max_eqs);
  return 0;
}

int device::enable_functions() {
  if (caps_.num_sys_eqs != 0) {
    if (const int error = query_function_eqs()) return error;
  }
  enabled_functions_ = 0;
  if (cfg_.virtual_functions == 0) return 0;
  if (!cfg_.use_msix) return -ENOTSUP;  // as the kernel (net/main.c: "INTx is not supported in multi-function mode")
  const unsigned base = find_sriov(bus_);
  if (base == 0) return -ENODEV;
  const auto reg = [base](unsigned offset) { return static_cast<std::uint16_t>(base + offset); };
  if (cfg_.virtual_functions > bus_.config_read32(reg(reg_total)) >> 16) return -EINVAL;
  if (bus_.config_read32(reg(reg_offset)) != 0x0001'0001) return -ENODEV;  // the bus numbers functions so
  bus_.config_write32(reg(reg_page_size), 1);
  bus_.config_write32(reg(reg_bar2), ~0u);
  bus_.config_write32(reg(reg_bar2 + 4), ~0u);
  const std::uint64_t mask =
      std::uint64_t{bus_.config_read32(reg(reg_bar2 + 4))} << 32 | (bus_.config_read32(reg(reg_bar2)) & ~15u);
  function_bar_bytes_ = ~mask + 1;
  function_bar_ = (cfg_.function_bar_address + function_bar_bytes_ - 1) & mask;
  bus_.config_write32(reg(reg_bar2), static_cast<std::uint32_t>(function_bar_));
  bus_.config_write32(reg(reg_bar2 + 4), static_cast<std::uint32_t>(function_bar_ >> 32));
  function_device_id_ = static_cast<std::uint16_t>(bus_.config_read32(reg(reg_device_id)) >> 16);
  bus_.config_write32(reg(reg_number), cfg_.virtual_functions);
  bus_.config_write32(reg(reg_control), control_enable | control_memory | control_ari);
  bus_.spend_ps(cfg_.function_wait_us * 1'000'000);
  enabled_functions_ = cfg_.virtual_functions;
  for (port_state& p : ports_) p.gid_rows = physical_gids;
  return 0;
}

void device::disable_functions() {
  if (enabled_functions_ == 0) return;
  if (const unsigned base = find_sriov(bus_); base != 0)
    bus_.config_write32(static_cast<std::uint16_t>(base + reg_control), 0);
  enabled_functions_ = 0;
  function_events_.clear();
}

// ---------------------------------------------------------------- tables of a port

int device::change_gids(unsigned port, unsigned first, const std::vector<gid_row>& rows) {
  auto& table = ports_[port - 1].gids;
  if (first + rows.size() > table.size()) return -EINVAL;
  for (const gid_row& row : rows) {
    if (!row.valid) continue;
    if (mirrored_) {  // what is for it may come in by either port
      const auto& other = ports_[2 - port].gids;
      const auto same = [&row](const gid_row& o) { return o.valid && o.id == row.id && o.type == row.type; };
      if (std::any_of(other.begin(), other.end(), same)) return -EINVAL;
    }
    for (unsigned i = 0; i < table.size(); ++i) {
      const bool own = i - first < rows.size();
      const gid_row& other = own ? rows[i - first] : table[i];
      if (&other != &row && other.valid && other.id == row.id && other.type == row.type) return -EINVAL;
    }
  }
  const auto before = table;
  std::copy(rows.begin(), rows.end(), table.begin() + first);
  const int error = write_gid_table(port);
  if (error != 0) table = before;
  return error;
}

}  // namespace rnic::host_driver
