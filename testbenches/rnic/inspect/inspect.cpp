// SPDX-License-Identifier: Apache-2.0
// What an administrator of the host asks about its device: show-gids, devinfo, ibstat, ibdev2netdev, sysfs.
#include "testbenches/rnic/inspect/inspect.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "host_driver/cm/cma.h"
#include "host_driver/hosts/two_nodes.h"
#include "host_driver/hw_counters.h"
#include "testbenches/bench/usage_error.h"
#include "testbenches/rnic/inspect/inspected_host.h"
#include "testbenches/rnic/inspect/interfaces.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

using host_driver::device;
using host_driver::gid_bytes;
using host_driver::gid_row;

std::string guid_in_groups(std::uint64_t network_order) {
  std::array<std::uint8_t, 8> b{};
  std::memcpy(b.data(), &network_order, b.size());
  return fmt::format("{:02x}{:02x}:{:02x}{:02x}:{:02x}{:02x}:{:02x}{:02x}", b[0], b[1], b[2], b[3], b[4], b[5], b[6],
                     b[7]);
}

/// Interface identifier of the port's default GID.
std::uint64_t port_guid(const device& d, unsigned port) {
  const gid_bytes id = host_driver::default_gid(d.port(port).mac);
  std::uint64_t guid = 0;
  for (unsigned i = 8; i < 16; ++i) guid = guid << 8 | id[i];
  return guid;
}

/// A port as the kernel's InfiniBand core says it (core/sysfs.c).
struct port_view {
  ibv_port_attr attr{};
  std::string state, physical, rate;
  unsigned gbps = 0;
};

