// SPDX-License-Identifier: Apache-2.0
// Both ports of a device with virtual functions for each other (net/main.c: mlx4_mf_bond, mlx4_mf_unbond; net/port.c:
// mlx4_bond_mac_table, mlx4_bond_vlan_table; net/resource_tracker.c: mlx4_mirror_fs_rules).
#include <algorithm>
#include <cerrno>

#include "host_driver/device.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {

/// One table of two. False: they have different things at one place.
template <class Table>
bool join_tables(const Table& one, const Table& two, Table* both) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] != 0 && two[i] != 0 && one[i] != two[i]) return false;
    (*both)[i] = one[i] != 0 ? one[i] : two[i];
  }
  return true;
}

/// What nobody has registered for this port is gone.
template <class Table, class Users>
void drop_unused(Table& table, const Users& users) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (users[i].all() == 0) table[i] = 0;
}

}  // namespace

/// Then entries of the ports' tables are given such places that the other port's table can have them too.
bool device::may_mirror() const {
  return !virtual_ && ports_.size() == 2 && enabled_functions_ != 0 &&
         cfg_.functions_port_1 + cfg_.functions_port_2 == enabled_functions_;
}

int device::check_arrival_ports(bool on) {
  command_channel::mailbox box(channel_);
  namespace f = abi::config_dev_mailbox;
  abi::set(box.data(), f::update_flags, f::update_rx_port_check);
  abi::set(box.data(), f::roce_flags, on ? 0u : f::disable_rx_port_check);
  return channel_.write(box, abi::opcode::config_dev);
}

int device::mirror_ports() {
  if (mirrored_ || bonded_ || !may_mirror()) return -EINVAL;
  if (const int error = check_arrival_ports(false)) return error;
  mirrored_ = true;
  int error = mirror_tables();
  if (error == 0) error = mirror_rules();
  if (error != 0) unmirror_ports();
  return error;
}

int device::unmirror_ports() {
  if (!mirrored_) return -EINVAL;
  int first = check_arrival_ports(true);
  const auto note = [&first](int error) {
    if (first == 0) first = error;
  };
  note(set_port_map(1, 2));
  mirrored_ = false;
  for (auto& [id, rule] : own_rules_) {
    if (rule.mirror != 0) note(channel_.command(abi::opcode::flow_steering_detach, 0, 0, rule.mirror));
    rule.mirror = 0;
  }
  note(unmirror_tables());
  return first;
}

int device::write_both_tables() {
  for (unsigned port = 1; port <= 2; ++port) {
    if (const int error = write_port_macs(port)) return error;
    if (const int error = write_port_vlans(port)) return error;
  }
  return 0;
}

/// The interfaces below a bond have one address. Peers of port 2 go on sending to the one that it had.
int device::mirror_tables() {
  port_state &first = ports_[0], &second = ports_[1];
  const second_address before{second.mac, second.macs[0], 0};
  auto macs = second.macs;
  auto vlans = second.vlans;
  macs[0] = first.macs[0];
  if (!join_tables(first.macs, macs, &macs) || !join_tables(first.vlans, vlans, &vlans)) return -EINVAL;
  std::size_t place = 0;
  if (before.entry != first.macs[0]) {
    auto at = std::find(macs.begin(), macs.end(), before.entry);
    if (at == macs.end()) at = std::find(macs.begin(), macs.end(), 0);
    if (at == macs.end()) return -ENOSPC;
    *at = before.entry;
    place = static_cast<std::size_t>(at - macs.begin());
    ++second.mac_users[place].own;
  }
  second_ = before;
  second_.place = place;
  second.mac = first.mac;
  first.macs = second.macs = macs;
  first.vlans = second.vlans = vlans;
  return write_both_tables();
}

int device::unmirror_tables() {
  port_state &first = ports_[0], &second = ports_[1];
  if (second_.entry == 0) return 0;
  if (second_.place != 0) --second.mac_users[second_.place].own;
  second.mac = second_.mac;
  second.macs[0] = second_.entry;
  second_ = {};
  for (port_state* const s : {&first, &second}) {
    drop_unused(s->macs, s->mac_users);
    drop_unused(s->vlans, s->vlan_users);
  }
  return write_both_tables();
}

/// The physical function's own; those of virtual ones are function_master's.
int device::mirror_rules() {
  for (auto& [id, rule] : own_rules_)
    if (const int error = mirror_rule(rule)) return error;
  return 0;
}

int device::mirror_rule(own_rule& rule) {
  namespace f = abi::flow_rule;
  command_channel::mailbox box(channel_);
  std::copy(rule.mailbox.begin(), rule.mailbox.end(), box.data());
  abi::set(box.data(), f::port, static_cast<std::uint8_t>(3 - abi::get(box.data(), f::port)));
  const auto words = static_cast<std::uint32_t>(rule.mailbox.size() / 4);
  return channel_.execute({abi::opcode::flow_steering_attach, words, 0, box.address(), 0, &rule.mirror});
}

}  // namespace rnic::host_driver
