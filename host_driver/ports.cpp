// SPDX-License-Identifier: Apache-2.0
// Ports: queries, tables of addresses, start and stop (adapter control plane 3.2, 3.3, 4.7 - 4.11).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {
constexpr std::uint16_t roce_v2_port = 4791;
constexpr unsigned ethernet_overhead = 14 + 4 + 4;  // header, one tag, FCS
}  // namespace

int device::read_port(unsigned port) {
  command_channel::mailbox box(channel_);
  if (const int error = channel_.read(box, abi::opcode::query_port, port)) return error;
  namespace f = abi::query_port;
  const auto get = [&](auto field) { return abi::get(box.data(), field); };
  port_state& s = ports_[port - 1];
  if ((get(f::port_types) & f::type_ethernet) == 0) return -ENODEV;
  s.link_up = get(f::link_up) != 0;
  s.max_mtu = get(f::max_eth_mtu);
  s.speed = get(f::speed);
  s.ib_width = get(f::ib_width);
  s.pkeys = 1u << get(f::log_max_pkeys);
  const auto table = [](unsigned log) { return std::min<unsigned>(1u << log, abi::set_port::table_size); };
  s.max_macs = table(get(f::log_max_macs));
  s.max_vlans = table(get(f::log_max_vlans));
  if (virtual_) s.gid_rows = std::min<unsigned>(get(f::max_gids), f::max_gid_rows);
  const std::uint64_t mac = get(f::mac);
  for (unsigned i = 0; i < 6; ++i) s.mac[i] = static_cast<std::uint8_t>(mac >> (40 - 8 * i));
  return mac == 0 || (s.mac[0] & 1) != 0 ? -EINVAL : 0;
}

int device::mad(unsigned port, std::uint16_t attribute, std::uint32_t modifier, std::uint8_t* response) {
  command_channel::mailbox in(channel_);
  command_channel::mailbox out(channel_);
  namespace f = abi::mad;
  abi::set(in.data(), f::base_version, 1);
  abi::set(in.data(), f::management_class, f::class_subnet);
  abi::set(in.data(), f::class_version, 1);
  abi::set(in.data(), f::method, f::method_get);
  abi::set(in.data(), f::attribute, attribute);
  abi::set(in.data(), f::modifier, modifier);
  constexpr std::uint8_t ignore_keys = 3;
  const int error = channel_.execute({abi::opcode::mad_ifc, port, ignore_keys, in.address(), out.address(), nullptr});
  if (error != 0) return error;
  if (abi::get(out.data(), f::mad_status) != 0) return -EINVAL;
  if (response != nullptr) std::memcpy(response, out.data(), f::bytes);
  return 0;
}

int device::set_port_general(unsigned port) {
  command_channel::mailbox box(channel_);
  std::uint8_t* m = box.data();
  namespace f = abi::set_port;
  const bool pfc = cfg_.pfc_mask != 0;
  const bool pause = cfg_.lossless_global_pause && !pfc;
  std::uint8_t flags = f::flag_mtu | f::flag_rx_pause | f::flag_tx_pause;
  if ((caps_.bmme_flags & abi::dev_cap::bmme_roce_v1_v2) != 0) {
    flags |= f::flag_roce_mode;
    abi::set(m, f::roce_mode, f::roce_v1_v2);
  }
  abi::set(m, f::flags, flags);
  abi::set(m, f::mtu, static_cast<std::uint16_t>(std::min(cfg_.mtu + ethernet_overhead, 0xffffu)));
  abi::set(m, f::tx_pause, pause ? 1 : 0);
  abi::set(m, f::rx_pause, pause ? 1 : 0);
  abi::set(m, f::tx_pfc, cfg_.pfc_mask);
  abi::set(m, f::rx_pfc, cfg_.pfc_mask);
  return channel_.write(box, abi::opcode::set_port, f::modifier(f::selector::general, port), f::op_ethernet);
}

int device::set_port_user_mtu(unsigned port) {
  command_channel::mailbox box(channel_);
  namespace f = abi::set_port;
  abi::set(box.data(), f::flags2, f::flags2_user_mtu);
  abi::set(box.data(), f::user_mtu, static_cast<std::uint16_t>(cfg_.mtu));
  return channel_.write(box, abi::opcode::set_port, f::modifier(f::selector::general, port), f::op_ethernet);
}

int device::query_core_clock() {
  command_channel::mailbox box(channel_);
  const int error = channel_.read(box, abi::opcode::query_hca);
  core_clock_mhz_ = abi::get(box.data(), abi::init_hca::core_clock_mhz);
  return error;
}

int device::init_port(unsigned port) {
  const int error = channel_.command(abi::opcode::init_port, port);
  return error != 0 ? error : query_core_clock();  // the kernel reads the clock again after every INIT_PORT
}

int device::write_mac_table(unsigned port) {
  if (mirrored_) ports_[2 - port].macs = ports_[port - 1].macs;
  const int error = write_port_macs(port);
  return error != 0 || !(bonded_ || mirrored_) ? error : write_port_macs(3 - port);
}

