// SPDX-License-Identifier: Apache-2.0
// Both ports of a device with virtual functions for each other (net/main.c: mlx4_mf_bond; net/port.c:
// mlx4_bond_mac_table, mlx4_bond_vlan_table; net/resource_tracker.c: mlx4_mirror_fs_rules).
#include <algorithm>
#include <cerrno>

#include "host_driver/device.h"
#include "model/abi/commands.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

/// Then entries of the ports' tables are given such places that the other port's table can have them too.
bool device::may_mirror() const {
  return !virtual_ && ports_.size() == 2 && enabled_functions_ != 0 &&
         cfg_.functions_port_1 + cfg_.functions_port_2 == enabled_functions_;
}

int device::mirror_ports() {
  if (mirrored_ || bonded_ || !may_mirror()) return -EINVAL;
  command_channel::mailbox box(channel_);
  namespace f = abi::config_dev_mailbox;
  abi::set(box.data(), f::update_flags, f::update_rx_port_check);
  abi::set(box.data(), f::roce_flags, f::disable_rx_port_check);
  if (const int error = channel_.write(box, abi::opcode::config_dev)) return error;
  if (const int error = mirror_tables()) return error;
  mirrored_ = true;
  return mirror_rules();
}

/// The interfaces below a bond have one address. Peers of port 2 go on sending to the one that it had.
int device::mirror_tables() {
  port_state &first = ports_[0], &second = ports_[1];
  const std::uint64_t before = second.macs[0];
  second.mac = first.mac;
  second.macs[0] = first.macs[0];
  const auto join = [](auto& one, auto& two) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (one[i] != 0 && two[i] != 0 && one[i] != two[i]) return false;
      one[i] = two[i] = one[i] != 0 ? one[i] : two[i];
    }
    return true;
  };
  if (!join(first.macs, second.macs) || !join(first.vlans, second.vlans)) return -EINVAL;
  if (before != first.macs[0]) {
    const auto free = std::find(first.macs.begin(), first.macs.end(), 0);
    if (free == first.macs.end()) return -ENOSPC;
    const auto index = static_cast<std::size_t>(free - first.macs.begin());
    first.macs[index] = second.macs[index] = before;
  }
  for (unsigned port = 1; port <= 2; ++port) {
    if (const int error = write_port_macs(port)) return error;
    if (const int error = write_port_vlans(port)) return error;
  }
  return 0;
}

/// The physical function's own; those of virtual ones are function_master's.
int device::mirror_rules() {
  namespace f = abi::flow_rule;
  for (auto& [id, rule] : own_rules_) {
    command_channel::mailbox box(channel_);
    std::copy(rule.mailbox.begin(), rule.mailbox.end(), box.data());
    abi::set(box.data(), f::port, static_cast<std::uint8_t>(3 - abi::get(box.data(), f::port)));
    const auto words = static_cast<std::uint32_t>(rule.mailbox.size() / 4);
    if (const int error =
            channel_.execute({abi::opcode::flow_steering_attach, words, 0, box.address(), 0, &rule.mirror}))
      return error;
  }
  return 0;
}

}  // namespace rnic::host_driver
