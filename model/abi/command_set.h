// SPDX-License-Identifier: Apache-2.0
// Commands: opcodes, statuses, and the mailboxes of the small ones (adapter control plane 2, 4).
#pragma once

#include <cstdint>

#include "model/abi/endian.h"

namespace rnic::abi {

inline constexpr std::size_t mailbox_bytes = 4096;

enum class opcode : std::uint16_t {
  query_dev_cap = 0x003,
  query_fw = 0x004,
  query_adapter = 0x006,
  init_hca = 0x007,
  close_hca = 0x008,
  init_port = 0x009,
  close_port = 0x00a,
  query_hca = 0x00b,
  set_port = 0x00c,
  sw2hw_mpt = 0x00d,
  query_mpt = 0x00e,
  hw2sw_mpt = 0x00f,
  read_mtt = 0x010,
  write_mtt = 0x011,
  map_eq = 0x012,
  sw2hw_eq = 0x013,
  hw2sw_eq = 0x014,
  query_eq = 0x015,
  sw2hw_cq = 0x016,
  hw2sw_cq = 0x017,
  query_cq = 0x018,
  rst2init_qp = 0x019,
  init2rtr_qp = 0x01a,
  rtr2rts_qp = 0x01b,
  rts2rts_qp = 0x01c,
  sqerr2rts_qp = 0x01d,
  to_err_qp = 0x01e,
  rts2sqd_qp = 0x01f,
  sqd2rts_qp = 0x020,
  to_rst_qp = 0x021,
  query_qp = 0x022,
  conf_special_qp = 0x023,
  mad_ifc = 0x024,
  read_mcg = 0x025,
  write_mcg = 0x026,
  mgid_hash = 0x027,
  modify_cq = 0x02c,
  init2init_qp = 0x02d,
  access_mem = 0x02e,
  sync_tpt = 0x02f,
  diag_rprt = 0x030,
  nop = 0x031,
  mod_stat_cfg = 0x034,
  sw2hw_srq = 0x035,
  hw2sw_srq = 0x036,
  query_srq = 0x037,
  sqd2sqd_qp = 0x038,
  config_dev = 0x03a,
  access_reg = 0x03b,
  arm_srq = 0x040,
  query_port = 0x043,
  set_vlan_fltr = 0x047,
  set_mcast_fltr = 0x048,
  dump_eth_stats = 0x049,
  sense_port = 0x04d,
  hw_health_check = 0x050,
  query_if_stat = 0x054,
  query_func = 0x056,
  arm_comm_channel = 0x057,
  gen_eqe = 0x058,
  set_node = 0x05a,
  inform_flr_done = 0x05b,
  virt_port_map = 0x05c,
  update_qp = 0x061,
  flow_steering_attach = 0x065,
  flow_steering_detach = 0x066,
  congestion_ctrl = 0x068,
  allocate_vpp = 0x080,
  set_vport_qos = 0x081,
  alloc_res = 0xf00,
  free_res = 0xf01,
  query_func_cap = 0xf0a,
  qp_attach = 0xf0b,
  run_fw = 0xff6,
  unmap_icm = 0xff9,
  map_icm = 0xffa,
  unmap_icm_aux = 0xffb,
  map_icm_aux = 0xffc,
  set_icm_size = 0xffd,
  unmap_fa = 0xffe,
  map_fa = 0xfff,
};

enum class status : std::uint8_t {
  ok = 0x00,
  internal_error = 0x01,
  bad_op = 0x02,
  bad_param = 0x03,
  bad_sys_state = 0x04,
  bad_resource = 0x05,
  resource_busy = 0x06,
  exceed_lim = 0x08,
  bad_res_state = 0x09,
  bad_index = 0x0a,
  bad_nvmem = 0x0b,
  icm_error = 0x0c,
  bad_qp_state = 0x10,
  bad_seg_param = 0x20,
  reg_bound = 0x21,
  lam_not_pre = 0x22,
  bad_pkt = 0x30,
  bad_size = 0x40,
  multi_func_req = 0x50,
};

/// MAP_FA, MAP_ICM_AUX, MAP_ICM: array of entries; in_modifier counts them.
namespace map_entry {
inline constexpr std::size_t bytes = 16;
inline constexpr unsigned max_count = 256;
inline constexpr auto icm_address = u64(0x0);
inline constexpr auto bus_address = u64(0x8);  ///< low 12 bits: log2(bytes / 4096)
}  // namespace map_entry
inline constexpr unsigned unmap_chunk_pages = 64;

namespace mod_stat_cfg_mailbox {
inline constexpr auto log_page_mask = u8(0x02), log_page_value = u8(0x03);
inline constexpr auto port_guid_high = u32(0x14), port_guid_low = u32(0x1c);
}  // namespace mod_stat_cfg_mailbox

namespace config_dev_mailbox {
inline constexpr auto update_flags = u32(0x00);
inline constexpr std::uint32_t update_vxlan_port = 1u << 0, update_roce_v2_port = 1u << 3,
                               update_rx_port_check = 1u << 18;
/// Approximation: how a device that knows the owners of GID entries is told which functions are on which port is not
/// published. Bit 31 of the flags and these: the numbers of functions with port 1 alone, with port 2 alone and with
/// both, which are numbered in this order (net/main.c: num_vfs).
inline constexpr std::uint32_t update_function_ports = 1u << 31;
inline constexpr auto functions_port_1 = u8(0x21), functions_port_2 = u8(0x22), functions_both = u8(0x23);
inline constexpr auto vxlan_port = u16(0x10), roce_v2_entropy = u16(0x14), roce_v2_port = u16(0x16);
inline constexpr auto roce_flags = u32(0x18);
inline constexpr std::uint32_t disable_rx_port_check = 1u << 15;
inline constexpr auto rx_checksum_mode = u8(0x83);
}  // namespace config_dev_mailbox

/// VIRT_PORT_MAP (adapter control plane 9; net/fw.c: mlx4_virt2phy_port_map): ports from 1.
namespace virt_port_map_mailbox {
inline constexpr auto port_1 = u32(0x00), port_2 = u32(0x04);
inline constexpr unsigned op_set = 1;
}  // namespace virt_port_map_mailbox

/// ACCESS_REG: a register of the port, in and out (net/fw.c: struct mlx4_access_reg). The first words are an operation
/// TLV, whose status is the register's own, beside that of the command (net/mlxsw/emad.h).
namespace access_reg {
inline constexpr auto tlv = u16(0x00);
inline constexpr std::uint16_t operation_tlv = 0x0804;
inline constexpr auto register_status = bits8(0x02, 6, 0);
inline constexpr std::uint8_t ok = 0, not_supported = 4, bad_method = 6, bad_parameter = 7;
inline constexpr auto id = u16(0x04);
inline constexpr auto method = bits8(0x06, 6, 0);
inline constexpr std::uint8_t query = 1, write = 2;
inline constexpr auto register_class = u8(0x07);
inline constexpr auto data_tlv = u16(0x10), length = bits16(0x10, 10, 0);  ///< in dwords, this one included
inline constexpr std::uint16_t data_tlv_type = 0x3000, data_tlv_mask = 0xf800;
inline constexpr std::size_t data = 0x14;
}  // namespace access_reg

/// Port type and speed, a register of ACCESS_REG (include/linux/mlx4/device.h: struct mlx4_ptys_reg).
namespace ptys {
inline constexpr std::uint16_t id = 0x5004;
inline constexpr std::size_t bytes = 0x34;
inline constexpr auto flags = u8(0x00), local_port = u8(0x01), protocols = u8(0x03);
inline constexpr std::uint8_t protocol_ethernet = 1 << 2;
inline constexpr auto capability = u32(0x0c), admin = u32(0x18), oper = u32(0x24), partner = u32(0x30);
/// Bits of the four (net/en_port.h: enum mlx4_link_mode).
inline constexpr unsigned mode_1000base_cx_sgmii = 0, mode_1000base_kx = 1, mode_20gbase_kr2 = 5, mode_40gbase_cr4 = 6,
                          mode_10gbase_cr = 12, mode_10gbase_sr = 13, mode_40gbase_sr4 = 15, mode_56gbase_cr4 = 17,
                          mode_56gbase_sr4 = 18;
}  // namespace ptys

/// ALLOCATE_VPP (in_modifier: port) and SET_VPORT_QOS (in_modifier: virtual port << 8 | port): rates of virtual ports
/// (net/fw_qos.c). Both ask with op modifier 1 and set with 0.
namespace vpp {
inline constexpr std::uint8_t op_set = 0, op_query = 1;
inline constexpr auto available = u32(0x00);
inline constexpr std::size_t of_priority = 0x04;  ///< + 4 * priority: virtual ports that have a rate there
inline constexpr unsigned priorities = 8;
}  // namespace vpp
namespace vport_qos {
inline constexpr std::size_t first = 0x20, each = 0x20;         ///< of priority 0, and from one to the next
inline constexpr auto share = u32(0x00), max_rate = u32(0x04);  ///< rate: Mb/s
inline constexpr auto enable = bits32(0x0c, 31, 31);
}  // namespace vport_qos

namespace query_func_mailbox {
inline constexpr auto bus = u8(0x00), device_function = u8(0x01), physical_function = u8(0x03);
inline constexpr auto reserved_eqs = u16(0x04), max_eqs = u16(0x06);
inline constexpr auto reserved_uars = bits8(0x0b, 3, 0);
}  // namespace query_func_mailbox

/// A virtual function's command in its memory (adapter control plane 8.3).
namespace vhcr {
inline constexpr std::size_t bytes = 0x20;
inline constexpr auto in_param = u64(0x00), out_param = u64(0x10);
inline constexpr auto in_modifier = u32(0x08);
inline constexpr auto token = u16(0x18), opcode = u16(0x1e);
inline constexpr auto status = u8(0x1c), flags = u8(0x1d);
inline constexpr std::uint8_t flag_event = 1 << 6;
inline constexpr std::uint16_t polling_token = 0xffff;
}  // namespace vhcr

/// Op modifiers of ALLOC_RES and FREE_RES (adapter control plane 8.4).
namespace res_op {
inline constexpr std::uint8_t reserve = 0, reserve_and_map = 1, map = 2;
}

/// QUERY_FUNC_CAP (adapter control plane 8.4).
namespace func_cap {
inline constexpr auto flags = u8(0x00), num_ports = u8(0x01);
inline constexpr std::uint8_t flag_ethernet = 0x80, flag_rdma = 0x40, flag_quotas = 0x10, flag_reserved_lkey = 0x08;
inline constexpr auto max_eqs = u32(0x2c), reserved_eqs = u32(0x30), reserved_lkey = u32(0x48);
inline constexpr auto qp_quota = u32(0x50), cq_quota = u32(0x54), srq_quota = u32(0x58), mpt_quota = u32(0x60),
                      mtt_quota = u32(0x64), mcg_quota = u32(0x68);
inline constexpr auto physical_port = u8(0x03), port_flags = u8(0x0c);
inline constexpr std::uint8_t port_nic_info = 0x10, port_force_mac = 0x40, port_force_vlan = 0x80;
}  // namespace func_cap

namespace write_mtt_mailbox {
inline constexpr auto start_index = u64(0x00);
inline constexpr std::size_t entries = 0x10;
inline constexpr unsigned max_count = (mailbox_bytes - entries) / 8;
}  // namespace write_mtt_mailbox

/// READ_MCG, WRITE_MCG: one entry of the multicast group table.
namespace mcg {
inline constexpr auto next_index = bits32(0x00, 31, 6);
inline constexpr auto protocol = bits32(0x04, 31, 30);
inline constexpr std::uint32_t protocol_roce = 0, protocol_ethernet = 1;
inline constexpr auto member_count = bits32(0x04, 23, 0);
inline constexpr std::size_t gid = 0x10, members = 0x20;
inline constexpr std::uint32_t block_loopback = 1u << 30, qpn_mask = 0xffffff;
/// Ethernet "GID": port in byte 5, steering type << 1 in byte 7, destination MAC in bytes 10..15.
inline constexpr std::size_t ethernet_port = 5, ethernet_steer = 7, ethernet_mac = 10;
/// WRITE_MCG opmod 1, in_modifier: port << 16 | steer << 1.
inline constexpr unsigned default_port_shift = 16, default_steer_shift = 1;
inline constexpr unsigned steer_multicast = 0, steer_unicast = 1;
}  // namespace mcg

/// QP_FLOW_STEERING_ATTACH: a control segment and headers (adapter control plane 4.19); in_modifier is the length of
/// all in words of 32 bits. The immediate result is the registration id, which QP_FLOW_STEERING_DETACH takes as
/// in_param.
namespace flow_rule {
inline constexpr std::size_t control_bytes = 16;
/// Larger is lower. Who attaches takes its domain, and in it its own priorities (inc/device.h).
inline constexpr auto priority = u16(0x00);
inline constexpr std::uint16_t domain_verbs = 0x1000, domain_ethtool = 0x2000, domain_rfs = 0x3000, domain_nic = 0x5000;
inline constexpr auto type = u8(0x02), flags = u8(0x03), function = u8(0x05), vep = u8(0x06), port = u8(0x07);
inline constexpr std::uint8_t type_regular = 0, type_all_default = 1, type_group_default = 3, type_mirror_receive = 4,
                              type_mirror_send = 5, type_unicast_sniffer = 6, type_group_sniffer = 7;
inline constexpr std::uint8_t flag_lifo = 1 << 0, flag_exclusive = 1 << 2, flag_loopback = 1 << 3;
inline constexpr auto qpn = u32(0x08);
/// Headers: offsets from the beginning of each.
inline constexpr auto header_words = u8(0x00);
inline constexpr auto header_id = u16(0x02);
inline constexpr std::uint16_t id_ethernet = 0xe001, id_ipv4 = 0xe002, id_tcp = 0xe004, id_ib = 0xe005, id_udp = 0xe006;
inline constexpr std::size_t ethernet_bytes = 48, ipv4_bytes = 24, ports_bytes = 24, ib_bytes = 48;
inline constexpr std::size_t dmac = 10, dmac_mask = 18, smac = 26, smac_mask = 34;
inline constexpr auto ether_type_enable = u8(41);
inline constexpr auto ether_type = u16(42), vlan_mask = u16(44), vlan = u16(46);
inline constexpr auto destination_ip = u32(8), destination_ip_mask = u32(12), source_ip = u32(16),
                      source_ip_mask = u32(20);
inline constexpr auto destination_port = u16(10), destination_port_mask = u16(14), source_port = u16(18),
                      source_port_mask = u16(22);
inline constexpr auto l3_qpn = u32(8), l3_qpn_mask = u32(12);
inline constexpr std::size_t dgid = 16, dgid_mask = 32;
}  // namespace flow_rule

/// Statistics (QUERY_IF_STAT, DUMP_ETH_STATS; DIAG_RPRT offsets: control plane 10.3).
namespace if_stat {
inline constexpr auto mode = u8(0x03);
inline constexpr auto interfaces = u32(0x04);
inline constexpr auto rx_frames = u64(0x10), rx_bytes = u64(0x18), tx_frames = u64(0x20), tx_bytes = u64(0x28);
inline constexpr std::uint32_t reset = 1u << 31, index_mask = 0xff;
}  // namespace if_stat
namespace eth_stats {
inline constexpr std::size_t bytes = 0xbac;
inline constexpr std::size_t rx_64 = 0x000, rx_65 = 0x048, rx_128 = 0x090, rx_256 = 0x0d8, rx_512 = 0x120,
                             rx_1024 = 0x168, rx_1519 = 0x1b0, rx_1523 = 0x1f8, rx_1549 = 0x240, rx_giant = 0x288,
                             rx_broadcast = 0x2d0, rx_multicast = 0x318,
                             rx_other = 0x360;  ///< + 8 * priority (8: untagged)
inline constexpr std::size_t rx_octets = 0x3a8, rx_good_octets = 0x3b8, rx_frames = 0x480;  ///< + 24 * priority
inline constexpr std::size_t rx_control = 0x558, in_range_length = 0x578, out_of_range_length = 0x580, too_long = 0x588,
                             pcs_errors = 0x590;
inline constexpr std::size_t tx_64 = 0x598, tx_65 = 0x5e8, tx_128 = 0x638, tx_256 = 0x688, tx_512 = 0x6d8,
                             tx_1024 = 0x728, tx_1519 = 0x778, tx_1523 = 0x7c8, tx_1549 = 0x818, tx_giant = 0x868,
                             tx_broadcast = 0x8b8, tx_multicast = 0x908, tx_other = 0x958;  ///< + 8 * priority
inline constexpr std::size_t tx_octets = 0x9a8, tx_good_octets = 0x9b8, tx_frames = 0xa98;  ///< + 24 * priority
inline constexpr std::size_t jabber = 0xb88, crc = 0xb8c, runt = 0xb90, too_short = 0xb94, rx_drop = 0xb98,
                             rx_drop_overflow = 0xb9c, rx_drop_length = 0xba0, rx_total = 0xba4, tx_drop = 0xba8;
inline constexpr std::uint32_t reset = 1u << 8, flow_control = 1u << 12;
}  // namespace eth_stats

/// DIAG_RPRT: in_modifier is the port, 0: the device. One word each (adapter control plane 10.3).
namespace diag {
inline constexpr std::size_t cq_overflow = 0x1a0;  ///< of the device alone
inline constexpr std::uint8_t op_transport = 2;
}  // namespace diag

/// MAD_IFC: 256-byte management datagrams, offsets in the datagram.
namespace mad {
inline constexpr std::size_t bytes = 256;
inline constexpr auto base_version = u8(0), management_class = u8(1), class_version = u8(2), method = u8(3);
inline constexpr auto mad_status = u16(4);
inline constexpr auto transaction = u64(8);
inline constexpr auto attribute = u16(16);
inline constexpr auto modifier = u32(20);
inline constexpr std::size_t data = 64;
inline constexpr std::uint8_t class_subnet = 0x01, class_directed = 0x81;
inline constexpr std::uint8_t method_get = 0x01, method_get_response = 0x81;
inline constexpr std::uint16_t node_description = 0x10, node_info = 0x11, guid_info = 0x14, port_info = 0x15,
                               pkey_table = 0x16;
inline constexpr std::uint16_t status_unsupported_method = 0x0008, status_unsupported = 0x000c,
                               status_bad_value = 0x001c;
/// NodeInfo.
inline constexpr auto node_base_version = u8(64), node_class_version = u8(65), node_type = u8(66), node_ports = u8(67);
inline constexpr auto node_system_guid = u64(68), node_guid = u64(76), node_port_guid = u64(84);
inline constexpr auto node_partitions = u16(92), node_device = u16(94);
inline constexpr auto node_revision = u32(96);
inline constexpr auto node_local_port = u8(100);
inline constexpr auto node_vendor = bits32(100, 23, 0);
/// PortInfo (IBA 14.2.5.6).
inline constexpr auto port_gid_prefix = u64(64 + 8);
inline constexpr auto port_lid = u16(64 + 16);
inline constexpr auto port_capability_mask = u32(64 + 20);
inline constexpr auto port_local_port = u8(64 + 28);
inline constexpr auto port_width_enabled = u8(64 + 29), port_width_supported = u8(64 + 30),
                      port_width_active = u8(64 + 31);
inline constexpr auto port_speed_state = u8(64 + 32);     ///< supported speed [7:4], state [3:0]
inline constexpr auto port_physical_state = u8(64 + 33);  ///< physical state [7:4], link-down default [3:0]
inline constexpr auto port_speed_active = u8(64 + 35);    ///< active [7:4], enabled [3:0]
inline constexpr auto port_mtu_sl = u8(64 + 36);          ///< neighbour MTU [7:4], SM SL [3:0]
inline constexpr auto port_vl_cap = bits8(64 + 37, 7, 4);
inline constexpr auto port_mtu_cap = bits8(64 + 41, 3, 0);
inline constexpr auto port_guid_cap = u8(64 + 50);
inline constexpr auto port_speed_extended = u8(64 + 62);  ///< active [7:4], supported [3:0]: 1 FDR, 2 EDR, 4 HDR, 8 NDR
inline constexpr std::uint32_t extended_speeds = 1u << 14;  ///< port_capability_mask: port_speed_extended has a meaning
}  // namespace mad

}  // namespace rnic::abi
