// SPDX-License-Identifier: Apache-2.0
#include "model/wire/internet.h"

#include <cstring>

#include "model/wire/bytes.h"

namespace rnic::wire {

namespace {

constexpr std::uint32_t address_bytes = 12, ipv4_bytes = 20, ipv6_bytes = 40, tcp_bytes = 20, udp_bytes = 8;
constexpr std::uint8_t fin = 0x01, push = 0x08, window_reduced = 0x80;

/// Finds the upper layer behind IPv6 extension headers; false: none, or it cannot be reached.
bool skip_extensions(const std::uint8_t* frame, frame_view& v, std::uint8_t& protocol, std::uint32_t& at) {
  enum : std::uint8_t { hop_by_hop = 0, routing = 43, fragment = 44, authentication = 51, destination = 60 };
  for (unsigned limit = 8; limit != 0; --limit) {
    unsigned bit = 0;
    switch (protocol) {
      case hop_by_hop:
        bit = 0;
        break;
      case routing:
        bit = 1;
        break;
      case authentication:
        bit = 2;
        break;
      case fragment:
        bit = 3;
        break;
      case destination:
        bit = 4;
        break;
      default:
        return true;
    }
    if (at + 8 > v.end) return false;
    v.extensions = static_cast<std::uint8_t>(v.extensions | 1u << bit);
    if (protocol == fragment) v.fragment = true;
    const std::uint32_t bytes = protocol == authentication ? (frame[at + 1] + 2u) * 4
                                : protocol == fragment     ? 8u
                                                           : (frame[at + 1] + 1u) * 8;
    protocol = frame[at];
    at += bytes;
  }
  return false;
}

bool inspect_ipv4(const std::uint8_t* frame, std::size_t length, frame_view& v, std::uint8_t& protocol,
                  std::uint32_t& at) {
  if (v.l3 + ipv4_bytes > length || frame[v.l3] >> 4 != 4) return false;
  const std::uint32_t header = (frame[v.l3] & 0xfu) * 4;
  const std::uint32_t total = load_be16(frame + v.l3 + 2);
  if (header < ipv4_bytes || total < header || v.l3 + total > length) return false;
  v.ipv4 = true;
  v.options = header != ipv4_bytes;
  v.fragment = (load_be16(frame + v.l3 + 6) & 0x3fff) != 0;
  v.end = v.l3 + total;
  protocol = frame[v.l3 + 9];
  at = v.l3 + header;
  return true;
}

bool inspect_ipv6(const std::uint8_t* frame, std::size_t length, frame_view& v, std::uint8_t& protocol,
                  std::uint32_t& at) {
  if (v.l3 + ipv6_bytes > length || frame[v.l3] >> 4 != 6) return false;
  const std::uint32_t payload = load_be16(frame + v.l3 + 4);
  if (v.l3 + ipv6_bytes + payload > length) return false;
  v.ipv6 = true;
  v.end = v.l3 + ipv6_bytes + payload;
  protocol = frame[v.l3 + 6];
  at = v.l3 + ipv6_bytes;
  return skip_extensions(frame, v, protocol, at);
}

std::uint16_t checksum_of(std::uint16_t sum) { return static_cast<std::uint16_t>(~sum); }

}  // namespace

frame_view inspect(const std::uint8_t* frame, std::size_t length) {
  frame_view v;
  if (length < ethernet_header_bytes) return v;
  std::uint16_t type = load_be16(frame + address_bytes);
  v.l3 = ethernet_header_bytes;
  if ((type == type_ctag || type == type_stag) && length >= ethernet_header_bytes + vlan_tag_bytes) {
    (type == type_ctag ? v.ctag : v.stag) = true;
    v.tci = load_be16(frame + 14);
    type = load_be16(frame + 16);
    v.l3 += vlan_tag_bytes;
  }
  std::uint8_t protocol = 0;
  std::uint32_t at = 0;
  const bool found = type == type_ipv4   ? inspect_ipv4(frame, length, v, protocol, at)
                     : type == type_ipv6 ? inspect_ipv6(frame, length, v, protocol, at)
                                         : false;
  if (!found || v.fragment) return v;
  if (protocol == protocol_tcp && at + tcp_bytes <= v.end) {
    v.tcp = true;
  } else if (protocol == protocol_udp && at + udp_bytes <= v.end) {
    // A datagram that says to be longer or shorter than the packet has no checksum that could be right.
    v.udp = load_be16(frame + at + 4) == v.end - at;
  }
  if (v.tcp || v.udp) v.l4 = at;
  return v;
}

std::uint64_t checksum_add(std::uint64_t sum, const std::uint8_t* from, std::size_t bytes) {
  std::size_t i = 0;
  for (; i + 1 < bytes; i += 2) sum += load_be16(from + i);
  if (i < bytes) sum += static_cast<std::uint32_t>(from[i]) << 8;
  return sum;
}

std::uint16_t checksum_fold(std::uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::uint16_t ipv4_header_sum(const std::uint8_t* frame, const frame_view& v) {
  return checksum_fold(checksum_add(0, frame + v.l3, (frame[v.l3] & 0xfu) * 4));
}

std::uint16_t l4_sum(const std::uint8_t* frame, const frame_view& v) {
  const std::uint32_t bytes = v.end - v.l4;
  std::uint64_t sum = bytes + (v.tcp ? protocol_tcp : protocol_udp);
  sum = v.ipv4 ? checksum_add(sum, frame + v.l3 + 12, 8) : checksum_add(sum, frame + v.l3 + 8, 32);
  return checksum_fold(checksum_add(sum, frame + v.l4, bytes));
}

std::uint16_t packet_sum(const std::uint8_t* frame, const frame_view& v) {
  const std::uint8_t* ip = frame + v.l3;
  const std::uint32_t header = v.ipv4 ? (ip[0] & 0xfu) * 4 : ipv6_bytes, payload = v.end - v.l3 - header;
  const std::uint64_t addresses =
      v.ipv4 ? checksum_add(payload + ip[9], ip + 12, 8) : checksum_add(payload, ip + 8, 32);
  return checksum_fold(checksum_add(addresses, ip + header, payload));
}

void set_ipv4_checksum(std::uint8_t* frame, const frame_view& v) {
  if (!v.ipv4) return;
  store_be16(frame + v.l3 + 10, 0);
  store_be16(frame + v.l3 + 10, checksum_of(ipv4_header_sum(frame, v)));
}

void set_l4_checksum(std::uint8_t* frame, const frame_view& v) {
  if (!v.tcp && !v.udp) return;
  std::uint8_t* field = frame + v.l4 + (v.tcp ? 16 : 6);
  store_be16(field, 0);
  const std::uint16_t value = checksum_of(l4_sum(frame, v));
  store_be16(field, v.udp && value == 0 ? 0xffff : value);  // 0 says "none" (RFC 768)
}

void insert_tag(std::uint8_t* frame, std::uint16_t ether_type, std::uint16_t tci) {
  std::memmove(frame - vlan_tag_bytes, frame, address_bytes);
  store_be16(frame + address_bytes - vlan_tag_bytes, ether_type);
  store_be16(frame + address_bytes - vlan_tag_bytes + 2, tci);
}

void remove_tag(std::uint8_t* frame) { std::memmove(frame + vlan_tag_bytes, frame, address_bytes); }

bool segment_header(std::uint8_t* frame, std::size_t length, std::uint32_t index, std::uint32_t offset, bool last) {
  // The header's lengths are those of the whole message, or nothing at all: they are set before anybody reads them.
  const std::uint16_t type = load_be16(frame + address_bytes);
  const bool tagged = type == type_ctag || type == type_stag;
  const std::uint32_t l3 = ethernet_header_bytes + (tagged ? vlan_tag_bytes : 0);
  if (length < l3 + ipv4_bytes) return false;
  const std::uint16_t inner = tagged ? load_be16(frame + 16) : type;
  if (inner == type_ipv4) {
    store_be16(frame + l3 + 2, static_cast<std::uint16_t>(length - l3));
    store_be16(frame + l3 + 4, static_cast<std::uint16_t>(load_be16(frame + l3 + 4) + index));
  } else if (inner == type_ipv6 && length >= l3 + ipv6_bytes) {
    store_be16(frame + l3 + 4, static_cast<std::uint16_t>(length - l3 - ipv6_bytes));
  }
  const frame_view v = inspect(frame, length);
  if (!v.tcp) return false;
  std::uint8_t* tcp = frame + v.l4;
  store_be32(tcp + 4, load_be32(tcp + 4) + offset);
  const unsigned not_here = (last ? 0u : fin | push) | (index == 0 ? 0u : window_reduced);
  tcp[13] = static_cast<std::uint8_t>(tcp[13] & ~not_here);
  set_ipv4_checksum(frame, v);
  set_l4_checksum(frame, v);
  return true;
}

std::uint32_t toeplitz(const toeplitz_key& key, const std::uint8_t* input, std::size_t bytes) {
  std::uint32_t result = 0;
  std::uint64_t window = load_be64(key.data());  // its top 32 bits are those of the input bit's turn
  std::size_t next = 8;
  for (std::size_t i = 0; i < bytes && i + 4 < toeplitz_key_bytes; ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((input[i] >> (7 - bit) & 1) != 0) result ^= static_cast<std::uint32_t>(window >> 32);
      window <<= 1;
    }
    if (next < toeplitz_key_bytes) window |= key[next++];
  }
  return result;
}

std::size_t flow_bytes(const std::uint8_t* frame, const frame_view& v, bool ports, std::uint8_t (&to)[36]) {
  if (!v.ipv4 && !v.ipv6) return 0;
  const std::size_t addresses = v.ipv4 ? 8 : 32;
  std::memcpy(to, frame + v.l3 + (v.ipv4 ? 12 : 8), addresses);
  if (!ports) return addresses;
  std::memcpy(to + addresses, frame + v.l4, 4);
  return addresses + 4;
}

}  // namespace rnic::wire
