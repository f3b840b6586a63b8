// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/inspect/address_commands.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cerrno>
#include <functional>
#include <string>

#include "host_driver/cm/cma.h"
#include "testbenches/bench/usage_error.h"
#include "testbenches/rnic/inspect/commands.h"
#include "testbenches/rnic/inspect/inspected_host.h"
#include "testbenches/rnic/inspect/interfaces.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

namespace cm = host_driver::cm;
using host_driver::device;

interface_name interface_from(const std::string& text) {
  for (const interface_name& known :
       {interface_name{1}, interface_name{2}, interface_name{1, host_driver::no_vlan, true}})
    if (text == known.text()) return known;
  throw usage_error(fmt::format("-d: '{}': expected eth1, eth2 or bond0", text));
}

/// Lets `change` at the defaults of the device's connections, and says what they are then.
int show_connections(const cma_options& o, const char* command,
                     const std::function<void(cm::cma&, nlohmann::json&)>& change_and_show) {
  check_writable(o.host.common, o.host.common.json_file);
  nlohmann::json result = run_header(command, o.host.common);
  inspect(o.host, [&](hosts::two_nodes& system, device& d) {
    if (!o.device.empty() && o.device != device_name(system))
      throw usage_error(fmt::format("-d: '{}': the host has {}", o.device, device_name(system)));
    if (o.port == 0 || o.port > d.num_ports())
      throw usage_error(
          fmt::format("-p: {}: {} has port 1{}", o.port, device_name(system), d.num_ports() > 1 ? " and 2" : ""));
    cm::cma connections(d);
    change_and_show(connections, result);
  });
  if (!o.host.common.json_file.empty()) write_json(o.host.common.json_file, result);
  return 0;
}

int run_compat_gid(const compat_gid_options& o) {
  check_writable(o.host.common, o.host.common.json_file);
  interface_name at = interface_from(o.interface);
  const unsigned port = at.port;
  if (o.vlan_interface) at.vlan = o.vlan;
  std::string text;
  nlohmann::json result = run_header("compat-gid", o.host.common);
  inspect(o.host, [&](hosts::two_nodes& system, device& d) {
    check_interface(d, fmt::format("-d: '{}'", o.interface), at);
    const auto gid =
        host_driver::compatibility_gid(d.port(port).mac, o.vlan != 0 ? std::optional(o.vlan) : std::nullopt);
    char address[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, gid.data(), address, sizeof address);
    result["address"] = address;
    result["interface"] = at.text();
    if (o.dry) {
      if (o.vlan_interface)
        text += fmt::format("ip link add link {} name {} type vlan id {}\n", o.interface, at.text(), o.vlan);
      text += fmt::format("ip -6 addr add {}/64 dev {}\n", address, at.text());
      return;
    }
    const int row = d.add_address(port, gid, host_driver::roce_types::both, at.vlan);
    if (row == -ENOSPC)
      throw usage_error(fmt::format("-d: '{}': the GID table of port {} is full: the function has {} entries",
                                    o.interface, port, d.port(port).gid_rows));
    if (row == -EINVAL) throw usage_error(fmt::format("-d: '{}': another function has this address", o.interface));
    hosts::require(row, "add address");
    text += fmt::format("address {}/64 was added to {}\n", address, at.text());
    for (unsigned i = 0; i < d.port(port).gid_rows; ++i) {
      const auto& entry = d.port(port).gids[i];
      if (!entry.valid || entry.id != gid || entry.vlan != at.vlan) continue;
      text += gid_line(device_name(system), d, port, i);
      result["rows"].push_back(i);
    }
  });
  fmt::print("{}", text);
  if (!o.host.common.json_file.empty()) write_json(o.host.common.json_file, result);
  return 0;
}

int run_cma_roce_mode(const cma_options& o) {
  return show_connections(o, "cma-roce-mode", [&o](cm::cma& connections, nlohmann::json& result) {
    const ibv_gid_type type = o.value == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    if (o.value >= 0 && connections.set_default_roce_mode(o.port, type) != 0)
      throw usage_error(fmt::format("-m: {}: the adapter has RoCE v1 only, expected 1", o.value));
    const char* const mode = cm::name_of(connections.default_roce_mode(o.port));
    fmt::print("{}\n", mode);
    result["default_roce_mode"] = mode;
  });
}

int run_cma_roce_tos(const cma_options& o) {
  return show_connections(o, "cma-roce-tos", [&o](cm::cma& connections, nlohmann::json& result) {
    if (o.value >= 0)
      hosts::require(connections.set_default_roce_tos(o.port, static_cast<std::uint8_t>(o.value)), "default_roce_tos");
    fmt::print("{}\n", connections.default_roce_tos(o.port));
    result["default_roce_tos"] = connections.default_roce_tos(o.port);
  });
}

void add_compat_gid(command_line& line) {
  auto& o = line.keep(compat_gid_options{});
  CLI::App& command = add_device_command(
      line, "compat-gid", "Adds the address by which hosts of RoCE v1 are known that have no IP addresses", o.host);
  command.add_option("-d", o.interface, "Network interface of a port, or the bond's: eth1, eth2 or bond0")
      ->required()
      ->type_name("NETDEV");
  const CLI::Range vids(1, 4094);
  CLI::Option* const own =
      command.add_option("-v", o.vlan, "VLAN ID of the remote interface, which becomes part of the GID")
          ->check(vids)
          ->type_name("VLAN");
  command
      .add_option_function<std::uint16_t>(
          "-V",
          [&o](std::uint16_t vlan) {
            o.vlan = vlan;
            o.vlan_interface = true;
          },
          "The same, and the address is one of the local interface of this VLAN")
      ->check(vids)
      ->excludes(own)
      ->type_name("VLAN");
  command.add_flag("-n", o.dry, "Only prints the commands that do it on a Linux host");
  line.on(command, [&o] { return run_compat_gid(o); });
}

/// With the option that sets the value.
CLI::Option* add_connections(command_line& line, const char* name, const char* what, int (*run)(const cma_options&),
                             const char* set, const char* what_is_set) {
  auto& o = line.keep(cma_options{});
  CLI::App& command = add_device_command(line, name, what, o.host);
  command.add_option("-d", o.device, "The device: the host's when it is left out")->type_name("DEV");
  command.add_option("-p", o.port, "Its port")->type_name("PORT")->capture_default_str();
  line.on(command, [&o, run] { return run(o); });
  return command.add_option(set, o.value, what_is_set);
}

}  // namespace

void add_address_commands(command_line& line) {
  add_compat_gid(line);
  add_connections(line, "cma-roce-mode", "RoCE version in which rdma_cm connects, as cma_roce_mode shows it",
                  run_cma_roce_mode, "-m", "Sets it: 1 or 2")
      ->check(CLI::IsMember({1, 2}))
      ->type_name("MODE");
  add_connections(line, "cma-roce-tos", "ToS of rdma_cm's connections that set none, as cma_roce_tos shows it",
                  run_cma_roce_tos, "-t", "Sets it")
      ->check(CLI::Range(0, 255))
      ->type_name("TOS");
}

}  // namespace rnic::program
