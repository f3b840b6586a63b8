// SPDX-License-Identifier: Apache-2.0
// Bytes to headers and back.
#include "model/wire/packet.h"

#include <algorithm>
#include <cstring>

#include "model/wire/bytes.h"

namespace rnic::wire {

namespace {

constexpr std::size_t mac_header = 14;
constexpr std::size_t vlan_tag = 4;
constexpr std::size_t grh_length = 40;
constexpr std::size_t ipv4_length = 20;
constexpr std::size_t ipv6_length = 40;
constexpr std::size_t udp_length = 8;
constexpr std::size_t bth_length = 12;
constexpr std::size_t icrc_length = 4;
constexpr std::uint8_t next_header_udp = 17;
constexpr std::uint8_t next_header_bth = 0x1b;

constexpr std::size_t l3_length(encapsulation e) {
  switch (e) {
    case encapsulation::roce_v1:
      return grh_length;
    case encapsulation::roce_v2_ipv4:
      return ipv4_length + udp_length;
    case encapsulation::roce_v2_ipv6:
      return ipv6_length + udp_length;
  }
  return 0;
}

/// The sum of 32-bit words, folded, is that of the 16-bit words (RFC 1071, 2).
std::uint16_t ipv4_checksum(const std::uint8_t* header) {
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < ipv4_length; i += 4) sum += load_be32(header + i);
  sum = (sum & 0xffff'ffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void map_ipv4(gid& to, const std::uint8_t* address) {
  to = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::memcpy(to.data() + 12, address, 4);
}

/// What the layer 3 header says: where IB begins and where the packet, ICRC included, ends.
struct extent {
  std::size_t ib = 0;
  std::size_t end = 0;
};

/// GRH, or the IPv6 header: the same 40 bytes.
void read_ipv6(const std::uint8_t* h, packet& out) {
  const std::uint32_t first = load_be32(h);
  out.traffic_class = static_cast<std::uint8_t>(first >> 20);
  out.flow_label = first & 0xfffff;
  out.hop_limit = h[7];
  std::memcpy(out.sgid.data(), h + 8, 16);
  std::memcpy(out.dgid.data(), h + 24, 16);
}

decode_error read_grh(const std::uint8_t* frame, std::size_t length, std::size_t l3, packet& out, extent& x) {
  out.encap = encapsulation::roce_v1;
  if (length < l3 + grh_length) return decode_error::truncated;
  const std::uint8_t* h = frame + l3;
  if (h[0] >> 4 != 6) return decode_error::bad_ip_version;
  if (h[6] != next_header_bth) return decode_error::bad_next_header;
  read_ipv6(h, out);
  x.ib = l3 + grh_length;
  x.end = x.ib + load_be16(h + 4);
  return decode_error::none;
}

/// UDP behind an IP header that says it is `ip_payload` long.
decode_error read_udp(const std::uint8_t* frame, std::size_t udp, std::size_t ip_payload, packet& out, extent& x) {
  const std::uint8_t* u = frame + udp;
  out.udp_source = load_be16(u);
  out.udp_dest = load_be16(u + 2);
  out.udp_checksum = load_be16(u + 6);
  x.ib = udp + udp_length;
  x.end = udp + ip_payload;
  return load_be16(u + 4) == ip_payload ? decode_error::none : decode_error::bad_length;
}

/// Whether there is a UDP header to `port` at `udp`.
bool is_udp_to(const std::uint8_t* frame, std::size_t length, std::size_t udp, std::uint16_t port) {
  return length >= udp + 4 && load_be16(frame + udp + 2) == port;
}

decode_error read_ipv4(const std::uint8_t* frame, std::size_t length, std::size_t l3, packet& out, std::uint16_t port,
                       extent& x) {
  if (length < l3 + ipv4_length) return decode_error::not_roce;
  const std::uint8_t* h = frame + l3;
  const std::size_t header = (h[0] & 0xfu) * 4u;
  out.ipv4_fragment = load_be16(h + 6);
  if (h[9] != next_header_udp || (out.ipv4_fragment & 0x1fff) != 0) return decode_error::not_roce;
  if (!is_udp_to(frame, length, l3 + std::max(header, ipv4_length), port)) return decode_error::not_roce;
  if (h[0] >> 4 != 4) return decode_error::bad_ip_version;
  if (header != ipv4_length) return decode_error::bad_ip_header_length;
  if (length < l3 + ipv4_length + udp_length) return decode_error::truncated;
  if (ipv4_checksum(h) != 0) return decode_error::bad_ip_checksum;
  if ((out.ipv4_fragment & 0x2000) != 0) return decode_error::fragment;
  out.encap = encapsulation::roce_v2_ipv4;
  out.traffic_class = h[1];
  out.flow_label = 0;
  out.ipv4_id = load_be16(h + 4);
  out.hop_limit = h[8];
  map_ipv4(out.sgid, h + 12);
  map_ipv4(out.dgid, h + 16);
  const std::size_t total = load_be16(h + 2);
  if (total < ipv4_length + udp_length) return decode_error::bad_length;
  return read_udp(frame, l3 + ipv4_length, total - ipv4_length, out, x);
}

decode_error read_ipv6_udp(const std::uint8_t* frame, std::size_t length, std::size_t l3, packet& out,
                           std::uint16_t port, extent& x) {
  if (length < l3 + ipv6_length) return decode_error::not_roce;
  const std::uint8_t* h = frame + l3;
  if (h[6] != next_header_udp || !is_udp_to(frame, length, l3 + ipv6_length, port)) return decode_error::not_roce;
  if (h[0] >> 4 != 6) return decode_error::bad_ip_version;
  if (length < l3 + ipv6_length + udp_length) return decode_error::truncated;
  out.encap = encapsulation::roce_v2_ipv6;
  read_ipv6(h, out);
  const std::size_t payload = load_be16(h + 4);
  if (payload < udp_length) return decode_error::bad_length;
  return read_udp(frame, l3 + ipv6_length, payload, out, x);
}

void read_bth(const std::uint8_t* b, bth& out) {
  out.opcode = b[0];
  out.solicited = (b[1] & 0x80) != 0;
  out.migration = (b[1] & 0x40) != 0;
  out.pad = (b[1] >> 4) & 3;
  out.version = b[1] & 0xf;
  out.pkey = load_be16(b + 2);
  const std::uint32_t qp = load_be32(b + 4);
  out.fecn = (qp >> 31) != 0;
  out.becn = ((qp >> 30) & 1) != 0;
  out.reserved6 = (qp >> 24) & 0x3f;
  out.dest_qp = qp & 0xffffff;
  const std::uint32_t psn = load_be32(b + 8);
  out.ack_request = (psn >> 31) != 0;
  out.reserved7 = (psn >> 24) & 0x7f;
  out.psn = psn_t(psn);
}

void read_extensions(const std::uint8_t* b, const opcode_traits& t, packet& out) {
  if (t.rdeth) out.rdeth = load_be32(b), b += 4;
  if (t.xrceth) out.xrceth = load_be32(b), b += 4;
  if (t.deth) {
    const std::uint32_t qp = load_be32(b + 4);
    out.deth = {load_be32(b), static_cast<std::uint8_t>(qp >> 24), qp & 0xffffff};
    b += 8;
  }
  if (t.reth) out.reth = {load_be64(b), load_be32(b + 8), load_be32(b + 12)}, b += 16;
  if (t.atomic_eth) out.atomic = {load_be64(b), load_be32(b + 8), load_be64(b + 12), load_be64(b + 20), 0, 0}, b += 28;
  if (t.mask_eth) out.atomic.swap_mask = load_be64(b), out.atomic.compare_mask = load_be64(b + 8), b += 16;
  if (t.aeth) {
    const std::uint32_t word = load_be32(b);
    out.aeth = {static_cast<std::uint8_t>(word >> 24), word & 0xffffff};
    b += 4;
  }
  if (t.atomic_ack_eth) out.atomic_original = load_be64(b), b += 8;
  if (t.immediate) out.immediate = load_be32(b), b += 4;
  if (t.ieth) out.invalidate_rkey = load_be32(b);
}

void write_ipv6(std::uint8_t* h, const packet& p, std::size_t payload, std::uint8_t next) {
  store_be32(h, 0x60000000u | static_cast<std::uint32_t>(p.traffic_class) << 20 | (p.flow_label & 0xfffff));
  store_be16(h + 4, static_cast<std::uint16_t>(payload));
  h[6] = next;
  h[7] = p.hop_limit;
  std::memcpy(h + 8, p.sgid.data(), 16);
  std::memcpy(h + 24, p.dgid.data(), 16);
}

void write_ipv4(std::uint8_t* h, const packet& p, std::size_t payload) {
  h[0] = 0x45;
  h[1] = p.traffic_class;
  store_be16(h + 2, static_cast<std::uint16_t>(ipv4_length + payload));
  store_be16(h + 4, p.ipv4_id);
  store_be16(h + 6, p.ipv4_fragment);
  h[8] = p.hop_limit;
  h[9] = next_header_udp;
  store_be16(h + 10, 0);
  std::memcpy(h + 12, p.sgid.data() + 12, 4);
  std::memcpy(h + 16, p.dgid.data() + 12, 4);
  store_be16(h + 10, ipv4_checksum(h));
}

void write_udp(std::uint8_t* u, const packet& p, std::size_t length) {
  store_be16(u, p.udp_source);
  store_be16(u + 2, p.udp_dest);
  store_be16(u + 4, static_cast<std::uint16_t>(length));
  store_be16(u + 6, p.udp_checksum);
}

/// `ib`: bytes from the BTH to the end of the ICRC.
void write_l3(std::uint8_t* l3, const packet& p, std::size_t ib) {
  switch (p.encap) {
    case encapsulation::roce_v1:
      write_ipv6(l3, p, ib, next_header_bth);
      break;
    case encapsulation::roce_v2_ipv4:
      write_ipv4(l3, p, udp_length + ib);
      write_udp(l3 + ipv4_length, p, udp_length + ib);
      break;
    case encapsulation::roce_v2_ipv6:
      write_ipv6(l3, p, udp_length + ib, next_header_udp);
      write_udp(l3 + ipv6_length, p, udp_length + ib);
      break;
  }
}

void write_ethernet(std::uint8_t* e, const packet& p) {
  std::memcpy(e, p.dmac.data(), 6);
  std::memcpy(e + 6, p.smac.data(), 6);
  e += 12;
  if (p.vlan_present) {
    store_be16(e, static_cast<std::uint16_t>(ether_type::vlan));
    store_be16(e + 2, p.vlan_tci);
    e += vlan_tag;
  }
  const ether_type type = p.encap == encapsulation::roce_v1        ? ether_type::roce_v1
                          : p.encap == encapsulation::roce_v2_ipv4 ? ether_type::ipv4
                                                                   : ether_type::ipv6;
  store_be16(e, static_cast<std::uint16_t>(type));
}

void write_bth(std::uint8_t* b, const bth& h) {
  b[0] = h.opcode;
  b[1] = static_cast<std::uint8_t>((h.solicited ? 0x80 : 0) | (h.migration ? 0x40 : 0) | (h.pad & 3) << 4 |
                                   (h.version & 0xf));
  store_be16(b + 2, h.pkey);
  store_be32(b + 4, (h.fecn ? 0x80000000u : 0u) | (h.becn ? 0x40000000u : 0u) |
                        static_cast<std::uint32_t>(h.reserved6 & 0x3f) << 24 | (h.dest_qp & 0xffffff));
  store_be32(b + 8,
             (h.ack_request ? 0x80000000u : 0u) | static_cast<std::uint32_t>(h.reserved7 & 0x7f) << 24 | h.psn.value());
}

void write_extensions(std::uint8_t* b, const opcode_traits& t, const packet& p) {
  if (t.rdeth) store_be32(b, p.rdeth), b += 4;
  if (t.xrceth) store_be32(b, p.xrceth), b += 4;
  if (t.deth) {
    store_be32(b, p.deth.qkey);
    store_be32(b + 4, static_cast<std::uint32_t>(p.deth.reserved) << 24 | (p.deth.src_qp & 0xffffff));
    b += 8;
  }
  if (t.reth) {
    store_be64(b, p.reth.va);
    store_be32(b + 8, p.reth.rkey);
    store_be32(b + 12, p.reth.length);
    b += 16;
  }
  if (t.atomic_eth) {
    store_be64(b, p.atomic.va);
    store_be32(b + 8, p.atomic.rkey);
    store_be64(b + 12, p.atomic.swap_add);
    store_be64(b + 20, p.atomic.compare);
    b += 28;
  }
  if (t.mask_eth) {
    store_be64(b, p.atomic.swap_mask);
    store_be64(b + 8, p.atomic.compare_mask);
    b += 16;
  }
  if (t.aeth) store_be32(b, static_cast<std::uint32_t>(p.aeth.syndrome) << 24 | (p.aeth.msn & 0xffffff)), b += 4;
  if (t.atomic_ack_eth) store_be64(b, p.atomic_original), b += 8;
  if (t.immediate) store_be32(b, p.immediate), b += 4;
  if (t.ieth) store_be32(b, p.invalidate_rkey);
}

/// BTH, extensions, payload bounds and ICRC, once layer 3 has said where the packet ends.
decode_error read_transport(const std::uint8_t* frame, std::size_t length, const extent& x, packet& out) {
  if (x.end > length) return decode_error::truncated;
  if (x.end < x.ib + bth_length + icrc_length) return decode_error::bad_length;
  const std::uint8_t* b = frame + x.ib;
  read_bth(b, out.bth);
  out.bth_offset = static_cast<std::uint16_t>(x.ib);
  const opcode_traits& t = traits(out.bth.opcode);
  if (!t.known) return decode_error::unknown_opcode;
  const std::size_t payload = x.ib + bth_length + t.extension_bytes;
  if (x.end < payload + icrc_length) return decode_error::bad_length;
  read_extensions(b + bth_length, t, out);
  const std::size_t body = x.end - icrc_length - payload;
  if (body % 4 != 0 || out.bth.pad > body) return decode_error::bad_pad;
  out.payload_offset = static_cast<std::uint16_t>(payload);
  out.payload_length = static_cast<std::uint32_t>(body - out.bth.pad);
  out.icrc_offset = static_cast<std::uint32_t>(x.end - icrc_length);
  out.icrc = load_le32(frame + out.icrc_offset);
  return decode_error::none;
}

}  // namespace

const char* to_string(decode_error e) {
  switch (e) {
    case decode_error::none:
      return "none";
    case decode_error::not_roce:
      return "not RoCE";
    case decode_error::truncated:
      return "truncated";
    case decode_error::bad_ip_version:
      return "IP version does not fit the EtherType";
    case decode_error::bad_ip_header_length:
      return "IPv4 header with options or too short";
    case decode_error::bad_ip_checksum:
      return "IPv4 header checksum is wrong";
    case decode_error::fragment:
      return "IPv4 fragment";
    case decode_error::bad_length:
      return "lengths of the headers contradict each other";
    case decode_error::bad_next_header:
      return "GRH is not followed by a BTH";
    case decode_error::unknown_opcode:
      return "unknown opcode";
    case decode_error::bad_pad:
      return "pad count does not fit the length";
  }
  return "?";
}

decode_error decode(const std::uint8_t* frame, std::size_t length, packet& out, std::uint16_t udp_port) {
  if (length < mac_header) return decode_error::not_roce;
  std::memcpy(out.dmac.data(), frame, 6);
  std::memcpy(out.smac.data(), frame + 6, 6);
  std::size_t l3 = mac_header;
  auto type = static_cast<ether_type>(load_be16(frame + 12));
  out.vlan_present = type == ether_type::vlan;
  out.vlan_tci = 0;
  if (out.vlan_present) {
    if (length < mac_header + vlan_tag) return decode_error::not_roce;
    out.vlan_tci = load_be16(frame + 14);
    type = static_cast<ether_type>(load_be16(frame + 16));
    l3 += vlan_tag;
  }
  out.l3_offset = static_cast<std::uint16_t>(l3);
  extent x;
  decode_error e = decode_error::not_roce;
  switch (type) {
    case ether_type::roce_v1:
      e = read_grh(frame, length, l3, out, x);
      break;
    case ether_type::ipv4:
      e = read_ipv4(frame, length, l3, out, udp_port, x);
      break;
    case ether_type::ipv6:
      e = read_ipv6_udp(frame, length, l3, out, udp_port, x);
      break;
    case ether_type::vlan:
    case ether_type::mac_control:
      break;
  }
  return e == decode_error::none ? read_transport(frame, length, x, out) : e;
}

std::size_t header_length(const packet& p) {
  return mac_header + (p.vlan_present ? vlan_tag : 0) + l3_length(p.encap) + bth_length +
         traits(p.bth.opcode).extension_bytes;
}

std::uint8_t* build(packet& p, std::uint8_t* payload) {
  const opcode_traits& t = traits(p.bth.opcode);
  const std::size_t l3 = mac_header + (p.vlan_present ? vlan_tag : 0);
  const std::size_t ib = l3 + l3_length(p.encap);
  const std::size_t headers = ib + bth_length + t.extension_bytes;
  p.bth.pad = static_cast<std::uint8_t>((0u - p.payload_length) & 3u);
  p.l3_offset = static_cast<std::uint16_t>(l3);
  p.bth_offset = static_cast<std::uint16_t>(ib);
  p.payload_offset = static_cast<std::uint16_t>(headers);
  p.icrc_offset = static_cast<std::uint32_t>(headers + p.payload_length + p.bth.pad);
  p.icrc = 0;

  std::uint8_t* frame = payload - headers;
  write_ethernet(frame, p);
  write_l3(frame + l3, p, p.icrc_offset + icrc_length - ib);
  write_bth(frame + ib, p.bth);
  write_extensions(frame + ib + bth_length, t, p);
  // Pad and ICRC, as two words that overlap by what the pad is less than one.
  static_assert(icrc_length == 4);
  store_le32(payload + p.payload_length, 0);
  store_le32(payload + p.payload_length + p.bth.pad, 0);
  return frame;
}

}  // namespace rnic::wire
