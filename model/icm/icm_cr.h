// SPDX-License-Identifier: Apache-2.0
// Registers of the ICM block on the internal bus (cr_base::icm): mapping, table layouts, translation caches.
#pragma once

#include <cstdint>

namespace rnic::icm::cr {

/// Mapping (MAP_ICM, UNMAP_ICM): fill in the operands, then write map_command, which acts at once. Operands keep
/// their values. Addresses are taken down to 4 KiB; `pages` counts 4 KiB pages.
inline constexpr std::uint32_t map_icm_hi = 0x00;   ///< ICM virtual address, bits 63:32
inline constexpr std::uint32_t map_icm_lo = 0x04;   ///< bits 31:0
inline constexpr std::uint32_t map_bus_hi = 0x08;   ///< bus address of the host memory behind it, bits 63:32
inline constexpr std::uint32_t map_bus_lo = 0x0c;   ///< bits 31:0
inline constexpr std::uint32_t map_pages = 0x10;    ///< number of 4 KiB pages
inline constexpr std::uint32_t map_command = 0x14;  ///< write: map_command_*; read: pages mapped at present
inline constexpr std::uint32_t map_command_map = 1;
inline constexpr std::uint32_t map_command_unmap = 2;  ///< pages of the range that are not mapped are ignored
inline constexpr std::uint32_t map_command_clear = 3;  ///< unmaps everything

/// Table layouts (INIT_HCA): write table_select (icm::table as a number), then the fields, each taking effect at once;
/// reads give the field of the selected table. A selection out of range reads 0 and ignores writes.
inline constexpr std::uint32_t table_select = 0x20;
inline constexpr std::uint32_t table_base_hi = 0x24;
inline constexpr std::uint32_t table_base_lo = 0x28;
inline constexpr std::uint32_t table_entry_bytes = 0x2c;
inline constexpr std::uint32_t table_log_entries = 0x30;  ///< 0..31

/// Translation caches. A dropped entry is read again from ICM at its next use, and a fetch that was under way at the
/// time of the command is not kept and not used. Software writes MTTs without telling the adapter, and the cache reads
/// them in lines of several entries, so firmware drops the MTT range of an object when it is handed over to hardware
/// (SW2HW_MPT, SW2HW_CQ, SW2HW_EQ, SW2HW_SRQ, RST2INIT); for memory regions also the MPT, at SW2HW_MPT and HW2SW_MPT.
inline constexpr std::uint32_t tpt_index = 0x40;    ///< MPT: memory key index (taken modulo the table's size)
inline constexpr std::uint32_t tpt_mtt_hi = 0x44;   ///< MTT: mtt_address (byte offset from the MTT base), bits 63:32
inline constexpr std::uint32_t tpt_mtt_lo = 0x48;   ///< bits 31:0
inline constexpr std::uint32_t tpt_count = 0x4c;    ///< MTT: number of entries
inline constexpr std::uint32_t tpt_command = 0x50;  ///< write: tpt_command_*
inline constexpr std::uint32_t tpt_command_drop_mpt = 1;        ///< the MPT at tpt_index
inline constexpr std::uint32_t tpt_command_drop_mtt_range = 2;  ///< tpt_count entries from tpt_mtt
inline constexpr std::uint32_t tpt_command_drop_all = 3;        ///< all MPTs and MTTs (SYNC_TPT)
/// The entry at tpt_index is a window that hardware does not use any more (it was dropped): takes it off its region.
/// tpt_status tells when that is done.
inline constexpr std::uint32_t tpt_command_release_window = 4;
/// The entry of the key in tpt_index was dropped: nothing that was translated under the key may touch memory any more
/// when bit 0 of tpt_status is clear.
inline constexpr std::uint32_t tpt_command_revoke_key = 5;
/// Bit 0: an access that was looked up before the last drop command has not been answered yet. HW2SW_MPT polls it
/// until clear; translations already answered are the clients' business (QPs are stopped or have their own answers).
inline constexpr std::uint32_t tpt_status = 0x54;

/// Write 1: everything above back to the state after power-up (mapping, layouts, caches).
inline constexpr std::uint32_t reset = 0x60;

/// Counters, read only, 32 bits that wrap.
inline constexpr std::uint32_t count_mpt_hits = 0x80;
inline constexpr std::uint32_t count_mpt_misses = 0x84;
inline constexpr std::uint32_t count_mtt_hits = 0x88;
inline constexpr std::uint32_t count_mtt_misses = 0x8c;
inline constexpr std::uint32_t count_refused = 0x90;  ///< translations answered with another status than ok

}  // namespace rnic::icm::cr