port_view look_at(device& d, unsigned port) {
  port_view v;
  hosts::require(d.query_port(port, &v.attr), "query_port");
  constexpr std::array<const char*, 6> states{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  constexpr std::array<const char*, 8> physical{
      "<unknown>",         "Sleep",   "Polling", "Disabled", "PortConfigurationTraining", "LinkUp",
      "LinkErrorRecovery", "Phy Test"};
  v.state = fmt::format("{}: {}", static_cast<unsigned>(v.attr.state), states.at(v.attr.state));
  v.physical = fmt::format("{}: {}", unsigned{v.attr.phys_state}, physical.at(v.attr.phys_state));
  struct speed {
    unsigned code;
    unsigned tenths;  // of Gb/s, a lane
    const char* name;
  };
  constexpr speed speeds[] = {{2, 50, " DDR"},   {4, 100, " QDR"},  {8, 100, " FDR10"}, {16, 140, " FDR"},
                              {32, 250, " EDR"}, {64, 500, " HDR"}, {128, 1000, " NDR"}};
  const unsigned lanes = v.attr.active_width == 1   ? 1
                         : v.attr.active_width == 2 ? 4
                         : v.attr.active_width == 4 ? 8
                                                    : 12;
  speed s{1, 25, ""};
  for (const speed& known : speeds)
    if (known.code == v.attr.active_speed) s = known;
  const unsigned tenths = s.tenths * lanes;
  v.gbps = tenths / 10;
  v.rate = fmt::format("{}{} Gb/sec ({}X{})", tenths / 10, tenths % 10 != 0 ? ".5" : "", lanes, s.name);
  return v;
}

ibv_device_attr attributes_of(device& d) {
  ibv_device_attr a{};
  hosts::require(d.query_device(&a), "query_device");
  return a;
}

void put_file(const std::filesystem::path& at, const std::string& text) {
  std::filesystem::create_directories(at.parent_path());
  std::ofstream file(at);
  file << text << '\n';
  if (!file.good()) throw usage_error(fmt::format("{}: {}", at.string(), std::strerror(errno)));
}

/// Of a port, or of the device (0).
void put_hw_counters(const std::filesystem::path& at, device& d, unsigned port) {
  std::vector<host_driver::hw_counter> counters;
  const int error = query_hw_counters(d, port, &counters);
  if (error == -EOPNOTSUPP) return;  // a virtual function has none (ib/main.c: mlx4_ib_alloc_diag_counters)
  hosts::require(error, "query_hw_counters");
  for (const host_driver::hw_counter& c : counters) put_file(at / "hw_counters" / c.name, std::to_string(c.value));
}

void put_port(const std::filesystem::path& at, device& d, unsigned port) {
  const port_view v = look_at(d, port);
  const auto& p = d.port(port);
  put_file(at / "state", v.state);
  put_file(at / "phys_state", v.physical);
  put_file(at / "rate", v.rate);
  put_file(at / "link_layer", "Ethernet");
  put_file(at / "lid", fmt::format("{:#x}", v.attr.lid));
  put_file(at / "lid_mask_count", fmt::format("{}", unsigned{v.attr.lmc}));
  put_file(at / "sm_lid", fmt::format("{:#x}", v.attr.sm_lid));
  put_file(at / "sm_sl", fmt::format("{}", unsigned{v.attr.sm_sl}));
  put_file(at / "cap_mask", fmt::format("{:#010x}", v.attr.port_cap_flags));
  put_file(at / "pkeys" / "0", "0xffff");
  for (unsigned i = 0; i < p.gid_rows; ++i) {
    const gid_row& row = p.gids[i];
    const std::string index = std::to_string(i);
    put_file(at / "gids" / index, in_groups(row.valid ? row.id : gid_bytes{}));
    if (!row.valid) continue;  // reading them fails
    put_file(at / "gid_attrs" / "types" / index, host_driver::cm::name_of(row.type));
    put_file(at / "gid_attrs" / "ndevs" / index, interface_of(d, port, row));
  }
  host_driver::traffic_statistics t;
  hosts::require(d.query_traffic(port, &t), "query_traffic");
  const std::filesystem::path counters = at / "counters";
  put_file(counters / "port_xmit_data", std::to_string(t.tx_bytes >> 2));  // in units of 4 bytes
  put_file(counters / "port_rcv_data", std::to_string(t.rx_bytes >> 2));
  put_file(counters / "port_xmit_packets", std::to_string(t.tx_frames));
  put_file(counters / "port_rcv_packets", std::to_string(t.rx_frames));
  put_hw_counters(at, d, port);
}

/// A file of the vendor's distribution; an empty one when nothing is in it.
void put_text(const std::filesystem::path& at, std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  put_file(at, text);
}

/// Prints what the tool of that name prints, and its lines as JSON.
int show(const inspect_options& o, const char* command, const std::string& text) {
  fmt::print("{}", text);
  if (o.common.json_file.empty()) return 0;
  nlohmann::json lines = nlohmann::json::array();
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  nlohmann::json result = run_header(command, o.common);
  result["lines"] = lines;
  write_json(o.common.json_file, result);
  return 0;
}

}  // namespace

/// As the script of the vendor's distribution prints it.
int run_show_gids(const inspect_options& o) {
  check_writable(o.common, o.common.json_file);
  std::string text =
      "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n"
      "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n";
  nlohmann::json rows = nlohmann::json::array();
  inspect(o, [&](hosts::two_nodes& system, device& d) {
    const std::string name = device_name(system);
    for (unsigned port = 1; port <= d.num_ports(); ++port)
      for (unsigned i = 0; i < d.port(port).gid_rows; ++i) {
        const gid_row& row = d.port(port).gids[i];
        if (!row.valid) continue;
        const bool four = host_driver::is_ipv4(row.id);
        const std::string where = interface_of(d, port, row);
        text += gid_line(name, d, port, i);
        rows.push_back({{"device", name},
                        {"port", port},
                        {"index", i},
                        {"gid", in_groups(row.id)},
                        {"ipv4", four ? in_dots(row.id) : ""},
                        {"version", row.type == IBV_GID_TYPE_ROCE_V2 ? "v2" : "v1"},
                        {"interface", where}});
      }
  });
  text += fmt::format("n_gids_found={}\n", rows.size());
  fmt::print("{}", text);
  if (!o.common.json_file.empty()) {
    nlohmann::json result = run_header("show-gids", o.common);
    result["gids"] = rows;
    write_json(o.common.json_file, result);
  }
  return 0;
}

