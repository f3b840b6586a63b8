// SPDX-License-Identifier: Apache-2.0
// Registers of the command block on the internal bus (cr_base::command): commands as firmware sees them.
#pragma once

#include <cstdint>

namespace rnic::command::cr {

/// The oldest command that firmware has not accepted yet. While no command is pending the words read 0.
inline constexpr std::uint32_t status = 0x00;  ///< bit 0: a command is pending; 15:8: how many
inline constexpr std::uint32_t in_param_high = 0x04;
inline constexpr std::uint32_t in_param_low = 0x08;
inline constexpr std::uint32_t in_modifier = 0x0c;
inline constexpr std::uint32_t control = 0x10;  ///< 11:0 opcode, 15:12 opcode modifier, bit 22: event wanted
inline constexpr std::uint32_t token = 0x14;    ///< 15:0
inline constexpr std::uint32_t status_pending = 1;
inline constexpr std::uint32_t control_event = 1u << 22;

/// Write 1: firmware takes the pending command over; the words above show the next one.
inline constexpr std::uint32_t accept = 0x18;

/// Read: output parameter of the pending command (mailbox address).
/// Write: completion of a polled command: results, then `complete` with the status in 7:0, which puts them into the
/// host's command register and clears GO there. Commands with the event bit are completed by an event instead
/// (model/completion/completion_cr.h), and writing `complete` for them must not be done. Write-only.
inline constexpr std::uint32_t out_param_high = 0x20;
inline constexpr std::uint32_t out_param_low = 0x24;
inline constexpr std::uint32_t complete = 0x28;

/// Catastrophic error buffer, 16 words, read and write: word 0 not 0 makes the driver reset the device.
inline constexpr std::uint32_t catas = 0x100;

/// Channel of the virtual functions (comm_channel.h): four words each, a bit for each function, which reading clears.
inline constexpr std::uint32_t channel_written = 0x300;          ///< has written a command
inline constexpr std::uint32_t channel_reset_requests = 0x310;   ///< asks to be reset
inline constexpr std::uint32_t channel_function_resets = 0x320;  ///< had a function-level reset
/// Flags register of function n in word n, read and write: abi::comm::flag_*.
inline constexpr std::uint32_t channel_flags = 0x400;

/// Counters, read only, 32 bits that wrap.
inline constexpr std::uint32_t count_commands = 0x200;    ///< accepted from the host
inline constexpr std::uint32_t count_overrun = 0x204;     ///< dropped: written while GO was still set
inline constexpr std::uint32_t count_bad_access = 0x208;  ///< writes of an unknown address or size
inline constexpr std::uint32_t count_resets = 0x20c;

}  // namespace rnic::command::cr
