// SPDX-License-Identifier: Apache-2.0
// Registers of the steering block on the internal bus.
#pragma once

#include <cstdint>

namespace rnic::ethernet::cr {

/// Offsets from cr_base::steering + port * cr_port_stride. Firmware writes them while frames pass: a frame sees a table
/// as it is at the edge at which the frame enters the block (filters) or is looked up (the rest).

/// Filter of VLANs, 128 words: bit n of word w is VID 32 w + n. In force from the first write to vlan_filter_on.
inline constexpr std::uint32_t vlan_filter = 0x0000;
inline constexpr std::uint32_t vlan_filter_words = 128;
inline constexpr std::uint32_t vlan_filter_on = 0x0200;  ///< 1: tagged frames of other VIDs are dropped
/// Filter of group addresses.
inline constexpr std::uint32_t multicast_filter_on = 0x0204;     ///< 1: other groups, broadcast among them, are dropped
inline constexpr std::uint32_t multicast_filter_clear = 0x0208;  ///< write 1: empty list
inline constexpr std::uint32_t multicast_filter_high = 0x020c;   ///< 15:0 bytes 0..1 of the address
inline constexpr std::uint32_t multicast_filter_add = 0x0210;    ///< bytes 2..5; the write adds the address
/// A0 steering (SET_PORT RQP_CALC): QPN is base + index in the port's MAC table.
inline constexpr std::uint32_t rqp_base = 0x0220;         ///< bit 31 valid, 23:0
inline constexpr std::uint32_t rqp_promiscuous = 0x0224;  ///< bit 31: unknown unicast addresses go to QPN 23:0
inline constexpr std::uint32_t rqp_multicast = 0x0228;    ///< 31:30: 0 groups only, 1 then QPN 23:0, 2 this QPN only
inline constexpr std::uint32_t rqp_valid = 1u << 31;
/// Default entries, by kind of address (0 groups, 1 unicast): word 0 number of members, from word 1 on the members as
/// in a group entry. To change one: number 0, members, number.
inline constexpr std::uint32_t default_entry = 0x0800;  ///< aligned to their stride
inline constexpr std::uint32_t default_stride = 0x0800;

// Of the device, at port 0.
inline constexpr std::uint32_t group_steering = 0x0240;   ///< 1: B0, unicast addresses are looked up as groups are
inline constexpr std::uint32_t group_hash_bits = 0x0244;  ///< log2 of the buckets (icm/mgid_hash.h)
inline constexpr std::uint32_t group_written = 0x0248;    ///< write: index of an entry (transport_cr.h, mcg_written)
inline constexpr std::uint32_t reset = 0x024c;            ///< write 1: as after power-up, frames inside are gone
inline constexpr std::uint32_t flows = 0x0300;  ///< flow table: flow_cr.h; when enabled, in place of all above

}  // namespace rnic::ethernet::cr
