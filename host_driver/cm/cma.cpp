// SPDX-License-Identifier: Apache-2.0
#include "host_driver/cm/cma.h"

#include <cerrno>

#include "model/abi/device.h"

namespace rnic::host_driver::cm {

namespace {

bool has_v2(const device& d) { return (d.caps().bmme_flags & abi::dev_cap::bmme_roce_v1_v2) != 0; }

ibv_gid_type first_type(const device& d) {
  using version = config::connection_version;
  const bool v1 = d.settings().cma_roce_mode == version::v1 || !has_v2(d);
  return v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
}

}  // namespace

const char* name_of(ibv_gid_type type) { return type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1"; }

std::optional<ibv_gid_type> type_named(const std::string& text) {
  const std::string line = !text.empty() && text.back() == '\n' ? text.substr(0, text.size() - 1) : text;
  for (const ibv_gid_type type : {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2})
    if (line == name_of(type)) return type;
  return std::nullopt;
}

cma::cma(const device& of) : device_(of), ports_(of.num_ports(), {first_type(of), of.settings().cma_roce_tos}) {}

int cma::set_default_roce_mode(unsigned port, ibv_gid_type type) {
  const bool known = type == IBV_GID_TYPE_ROCE_V1 || (type == IBV_GID_TYPE_ROCE_V2 && has_v2(device_));
  if (!has(port) || !known) return -EINVAL;
  ports_[port - 1].type = type;
  return 0;
}

int cma::set_default_roce_tos(unsigned port, std::uint8_t tos) {
  if (!has(port)) return -EINVAL;
  ports_[port - 1].tos = tos;
  return 0;
}

int cma::source_row(unsigned port, const gid_bytes& address, std::uint16_t vlan) const {
  if (!has(port)) return -ENODEV;
  const int row = device_.find_gid(port, address, ports_[port - 1].type, vlan);
  return row < 0 ? -ENODEV : row;
}

bool cma::admits(unsigned port, int row) const {
  if (!has(port) || row < 0 || static_cast<unsigned>(row) >= device_.port(port).gid_rows) return false;
  const gid_row& asked = device_.port(port).gids[static_cast<std::size_t>(row)];
  return asked.valid && source_row(port, asked.id, asked.vlan) >= 0;
}

}  // namespace rnic::host_driver::cm
