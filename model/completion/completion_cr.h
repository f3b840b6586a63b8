// SPDX-License-Identifier: Apache-2.0
// Registers of the completion block on the internal bus (cr_base::completion): CQ and EQ control, events, counters.
#pragma once

#include <cstdint>

namespace rnic::completion::cr {

/// CQ control. Firmware changes a CQ like this: cq_select = CQN; cq_command = halt; poll cq_status until busy is clear
/// (no entry of the CQ is on its way, nothing of it is on chip, the context is in ICM); edit the CQC entry in ICM;
/// cq_command = release. To create a CQ: write the entry in ICM, then release (which also forgets an older copy).
///
/// Completions for a halted CQ wait, and with them what is behind them in the same channel. At most 8 CQs and 8 EQs
/// can be halted at once; a halt beyond that is ignored and leaves busy set.
inline constexpr std::uint32_t cq_select = 0x00;   ///< CQN the next command is for
inline constexpr std::uint32_t cq_command = 0x04;  ///< queue_command_*
inline constexpr std::uint32_t cq_status = 0x08;   ///< of the selected CQ: bit 0 busy

/// EQ control, in the same way. Events for a halted EQ wait.
inline constexpr std::uint32_t eq_select = 0x10;   ///< EQN the next command is for
inline constexpr std::uint32_t eq_command = 0x14;  ///< queue_command_*
inline constexpr std::uint32_t eq_status = 0x18;   ///< of the selected EQ: bit 0 busy

inline constexpr std::uint32_t queue_command_halt = 1;  ///< finish what is on its way, write the context back, forget
inline constexpr std::uint32_t queue_command_release = 2;  ///< work again with what is in ICM
inline constexpr std::uint32_t queue_command_discard = 3;  ///< as halt, but the context is not written back, and what
                                                           ///< arrives before the release is dropped and counted

/// Entry sizes (INIT_HCA byte 0x5b, or the 64 B flags): 32 or 64; other values are ignored. Reset: 32.
inline constexpr std::uint32_t cqe_bytes = 0x20;
inline constexpr std::uint32_t eqe_bytes = 0x24;

/// Raising an event from firmware (command completions, port changes): 24 bytes of payload as big-endian words
/// (word i = bytes 0x04 + 4 i .. 0x07 + 4 i of the EQE, most significant byte first), type, EQ, then event_push.
inline constexpr std::uint32_t event_data = 0x40;          ///< 6 words, 0x40..0x57
inline constexpr std::uint32_t event_kind = 0x58;          ///< 15:8 type, 7:0 subtype
inline constexpr std::uint32_t event_eqn = 0x5c;           ///< EQN, or event_eqn_mapped
inline constexpr std::uint32_t event_eqn_mapped = 0xffff;  ///< the EQ to which the type is mapped
/// Function whose object it is, as byte 0x1c of the entry tells: 0 again after each push.
inline constexpr std::uint32_t event_function = 0x64;
/// Write: pushes the event. Read: bit 0 = no room now, a push would be ignored (and counted in count_event_lost).
inline constexpr std::uint32_t event_push = 0x60;

/// Write 1: forgets all contexts without writing back, all halts, the event map, entry sizes and waiting work.
inline constexpr std::uint32_t reset = 0x70;

/// Event map (MAP_EQ): word n = EQN for event type n (0..0x3f), event_unmapped = the event is dropped. Reset: unmapped.
inline constexpr std::uint32_t event_map = 0x100;
inline constexpr std::uint32_t event_types = 64;
inline constexpr std::uint32_t event_unmapped = 0xffff;

/// Counters, read only, 32 bits that wrap.
inline constexpr std::uint32_t count_cqe = 0x1000;             ///< CQEs written
inline constexpr std::uint32_t count_cqe_invalid = 0x1004;     ///< dropped: CQ not valid or its buffer not accessible
inline constexpr std::uint32_t count_cq_overflow = 0x1008;     ///< dropped: CQ full (or in the overflow state already)
inline constexpr std::uint32_t count_eqe = 0x100c;             ///< EQEs written
inline constexpr std::uint32_t count_eqe_invalid = 0x1010;     ///< dropped: EQ not valid or its buffer not accessible
inline constexpr std::uint32_t count_eq_overflow = 0x1014;     ///< dropped: EQ full
inline constexpr std::uint32_t count_event_unmapped = 0x1018;  ///< dropped: type mapped to no EQ
inline constexpr std::uint32_t count_event_lost = 0x101c;      ///< dropped: pushed by firmware while there was no room
inline constexpr std::uint32_t count_interrupts = 0x1020;      ///< MSI-X requests
inline constexpr std::uint32_t count_stale_arm = 0x1024;       ///< arm doorbells ignored for their sequence number
inline constexpr std::uint32_t count_bad_doorbell = 0x1028;    ///< doorbells for a CQ or EQ that is not the function's
inline constexpr std::uint32_t count_discarded = 0x102c;       ///< dropped because the queue was discarded

}  // namespace rnic::completion::cr
