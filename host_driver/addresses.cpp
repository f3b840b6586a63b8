// SPDX-License-Identifier: Apache-2.0
// GID tables and neighbours (adapter data plane F.1, F.2, B.1).
#include <algorithm>
#include <cerrno>

#include "host_driver/device.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

int device::add_address(unsigned port, const gid_bytes& ip, roce_types types, std::uint16_t vlan) {
  if (!has_port(port)) return -EINVAL;
  if (vlan != no_vlan && vlan >= 0x1000) return -EINVAL;
  const bool v2_capable = (caps_.bmme_flags & abi::dev_cap::bmme_roce_v1_v2) != 0;
  using mode = config::roce_versions;
  const roce_types on = cfg_.roce_mode == mode::v1   ? roce_types::v1
                        : cfg_.roce_mode == mode::v2 ? roce_types::v2
                                                     : roce_types::both;
  types = static_cast<roce_types>(static_cast<unsigned>(types) & static_cast<unsigned>(on));
  const bool none = static_cast<unsigned>(types) == 0;
  if (none || (types == roce_types::v2 && !v2_capable)) return -EOPNOTSUPP;
  auto& rows = ports_[port - 1].gids;
  const auto before = rows;
  int first = -1;
  unsigned added = 0;
  for (const ibv_gid_type type : {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2}) {
    const roce_types bit = type == IBV_GID_TYPE_ROCE_V1 ? roce_types::v1 : roce_types::v2;
    if ((static_cast<unsigned>(types) & static_cast<unsigned>(bit)) == 0) continue;
    if (type == IBV_GID_TYPE_ROCE_V2 && !v2_capable) continue;
    if (const int old = find_gid(port, ip, type, vlan); old >= 0) {
      if (first < 0) first = old;
      continue;
    }
    const auto end = rows.begin() + ports_[port - 1].gid_rows;
    const auto place = std::find_if(rows.begin(), end, [](const gid_row& r) { return !r.valid; });
    if (place == end) {
      rows = before;
      return -ENOSPC;
    }
    *place = {ip, type, vlan, true};
    ++added;
    if (first < 0) first = static_cast<int>(place - rows.begin());
    if (const int error = write_gid_table(port)) {  // once for each row, as ib_core adds them
      rows = before;
      return error;
    }
  }
  for (unsigned i = 0; vlan != no_vlan && i < added; ++i) {  // each row needs it
    const int index = add_vlan(port, vlan);
    if (index >= 0) continue;
    rows = before;
    write_gid_table(port);
    return index;  // at the first one or at none: the others find it
  }
  neighbours_[ip] = ports_[port - 1].mac;
  return first;
}

int device::remove_address(unsigned port, const gid_bytes& ip, std::uint16_t vlan) {
  if (!has_port(port)) return -EINVAL;
  unsigned found = 0;
  for (unsigned i = 0; i < ports_[port - 1].gid_rows; ++i) {
    gid_row& row = ports_[port - 1].gids[i];
    if (!row.valid || row.id != ip || row.vlan != vlan) continue;
    row = gid_row{};
    ++found;
    if (const int error = write_gid_table(port)) return error;
  }
  if (found == 0) return -ENOENT;
  neighbours_.erase(ip);
  const auto& vlans = ports_[port - 1].vlans;
  const auto at = std::find(vlans.begin(), vlans.end(), abi::set_port::vlan_valid | vlan);
  int error = 0;
  for (; vlan != no_vlan && found != 0; --found)
    if (const int e = remove_vlan(port, static_cast<unsigned>(at - vlans.begin())); e != 0) error = e;
  return error;
}

int device::find_gid(unsigned port, const gid_bytes& id, ibv_gid_type type, std::uint16_t vlan) const {
  if (!has_port(port)) return -EINVAL;
  const auto& rows = ports_[port - 1].gids;
  const auto end = rows.begin() + ports_[port - 1].gid_rows;
  const auto at = std::find_if(
      rows.begin(), end, [&](const gid_row& r) { return r.valid && r.id == id && r.type == type && r.vlan == vlan; });
  return at == end ? -ENOENT : static_cast<int>(at - rows.begin());
}

int device::resolve(const gid_bytes& gid, mac_address* mac) const {
  if (const auto at = neighbours_.find(gid); at != neighbours_.end()) {
    *mac = at->second;
    return 0;
  }
  const auto implied = implied_mac(gid);
  if (!implied) return -EHOSTUNREACH;
  *mac = *implied;
  return 0;
}

}  // namespace rnic::host_driver
