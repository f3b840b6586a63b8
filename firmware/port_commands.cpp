// SPDX-License-Identifier: Apache-2.0
// Ports: state, addresses, flow control, filters (adapter control plane 4.7, 4.10, 4.11, 4.20).
#include <algorithm>
#include <utility>

#include "firmware/firmware.h"
#include "firmware/limits.h"
#include "model/abi/device.h"
#include "model/ethernet/steering_cr.h"
#include "model/gid/gid_cr.h"
#include "model/mac/mac_cr.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;
namespace gid_cr = gid::cr;
namespace mac_cr = mac::cr;
namespace layout_of = abi::set_port;

abi::status firmware::query_port(command_request& r) {
  namespace f = abi::query_port;
  if (!valid_port(r.modifier)) return status::bad_param;
  const unsigned port = r.modifier - 1;
  const std::uint32_t link = chip_.read_port(cr_base::mac, port, mac_cr::port_status);
  const std::uint32_t rate = chip_.read_port(cr_base::mac, port, mac_cr::link_rate);
  out_.fill(0);
  put(f::link_up, link & 1);
  put(f::port_types, f::type_ethernet);
  put(f::ib_mtu, largest_mtu_code);
  put(f::max_eth_mtu, max_ethernet_mtu);
  put(f::speed, rate != 0 ? chip_.read_port(cr_base::mac, port, mac_cr::link_speed_code) : config_.speed_code);
  put(f::ib_width, 3);
  put(f::log_max_gids, 7);
  put(f::log_max_pkeys, 7);
  put(f::log_max_vlans, 7);
  put(f::log_max_macs, 7);
  put(f::max_tcs, 8);
  put(f::max_vls, 8);
  put(f::max_pkeys, 128);
  put(f::max_gids, 128);
  put(f::mac, config_.mac[port]);
  return write_mailbox(r, 0x100);
}

abi::status firmware::init_port(command_request& r) {
  if (!valid_port(r.modifier)) return status::bad_param;
  const unsigned port = r.modifier - 1;
  chip_.write_port(cr_base::mac, port, mac_cr::mac_high, static_cast<std::uint32_t>(config_.mac[port] >> 32) & 0xffff);
  chip_.write_port(cr_base::mac, port, mac_cr::mac_low, static_cast<std::uint32_t>(config_.mac[port]));
  chip_.write_port(cr_base::mac, port, mac_cr::port_control, 1);
  port_up_[port] = true;  // the change of the link is reported when it is seen
  return status::ok;
}

abi::status firmware::close_port(command_request& r) {
  if (!valid_port(r.modifier)) return status::bad_param;
  const unsigned port = r.modifier - 1;
  if (stage_ != stage_ready || !port_up_[port]) return status::ok;
  chip_.write_port(cr_base::mac, port, mac_cr::port_control, 0);
  port_up_[port] = false;
  if (link_reported_[port]) {
    link_reported_[port] = false;
    chip::event_data data{};
    data[2] = r.modifier << 28;
    chip_.raise(abi::eqe::event::port_change, abi::eqe::port_down, data);
  }
  return status::ok;
}

abi::status firmware::set_port(command_request& r) {
  const std::uint32_t port = r.modifier & 0xff;
  if (!valid_port(port)) return status::bad_param;
  if (r.op_modifier == layout_of::op_ib) return status::bad_param;  // both ports are Ethernet only
  if (const status s = read_mailbox(r); s != status::ok) return s;
  using layout_of::selector;
  switch (static_cast<selector>(r.modifier >> 8 & 0xff)) {
    case selector::general:
      return set_port_general(port - 1);
    case selector::mac_table:
      return set_macs(port - 1);
    case selector::vlan_table:
      return set_vlans(port - 1);
    case selector::gid_table:
      return set_gids(port - 1, layout_of::gid_bytes);
    case selector::roce_addr:
      return config_.roce_v2 ? set_gids(port - 1, layout_of::roce_addr_bytes) : status::bad_param;
    case selector::prio2tc:
      return set_priority_classes(port - 1);
    case selector::scheduler:
      return set_scheduler(port - 1);
    case selector::rqp_calc:
      return set_port_rqp_calc(port - 1);
    default:
      return status::bad_op;
  }
}

