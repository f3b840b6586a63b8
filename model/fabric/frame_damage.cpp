// SPDX-License-Identifier: Apache-2.0
// Bits of frames by name.
#include "model/fabric/frame_damage.h"

#include "model/fabric/congestion_marker.h"
#include "model/wire/bytes.h"
#include "model/wire/icrc.h"

namespace rnic::fabric {

namespace {

constexpr std::uint32_t bth_bytes = 12;
constexpr std::uint32_t ipv4_checksum_offset = 10, ipv4_ttl_offset = 8, ipv6_hop_limit_offset = 7;
constexpr std::uint32_t udp_bytes = 8;

bit_range bytes_at(std::uint32_t offset, std::uint32_t count) { return {offset * 8, count * 8}; }

bit_range find_ip_field(const wire::packet& p, header_field field) {
  const bool v1 = p.encap == wire::encapsulation::roce_v1, v4 = p.encap == wire::encapsulation::roce_v2_ipv4;
  const std::uint32_t udp = p.bth_offset - udp_bytes;
  switch (field) {
    case header_field::dmac:
      return bytes_at(0, 6);
    case header_field::smac:
      return bytes_at(6, 6);
    case header_field::ip_ttl:
      return bytes_at(p.l3_offset + (v4 ? ipv4_ttl_offset : ipv6_hop_limit_offset), 1);
    case header_field::ip_checksum:
      return v4 ? bytes_at(p.l3_offset + ipv4_checksum_offset, 2) : bit_range{};
    case header_field::udp_source:
      return v1 ? bit_range{} : bytes_at(udp, 2);
    case header_field::udp_dest:
      return v1 ? bit_range{} : bytes_at(udp + 2, 2);
    default:
      return {};
  }
}

/// RETH or AETH: right behind the BTH in every packet of RC and UC that has them.
bit_range find_extended_field(const wire::packet& p, header_field field) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  const std::uint32_t extended = p.bth_offset + bth_bytes;
  const bool behind = !t.deth && !t.rdeth && !t.xrceth;
  switch (field) {
    case header_field::reth_va:
      return t.reth && behind ? bytes_at(extended, 8) : bit_range{};
    case header_field::reth_rkey:
      return t.reth && behind ? bytes_at(extended + 8, 4) : bit_range{};
    case header_field::reth_length:
      return t.reth && behind ? bytes_at(extended + 12, 4) : bit_range{};
    case header_field::aeth_syndrome:
      return t.aeth && behind ? bytes_at(extended, 1) : bit_range{};
    case header_field::aeth_msn:
      return t.aeth && behind ? bytes_at(extended + 1, 3) : bit_range{};
    default:
      return {};
  }
}

}  // namespace

bool mark_congestion(payload::frame& f, const wire::packet& p) {
  if (p.encap == wire::encapsulation::roce_v1) return false;
  set_congestion_experienced(f, {p.encap == wire::encapsulation::roce_v2_ipv4 ? 4u : 6u, p.l3_offset, 0});
  return true;
}

bit_range find_part(const payload::frame& f, const wire::packet* p, frame_part part) {
  if (part == frame_part::any) return bytes_at(0, f.length);
  if (p == nullptr) return {};
  switch (part) {
    case frame_part::payload:
      return bytes_at(p->payload_offset, p->payload_length);
    case frame_part::header:
      return bytes_at(0, p->payload_offset);
    case frame_part::icrc:
      return bytes_at(p->icrc_offset, 4);
    default:
      return {};
  }
}

bit_range find_field(const wire::packet& p, header_field field) {
  const std::uint32_t bth = p.bth_offset;
  switch (field) {
    case header_field::opcode:
      return bytes_at(bth, 1);
    case header_field::solicited:
      return {(bth + 1) * 8, 1};
    case header_field::migration:
      return {(bth + 1) * 8 + 1, 1};
    case header_field::pad:
      return {(bth + 1) * 8 + 2, 2};
    case header_field::version:
      return {(bth + 1) * 8 + 4, 4};
    case header_field::pkey:
      return bytes_at(bth + 2, 2);
    case header_field::dest_qp:
      return bytes_at(bth + 5, 3);
    case header_field::ack_request:
      return {(bth + 8) * 8, 1};
    case header_field::psn:
      return bytes_at(bth + 9, 3);
    case header_field::dmac:
    case header_field::smac:
    case header_field::ip_ttl:
    case header_field::ip_checksum:
    case header_field::udp_source:
    case header_field::udp_dest:
      return find_ip_field(p, field);
    default:
      return find_extended_field(p, field);
  }
}

void flip_bit(payload::frame& f, std::uint32_t bit) {
  f.data()[bit / 8] = static_cast<std::uint8_t>(f.data()[bit / 8] ^ (0x80u >> (bit % 8)));
}

bool set_bits(payload::frame& f, bit_range range, std::uint64_t value) {
  bool changed = false;
  for (std::uint32_t i = 0; i < range.count; ++i) {
    const std::uint32_t bit = range.first + i;
    const bool is = (f.data()[bit / 8] << (bit % 8) & 0x80) != 0;
    if (is == ((value >> (range.count - 1 - i) & 1) != 0)) continue;
    flip_bit(f, bit);
    changed = true;
  }
  return changed;
}

void make_icrc_right(payload::frame& f, const wire::packet& p) {
  wire::store_le32(f.data() + p.icrc_offset, wire::icrc(f.data(), p));
}

void make_fcs_right(payload::frame& f) { f.fcs = wire::ethernet_fcs(f.data(), f.length); }

}  // namespace rnic::fabric
