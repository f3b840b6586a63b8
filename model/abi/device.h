// SPDX-License-Identifier: Apache-2.0
// Mailboxes that describe the device and its ports: QUERY_FW, QUERY_DEV_CAP, QUERY_PORT, QUERY_ADAPTER, INIT_HCA,
// SET_PORT (adapter control plane 4.2, 4.6 - 4.11).
#pragma once

#include <cstdint>

#include "model/abi/endian.h"

namespace rnic::abi {

namespace query_fw {
inline constexpr auto pages = u16(0x00), major = u16(0x02), subminor = u16(0x04), minor = u16(0x06);
inline constexpr auto physical_function = u8(0x09);
inline constexpr auto command_interface = u16(0x0a);
inline constexpr auto log_max_commands = u8(0x0f);
inline constexpr auto clr_int_offset = u64(0x20);
inline constexpr auto clr_int_bar = u8(0x28);
inline constexpr auto catas_offset = u64(0x30);
inline constexpr auto catas_words = u32(0x38);
inline constexpr auto catas_bar = u8(0x3c);
inline constexpr auto comm_offset = u64(0x40);
inline constexpr auto comm_bar = u8(0x48);
inline constexpr auto clock_offset = u64(0x50);
inline constexpr auto clock_bar = u8(0x58);
}  // namespace query_fw

namespace dev_cap {
inline constexpr auto log_max_srq_wqes = u8(0x10), log_max_qp_wqes = u8(0x11);
inline constexpr auto log_reserved_qps = bits8(0x12, 3, 0), log_max_qps = bits8(0x13, 4, 0);
inline constexpr auto log_reserved_srqs = bits8(0x14, 7, 4), log_max_srqs = bits8(0x15, 4, 0);
inline constexpr auto log_max_cqes = u8(0x19);
inline constexpr auto log_reserved_cqs = bits8(0x1a, 3, 0), log_max_cqs = bits8(0x1b, 4, 0);
inline constexpr auto log_max_mpts = bits8(0x1d, 5, 0);
inline constexpr auto log_reserved_eqs = bits8(0x1e, 3, 0), log_max_eqs = bits8(0x1f, 3, 0);
inline constexpr auto log_reserved_mtts = bits8(0x20, 7, 4), log_reserved_mpts = bits8(0x22, 3, 0);
inline constexpr auto num_sys_eqs = bits16(0x26, 11, 0);
inline constexpr auto log_max_requester_rdma = bits8(0x29, 5, 0), log_max_responder_rdma = bits8(0x2b, 5, 0);
inline constexpr auto log_max_gso = bits8(0x2d, 4, 0);
inline constexpr auto rss = u8(0x2e);  ///< bit 5 XOR, bit 4 Toeplitz, [3:0] log2 of the table
inline constexpr auto ack_delay = bits8(0x35, 4, 0);
inline constexpr auto legacy_vl_port = u8(0x36), num_ports = bits8(0x37, 3, 0), ports_byte = u8(0x37);
inline constexpr auto log_max_message = bits8(0x38, 4, 0);
inline constexpr auto legacy_gids = u8(0x3b);
inline constexpr auto static_rates = u16(0x3c);
inline constexpr auto timestamp = bits8(0x3e, 7, 7);
inline constexpr auto legacy_pkeys = u8(0x3f);
inline constexpr auto flags = u64(0x40);
inline constexpr auto reserved_uars = bits8(0x48, 7, 4);
inline constexpr auto log_uar_mib = bits8(0x49, 5, 0);
inline constexpr auto log_min_page = u8(0x4b);
inline constexpr auto blue_flame = bits8(0x4c, 7, 7), log_bf_register = bits8(0x4d, 4, 0),
                      log_bf_per_page = bits8(0x4e, 5, 0);
inline constexpr auto max_sq_sge = u8(0x51);
inline constexpr auto max_sq_bytes = u16(0x52);
inline constexpr auto max_rq_sge = u8(0x55);
inline constexpr auto max_rq_bytes = u16(0x56);
inline constexpr auto log_max_mcg_qps = u8(0x61), reserved_mcgs = bits8(0x62, 3, 0), log_max_mcgs = u8(0x63);
inline constexpr auto reserved_pds = bits8(0x64, 7, 4), log_max_pds = bits8(0x65, 5, 0);
inline constexpr auto reserved_xrcds = bits8(0x66, 7, 4), log_max_xrcds = bits8(0x67, 4, 0);
inline constexpr auto max_counters = u32(0x68);
inline constexpr auto ext_flags = u32(0x70);
inline constexpr std::uint32_t ext_update_qp = 1u << 16, ext_fsm = 1u << 20, ext_80_vfs = 1u << 21,
                               ext_sw_cq_init = 1u << 23, ext_vlan_control = 1u << 26;
inline constexpr auto qos_vpp = bits8(0x7a, 4, 4), eth_prot_ctrl = bits8(0x7a, 5, 5);
inline constexpr auto flow_steering = bits8(0x76, 7, 7), flow_sniffer = bits8(0x76, 5, 5),
                      log_max_flow_unicast_qps = bits8(0x76, 4, 0);
inline constexpr auto max_flow_qps = u8(0x77);  ///< of one flow steering entry
inline constexpr auto rdmarc_bytes = u16(0x80), qpc_bytes = u16(0x82), auxc_bytes = u16(0x84), altc_bytes = u16(0x86),
                      eqc_bytes = u16(0x88), cqc_bytes = u16(0x8a), srqc_bytes = u16(0x8c), cmpt_bytes = u16(0x8e),
                      mtt_bytes = u16(0x90), dmpt_bytes = u16(0x92);
inline constexpr auto bmme_flags = u32(0x94);
inline constexpr std::uint32_t bmme_win_2b = 1u << 1, bmme_local_inv = 1u << 6, bmme_remote_inv = 1u << 7,
                               bmme_type_2_win = 1u << 9, bmme_reserved_lkey = 1u << 10, bmme_fast_reg = 1u << 11,
                               bmme_roce_v1_v2 = 1u << 19, bmme_port_remap = 1u << 24, bmme_ignore_fcs = 1u << 26,
                               bmme_config_dev = 1u << 29;
inline constexpr auto qcn = bits8(0x7b, 0, 0);
inline constexpr auto reserved_lkey = u32(0x98);
inline constexpr auto features = u32(0x9c);
inline constexpr std::uint32_t feature_ets = 1u << 13, feature_diag_per_port = 1u << 17,
                               feature_reassign_mac = 1u << 22;
inline constexpr auto max_icm_bytes = u64(0xa0);
inline constexpr auto rate_limits = u16(0xcc), max_rate_limit = u16(0xd0), min_rate_limit = u16(0xd2);
/// Bits of `flags`.
inline constexpr unsigned flag_rc = 0, flag_uc = 1, flag_ud = 2, flag_xrc = 3, flag_srq = 6, flag_ipoib_csum = 7,
                          flag_bad_pkey_counter = 8, flag_bad_qkey_counter = 9, flag_dpdp = 12, flag_lso = 15,
                          flag_mem_window = 16, flag_apm = 17, flag_atomic = 18, flag_ud_av_port = 20,
                          flag_ud_mcast = 21, flag_iboe = 30, flag_uc_loopback = 32, flag_keep_fcs = 34,
                          flag_udp_rss = 40, flag_uc_steer = 41, flag_mc_steer = 42, flag_counters = 48,
                          flag_64b_eqe = 61, flag_64b_cqe = 62;
}  // namespace dev_cap

namespace query_port {
inline constexpr auto link_up = bits8(0x00, 7, 7), port_types = bits8(0x00, 1, 0);
inline constexpr std::uint8_t type_ib = 1, type_ethernet = 2;
inline constexpr auto ib_mtu = bits8(0x01, 3, 0);
inline constexpr auto max_eth_mtu = u16(0x02);
inline constexpr auto speed = u8(0x05);
inline constexpr std::uint8_t speed_10g = 0x01, speed_1g = 0x02, speed_100m = 0x04, speed_20g = 0x08, speed_40g = 0x40,
                              speed_56g = 0x20, speed_other = 0x0f;
inline constexpr auto ib_width = bits8(0x06, 3, 0);
inline constexpr auto log_max_gids = bits8(0x07, 7, 4), log_max_pkeys = bits8(0x07, 3, 0);
inline constexpr auto log_max_vlans = bits8(0x0a, 7, 4), log_max_macs = bits8(0x0a, 3, 0);
inline constexpr auto max_tcs = bits8(0x0b, 7, 4), max_vls = bits8(0x0b, 3, 0);
inline constexpr auto max_pkeys = u16(0x0c), max_gids = u16(0x0e);
inline constexpr unsigned max_gid_rows = 128;
inline constexpr auto mac = bits64(0x10, 47, 0);
}  // namespace query_port

namespace query_adapter {
inline constexpr auto inta_pin = u8(0x10);                 ///< bit of CLR_INT that this device's line has
inline constexpr std::size_t vsd = 0x20, board_id = 0xf0;  ///< board id: 16 bytes, each word byte-reversed
inline constexpr std::size_t board_id_bytes = 16;
}  // namespace query_adapter

/// INIT_HCA and QUERY_HCA.
namespace init_hca {
inline constexpr std::size_t bytes = 0x200;
inline constexpr auto version = u8(0x00);
inline constexpr std::uint8_t version_value = 2;
inline constexpr auto global_caps = u64(0x04);         ///< QUERY_HCA: 0
inline constexpr auto core_clock_mhz = u16(0x0c);      ///< QUERY_HCA
inline constexpr auto cache_line = bits8(0x0e, 7, 5);  ///< log2(bytes) - 4
inline constexpr auto flags = u32(0x14);
inline constexpr std::uint32_t flag_check_ud_port = 1u << 0, flag_qos = 1u << 2, flag_counters = 1u << 4,
                               flag_dmfs = 1u << 6;
/// Bases: the low byte of each quad word holds the log field instead of address bits.
inline constexpr std::uint64_t base_mask = ~std::uint64_t{0x1f};
inline constexpr auto qpc_base = u64(0x30);
inline constexpr auto log_qps = bits8(0x37, 4, 0);
inline constexpr auto srqc_base = u64(0x48);
inline constexpr auto log_srqs = bits8(0x4f, 4, 0);
inline constexpr auto cqc_base = u64(0x50);
inline constexpr auto log_cqs = bits8(0x57, 4, 0);
inline constexpr auto entry_sizes = u32(0x58);
inline constexpr std::uint32_t eqe_64 = 1u << 29, cqe_64 = 1u << 30;
inline constexpr auto altc_base = u64(0x60), auxc_base = u64(0x70), eqc_base = u64(0x80);
inline constexpr auto log_eqs = bits8(0x87, 4, 0);
inline constexpr unsigned log_eqs_system = 0x1f;  ///< the number is in num_sys_eqs
inline constexpr auto num_sys_eqs = u16(0x8a);
inline constexpr auto rdmarc_base = u64(0x90);
inline constexpr auto log_rdmarc = bits8(0x97, 2, 0);  ///< entries per QP
inline constexpr auto mcg_base = u64(0xc0);
inline constexpr auto log_mcg_bytes = u8(0xd3), log_mcg_hash = u8(0xd7), log_mcg_table = u8(0xdb);
inline constexpr auto unicast_steering = bits8(0xd8, 3, 3);
inline constexpr auto dmpt_base = u64(0xf0);
inline constexpr auto windows_enabled = bits8(0xf8, 7, 7);
inline constexpr auto log_mpts = bits8(0xfb, 5, 0);
inline constexpr auto mtt_base = u64(0x100), cmpt_base = u64(0x108);
/// With flag_dmfs in place of the group table.
inline constexpr auto flow_base = u64(0x1d0);
inline constexpr auto log_flow_bytes = u8(0x1e3), log_flow_table = u8(0x1eb);
inline constexpr auto flow_high_rate = bits8(0x1e8, 7, 6);
inline constexpr std::uint8_t high_rate_default = 0, high_rate_disabled = 3;
inline constexpr auto flow_ethernet_bits = u8(0x1f1), flow_ib_bits = u8(0x1f5);
inline constexpr std::uint8_t flow_udp = 1 << 1, flow_tcp = 1 << 2;
inline constexpr auto flow_ethernet_addresses = u16(0x1f2), flow_ib_addresses = u16(0x1f6);
inline constexpr auto log_uars = u8(0x12a), log_uar_page = u8(0x12b);  ///< page: log2(bytes) - 12
}  // namespace init_hca

/// SET_PORT: in_modifier = selector << 8 | port; op modifier 1 for Ethernet.
namespace set_port {
enum class selector : std::uint8_t {
  general = 0x0,
  rqp_calc = 0x1,
  mac_table = 0x2,
  vlan_table = 0x3,
  prio_map = 0x4,
  gid_table = 0x5,
  prio2tc = 0x8,
  scheduler = 0x9,
  vxlan = 0xb,
  roce_addr = 0xd,
};
inline constexpr unsigned op_ib = 0, op_ethernet = 1, op_beacon = 4;
constexpr std::uint32_t modifier(selector s, unsigned port) { return static_cast<std::uint32_t>(s) << 8 | port; }
inline constexpr unsigned table_size = 128;
/// General.
inline constexpr auto flags2 = u8(0x02), flags = u8(0x03), roce_mode = u8(0x04);
inline constexpr std::uint8_t flags2_ignore_fcs = 1 << 1, flags2_phv = 1 << 4, flags2_user_mtu = 1 << 5,
                              flags2_user_mac = 1 << 6;
inline constexpr std::uint8_t flag_mtu = 1 << 0, flag_rx_pause = 1 << 1, flag_tx_pause = 1 << 2,
                              flag_roce_mode = 1 << 4;
inline constexpr std::uint8_t roce_v1 = 0x00, roce_v1_v2 = 0x20;
inline constexpr auto ignore_fcs = bits8(0x04, 0, 0);  ///< in the place of roce_mode
inline constexpr auto mtu = u16(0x06);                 ///< maximum frame with FCS
inline constexpr auto tx_pause = bits8(0x08, 7, 7), tx_pfc = u8(0x09), rx_pause = bits8(0x0c, 7, 7), rx_pfc = u8(0x0d);
inline constexpr auto user_mtu = u16(0x1a);
inline constexpr std::size_t user_mac = 0x1e;
/// RQP_CALC (A0 steering).
inline constexpr auto rqp_base = u32(0x00), rqp_promiscuous = u32(0x14), rqp_multicast = u32(0x18);
/// Tables.
inline constexpr std::size_t mac_bytes = 8, vlan_bytes = 4, gid_bytes = 16, roce_addr_bytes = 32;
inline constexpr std::uint64_t mac_valid = std::uint64_t{1} << 63;
inline constexpr std::uint32_t vlan_valid = 1u << 31;
inline constexpr auto roce_addr_type = u8(26), roce_addr_version = u8(27);
inline constexpr std::uint8_t roce_addr_version_v2 = 2;
}  // namespace set_port

}  // namespace rnic::abi
