// SPDX-License-Identifier: Apache-2.0
// What rdma_cm chooses for a connection before the communication manager makes it (core/cma.c, core/cma_configfs.c).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/device.h"

namespace rnic::host_driver::cm {

/// "IB/RoCE v1" or "RoCE v2" (core/cache.c: gid_type_str).
const char* name_of(ibv_gid_type type);
/// A type by that name, with or without a newline behind it; nothing for others.
std::optional<ibv_gid_type> type_named(const std::string& text);

/// Service level of a type of service: its three highest bits (distribution's manual, "Type Of Service (ToS)"). The
/// driver takes the three lowest bits of the service level for the PCP of a tagged frame.
///
/// Kernels without the distribution's rdma_cm map the ToS to a packet priority and that by the interface's egress map
/// (core/cma.c:iboe_tos_to_sl), which is 0 unless an administrator has made one.
constexpr std::uint8_t service_level_of(std::uint8_t tos) { return static_cast<std::uint8_t>(tos >> 5); }

/// RoCE version and type of service by default of each port of a device (configfs rdma_cm/DEVICE/ports/PORT), and what
/// follows from them. They begin as config::cma_roce_mode and cma_roce_tos have them.
class cma {
 public:
  /// The device is open.
  explicit cma(const device& of);

  ibv_gid_type default_roce_mode(unsigned port) const { return ports_.at(port - 1).type; }
  /// -EINVAL: there is no such port, or the device has not this version.
  int set_default_roce_mode(unsigned port, ibv_gid_type type);
  std::uint8_t default_roce_tos(unsigned port) const { return ports_.at(port - 1).tos; }
  int set_default_roce_tos(unsigned port, std::uint8_t tos);

  /// The row of a port's GID table that a connection from this address begins with: the address in the port's default
  /// version. -ENODEV when there is none (rdma_resolve_addr, rdma_bind_addr: cma_acquire_dev_by_src_ip).
  int source_row(unsigned port, const gid_bytes& address, std::uint16_t vlan = no_vlan) const;
  /// Whether a request that has come to this row is taken: its address has to have a row of the default version as
  /// well, whatever version the request came in, which is then the connection's (cma_ib_acquire_dev). Where it has not,
  /// Linux refuses with reason 28, as if the application had (core/cm.c:cm_destroy_id); a SIDR request with status 2.
  bool admits(unsigned port, int row) const;

 private:
  struct of_port {
    ibv_gid_type type = IBV_GID_TYPE_ROCE_V1;
    std::uint8_t tos = 0;
  };
  bool has(unsigned port) const { return port != 0 && port <= ports_.size(); }

  const device& device_;
  std::vector<of_port> ports_;
};

}  // namespace rnic::host_driver::cm