/// ibv_devices.
int run_devices(const inspect_options& o) {
  check_writable(o.common, o.common.json_file);
  std::string text = fmt::format("    {:<16}\t   node GUID\n    {:<16}\t----------------\n", "device", "------");
  inspect(o, [&](hosts::two_nodes& system, device& d) {
    text += fmt::format("    {:<16}\t{:016x}\n", device_name(system), __builtin_bswap64(attributes_of(d).node_guid));
  });
  return show(o, "devices", text);
}

/// ibv_devinfo without -v.
int run_devinfo(const inspect_options& o) {
  check_writable(o.common, o.common.json_file);
  std::string text;
  inspect(o, [&](hosts::two_nodes& system, device& d) {
    const ibv_device_attr a = attributes_of(d);
    const auto line = [&text](unsigned depth, const std::string& name, const std::string& value) {
      text +=
          fmt::format("{}{}:{}{}\n", std::string(depth, '\t'), name, std::string(name.size() < 7 ? 3 : 2, '\t'), value);
    };
    text += fmt::format("hca_id:\t{}\n", device_name(system));
    line(1, "transport", "InfiniBand (0)");
    line(1, "fw_ver", a.fw_ver);
    line(1, "node_guid", guid_in_groups(a.node_guid));
    line(1, "sys_image_guid", guid_in_groups(a.sys_image_guid));
    line(1, "vendor_id", fmt::format("{:#06x}", a.vendor_id));
    line(1, "vendor_part_id", std::to_string(a.vendor_part_id));
    line(1, "hw_ver", fmt::format("0x{:X}", a.hw_ver));
    if (*d.board_id().data() != 0) line(1, "board_id", d.board_id().data());  // a virtual function cannot ask for it
    line(1, "phys_port_cnt", std::to_string(a.phys_port_cnt));
    for (unsigned port = 1; port <= d.num_ports(); ++port) {
      const port_view v = look_at(d, port);
      const auto mtu = [](ibv_mtu code) {
        if (code == 0) return std::string("invalid MTU (0)");
        return fmt::format("{} ({})", 128u << code, static_cast<unsigned>(code));
      };
      text += fmt::format("\t\tport:\t{}\n", port);
      line(3, "state", fmt::format("PORT_{} ({})", v.state.substr(3), static_cast<unsigned>(v.attr.state)));
      line(3, "max_mtu", mtu(v.attr.max_mtu));
      line(3, "active_mtu", mtu(v.attr.active_mtu));
      line(3, "sm_lid", std::to_string(v.attr.sm_lid));
      line(3, "port_lid", std::to_string(v.attr.lid));
      line(3, "port_lmc", fmt::format("{:#04x}", v.attr.lmc));
      line(3, "link_layer", "Ethernet");
    }
  });
  return show(o, "devinfo", text + "\n");
}

