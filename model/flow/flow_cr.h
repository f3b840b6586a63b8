// SPDX-License-Identifier: Apache-2.0
// Registers of a flow table, and the layout of the key that its rules are compared with.
#pragma once

#include <cstdint>

namespace rnic::flow::cr {

/// Offsets from where the block that has the table puts them. A rule is staged word by word and put into its place by
/// the last write; while that write waits for a look-up to end, all writes but `reset` of the block are ignored.
inline constexpr std::uint32_t rule_value = 0x00;  ///< 8 words, those of a key
inline constexpr std::uint32_t rule_mask = 0x20;   ///< 8 words: bits that are compared
/// The lowest rank of the rules that match a key decides; all of that rank are its members.
inline constexpr std::uint32_t rule_rank_high = 0x40, rule_rank_low = 0x44;
/// 23:0 QPN; bit 30 member_no_loopback, bit 29 member_copy.
inline constexpr std::uint32_t rule_member = 0x48;
/// Write: 30:0 place of the staged rule; bit 31 it is valid from now on, else the place is empty.
inline constexpr std::uint32_t rule_write = 0x4c;
inline constexpr std::uint32_t rule_valid = 1u << 31;
inline constexpr std::uint32_t rule_busy = 0x50;  ///< read: bit 0: a write waits
inline constexpr std::uint32_t capacity = 0x54;   ///< read: places
inline constexpr std::uint32_t enable = 0x58;     ///< 1: the block asks this table alone; ends a look-up
inline constexpr std::uint32_t bytes = 0x5c;

inline constexpr std::uint32_t member_qpn = 0xffffff;
inline constexpr std::uint32_t member_no_loopback = 1u << 30;  ///< not what this port has sent itself
inline constexpr std::uint32_t member_copy = 1u << 29;         ///< gets its copy whichever rank decides

/// What the list of a look-up has room for: members of one rank, and those with member_copy. Firmware attaches no more.
inline constexpr unsigned max_members = 248, max_copies = 8;

/// Keys are eight words. What a frame has not is 0 there, its flag among it.
inline constexpr unsigned key_words = 8;

/// Of a plain frame (adapter control plane 4.19).
namespace frame_key {
inline constexpr unsigned kind = 0;  ///< 15:0 EtherType behind the tag, and the flags
inline constexpr std::uint32_t port_2 = 1u << 31, tagged = 1u << 30, ipv4 = 1u << 29, tcp = 1u << 28, udp = 1u << 27;
inline constexpr unsigned dmac_high = 1;  ///< bytes 0 to 3
inline constexpr unsigned dmac_smac = 2;  ///< 31:16 bytes 4 and 5 of the destination, 15:0 bytes 0 and 1 of the source
inline constexpr unsigned smac_low = 3;   ///< bytes 2 to 5
inline constexpr unsigned tag = 4;        ///< 15:0 TCI of the outer tag
inline constexpr unsigned source_ip = 5, destination_ip = 6;
inline constexpr unsigned ports = 7;              ///< 31:16 source, 15:0 destination; not of fragments
inline constexpr std::uint32_t group = 1u << 24;  ///< of dmac_high: the I/G bit
}  // namespace frame_key

/// Of a RoCE datagram to a group.
namespace datagram_key {
inline constexpr unsigned kind = 0;  ///< 23:0 destination QPN of the BTH, and frame_key::port_2
inline constexpr unsigned dgid = 1;  ///< four words
}  // namespace datagram_key

}  // namespace rnic::flow::cr