abi::status firmware::set_port_general(unsigned port) {
  namespace f = layout_of;
  const std::uint8_t flags = in(f::flags), flags2 = in(f::flags2);
  const auto write = [this, port](std::uint32_t offset, std::uint32_t v) {
    chip_.write_port(cr_base::mac, port, offset, v);
  };
  constexpr std::uint8_t known = f::flag_mtu | f::flag_rx_pause | f::flag_tx_pause | f::flag_roce_mode,
                         known2 = f::flags2_ignore_fcs | f::flags2_user_mtu;
  if ((flags & ~known) != 0 || (flags2 & ~known2) != 0) return status::bad_param;  // of capabilities that are not there
  if ((flags & f::flag_mtu) != 0 && (in(f::mtu) < 64 || in(f::mtu) > max_ethernet_mtu + ethernet_overhead))
    return status::bad_param;
  if ((flags & f::flag_roce_mode) != 0) {
    if (const status s = set_roce_mode(port, in(f::roce_mode)); s != status::ok) return s;
  }
  if ((flags & f::flag_mtu) != 0) {
    write(mac_cr::mtu, in(f::mtu));
    chip_.write(cr_base::transport, transport::cr::port_mtu + 4 * port, in(f::mtu));
  }
  if ((flags & f::flag_rx_pause) != 0) {
    write(mac_cr::pprx, in(f::rx_pause));
    write(mac_cr::pfcrx, in(f::rx_pfc));
  }
  if ((flags & f::flag_tx_pause) != 0) {
    write(mac_cr::pptx, in(f::tx_pause));
    write(mac_cr::pfctx, in(f::tx_pfc));
  }
  if ((flags2 & f::flags2_ignore_fcs) != 0) write(mac_cr::ignore_fcs, in(f::ignore_fcs));
  // The MTU of the network interface, which is told here, is of no interest to hardware.
  return status::ok;
}

/// Which versions the port takes. Every driver says it with each of its SET_PORT: nothing is written that is there.
abi::status firmware::set_roce_mode(unsigned port, std::uint8_t mode) {
  const bool both = mode == layout_of::roce_v1_v2;
  if ((!both && mode != layout_of::roce_v1) || (both && !config_.roce_v2)) return status::bad_param;
  if (std::exchange(roce_v2_ports_[port], both) != both) chip_.write_port(cr_base::gid, port, gid_cr::roce_v2, both);
  return status::ok;
}

abi::status firmware::set_macs(unsigned port) {
  for (unsigned i = 0; i < layout_of::table_size; ++i) {
    const std::uint64_t mac = abi::load64(in_.data(), i * layout_of::mac_bytes);
    const std::uint32_t valid = (mac & layout_of::mac_valid) != 0 ? gid_cr::mac_valid : 0;
    chip_.write_port(cr_base::gid, port, gid_cr::mac_word(i, 1), static_cast<std::uint32_t>(mac));
    chip_.write_port(cr_base::gid, port, gid_cr::mac_word(i, 0),
                     valid | (static_cast<std::uint32_t>(mac >> 32) & 0xffff));
  }
  return status::ok;
}

abi::status firmware::set_vlans(unsigned port) {
  for (unsigned i = 0; i < layout_of::table_size; ++i) {
    const std::uint32_t vlan = abi::load32(in_.data(), i * layout_of::vlan_bytes);
    const std::uint32_t valid = (vlan & layout_of::vlan_valid) != 0 ? gid_cr::vlan_valid : 0;
    chip_.write_port(cr_base::gid, port, gid_cr::vlan_word(i), valid | (vlan & gid_cr::vlan_mask));
  }
  return status::ok;
}

void firmware::write_gid(unsigned port, unsigned index, const std::uint8_t* gid, bool v2) {
  const bool valid = std::any_of(gid, gid + 16, [](std::uint8_t b) { return b != 0; });
  const auto reg = [index](unsigned word) { return gid_cr::gid_word(index, word); };
  const std::uint32_t attributes = (valid ? gid_cr::gid_valid : 0) | (v2 ? 2u << gid_cr::gid_type_shift : 0);
  bool same = chip_.read_port(cr_base::gid, port, reg(4)) == attributes;
  for (unsigned w = 0; w < 4 && same; ++w)
    same = chip_.read_port(cr_base::gid, port, reg(w)) == abi::load32(gid, 4 * w);
  if (same) return;  // the whole table comes with each change: entries in use must not blink
  chip_.write_port(cr_base::gid, port, reg(4), 0);
  for (unsigned w = 0; w < 4; ++w) chip_.write_port(cr_base::gid, port, reg(w), abi::load32(gid, 4 * w));
  chip_.write_port(cr_base::gid, port, reg(4), attributes);
}

