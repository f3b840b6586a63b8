// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/inspect/commands.h"

#include "testbenches/rnic/inspect/address_commands.h"
#include "testbenches/rnic/option_groups.h"

namespace rnic::program {

CLI::App& add_device_command(command_line& line, const char* name, const char* what, inspect_options& o) {
  CLI::App& command = line.add(name, what);
  command
      .add_option("--ip", o.addresses,
                  "An address of an interface, in the order in which they are given; repeatable. Interfaces are\n"
                  "eth1 and eth2 above the ports, bond0 of --bond, eth1.VLAN, and eth1:ALIAS;\n"
                  "e.g. --ip eth1.100=192.168.100.1")
      ->type_name("INTERFACE=ADDRESS")
      ->take_all();
  command
      .add_option_function<unsigned>(
          "--roce-mode",
          [&o](unsigned mode) {
            o.common.assignments.push_back(std::string("driver.roce_mode=") + (mode == 0   ? "v1"
                                                                               : mode == 2 ? "v2"
                                                                                           : "both"));
          },
          "Module parameter roce_mode: 0: RoCE v1, 2: RoCE v2, 4: an entry of each (default)")
      ->check(CLI::IsMember({0u, 2u, 4u}));
  add_bond(command, o.common);
  add_common(command, o.common);
  return command;
}

namespace {

/// One that does this with its options, which are returned.
inspect_options& add_inspection(command_line& line, const char* name, const char* what,
                                int (*run)(const inspect_options&), CLI::App** made = nullptr) {
  auto& o = line.keep(inspect_options{});
  CLI::App& command = add_device_command(line, name, what, o);
  line.on(command, [&o, run] { return run(o); });
  if (made != nullptr) *made = &command;
  return o;
}

constexpr const char* this_device = "This device and no other, as mlx4_0";

void add_devinfo(command_line& line) {
  struct devinfo_options : inspect_options {
    bool verbose = false;
  };
  auto& o = line.keep(devinfo_options{});
  CLI::App& command = add_device_command(line, "devinfo", "The device as ibv_devinfo shows it (-v: info)", o);
  command.add_flag("-v", o.verbose, "All that the device says: as `rnic info`, with the addresses of --ip");
  command.add_option("-d", o.device, this_device)->type_name("DEV");
  line.on(command, [&o] { return o.verbose ? run_verbose_devinfo(o) : run_devinfo(o); });
}

}  // namespace

void add_inspections(command_line& line) {
  CLI::App& info = line.add("info", "What the adapter says of itself, as ibv_devinfo -v shows it");
  auto& of_info = line.keep(info_options{});
  add_common(info, of_info.common);
  line.on(info, [&of_info] { return run_info(of_info); });

  add_inspection(line, "show-gids", "GID tables of both ports, as show_gids prints them", run_show_gids);
  add_inspection(line, "devices", "The device as ibv_devices lists it", run_devices);
  add_devinfo(line);
  CLI::App* command = nullptr;
  auto& of_ibstat = add_inspection(line, "ibstat", "The device as ibstat shows it", run_ibstat, &command);
  command->add_option("device", of_ibstat.device, this_device)->type_name("DEV");
  add_inspection(line, "ibdev2netdev", "Which network interface is at which port", run_ibdev2netdev);
  auto& of_sysfs = add_inspection(
      line, "sysfs", "Writes what /sys has of the device, class/infiniband, into a directory", run_sysfs, &command);
  command->add_option("directory", of_sysfs.directory, "Where to; must not exist")->required()->type_name("DIR");
  add_address_commands(line);
}

}  // namespace rnic::program
