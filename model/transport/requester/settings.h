// SPDX-License-Identifier: Apache-2.0
// Registers that firmware sets and several parts of the requester read.
#pragma once

#include <array>
#include <cstdint>

#include "model/gid/gid_table.h"
#include "model/transport/port_map.h"
#include "model/wire/packet.h"

namespace rnic::transport {

inline constexpr unsigned egress_ports = 2, egress_priorities = 8;
using gid_tables = std::array<const gid::gid_table*, egress_ports>;

/// Written by control only (transport_cr.h).
struct requester_settings {
  std::uint32_t reserved_lkey = 0;
  std::uint32_t special_base = 0;
  std::uint32_t num_qps_log = 0;
  std::uint16_t udp_port = wire::roce_v2_udp_port;
  std::array<std::uint32_t, egress_ports> port_mtu{};
  port_map ports;
  std::uint32_t vport = 0;  ///< selected one, as vport_rates numbers them
};

}  // namespace rnic::transport
