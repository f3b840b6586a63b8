// SPDX-License-Identifier: Apache-2.0
// A RoCE packet: the headers of RoCE v1 and v2 as values, and their bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/wire/psn.h"

namespace rnic::wire {

using mac_address = std::array<std::uint8_t, 6>;
/// 128-bit global identifier in wire order; IPv4 addresses are ::ffff:a.b.c.d.
using gid = std::array<std::uint8_t, 16>;

enum class ether_type : std::uint16_t {
  ipv4 = 0x0800,
  vlan = 0x8100,
  ipv6 = 0x86dd,
  mac_control = 0x8808,
  roce_v1 = 0x8915
};
inline constexpr std::uint16_t roce_v2_udp_port = 4791;

/// Encapsulation of the IB transport on Ethernet.
enum class encapsulation : std::uint8_t { roce_v1, roce_v2_ipv4, roce_v2_ipv6 };

/// BTH opcode: transport in [7:5], operation in [4:0] (IBA volume 1, table 35). `manufacturer`: the range that the
/// standard leaves to manufacturers, here masked atomics of a reliable connection.
enum class transport : std::uint8_t {
  rc = 0x00,
  uc = 0x20,
  rd = 0x40,
  ud = 0x60,
  cnp = 0x80,
  xrc = 0xa0,
  manufacturer = 0xc0
};
enum class operation : std::uint8_t {
  send_first = 0x00,
  send_middle,
  send_last,
  send_last_immediate,
  send_only,
  send_only_immediate,
  write_first,
  write_middle,
  write_last,
  write_last_immediate,
  write_only,
  write_only_immediate,
  read_request = 0x0c,
  read_response_first,
  read_response_middle,
  read_response_last,
  read_response_only,
  acknowledge = 0x11,
  atomic_acknowledge,
  compare_swap,
  fetch_add,
  resync = 0x15,
  send_last_invalidate = 0x16,
  send_only_invalidate = 0x17
};
inline constexpr std::uint8_t opcode_cnp = 0x81;
constexpr transport transport_of(std::uint8_t opcode) { return static_cast<transport>(opcode & 0xe0); }
constexpr operation operation_of(std::uint8_t opcode) { return static_cast<operation>(opcode & 0x1f); }
constexpr std::uint8_t make_opcode(transport t, operation o) {
  return static_cast<std::uint8_t>(static_cast<std::uint8_t>(t) | static_cast<std::uint8_t>(o));
}

/// What follows the BTH and where the packet stands in its message; false `known` for codes the standard does not
/// define.
struct opcode_traits {
  bool known, deth, reth, atomic_eth, mask_eth, aeth, atomic_ack_eth, immediate, ieth, rdeth, xrceth, payload;
  bool first, last;  ///< first packet of its message, last packet of its message (ONLY: both)
  bool request, response;
  std::uint8_t extension_bytes;  ///< of all headers between BTH and payload
  const char* name;              ///< e.g. "RC SEND First"
};
const opcode_traits& traits(std::uint8_t opcode);

/// Base transport header, 12 bytes (IBA volume 1, section 9.2).
struct bth {
  std::uint8_t opcode = 0;
  bool solicited = false;
  bool migration = false;    ///< MigReq
  std::uint8_t pad = 0;      ///< 0..3
  std::uint8_t version = 0;  ///< TVer
  std::uint16_t pkey = 0xffff;
  bool fecn = false, becn = false;
  std::uint8_t reserved6 = 0;  ///< byte 4, bits 5:0
  std::uint32_t dest_qp = 0;   ///< 24 bits
  bool ack_request = false;
  std::uint8_t reserved7 = 0;  ///< byte 8, bits 6:0
  psn_t psn;
};
struct reth {
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
};
struct deth {
  std::uint32_t qkey = 0;
  std::uint8_t reserved = 0;
  std::uint32_t src_qp = 0;
};
struct aeth {
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;
};
struct atomic_eth {
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;  ///< masked FetchAdd: bits behind which no carry goes
  // Masked CmpSwap only, 16 bytes behind the standard's header.
  // Approximation: the adapter's own encoding of masked atomics is not published (adapter data plane A.4.4); opcodes
  // and header are this model's, so that they work between two instances of it and no other peer takes them.
  std::uint64_t swap_mask = 0;
  std::uint64_t compare_mask = 0;
};

/// All headers of one RoCE packet. decode() fills every field it finds so that encode() gives the same bytes again.
struct packet {
  // Ethernet
  mac_address dmac{}, smac{};
  bool vlan_present = false;
  std::uint16_t vlan_tci = 0;  ///< PCP 15:13, DEI 12, VID 11:0
  encapsulation encap = encapsulation::roce_v2_ipv4;
  // Layer 3: GRH, IPv4 or IPv6. GIDs are ::ffff:a.b.c.d for IPv4.
  gid sgid{}, dgid{};
  std::uint8_t traffic_class = 0;  ///< TClass / TOS byte (DSCP 7:2, ECN 1:0)
  std::uint32_t flow_label = 0;    ///< 20 bits
  std::uint8_t hop_limit = 64;     ///< HopLmt / TTL
  std::uint16_t ipv4_id = 0;
  std::uint16_t ipv4_fragment = 0x4000;  ///< flags and offset; DF
  // UDP
  std::uint16_t udp_source = 0;
  std::uint16_t udp_dest = roce_v2_udp_port;
  std::uint16_t udp_checksum = 0;
  // IB transport
  wire::bth bth;
  wire::reth reth;
  wire::deth deth;
  wire::aeth aeth;
  wire::atomic_eth atomic;
  std::uint64_t atomic_original = 0;    ///< AtomicAckETH
  std::uint32_t immediate = 0;          ///< ImmDt, host order of the big-endian word
  std::uint32_t invalidate_rkey = 0;    ///< IETH
  std::uint32_t rdeth = 0, xrceth = 0;  ///< whole dwords
  // Layout, filled by decode() and by build()
  std::uint16_t l3_offset = 0;  ///< from DMAC
  std::uint16_t bth_offset = 0;
  std::uint16_t payload_offset = 0;
  std::uint32_t payload_length = 0;  ///< without pad
  std::uint32_t icrc_offset = 0;     ///< from DMAC; the packet ends 4 bytes later (Ethernet padding may follow)
  std::uint32_t icrc = 0;            ///< as found, little-endian word of the wire
};

enum class decode_error : std::uint8_t {
  none,
  not_roce,
  truncated,
  bad_ip_version,
  bad_ip_header_length,
  bad_ip_checksum,
  fragment,
  bad_length,
  bad_next_header,
  unknown_opcode,
  bad_pad
};
const char* to_string(decode_error e);

/// Reads the headers of a frame of `length` bytes from DMAC (without FCS). Trust nothing: every length is checked
/// against the frame; the L3 length decides where the packet ends, not the frame. `not_roce` for anything else than
/// EtherType 0x8915 or UDP to `udp_port`. The ICRC is read, not checked (icrc.h). Fields of headers that the packet
/// does not have, and those behind an error, keep what they held.
decode_error decode(const std::uint8_t* frame, std::size_t length, packet& out,
                    std::uint16_t udp_port = roce_v2_udp_port);

/// Bytes of all headers in front of the payload that `p` will have (from DMAC).
std::size_t header_length(const packet& p);

/// Writes the headers of `p` so that they end right before `payload` (there must be header_length() bytes in front of
/// it), writes pad after the payload's `p.payload_length` bytes, and leaves 4 bytes for the ICRC, set to 0. Lengths,
/// pad count and the IPv4 checksum are computed. Fills the layout fields of `p`. Returns the first byte of the frame;
/// the frame is p.icrc_offset + 4 bytes long.
std::uint8_t* build(packet& p, std::uint8_t* payload);

}  // namespace rnic::wire
