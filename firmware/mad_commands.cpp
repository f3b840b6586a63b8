// SPDX-License-Identifier: Apache-2.0
// Subnet management datagrams about this device (adapter control plane 4.17; IBA volume 1, 14.2.5).
#include <algorithm>
#include <cstring>

#include "firmware/firmware.h"
#include "model/mac/mac_cr.h"

namespace rnic::firmware {

namespace mad = abi::mad;

abi::status firmware::mad_ifc(command_request& r) {
  const std::uint32_t port = r.modifier & 0xffff;
  if (!valid_port(port)) return status::bad_param;
  if (const status s = read_mailbox(r, mad::bytes); s != status::ok) return s;
  if (in(mad::base_version) != 1) return status::bad_pkt;
  out_.fill(0);
  std::copy_n(in_.begin(), mad::data, out_.begin());
  put(mad::method, mad::method_get_response);
  put(mad::mad_status, answer_mad(port - 1));
  return write_mailbox(r, mad::bytes);
}

/// Fills the data in and gives the status of the datagram.
std::uint16_t firmware::answer_mad(unsigned port) {
  const std::uint8_t management_class = in(mad::management_class);
  const bool subnet = management_class == mad::class_subnet || management_class == mad::class_directed;
  if (!subnet || in(mad::method) != mad::method_get) return mad::status_bad_value;
  switch (in(mad::attribute)) {
    case mad::node_description:
      std::memcpy(out_.data() + mad::data, config_.node_description.data(),
                  std::min<std::size_t>(config_.node_description.size(), 64));
      return 0;
    case mad::node_info:
      answer_node_info(port);
      return 0;
    case mad::port_info:
      answer_port_info(port);
      return 0;
    case mad::guid_info:
      return answer_guid_info(port);
    case mad::pkey_table:
      // RoCE knows the default partition only.
      if ((in(mad::modifier)&0xffff) > 3) return mad::status_bad_value;
      if ((in(mad::modifier)&0xffff) == 0) abi::store16(out_.data(), mad::data, 0xffff);
      return 0;
    default:
      return mad::status_bad_value;
  }
}

void firmware::answer_node_info(unsigned port) {
  put(mad::node_base_version, 1);
  put(mad::node_class_version, 1);
  put(mad::node_type, 1);  // channel adapter
  put(mad::node_ports, config_.num_ports);
  put(mad::node_system_guid, config_.system_guid);
  put(mad::node_guid, config_.node_guid);
  put(mad::node_port_guid, config_.port_guid[port]);
  put(mad::node_partitions, 128);
  put(mad::node_device, config_.device_id);
  put(mad::node_revision, config_.revision);
  put(mad::node_local_port, port + 1);
  put(mad::node_vendor, 0x0002c9);
}

namespace {

/// Width and extended speed of PortInfo (IBA volume 1, 14.2.5.6; codes as in Linux ib_verbs.h) for rates that the lanes
/// of 10 Gb/s do not make.
struct lanes {
  unsigned width = 2;           // 4X
  unsigned extended_speed = 0;  // none
};
lanes lanes_of(std::uint32_t mbps) {
  constexpr unsigned width_1x = 1, width_4x = 2, width_2x = 16, edr = 2, hdr = 4, ndr = 8;
  switch (mbps) {
    case 25'000:
      return {width_1x, edr};
    case 50'000:
      return {width_2x, edr};
    case 100'000:
      return {width_4x, edr};
    case 200'000:
      return {width_4x, hdr};
    case 400'000:
      return {width_4x, ndr};
    default:
      return {};
  }
}

}  // namespace

void firmware::answer_port_info(unsigned port) {
  const bool up = (chip_.read_port(register_bus::cr_base::mac, port, mac::cr::port_status) & 1) != 0;
  constexpr unsigned state_down = 1, state_active = 4, physical_polling = 2, physical_up = 5;
  const std::uint32_t mbps = chip_.read_port(register_bus::cr_base::mac, port, mac::cr::link_rate);
  const lanes l = lanes_of(mbps);
  put(mad::port_gid_prefix, 0xfe80000000000000);
  put(mad::port_capability_mask, l.extended_speed != 0 ? mad::extended_speeds : 0u);
  put(mad::port_local_port, port + 1);
  put(mad::port_width_enabled, 3);
  put(mad::port_width_supported, 3);
  put(mad::port_width_active, l.width);
  put(mad::port_speed_state, 7u << 4 | (up ? state_active : state_down));
  put(mad::port_physical_state, (up ? physical_up : physical_polling) << 4 | physical_polling);
  put(mad::port_speed_active, 4u << 4 | 7u);
  put(mad::port_mtu_sl, 5u << 4);
  put(mad::port_vl_cap, 4);
  put(mad::port_mtu_cap, 5);
  put(mad::port_guid_cap, 128);
  put(mad::port_speed_extended, l.extended_speed << 4 | l.extended_speed);
}

std::uint16_t firmware::answer_guid_info(unsigned port) {
  if (in(mad::modifier) > 15) return mad::status_bad_value;
  if (in(mad::modifier) == 0) abi::store64(out_.data(), mad::data, config_.port_guid[port]);
  return 0;
}

}  // namespace rnic::firmware
