// SPDX-License-Identifier: Apache-2.0
// Contexts as software writes and reads them in mailboxes (adapter control plane 6; data plane A.5.1, A.7, A.11.2).
#pragma once

#include <cstdint>

#include "model/abi/endian.h"

namespace rnic::abi {

/// Buffer translation of EQ, CQ, SRQ and QP contexts: 40-bit byte offset from the MTT base.
inline std::uint64_t load_mtt(const void* context, field<std::uint8_t> high, field<std::uint32_t> low) {
  return std::uint64_t{get(context, high)} << 32 | (get(context, low) & ~7u);
}
inline void store_mtt(void* context, field<std::uint8_t> high, field<std::uint32_t> low, std::uint64_t mtt) {
  set(context, high, static_cast<std::uint8_t>(mtt >> 32));
  set(context, low, static_cast<std::uint32_t>(mtt));
}

namespace mtt {
inline constexpr std::size_t bytes = 8;
inline constexpr std::uint64_t present = 1;
}  // namespace mtt

/// Key as applications see it <-> index of the memory protection table entry (with its tag byte on top).
constexpr std::uint32_t key_to_index(std::uint32_t key) { return key >> 8 | key << 24; }
constexpr std::uint32_t index_to_key(std::uint32_t index) { return index << 8 | index >> 24; }

/// Memory protection table entry.
namespace mpt {
inline constexpr std::size_t bytes = 64;
inline constexpr auto flags = u32(0x00);
inline constexpr auto owner = bits32(0x00, 31, 28);
inline constexpr std::uint32_t owner_software = 0xf, owner_free = 0x3, owner_hardware = 0;
inline constexpr std::uint32_t flag_mio = 1u << 17, flag_bind = 1u << 15, flag_remote_atomic = 1u << 14,
                               flag_remote_write = 1u << 13, flag_remote_read = 1u << 12, flag_local_write = 1u << 11,
                               flag_local_read = 1u << 10, flag_physical = 1u << 9, flag_region = 1u << 8;
inline constexpr auto qpn = u32(0x04), key = u32(0x08), pd_flags = u32(0x0c);
inline constexpr auto pd = bits32(0x0c, 16, 0);
inline constexpr std::uint32_t pd_en_inv = 3u << 24, pd_fast_reg = 1u << 27, pd_remote_access = 1u << 28;
inline constexpr auto start = u64(0x10), length = u64(0x18);
inline constexpr auto lkey = u32(0x20), window_count = u32(0x24);
inline constexpr auto mtt_rep = u8(0x2b);
inline constexpr auto mtt_address = u64(0x2c);
inline constexpr auto mtt_count = u32(0x34), entity_size = u32(0x38), first_byte_offset = u32(0x3c);
}  // namespace mpt

namespace eqc {
inline constexpr std::size_t bytes = 64;
inline constexpr auto flags = u32(0x00);
inline constexpr auto status = bits32(0x00, 31, 28), hardware_owner = bits32(0x00, 24, 24), state = bits32(0x00, 11, 8);
inline constexpr std::uint32_t state_armed = 9, state_fired = 10, state_always = 11;
inline constexpr auto page_offset = u16(0x0a);
inline constexpr auto log_size = bits8(0x0c, 4, 0);
inline constexpr auto period = u8(0x11), max_count = u8(0x13), vector = u8(0x17),
                      log_page = bits8(0x18, 5, 0);  ///< log2 - 12
inline constexpr auto mtt_high = u8(0x1b);
inline constexpr auto mtt_low = u32(0x1c);
inline constexpr auto consumer = u32(0x28), producer = u32(0x2c);
}  // namespace eqc

namespace cqc {
inline constexpr std::size_t bytes = 64;
inline constexpr auto flags = u32(0x00);
inline constexpr auto status = bits32(0x00, 31, 28), timestamp = bits32(0x00, 19, 19), collapsed = bits32(0x00, 18, 18),
                      overrun_ignore = bits32(0x00, 17, 17), state = bits32(0x00, 11, 8);
inline constexpr std::uint32_t state_armed = 9, state_armed_solicited = 6, state_fired = 10;
inline constexpr auto page_offset = u16(0x0a);
inline constexpr auto log_size = bits32(0x0c, 28, 24), uar = bits32(0x0c, 23, 0);
inline constexpr auto period = u16(0x10), max_count = u16(0x12);
inline constexpr auto eqn = u8(0x17), log_page = bits8(0x18, 5, 0);
inline constexpr auto mtt_high = u8(0x1b);
inline constexpr auto mtt_low = u32(0x1c);
inline constexpr auto last_notified = u32(0x20), solicit_producer = u32(0x24), consumer = u32(0x28),
                      producer = u32(0x2c);
inline constexpr auto db_record = u64(0x38);
}  // namespace cqc

namespace srqc {
inline constexpr std::size_t bytes = 48;
inline constexpr auto state = bits32(0x00, 31, 28), log_size = bits32(0x00, 27, 24), srqn = bits32(0x00, 23, 0);
inline constexpr auto log_stride = bits8(0x04, 2, 0);  ///< log2(bytes) - 4
inline constexpr auto xrcd = u16(0x06);
inline constexpr auto page_offset = bits32(0x08, 31, 26), cqn = bits32(0x08, 23, 0);  ///< offset: units of 64 bytes
inline constexpr auto log_page = bits8(0x10, 5, 0);
inline constexpr auto mtt_high = u8(0x13);
inline constexpr auto mtt_low = u32(0x14), pd = u32(0x18);
inline constexpr auto limit = u16(0x1c), wqe_count = u16(0x1e), wqe_counter = u16(0x22);
inline constexpr auto db_record = u64(0x28);
}  // namespace srqc

/// Address path inside a QP context; use at(qpc::primary_path, path::...).
namespace path {
inline constexpr std::size_t bytes = 44;
inline constexpr auto fl = u8(0), vlan_control = u8(1), pkey_flags = u8(2), pkey_index = u8(3), counter_index = u8(4);
inline constexpr std::uint8_t fl_cvlan = 1 << 6, fl_svlan = 1 << 5, fl_loopback = 1 << 7, fl_hide_vlan = 1 << 2;
inline constexpr auto grh = bits8(5, 7, 7), mac_index = bits8(5, 6, 0), grh_mylmc = u8(5);
inline constexpr auto rlid = u16(6);
inline constexpr auto ack_timeout = bits8(8, 7, 3), link_type = bits8(8, 2, 0);
inline constexpr std::uint8_t link_ethernet = 1;
inline constexpr auto gid_index = u8(9), static_rate = u8(10), hop_limit = u8(11);
inline constexpr auto traffic_class = bits32(12, 27, 20), flow_label = bits32(12, 19, 0);
inline constexpr std::size_t remote_gid = 16;
inline constexpr auto sched_queue = u8(32), port = bits8(32, 6, 6), priority = bits8(32, 5, 3);  ///< port: 0-based
inline constexpr auto vlan_index = u8(33), feup = u8(34), fvl_rx = u8(35);
inline constexpr std::uint8_t feup_force_up = 0x40, feup_force_smac = 0x20, feup_force_vlan = 0x08;
inline constexpr std::uint8_t fvl_rx_enforce = 0x01;
/// vlan_control: what the QP may not send or receive
inline constexpr std::uint8_t block_tx_tagged = 0x40, block_tx_priority = 0x20, block_tx_untagged = 0x10,
                              block_rx_tagged = 0x04, block_rx_priority = 0x02, block_rx_untagged = 0x01;
inline constexpr std::size_t dmac = 38;
}  // namespace path

/// RSS context at qpc::rss_context, over the end of the QP context's path (data plane A.8.3).
namespace rss {
inline constexpr std::size_t bytes = 56;
inline constexpr auto base_word = u32(0x00), log_size = bits32(0x00, 28, 24), base_qpn = bits32(0x00, 23, 0),
                      default_qpn = bits32(0x04, 23, 0);
inline constexpr auto hash_function = u8(0x0a), flags = u8(0x0b);
inline constexpr std::uint8_t hash_xor = 0, hash_toeplitz = 1, flags_mask = 0x3f;
inline constexpr std::uint8_t ipv4 = 0x20, tcp_ipv4 = 0x10, ipv6 = 0x08, tcp_ipv6 = 0x04, udp_ipv4 = 0x02,
                              udp_ipv6 = 0x01;
inline constexpr std::size_t key = 0x0c, key_bytes = 40;
inline constexpr auto base_qpn_udp = bits32(0x34, 23, 0);
}  // namespace rss

namespace qpc {
inline constexpr std::size_t bytes = 0xf8;
inline constexpr auto flags = u32(0x00);
inline constexpr auto state = bits32(0x00, 31, 28), service = bits32(0x00, 19, 16), rss = bits32(0x00, 13, 13),
                      path_migration = bits32(0x00, 12, 11);
inline constexpr unsigned service_ud = 3, service_xrc = 6, service_mlx = 7;
inline constexpr auto pd = bits32(0x04, 23, 0);
inline constexpr auto mtu = bits8(0x08, 7, 5), log_max_message = bits8(0x08, 4, 0), mtu_msgmax = u8(0x08);
inline constexpr auto rq_size_stride = u8(0x09), log_rq_size = bits8(0x09, 6, 3),
                      log_rq_stride = bits8(0x09, 2, 0);  ///< stride: log2 - 4
inline constexpr auto sq_no_prefetch = bits8(0x0a, 7, 7), sq_size_stride = u8(0x0a), log_sq_size = bits8(0x0a, 6, 3),
                      log_sq_stride = bits8(0x0a, 2, 0);
inline constexpr auto roce_mode = bits8(0x0b, 7, 6), reserved_lkey = bits8(0x0b, 4, 4), rlkey_roce_mode = u8(0x0b);
inline constexpr std::uint8_t roce_mode_v1 = 0, roce_mode_v2 = 2;
inline constexpr auto uar = bits32(0x0c, 23, 0), local_qpn = bits32(0x10, 23, 0), remote_qpn = bits32(0x14, 23, 0);
inline constexpr std::size_t primary_path = 0x18, alternate_path = 0x44, rss_context = 0x3c;
inline constexpr auto params1 = u32(0x70);
inline constexpr auto ack_request = bits32(0x70, 31, 28), requester_rdma = bits32(0x70, 23, 21),
                      retry_count = bits32(0x70, 18, 16), rnr_retry = bits32(0x70, 15, 13),
                      fast_reg = bits32(0x70, 11, 11);
inline constexpr auto next_send_psn = bits32(0x78, 23, 0), send_cqn = bits32(0x7c, 23, 0);
inline constexpr auto roce_entropy = u16(0x80);
inline constexpr auto last_acked_psn = bits32(0x88, 23, 0), ssn = bits32(0x8c, 23, 0);
inline constexpr auto params2 = u32(0x90);
inline constexpr auto responder_rdma = bits32(0x90, 23, 21), remote_read = bits32(0x90, 15, 15),
                      remote_write = bits32(0x90, 14, 14), remote_atomic = bits32(0x90, 13, 13),
                      no_credits = bits32(0x90, 4, 4), force_physical_port = bits32(0x90, 3, 3),
                      page_offset = bits32(0x90, 11, 6);
inline constexpr auto min_rnr_timer = bits32(0x94, 28, 24), next_receive_psn = bits32(0x94, 23, 0);
inline constexpr auto xrcd = u32(0x98), receive_cqn = bits32(0x9c, 23, 0);
inline constexpr auto db_record = u64(0xa0);
inline constexpr auto qkey = u32(0xa8), srqn_word = u32(0xac);
inline constexpr auto srq_valid = bits32(0xac, 24, 24), srqn = bits32(0xac, 23, 0);
inline constexpr auto msn = bits32(0xb0, 23, 0);
inline constexpr auto rq_counter = u16(0xb4), sq_counter = u16(0xb6), rate_limit = u16(0xbc);
inline constexpr auto qos_vport = u8(0xbf);  ///< virtual port whose rate counts too; 0: none
inline constexpr auto params3 = u32(0xc0);
inline constexpr auto vlan_strip_disable = bits32(0xc0, 30, 30), keep_fcs = bits32(0xc0, 29, 29),
                      inline_receive = bits32(0xc0, 25, 25);
inline constexpr auto log_page = bits8(0xc8, 5, 0);
inline constexpr auto mtt_high = u8(0xcb);
inline constexpr auto mtt_low = u32(0xcc);
}  // namespace qpc

/// Mailbox of the QP commands: option mask, then the context.
namespace qp_mailbox {
inline constexpr auto optional = u32(0x00);
inline constexpr std::size_t context = 0x08;
inline constexpr std::uint32_t opt_alt_path = 1u << 0, opt_rre = 1u << 1, opt_rae = 1u << 2, opt_rwe = 1u << 3,
                               opt_pkey = 1u << 4, opt_qkey = 1u << 5, opt_rnr_timer = 1u << 6,
                               opt_primary_path = 1u << 7, opt_sra_max = 1u << 8, opt_rra_max = 1u << 9,
                               opt_migration = 1u << 10, opt_retry = 1u << 12, opt_rnr_retry = 1u << 13,
                               opt_ack_timeout = 1u << 14, opt_sched_queue = 1u << 16, opt_counter = 1u << 20,
                               opt_vlan_strip = 1u << 21;
inline constexpr std::uint32_t sqd_event = 1u << 31;  ///< RTS2SQD in_modifier: raise SQ_DRAINED
inline constexpr unsigned to_reset_op_modifier = 2;
}  // namespace qp_mailbox

/// qpc::rate_limit: unit and value (adapter control plane 6.6; the driver's enum mlx4_qp_rate_limit).
namespace qp_rate {
inline constexpr unsigned unit_shift = 14, value_mask = 0xfff;
inline constexpr std::uint16_t reserved = 0x3000;
inline constexpr unsigned none = 0, kbps = 1, mbps = 2, gbps = 3;
}  // namespace qp_rate

/// Mailbox of UPDATE_QP: masks of what is to be changed, then a context with it.
namespace update_qp {
inline constexpr auto qp_mask = u64(0x00), path_mask = u64(0x08), alternate_path_mask = u64(0x10);
inline constexpr std::size_t context = 0x20;
inline constexpr unsigned service_vlan_bit = 54;  ///< of path_mask; the device has none
inline constexpr unsigned vlan_strip_bit = 33, qos_vport_bit = 34, rate_limit_bit = 35;  ///< of qp_mask
/// Bits of path_mask and what they stand for: bits of a byte of the path.
struct path_field {
  unsigned bit;
  std::uint8_t byte, mask;
};
inline constexpr path_field path_fields[] = {
    {32, 3, 0xff},                    // P_Key index
    {33, 34, path::feup_force_smac},  // FSM
    {34, 5, 0x7f},                    // source MAC
    {35, 34, path::feup_force_vlan},  // FVL
    {36, 0, path::fl_cvlan},
    {37, 33, 0xff},  // VLAN
    {38, 0, path::fl_hide_vlan},
    {39, 1, path::block_tx_untagged},
    {40, 1, path::block_tx_priority},
    {41, 1, path::block_tx_tagged},
    {42, 1, path::block_rx_untagged},
    {43, 1, path::block_rx_priority},
    {44, 1, path::block_rx_tagged},
    {45, 34, path::feup_force_up},
    {46, 32, 0xff},  // port and priority
    {47, 4, 0xff},   // counter
    {48, 35, path::fvl_rx_enforce},
};
}  // namespace update_qp

}  // namespace rnic::abi
