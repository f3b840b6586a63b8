// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/inspect/inspected_host.h"

#include <fmt/format.h>

#include <cerrno>
#include <vector>

#include "testbenches/bench/usage_error.h"
#include "testbenches/rnic/inspect/interfaces.h"
#include "testbenches/rnic/measure/experiment.h"

namespace rnic::program {

using host_driver::device;
using host_driver::gid_bytes;
using host_driver::gid_row;

std::string device_name(const hosts::two_nodes& system) {
  return fmt::format("mlx4_{}", unsigned{system.config().node.function});
}

std::string in_groups(const gid_bytes& id) {
  std::string s;
  for (unsigned i = 0; i < 16; i += 2) s += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", id[i], id[i + 1]);
  return s;
}

std::string in_dots(const gid_bytes& id) { return fmt::format("{}.{}.{}.{}", id[12], id[13], id[14], id[15]); }

std::string gid_line(const std::string& name, const device& d, unsigned port, unsigned index) {
  const gid_row& row = d.port(port).gids[index];
  return fmt::format("{}\t{}\t{}\t{}\t{:<14}\t{}\t{}\n", name, port, index, in_groups(row.id),
                     host_driver::is_ipv4(row.id) ? in_dots(row.id) + " " : "",
                     row.type == IBV_GID_TYPE_ROCE_V2 ? "v2" : "v1", interface_of(d, port, row));
}

void inspect(const inspect_options& o, const std::function<void(hosts::two_nodes&, device&)>& look) {
  std::vector<interface_address> addresses;
  for (const std::string& a : o.addresses) addresses.push_back(parse_address("--ip", a));
  traffic_options traffic;
  hosts::two_nodes_config c = system_from(o.common, traffic, demand{}, nullptr, one_adapter);
  hosts::two_nodes system(c);
  if (!o.device.empty() && o.device != device_name(system))
    throw usage_error(fmt::format("device '{}': the host has {}", o.device, device_name(system)));
  system.run(
      [&] {
        system.meet();
        device& d = *system.a().device;
        for (std::size_t i = 0; i < addresses.size(); ++i) {
          const interface_address& a = addresses[i];
          check_interface(d, fmt::format("--ip: '{}'", o.addresses[i]), a.at);
          const int row = d.add_address(a.at.port, a.ip, host_driver::roce_types::both, a.at.vlan);
          if (row == -ENOSPC)
            throw usage_error(fmt::format("--ip: '{}': the GID table of port {} is full: the function has {} entries",
                                          o.addresses[i], a.at.port, d.port(a.at.port).gid_rows));
          if (row == -EINVAL)
            throw usage_error(fmt::format("--ip: '{}': another function has this address", o.addresses[i]));
          hosts::require(row, "add address");
        }
        look(system, d);
      },
      [&] { system.meet(); });
}

}  // namespace rnic::program
