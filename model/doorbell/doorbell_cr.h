// SPDX-License-Identifier: Apache-2.0
// Registers of the doorbell block on the internal bus.
#pragma once

#include <cstdint>

namespace rnic::doorbell::cr {

/// Offsets from cr_base::doorbell. Firmware writes them before it lets software ring (INIT_HCA). Values out of range,
/// and writes to read-only registers and to unknown offsets, change nothing.
inline constexpr std::uint32_t uar_page_shift = 0x00;  ///< log2 of bytes of a UAR page, 12..20; 12 after reset
/// log2 of UAR pages, 0..20; 0 after reset. Writing it, and nothing else, opens the pages after a reset.
inline constexpr std::uint32_t log_num_uars = 0x04;
inline constexpr std::uint32_t blueflame_enable = 0x08;  ///< 0: stores to BlueFlame pages are counted and ignored
inline constexpr std::uint32_t log_bf_reg_size =
    0x0c;  ///< read-only: log2 of bytes of a BlueFlame register (two halves)
/// EQs of virtual functions: function f's own number n, 0 to eqs_of_virtual - 1, is the number first_virtual_eq +
/// (f - 1) * eqs_of_virtual + n of the completion block. Below are those of the physical function. 16 bits each. 0
/// after reset: virtual functions have none, and the physical function has all.
inline constexpr std::uint32_t first_virtual_eq = 0x10;
inline constexpr std::uint32_t eqs_of_virtual = 0x14;

}  // namespace rnic::doorbell::cr