abi::status firmware::set_gids(unsigned port, std::size_t stride) {
  for (unsigned i = 0; i < layout_of::table_size; ++i) {
    const std::size_t at = i * stride;
    const bool v2 =
        stride == layout_of::roce_addr_bytes && in(layout_of::roce_addr_version, at) == layout_of::roce_addr_version_v2;
    write_gid(port, i, in_.data() + at, v2);
  }
  return status::ok;
}

abi::status firmware::set_priority_classes(unsigned port) {
  std::uint32_t map = 0;
  for (unsigned priority = 0; priority < 8; ++priority) {
    const unsigned tc = priority % 2 == 0 ? in_[priority / 2] >> 4 : in_[priority / 2] & 0xfu;
    if (tc > 7) return status::bad_param;
    map |= tc << 4 * priority;
  }
  chip_.write_port(cr_base::mac, port, mac_cr::prio2tc, map);
  return status::ok;
}

abi::status firmware::set_scheduler(unsigned port) {
  for (unsigned tc = 0; tc < 8; ++tc) {
    const std::uint32_t group = abi::load16(in_.data(), 8 * tc), percent = abi::load16(in_.data(), 8 * tc + 2);
    if (percent > 100) return status::bad_param;
    chip_.write_port(cr_base::mac, port, mac_cr::scheduler + 4 * tc, group << 16 | percent);
    // The most that the class may take: units of 100 Mb/s or 1 Gb/s (data plane E.4).
    const std::uint32_t unit = abi::load16(in_.data(), 8 * tc + 4), value = abi::load16(in_.data(), 8 * tc + 6);
    const std::uint32_t mbps = unit == 3 ? 100 : unit == 4 ? 1000 : 0;
    chip_.write_port(cr_base::mac, port, mac_cr::max_rate + 4 * tc, value * mbps);
  }
  chip_.write_port(cr_base::mac, port, mac_cr::arbitration, mac_cr::arbitration_ets);  // from now on they count
  return status::ok;
}

/// A0 steering: QPs by place in the MAC table (3.7). In force when INIT_HCA does not ask for B0.
abi::status firmware::set_port_rqp_calc(unsigned port) {
  namespace f = layout_of;
  namespace cr = ethernet::cr;
  chip_.write_port(cr_base::steering, port, cr::rqp_promiscuous, in(f::rqp_promiscuous));
  chip_.write_port(cr_base::steering, port, cr::rqp_multicast, in(f::rqp_multicast));
  chip_.write_port(cr_base::steering, port, cr::rqp_base, (in(f::rqp_base)&0xffffff) | cr::rqp_valid);
  return status::ok;
}

/// Filters of the Ethernet receive path; RoCE does not look at them.
abi::status firmware::set_multicast_filter(command_request& r) {
  namespace cr = ethernet::cr;
  if (!valid_port(r.modifier & 0xff)) return status::bad_param;
  const unsigned port = (r.modifier & 0xff) - 1;
  if (r.op_modifier != 0) {
    chip_.write_port(cr_base::steering, port, cr::multicast_filter_on, r.op_modifier == 2 ? 1 : 0);
    return status::ok;
  }
  constexpr unsigned limit = 1024;
  if ((r.in_param >> 63) != 0) {
    chip_.write_port(cr_base::steering, port, cr::multicast_filter_clear, 1);
    groups_filtered_[port] = 0;
  }
  const std::uint64_t mac = r.in_param & 0xffffffffffff;
  if (mac == 0) return status::ok;
  if (groups_filtered_[port] == limit) return status::exceed_lim;
  ++groups_filtered_[port];
  chip_.write_port(cr_base::steering, port, cr::multicast_filter_high, static_cast<std::uint32_t>(mac >> 32));
  chip_.write_port(cr_base::steering, port, cr::multicast_filter_add, static_cast<std::uint32_t>(mac));
  return status::ok;
}

/// Approximation: until a driver sets the filter for the first time, frames of all VLANs pass.
abi::status firmware::set_vlan_filter(command_request& r) {
  namespace cr = ethernet::cr;
  if (!valid_port(r.modifier & 0xff)) return status::bad_param;
  if (const status s = read_mailbox(r, 512); s != status::ok) return s;
  const unsigned port = (r.modifier & 0xff) - 1;
  for (std::uint32_t i = 0; i < cr::vlan_filter_words; ++i)
    chip_.write_port(cr_base::steering, port, cr::vlan_filter + 4 * i,
                     abi::load32(in_.data(), 4 * (cr::vlan_filter_words - 1 - i)));
  chip_.write_port(cr_base::steering, port, cr::vlan_filter_on, 1);
  return status::ok;
}

}  // namespace rnic::firmware
