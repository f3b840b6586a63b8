// SPDX-License-Identifier: Apache-2.0
#include "firmware/functions.h"

#include <algorithm>

#include "model/abi/bar_layout.h"
#include "model/command/command_cr.h"
#include "model/doorbell/doorbell_cr.h"
#include "model/gid/gid_cr.h"
#include "model/pcie/pcie_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;
namespace comm = abi::comm;

std::uint32_t functions::virtual_eqs() const {
  constexpr std::uint32_t most = 8;  // that fit in front of the interrupt table in the function's BAR
  return config_.total_vfs == 0 ? 0 : std::min<std::uint32_t>(most, (all_eqs - first_virtual_eq) / config_.total_vfs);
}

std::optional<std::uint32_t> functions::eq_index(std::uint32_t function, std::uint32_t eqn) const {
  if (function == 0) return eqn < physical_eqs() ? std::optional{eqn} : std::nullopt;
  if (function >= count() || eqn >= virtual_eqs()) return {};
  return first_virtual_eq + (function - 1) * virtual_eqs() + eqn;
}

std::optional<std::uint32_t> functions::domain_of(std::uint32_t pd, std::uint32_t function) {
  constexpr unsigned shift = 17;
  const std::uint32_t named = pd >> shift & 0x7f;
  if (named != 0 && named != function + 1) return {};
  return function == 0 ? pd : (pd & ~(0x7fu << shift)) | (function + 1) << shift;
}

void functions::restart() {
  listened_to_ = armed_ = false;
  commands_.fill(0);
  resets_.fill(0);
  asked_.fill(0);
  if (config_.total_vfs == 0) return;
  for (std::uint32_t f = 1; f < count(); ++f) set_offline(f, true);
  enabled_ = 0;
  follow_enabled();
  chip_.write(cr_base::doorbell, doorbell::cr::first_virtual_eq, first_virtual_eq);
  chip_.write(cr_base::doorbell, doorbell::cr::eqs_of_virtual, virtual_eqs());
}

void functions::set_offline(std::uint32_t function, bool on) {
  const std::uint32_t at = command::cr::channel_flags + 4 * function;
  const std::uint32_t flags = chip_.read(cr_base::command, at) & ~comm::flag_offline;
  chip_.write(cr_base::command, at, flags | (on ? comm::flag_offline : 0));
}

bool functions::exists(std::uint32_t function) {
  return function == 0 || (config_.total_vfs != 0 && function <= chip_.read(cr_base::pcie, pcie::cr::enabled_vfs));
}

bool functions::serve() {
  if (config_.total_vfs == 0) return false;
  return follow_enabled() || report_resets() || report_commands();
}

/// The windows of the GID tables are as many as there are functions.
bool functions::follow_enabled() {
  const std::uint32_t enabled = chip_.read(cr_base::pcie, pcie::cr::enabled_vfs);
  if (enabled == enabled_) return false;
  enabled_ = enabled;
  const bool had_own = alone_[0] != 0 || alone_[1] != 0;
  alone_ = {};
  if (had_own) {
    write_windows();
  } else {
    for (unsigned port = 0; port < config_.num_ports; ++port)
      chip_.write_port(cr_base::gid, port, gid::cr::num_vfs, enabled);
  }
  return true;
}

bool functions::set_ports(std::uint32_t port_1, std::uint32_t port_2, std::uint32_t both) {
  follow_enabled();
  if (config_.num_ports != 2 || port_1 + port_2 + both != enabled_) return false;
  alone_ = {port_1, port_2};
  write_windows();
  return true;
}

/// Those of a port's own functions come first (net/port.c: mlx4_get_base_gid_ix).
void functions::write_windows() {
  namespace cr = gid::cr;
  const std::uint32_t all_alone = alone_[0] + alone_[1];
  for (unsigned port = 0; port < config_.num_ports; ++port) {
    const std::uint32_t first_alone = port == 0 ? 1 : 1 + alone_[0];
    chip_.write_port(cr_base::gid, port, cr::vf_numbers,
                     alone_[port] << cr::vf_alone_shift | first_alone << cr::vf_first_alone_shift |
                         (1 + all_alone) << cr::vf_first_shift);
    chip_.write_port(cr_base::gid, port, cr::num_vfs, enabled_ - alone_[1 - port]);
  }
}

bool functions::report_resets() {
  namespace cr = command::cr;
  for (unsigned i = 0; i < words(); ++i) {
    resets_[i] |= chip_.read(cr_base::command, cr::channel_function_resets + 4 * i);
    const std::uint32_t asks = chip_.read(cr_base::command, cr::channel_reset_requests + 4 * i);
    asked_[i] |= asks;
    resets_[i] |= asks;
    if (resets_[i] == 0) continue;
    const std::uint32_t f = 32 * i + static_cast<std::uint32_t>(__builtin_ctz(resets_[i]));
    resets_[i] &= resets_[i] - 1;
    commands_[i] &= ~(1u << f % 32);  // what it said before is void
    if (f == 0 || f >= count()) continue;
    chip_.write(cr_base::pcie, pcie::cr::hold_function, f);
    if (!listened_to_) {  // nobody has given it anything that would have to be taken back
      release(f);
      continue;
    }
    set_offline(f, true);  // also when an earlier reset has just been answered
    chip::event_data data{};
    data[0] = f;
    chip_.raise(abi::eqe::event::flr, 0, data);
    return true;
  }
  return false;
}

bool functions::report_commands() {
  bool any = false;
  for (unsigned i = 0; i < words(); ++i) {
    commands_[i] |= chip_.read(cr_base::command, command::cr::channel_written + 4 * i);
    any = any || commands_[i] != 0;
  }
  if (!armed_ || !any) return false;
  chip::event_data data{};
  std::copy(commands_.begin(), commands_.end(), data.begin());
  commands_.fill(0);
  armed_ = false;
  chip_.raise(abi::eqe::event::comm_channel, 0, data);
  return true;
}

void functions::arm() {
  armed_ = true;
  if (listened_to_) return;
  listened_to_ = true;
  for (std::uint32_t f = 1; f < count(); ++f) set_offline(f, false);
}

bool functions::release(std::uint32_t function) {
  if (function == 0 || function >= count()) return false;
  chip_.write(cr_base::pcie, pcie::cr::release_function, function);
  const std::uint32_t at = command::cr::channel_flags + 4 * function, bit = 1u << function % 32;
  if ((asked_[function / 32] & bit) != 0) {
    asked_[function / 32] &= ~bit;
    const std::uint32_t flags = chip_.read(cr_base::command, at);
    const bool request = (flags & comm::flag_reset_request) != 0;
    chip_.write(cr_base::command, at, (flags & ~comm::flag_reset_done) | (request ? comm::flag_reset_done : 0));
  }
  set_offline(function, !listened_to_);
  return true;
}

}  // namespace rnic::firmware
