// SPDX-License-Identifier: Apache-2.0
// `rnic info`: the adapter as ibv_devinfo -v shows it, from what the driver queried. `rnic parameters`.
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "host_driver/hosts/two_nodes.h"
#include "model/wire/ethernet.h"
#include "testbenches/rnic/inspect/inspect.h"
#include "testbenches/rnic/inspect/inspected_host.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

namespace {

const char* state_name(ibv_port_state s) {
  switch (s) {
    case IBV_PORT_DOWN:
      return "PORT_DOWN (1)";
    case IBV_PORT_INIT:
      return "PORT_INIT (2)";
    case IBV_PORT_ARMED:
      return "PORT_ARMED (3)";
    case IBV_PORT_ACTIVE:
      return "PORT_ACTIVE (4)";
    default:
      return "invalid state";
  }
}

std::string guid_text(std::uint64_t network_order) {
  const auto* b = reinterpret_cast<const std::uint8_t*>(&network_order);
  return fmt::format("{:02x}{:02x}:{:02x}{:02x}:{:02x}{:02x}:{:02x}{:02x}", b[0], b[1], b[2], b[3], b[4], b[5], b[6],
                     b[7]);
}

unsigned mtu_of(ibv_mtu code) { return 128u << code; }

/// A code with its meaning in front, as in "4X (2)".
std::string meaning(std::initializer_list<std::pair<unsigned, const char*>> names, unsigned code) {
  for (const auto& [known, name] : names)
    if (known == code) return fmt::format("{} ({})", name, code);
  return fmt::format("invalid ({})", code);
}

std::string mtu_text(ibv_mtu code) { return fmt::format("{} ({})", mtu_of(code), static_cast<unsigned>(code)); }
std::string width_text(unsigned code) {
  return meaning({{1, "1X"}, {2, "4X"}, {4, "8X"}, {8, "12X"}, {16, "2X"}}, code);
}
std::string speed_text(unsigned code) {
  return meaning({{1, "2.5 Gbps"},
                  {2, "5.0 Gbps"},
                  {4, "10.0 Gbps"},
                  {8, "10.0 Gbps"},
                  {16, "14.0 Gbps"},
                  {32, "25.0 Gbps"},
                  {64, "50.0 Gbps"},
                  {128, "100.0 Gbps"}},
                 code);
}
std::string lanes_text(unsigned code) { return meaning({{1, "1"}, {2, "2"}, {3, "4"}, {4, "8"}, {5, "15"}}, code); }
std::string physical_text(unsigned code) {
  return meaning({{1, "SLEEP"},
                  {2, "POLLING"},
                  {3, "DISABLED"},
                  {4, "PORT_CONFIGURATION TRAINNING"},
                  {5, "LINK_UP"},
                  {6, "LINK_ERROR_RECOVERY"}},
                 code);
}
std::string atomic_text(ibv_atomic_cap code) {
  return meaning({{0, "ATOMIC_NONE"}, {1, "ATOMIC_HCA"}, {2, "ATOMIC_GLOB"}}, code);
}

constexpr std::pair<unsigned, const char*> capability_names[] = {
    {IBV_DEVICE_BAD_PKEY_CNTR, "BAD_PKEY_CNTR"},
    {IBV_DEVICE_BAD_QKEY_CNTR, "BAD_QKEY_CNTR"},
    {IBV_DEVICE_AUTO_PATH_MIG, "AUTO_PATH_MIG"},
    {IBV_DEVICE_CHANGE_PHY_PORT, "CHANGE_PHY_PORT"},
    {IBV_DEVICE_UD_AV_PORT_ENFORCE, "UD_AV_PORT_ENFORCE"},
    {IBV_DEVICE_PORT_ACTIVE_EVENT, "PORT_ACTIVE_EVENT"},
    {IBV_DEVICE_SYS_IMAGE_GUID, "SYS_IMAGE_GUID"},
    {IBV_DEVICE_RC_RNR_NAK_GEN, "RC_RNR_NAK_GEN"},
    {IBV_DEVICE_MEM_WINDOW, "MEM_WINDOW"},
    {IBV_DEVICE_UD_IP_CSUM, "UD_IP_CSUM"},
    {IBV_DEVICE_XRC, "XRC"},
    {IBV_DEVICE_MEM_MGT_EXTENSIONS, "MEM_MGT_EXTENSIONS"},
    {IBV_DEVICE_MEM_WINDOW_TYPE_2A, "MEM_WINDOW_TYPE_2A"},
    {IBV_DEVICE_MEM_WINDOW_TYPE_2B, "MEM_WINDOW_TYPE_2B"},
};

/// Version 1 in full, version 2 as an address, as that program does.
std::string gid_text(const wire::gid& id, ibv_gid_type type) {
  if (type == IBV_GID_TYPE_ROCE_V2) return wire::to_string(id);
  std::string s;
  for (unsigned i = 0; i < 16; i += 2) s += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", id[i], id[i + 1]);
  return s;
}

/// Collects lines for people and the same values as JSON.
class report {
 public:
  template <class T>
  void add(unsigned indent, const std::string& name, const T& value) {
    text += fmt::format("{:{}}{:<32}{}\n", "", indent * 8, name + ":", value);
    (*at)[name] = value;
  }
  /// Another text for people than the value.
  template <class T>
  void add(unsigned indent, const std::string& name, const T& value, const std::string& shown) {
    text += fmt::format("{:{}}{:<32}{}\n", "", indent * 8, name + ":", shown);
    (*at)[name] = value;
  }
  std::string text;
  nlohmann::json root;
  nlohmann::json* at = &root;
};

void describe_port(host_driver::device& d, unsigned port, report& r) {
  ibv_port_attr a{};
  hosts::require(d.query_port(port, &a), "query_port");
  r.text += fmt::format("        port:   {}\n", port);
  r.root["ports"].push_back(nlohmann::json::object());
  r.at = &r.root["ports"].back();
  r.add(2, "state", state_name(a.state));
  r.add(2, "max_mtu", mtu_of(a.max_mtu), mtu_text(a.max_mtu));
  r.add(2, "active_mtu", mtu_of(a.active_mtu), mtu_text(a.active_mtu));
  r.add(2, "sm_lid", a.sm_lid);
  r.add(2, "port_lid", a.lid);
  r.add(2, "port_lmc", fmt::format("{:#04x}", a.lmc));
  r.add(2, "link_layer", a.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
  r.add(2, "max_msg_sz", fmt::format("{:#x}", a.max_msg_sz));
  r.add(2, "port_cap_flags", fmt::format("{:#010x}", a.port_cap_flags));
  r.add(2, "port_cap_flags2", fmt::format("{:#06x}", a.port_cap_flags2));
  r.add(2, "max_vl_num", unsigned{a.max_vl_num}, lanes_text(a.max_vl_num));
  r.add(2, "bad_pkey_cntr", fmt::format("{:#x}", a.bad_pkey_cntr));
  r.add(2, "qkey_viol_cntr", fmt::format("{:#x}", a.qkey_viol_cntr));
  r.add(2, "sm_sl", unsigned{a.sm_sl});
  r.add(2, "pkey_tbl_len", a.pkey_tbl_len);
  r.add(2, "gid_tbl_len", a.gid_tbl_len);
  r.add(2, "subnet_timeout", unsigned{a.subnet_timeout});
  r.add(2, "init_type_reply", unsigned{a.init_type_reply});
  r.add(2, "active_width", unsigned{a.active_width}, width_text(a.active_width));
  r.add(2, "active_speed", unsigned{a.active_speed}, speed_text(a.active_speed));
  if (a.state == IBV_PORT_ACTIVE || a.phys_state != 0)
    r.add(2, "phys_state", unsigned{a.phys_state}, physical_text(a.phys_state));
  nlohmann::json gids = nlohmann::json::array();
  for (int i = 0; i < a.gid_tbl_len; ++i) {
    ibv_gid g{};
    ibv_gid_type type{};
    if (d.query_gid(port, i, &g) != 0 || d.query_gid_type(port, i, &type) != 0) continue;
    wire::gid id;
    std::copy(std::begin(g.raw), std::end(g.raw), id.begin());
    if (id == wire::gid{}) continue;
    const char* version = type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "RoCE v1";
    r.text += fmt::format("{:16}GID[{:3}]:{:23}{}, {}\n", "", i, "", gid_text(id, type), version);
    gids.push_back({{"index", i}, {"gid", wire::to_string(id)}, {"type", version}});
  }
  (*r.at)["gids"] = gids;
}

void describe_device(const std::string& called, host_driver::device& d, report& r) {
  ibv_device_attr a{};
  hosts::require(d.query_device(&a), "query_device");
  r.text = fmt::format("hca_id: {}\n", called);
  r.add(1, "transport", "InfiniBand (0)");
  r.add(1, "fw_ver", std::string(a.fw_ver));
  r.add(1, "node_guid", guid_text(a.node_guid));
  r.add(1, "sys_image_guid", guid_text(a.sys_image_guid));
  r.add(1, "vendor_id", fmt::format("{:#06x}", a.vendor_id));
  r.add(1, "vendor_part_id", a.vendor_part_id);
  r.add(1, "hw_ver", fmt::format("0x{:X}", a.hw_ver));
  if (*d.board_id().data() != 0) r.add(1, "board_id", std::string(d.board_id().data()));
  r.add(1, "phys_port_cnt", unsigned{a.phys_port_cnt});
  r.add(1, "max_mr_size", fmt::format("{:#x}", a.max_mr_size));
  r.add(1, "page_size_cap", fmt::format("{:#x}", a.page_size_cap));
  r.add(1, "max_qp", a.max_qp);
  r.add(1, "max_qp_wr", a.max_qp_wr);
  r.add(1, "device_cap_flags", fmt::format("{:#010x}", a.device_cap_flags));
  for (const auto& [flag, name] : capability_names)
    if ((a.device_cap_flags & flag) != 0) r.text += fmt::format("{:40}{}\n", "", name);
  r.add(1, "max_sge", a.max_sge);
  r.add(1, "max_sge_rd", a.max_sge_rd);
  r.add(1, "max_cq", a.max_cq);
  r.add(1, "max_cqe", a.max_cqe);
  r.add(1, "max_mr", a.max_mr);
  r.add(1, "max_pd", a.max_pd);
  r.add(1, "max_qp_rd_atom", a.max_qp_rd_atom);
  r.add(1, "max_ee_rd_atom", a.max_ee_rd_atom);
  r.add(1, "max_res_rd_atom", a.max_res_rd_atom);
  r.add(1, "max_qp_init_rd_atom", a.max_qp_init_rd_atom);
  r.add(1, "max_ee_init_rd_atom", a.max_ee_init_rd_atom);
  r.add(1, "atomic_cap", static_cast<unsigned>(a.atomic_cap), atomic_text(a.atomic_cap));
  r.add(1, "max_ee", a.max_ee);
  r.add(1, "max_rdd", a.max_rdd);
  r.add(1, "max_mw", a.max_mw);
  r.add(1, "max_raw_ipv6_qp", a.max_raw_ipv6_qp);
  r.add(1, "max_raw_ethy_qp", a.max_raw_ethy_qp);
  r.add(1, "max_mcast_grp", a.max_mcast_grp);
  r.add(1, "max_mcast_qp_attach", a.max_mcast_qp_attach);
  r.add(1, "max_total_mcast_qp_attach", a.max_total_mcast_qp_attach);
  r.add(1, "max_ah", a.max_ah);
  r.add(1, "max_fmr", a.max_fmr);
  r.add(1, "max_srq", a.max_srq);
  r.add(1, "max_srq_wr", a.max_srq_wr);
  r.add(1, "max_srq_sge", a.max_srq_sge);
  r.add(1, "max_pkeys", unsigned{a.max_pkeys});
  r.add(1, "local_ca_ack_delay", unsigned{a.local_ca_ack_delay});
  r.add(1, "hca_core_clock", d.core_clock_mhz() * 1000, fmt::format("{}kHZ", d.core_clock_mhz() * 1000));
  r.add(1, "num_comp_vectors", d.settings().completion_vectors);
  r.root["ports"] = nlohmann::json::array();
  for (unsigned port = 1; port <= d.num_ports(); ++port) describe_port(d, port, r);
}

int print(const report& r, const common_options& common) {
  fmt::print("{}", r.text);
  if (common.json_file.empty()) return 0;
  nlohmann::json result = run_header("info", common);
  result["device"] = r.root;
  write_json(common.json_file, result);
  return 0;
}

}  // namespace

int run_info(const info_options& options) {
  check_writable(options.common, options.common.json_file);
  traffic_options traffic;
  hosts::two_nodes system(system_from(options.common, traffic, demand{}, nullptr, one_adapter));
  report r;
  system.run(
      [&] {
        hosts::connection_options addresses;
        addresses.roce = host_driver::roce_types::both;
        hosts::set_address(system.a(), addresses, 1);
        describe_device(device_name(system), *system.a().device, r);
      },
      [] {});
  return print(r, options.common);
}

int run_verbose_devinfo(const inspect_options& options) {
  check_writable(options.common, options.common.json_file);
  report r;
  inspect(options,
          [&](hosts::two_nodes& system, host_driver::device& d) { describe_device(device_name(system), d, r); });
  return print(r, options.common);
}

int run_parameters(const common_options& common) {
  check_writable(common, common.json_file);
  traffic_options traffic;
  std::string effective;
  system_from(common, traffic, demand{}, &effective);
  fmt::print("{}", effective);
  if (!common.json_file.empty()) {
    nlohmann::json result = run_header("parameters", common);
    result["parameters"] = effective;
    write_json(common.json_file, result);
  }
  return 0;
}

}  // namespace rnic::program