int run_ibstat(const inspect_options& o) {
  check_writable(o.common, o.common.json_file);
  std::string text;
  inspect(o, [&](hosts::two_nodes& system, device& d) {
    const ibv_device_attr a = attributes_of(d);
    text += fmt::format("CA '{}'\n", device_name(system));
    text += fmt::format("\tCA type: MT{}\n", d.device_id());
    text += fmt::format("\tNumber of ports: {}\n", d.num_ports());
    text += fmt::format("\tFirmware version: {}\n", a.fw_ver);
    text += fmt::format("\tHardware version: {:x}\n", a.hw_ver);
    text += fmt::format("\tNode GUID: {:#018x}\n", __builtin_bswap64(a.node_guid));
    text += fmt::format("\tSystem image GUID: {:#018x}\n", __builtin_bswap64(a.sys_image_guid));
    for (unsigned port = 1; port <= d.num_ports(); ++port) {
      const port_view v = look_at(d, port);
      const std::string state = v.state.substr(3), physical = v.physical.substr(3);
      text += fmt::format("\tPort {}:\n", port);
      text += fmt::format("\t\tState: {}\n", state == "ACTIVE" ? "Active" : "Down");
      text += fmt::format("\t\tPhysical state: {}\n", physical);
      text += fmt::format("\t\tRate: {}\n", v.gbps);
      text += fmt::format("\t\tBase lid: {}\n", v.attr.lid);
      text += fmt::format("\t\tLMC: {}\n", unsigned{v.attr.lmc});
      text += fmt::format("\t\tSM lid: {}\n", v.attr.sm_lid);
      text += fmt::format("\t\tCapability mask: {:#010x}\n", v.attr.port_cap_flags);
      text += fmt::format("\t\tPort GUID: {:#018x}\n", port_guid(d, port));
      text += "\t\tLink layer: Ethernet\n";
    }
  });
  return show(o, "ibstat", text);
}

int run_ibdev2netdev(const inspect_options& o) {
  check_writable(o.common, o.common.json_file);
  std::string text;
  inspect(o, [&](hosts::two_nodes& system, device& d) {
    for (unsigned port = 1; port <= d.num_ports(); ++port)
      text += fmt::format("{} port {} <===> {}\n", device_name(system), port, port_interface(d, port).text());
  });
  return show(o, "ibdev2netdev", text);
}

/// The device's directory below class/infiniband, and that of rdma_cm below kernel/config.
/// Devices that an earlier run wrote: what this one has no file for would stay beside its files.
void remove_devices(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  const fs::path devices = root / "class" / "infiniband";
  if (!fs::is_directory(devices)) return;
  std::vector<fs::path> old;
  for (const fs::directory_entry& e : fs::directory_iterator(devices))
    if (e.path().filename().string().rfind("mlx4_", 0) == 0 && fs::exists(e.path() / "fw_ver")) old.push_back(e.path());
  for (const fs::path& device : old) {
    fs::remove_all(device);
    fs::remove_all(root / "kernel" / "config" / "rdma_cm" / device.filename());
  }
}

int run_sysfs(const inspect_options& o) {
  const std::filesystem::path root(o.directory);
  if (std::filesystem::exists(root) && !o.common.overwrite)
    throw usage_error(fmt::format("{}: exists; --overwrite replaces its files", o.directory));
  inspect(o, [&](hosts::two_nodes& system, device& d) {
    remove_devices(root);
    const ibv_device_attr a = attributes_of(d);
    const std::filesystem::path at = root / "class" / "infiniband" / device_name(system);
    put_file(at / "fw_ver", a.fw_ver);
    put_file(at / "hca_type", fmt::format("MT{}", d.device_id()));
    put_file(at / "hw_rev", fmt::format("{:x}", a.hw_ver));
    put_file(at / "board_id", d.board_id().data());
    put_file(at / "node_type", "1: CA");
    put_file(at / "node_guid", guid_in_groups(a.node_guid));
    put_file(at / "sys_image_guid", guid_in_groups(a.sys_image_guid));
    put_hw_counters(at, d, 0);
    const host_driver::cm::cma connections(d);
    for (unsigned port = 1; port <= d.num_ports(); ++port) {
      const std::string number = std::to_string(port);
      put_port(at / "ports" / number, d, port);
      put_text(at / "tc" / number / "traffic_class", d.forced(port).traffic_class_text());
      put_text(at / "tc" / number / "ttl", d.forced(port).ttl_text());
      const std::filesystem::path managed =
          root / "kernel" / "config" / "rdma_cm" / device_name(system) / "ports" / number;
      put_file(managed / "default_roce_mode", host_driver::cm::name_of(connections.default_roce_mode(port)));
      put_file(managed / "default_roce_tos", std::to_string(connections.default_roce_tos(port)));
    }
  });
  return 0;
}

}  // namespace rnic::program
