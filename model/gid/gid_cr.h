// SPDX-License-Identifier: Apache-2.0
// Registers of the GID hardware of one port on the internal bus.
#pragma once

#include <cstdint>

namespace rnic::gid::cr {

/// Offsets from cr_base::gid + port * cr_port_stride. All tables have 128 entries (gid::table_size); every register
/// reads back what was written, reserved bits as 0. Nothing takes effect but the written word.

/// GID table, 8 words an entry: words 0..3 the GID in wire order, most significant byte first (word 0 holds bytes
/// 0..3, byte 0 in bits 31:24), word 4 the attributes below; words 5..7 do not exist. Write the GID with the valid bit
/// clear first, then the attributes.
inline constexpr std::uint32_t gid_table = 0x0000;
inline constexpr std::uint32_t gid_stride = 0x20;
inline constexpr std::uint32_t gid_attributes = 0x10;  ///< offset of word 4 in an entry
inline constexpr std::uint32_t gid_valid = 0x8000'0000;
inline constexpr std::uint32_t gid_vlan_valid = 0x4000'0000;
inline constexpr unsigned gid_type_shift = 16;  ///< bits 17:16: 0 RoCE v1, 2 RoCE v2 (other codes: v1)
inline constexpr std::uint32_t gid_type_mask = 0x0003'0000;
inline constexpr std::uint32_t gid_vlan_mask = 0x0000'0fff;
constexpr std::uint32_t gid_word(unsigned index, unsigned word) { return gid_table + index * gid_stride + word * 4; }

/// MAC table, 2 words an entry: word 0 bit 31 valid, 15:0 bytes 0..1 of the address; word 1 bytes 2..5.
inline constexpr std::uint32_t mac_table = 0x1000;
inline constexpr std::uint32_t mac_stride = 0x8;
inline constexpr std::uint32_t mac_valid = 0x8000'0000;
constexpr std::uint32_t mac_word(unsigned index, unsigned word) { return mac_table + index * mac_stride + word * 4; }

/// VLAN table, 1 word an entry: bit 31 valid, 11:0 VID.
inline constexpr std::uint32_t vlan_table = 0x1400;
inline constexpr std::uint32_t vlan_valid = 0x8000'0000;
inline constexpr std::uint32_t vlan_mask = 0x0000'0fff;
constexpr std::uint32_t vlan_word(unsigned index) { return vlan_table + index * 4; }

/// Number of virtual functions of the port, 0..126: moves the windows, so `function` of all entries is set again.
inline constexpr std::uint32_t num_vfs = 0x1800;
/// Whose the windows are, in their order: first those of the functions that have this port alone, then of those that
/// have both. Bits 6:0 the number of the former, 14:8 the lowest function of the former, 22:16 that of the latter.
/// After reset: function 1 has the first window, and so on.
inline constexpr std::uint32_t vf_numbers = 0x1808;
inline constexpr unsigned vf_alone_shift = 0, vf_first_alone_shift = 8, vf_first_shift = 16;
inline constexpr std::uint32_t vf_number_mask = 0x7f, vf_numbers_reset = 1u << vf_first_shift;
/// rw, bit 0: RoCE for a GID of the other port's table is taken too (CONFIG_DEV: no rx port check, and tables that
/// differ).
inline constexpr std::uint32_t both_tables = 0x180c;
/// rw, bit 0: the port takes RoCE v2 (SET_PORT's roce_mode). Else its packets are UDP like any other. 1 after reset.
inline constexpr std::uint32_t roce_v2 = 0x1804;

}  // namespace rnic::gid::cr
