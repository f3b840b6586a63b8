// SPDX-License-Identifier: Apache-2.0
// Plain frames: where their headers lie, internet checksums, VLAN tags, and the hashes that spread flows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rnic::wire {

inline constexpr std::uint16_t type_ipv4 = 0x0800, type_ipv6 = 0x86dd, type_ctag = 0x8100, type_stag = 0x88a8;
inline constexpr std::uint8_t protocol_tcp = 6, protocol_udp = 17;
inline constexpr std::uint32_t ethernet_header_bytes = 14, vlan_tag_bytes = 4;

/// What inspect() finds in a frame. Offsets are from the DMAC.
struct frame_view {
  bool ctag = false, stag = false;  ///< the outer tag, IEEE 802.1Q C-tag or S-tag
  std::uint16_t tci = 0;
  bool ipv4 = false, ipv6 = false;
  bool fragment = false;        ///< IPv4: more fragments or an offset; IPv6: a fragment header
  bool options = false;         ///< IPv4 options
  std::uint8_t extensions = 0;  ///< IPv6: bit 0 hop by hop, 1 routing, 2 authentication, 3 fragment, 4 destination
  bool tcp = false, udp = false;
  std::uint32_t l3 = 0;   ///< IP header, when ipv4 or ipv6
  std::uint32_t l4 = 0;   ///< TCP or UDP header, when tcp or udp: it lies in the frame as a whole
  std::uint32_t end = 0;  ///< of the IP packet; Ethernet padding may follow
};

/// Trust nothing: what does not fit into the frame is as if it was not there. At most one tag is looked through.
frame_view inspect(const std::uint8_t* frame, std::size_t length);

/// Internet checksum (RFC 1071), in host order of the big-endian halfwords: a running sum, and its end.
std::uint64_t checksum_add(std::uint64_t sum, const std::uint8_t* from, std::size_t bytes);
std::uint16_t checksum_fold(std::uint64_t sum);

/// Sum over the IPv4 header as it is: 0xffff when its checksum is right. `v.ipv4` must be set.
std::uint16_t ipv4_header_sum(const std::uint8_t* frame, const frame_view& v);
/// Sum over pseudo header (RFC 793, RFC 8200 8.1) and TCP or UDP with its payload: 0xffff when the checksum is right.
/// `v.tcp` or `v.udp` must be set.
std::uint16_t l4_sum(const std::uint8_t* frame, const frame_view& v);
/// Sum that a driver makes one of the whole packet of (adapter data plane A.8.4): IPv4: payload and pseudo header;
/// IPv6: header and payload without bytes 0 to 3, next header and hop limit. `v.ipv4` or `v.ipv6` must be set.
std::uint16_t packet_sum(const std::uint8_t* frame, const frame_view& v);

/// Write the checksums of the headers that the view has; others stay untouched.
void set_ipv4_checksum(std::uint8_t* frame, const frame_view& v);
void set_l4_checksum(std::uint8_t* frame, const frame_view& v);

/// Puts a tag behind the addresses; the frame begins four bytes before `frame` then, where there must be room.
void insert_tag(std::uint8_t* frame, std::uint16_t ether_type, std::uint16_t tci);
/// Takes the outer tag away; the frame begins four bytes behind `frame` then.
void remove_tag(std::uint8_t* frame);

/// Makes packet `index` of a segmented TCP message (adapter data plane A.8.1): `frame` has the header as software wrote
/// it and the packet's part of the payload, which begins at `offset` of the message's. Lengths, IPv4 identification,
/// sequence number, flags (FIN and PSH on the last packet only, CWR on the first) and checksums are set. False: the
/// header is not TCP over IP.
bool segment_header(std::uint8_t* frame, std::size_t length, std::uint32_t index, std::uint32_t offset, bool last);

inline constexpr std::size_t toeplitz_key_bytes = 40;
using toeplitz_key = std::array<std::uint8_t, toeplitz_key_bytes>;
/// Toeplitz hash of up to 36 bytes (Microsoft, "Verifying the RSS hash calculation").
std::uint32_t toeplitz(const toeplitz_key& key, const std::uint8_t* input, std::size_t bytes);

/// Bytes that the hash goes over: addresses, and ports when `ports`. Returns how many (0: not an IP frame).
std::size_t flow_bytes(const std::uint8_t* frame, const frame_view& v, bool ports, std::uint8_t (&to)[36]);

}  // namespace rnic::wire