int device::write_vlan_table(unsigned port) {
  const bool both = bonded_ || mirrored_;
  if (both) ports_[2 - port].vlans = ports_[port - 1].vlans;
  const int error = write_port_vlans(port);
  return error != 0 || !both ? error : write_port_vlans(3 - port);
}

int device::write_gid_table(unsigned port) {
  if (bonded_) {
    auto& gids = ports_[port - 1].gids;
    if (own_addresses_) std::copy_n(gids.begin(), gids.size() / 2, gids.begin() + gids.size() / 2);
    ports_[2 - port].gids = gids;
  }
  const int error = write_port_gids(port);
  return error != 0 || !bonded_ ? error : write_port_gids(3 - port);
}

int device::write_port_macs(unsigned port) {
  command_channel::mailbox box(channel_);
  for (std::size_t i = 0; i < abi::set_port::table_size; ++i) {
    abi::store64(box.data(), i * abi::set_port::mac_bytes, ports_[port - 1].macs[i]);
  }
  return channel_.write(box, abi::opcode::set_port, abi::set_port::modifier(abi::set_port::selector::mac_table, port),
                        abi::set_port::op_ethernet);
}

int device::write_port_vlans(unsigned port) {
  command_channel::mailbox box(channel_);
  for (std::size_t i = 0; i < abi::set_port::table_size; ++i) {
    abi::store32(box.data(), i * abi::set_port::vlan_bytes, ports_[port - 1].vlans[i]);
  }
  return channel_.write(box, abi::opcode::set_port, abi::set_port::modifier(abi::set_port::selector::vlan_table, port),
                        abi::set_port::op_ethernet);
}

int device::write_port_gids(unsigned port) {
  command_channel::mailbox box(channel_);
  namespace f = abi::set_port;
  const bool versions = (caps_.bmme_flags & abi::dev_cap::bmme_roce_v1_v2) != 0;
  const std::size_t stride = versions ? f::roce_addr_bytes : f::gid_bytes;
  for (std::size_t i = 0; i < f::table_size; ++i) {
    const gid_row& row = ports_[port - 1].gids[i];
    if (!row.valid) continue;
    std::uint8_t* entry = box.data() + i * stride;
    std::memcpy(entry, row.id.data(), row.id.size());
    if (!versions || row.type != IBV_GID_TYPE_ROCE_V2) continue;
    abi::set(entry, f::roce_addr_version, f::roce_addr_version_v2);
    abi::set(entry, f::roce_addr_type, is_ipv4(row.id) ? 0 : 1);
  }
  return channel_.write(box, abi::opcode::set_port,
                        f::modifier(versions ? f::selector::roce_addr : f::selector::gid_table, port), f::op_ethernet);
}

int device::start_network_ports() {
  if (const int error = create_dma_mr()) return error;
  for (unsigned p = 1; p <= caps_.num_ports; ++p) {
    if (const int error = set_port_general(p)) return error;
    if (const int error = init_port(p)) return error;
  }
  return 0;
}

int device::start_rdma_ports() {
  std::uint8_t response[abi::mad::bytes];
  if (const int error = mad(1, abi::mad::node_description, 0, nullptr)) return error;
  if (const int error = mad(1, abi::mad::node_info, 0, response)) return error;
  system_guid_ = abi::get(response, abi::mad::node_system_guid);
  node_guid_ = abi::get(response, abi::mad::node_guid);
  revision_ = abi::get(response, abi::mad::node_revision);
  const bool v2 = (caps_.bmme_flags & abi::dev_cap::bmme_roce_v1_v2) != 0;
  for (unsigned p = 1; p <= caps_.num_ports; ++p) {
    if (const int error = read_port(p)) return error;
    mad(p, abi::mad::pkey_table, 0, nullptr);
    const port_state& s = ports_[p - 1];
    if (const int row = add_address(p, default_gid(s.mac), v2 ? roce_types::both : roce_types::v1); row < 0) return row;
  }
  if (!v2) return 0;
  command_channel::mailbox box(channel_);
  abi::set(box.data(), abi::config_dev_mailbox::update_flags, abi::config_dev_mailbox::update_roce_v2_port);
  abi::set(box.data(), abi::config_dev_mailbox::roce_v2_port, roce_v2_port);
  return channel_.write(box, abi::opcode::config_dev);
}

int device::activate_ports() {
  for (unsigned p = 1; p <= caps_.num_ports; ++p) {
    port_state& s = ports_[p - 1];
    std::uint64_t mac = 0;
    for (const std::uint8_t byte : s.mac) mac = mac << 8 | byte;
    s.macs[0] = abi::set_port::mac_valid | mac;
    s.mac_users[0].own = 1;
    if (const int error = write_mac_table(p)) return error;
    if (const int error = set_port_general(p)) return error;
    if (const int error = set_port_user_mtu(p)) return error;
    if (const int error = init_port(p)) return error;
    if (const int error = read_port(p)) return error;
  }
  return 0;
}

}  // namespace rnic::host_driver
