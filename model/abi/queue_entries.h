// SPDX-License-Identifier: Apache-2.0
// Entries of the queues in host memory: EQE, CQE, work queue entries (adapter control plane 7; data plane A.4 - A.6).
#pragma once

#include <cstdint>

#include "model/abi/endian.h"

namespace rnic::abi {

namespace eqe {
inline constexpr std::size_t bytes = 32;  ///< in 64-byte entries this is the second half
inline constexpr auto type = u8(0x01), subtype = u8(0x03), function = u8(0x1c), owner = u8(0x1f);
inline constexpr std::uint8_t owner_bit = 0x80;
inline constexpr auto number = u32(0x04);  ///< CQN, QPN, SRQN
inline constexpr auto syndrome = u8(0x0f);
inline constexpr auto port_word = u32(0x0c);  ///< PORT_CHANGE: port << 28
inline constexpr auto command_token = u16(0x06);
inline constexpr auto command_status = u8(0x0f);
inline constexpr auto command_out = u64(0x10);
enum class event : std::uint8_t {
  completion = 0x00,
  path_migrated = 0x01,
  comm_established = 0x02,
  sq_drained = 0x03,
  cq_error = 0x04,
  wq_catastrophic = 0x05,
  path_migration_failed = 0x07,
  local_catastrophic = 0x08,
  port_change = 0x09,
  command = 0x0a,
  eq_overflow = 0x0f,
  wq_invalid_request = 0x10,
  wq_access = 0x11,
  srq_catastrophic = 0x12,
  srq_last_wqe = 0x13,
  srq_limit = 0x14,
  comm_channel = 0x18,
  flr = 0x1c,
};
inline constexpr std::uint8_t port_down = 1, port_active = 4;
inline constexpr std::uint8_t cq_overrun = 1, cq_access_violation = 2;
}  // namespace eqe

namespace cqe {
inline constexpr std::size_t bytes = 32;  ///< in 64-byte entries this is the second half
inline constexpr auto qpn_word = u32(0x00), immediate = u32(0x04), source = u32(0x08);
inline constexpr auto vlan_present = bits32(0x00, 29, 29), qpn = bits32(0x00, 23, 0);
inline constexpr auto grh_present = bits32(0x08, 31, 31), remote_qpn = bits32(0x08, 23, 0);
inline constexpr auto sl_vid = u16(0x0c);
inline constexpr std::size_t source_mac = 0x0e;
inline constexpr auto ethernet_status = u16(0x10);
inline constexpr std::uint16_t status_ipv4 = 1 << 6, status_fragment = 1 << 7, status_ipv6 = 1 << 8,
                               status_options = 1 << 9, status_tcp = 1 << 10, status_udp = 1 << 11,
                               status_ip_ok = 1 << 12;
inline constexpr auto ipv6_extensions = u8(0x12), ethernet_encoding = u8(0x13);
inline constexpr std::uint8_t encoding_bad_fcs = 1 << 4, encoding_l4_ok = 1 << 2, encoding_snap = 1 << 1,
                              encoding_llc = 1 << 0;
inline constexpr std::uint32_t ctag = 1u << 29, stag = 1u << 30;  ///< qpn_word
inline constexpr auto byte_count = u32(0x14);
inline constexpr auto wqe_index = u16(0x18), checksum = u16(0x1a);
inline constexpr auto vendor_error = u8(0x1a), syndrome = u8(0x1b);  ///< error form
inline constexpr auto owner_opcode = u8(0x1f);
inline constexpr std::uint8_t owner_bit = 0x80, send_bit = 0x40, inline_bit = 0x20, opcode_mask = 0x1f;
inline constexpr std::uint8_t opcode_error = 0x1e, opcode_resize = 0x16;
inline constexpr std::uint8_t receive_write_imm = 0, receive_send = 1, receive_send_imm = 2, receive_send_inval = 3;
enum class error : std::uint8_t {
  local_length = 0x01,
  local_qp_operation = 0x02,
  local_protection = 0x04,
  flushed = 0x05,
  window_bind = 0x06,
  bad_response = 0x10,
  local_access = 0x11,
  remote_invalid_request = 0x12,
  remote_access = 0x13,
  remote_operation = 0x14,
  retry_exceeded = 0x15,
  rnr_retry_exceeded = 0x16,
  remote_aborted = 0x22,
};
}  // namespace cqe

/// Work queue entries.
namespace wqe {
enum class opcode : std::uint8_t {
  nop = 0x00,
  send_inval = 0x01,
  rdma_write = 0x08,
  rdma_write_imm = 0x09,
  send = 0x0a,
  send_imm = 0x0b,
  lso = 0x0e,
  rdma_read = 0x10,
  atomic_cs = 0x11,
  atomic_fa = 0x12,
  masked_atomic_cs = 0x14,
  masked_atomic_fa = 0x15,
  bind_mw = 0x18,
  fast_reg = 0x19,
  local_inval = 0x1b,
  config = 0x1f,
};
inline constexpr std::size_t unit = 16;  ///< sizes are counted in these
inline constexpr std::size_t max_bytes = 1008;
inline constexpr std::uint32_t unwritten = 0xffffffff;  ///< first word of a 64-byte chunk that is not written yet

/// Control segment: first of every send WQE.
namespace control {
inline constexpr std::size_t bytes = 16;
inline constexpr auto owner = bits32(0x0, 31, 31), index = bits32(0x0, 23, 8), opcode = bits32(0x0, 4, 0);
inline constexpr auto vlan_tag = u16(0x4), insert_vlan = bits16(0x6, 15, 14);
inline constexpr auto qpn = bits32(0x4, 31, 8);  ///< BlueFlame only
inline constexpr auto fence = bits8(0x7, 6, 6), size = bits8(0x7, 5, 0);
inline constexpr auto flags = u32(0x8);
inline constexpr std::uint32_t strong_order = 1u << 7, tcp_udp_checksum = 1u << 5, ip_checksum = 1u << 4,
                               cq_update = 3u << 2, solicited = 1u << 1, force_loopback = 1u << 0;
inline constexpr auto immediate = u32(0xc);
inline constexpr std::uint8_t fence_bit = 1 << 6;
/// Ethernet: in words 0 and 1; `solicited` says there that no ICRC is to be made.
inline constexpr std::uint32_t long_header = 1u << 6, insert_ctag = 0x40u << 8, insert_stag = 0x80u << 8;
inline constexpr unsigned tag_shift = 16;
inline constexpr std::uint32_t owner_bit = 1u << 31;
}  // namespace control

namespace remote_address {
inline constexpr std::size_t bytes = 16;
inline constexpr auto address = u64(0x0);
inline constexpr auto rkey = u32(0x8);
}  // namespace remote_address

namespace atomic {
inline constexpr std::size_t bytes = 16;
inline constexpr auto swap_add = u64(0x0), compare = u64(0x8);
}  // namespace atomic

/// Header of a segmented message.
namespace large_send {
inline constexpr std::size_t header = 4;
inline constexpr auto segment = u16(0x0), length = u16(0x2);
}  // namespace large_send

/// Scatter/gather entry of send and receive queues.
namespace data {
inline constexpr std::size_t bytes = 16;
inline constexpr auto byte_count = u32(0x0), lkey = u32(0x4);
inline constexpr auto address = u64(0x8);
inline constexpr std::uint32_t invalid_lkey = 0x100;  ///< with byte count 0: end of a receive list
}  // namespace data

namespace inline_data {
inline constexpr auto byte_count = u32(0x0);
inline constexpr std::uint32_t flag = 1u << 31, length_mask = 0x3ff;
inline constexpr std::size_t header = 4, boundary = 64;  ///< header and data stay inside one 64-byte chunk
}  // namespace inline_data

/// Datagram segment: address vector, then destination QP.
namespace datagram {
inline constexpr std::size_t bytes = 48;
inline constexpr auto port_pd = u32(0x00), port = bits32(0x00, 25, 24), pd = bits32(0x00, 23, 0),
                      vlan_valid = bits32(0x00, 29, 29), loopback = bits32(0x00, 31, 31);
inline constexpr auto mac_index = u8(0x05), gid_index = u8(0x09), static_rate = u8(0x0a), hop_limit = u8(0x0b);
inline constexpr auto priority = bits32(0x0c, 31, 29), traffic_class = bits32(0x0c, 27, 20),
                      flow_label = bits32(0x0c, 19, 0);
inline constexpr std::size_t remote_gid = 0x10;
inline constexpr auto qpn = bits32(0x20, 23, 0), qkey = u32(0x24);
inline constexpr auto vlan = u16(0x28);
inline constexpr std::size_t dmac = 0x2a;
}  // namespace datagram

namespace bind {
inline constexpr std::size_t bytes = 32;
inline constexpr auto flags1 = u32(0x00), flags2 = u32(0x04), new_rkey = u32(0x08), lkey = u32(0x0c);
inline constexpr auto address = u64(0x10), length = u64(0x18);
inline constexpr std::uint32_t atomic = 1u << 31, remote_write = 1u << 30, remote_read = 1u << 29;  ///< flags1
inline constexpr std::uint32_t type_2 = 1u << 31, zero_based = 1u << 30;                            ///< flags2
}  // namespace bind

namespace fast_register {
inline constexpr std::size_t bytes = 48;
inline constexpr auto flags = u32(0x00), key = u32(0x04);
inline constexpr auto page_list = u64(0x08), start = u64(0x10), length = u64(0x18);
inline constexpr auto offset = u32(0x20), log_page = u32(0x24);
inline constexpr std::uint32_t atomic = 1u << 31, remote_write = 1u << 30, remote_read = 1u << 29,
                               local_write = 1u << 28, local_read = 1u << 27;  ///< flags
}  // namespace fast_register

namespace local_invalidate {
inline constexpr std::size_t bytes = 32;
inline constexpr auto key = u32(0x08);
}  // namespace local_invalidate

/// First segment of a shared receive queue's WQE.
namespace srq_next {
inline constexpr std::size_t bytes = 16;
inline constexpr auto index = u16(0x02);
}  // namespace srq_next
}  // namespace wqe

}  // namespace rnic::abi
