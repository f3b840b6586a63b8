// SPDX-License-Identifier: Apache-2.0
#include "host_driver/neighbour_messages.h"

#include <algorithm>
#include <cstring>

#include "model/wire/bytes.h"

namespace rnic::host_driver::messages {

namespace {

constexpr std::uint16_t hardware_ethernet = 1;
constexpr std::uint8_t mac_length = 6, ipv4_length = 4;
constexpr std::size_t option_unit = 8;

gid_bytes ipv4_at(const std::uint8_t* p) { return ipv4_gid(wire::load_be32(p)); }

}  // namespace

std::uint32_t ones_sum(const std::uint8_t* data, std::size_t length, std::uint32_t sum) {
  for (; length > 1; data += 2, length -= 2) sum += wire::load_be16(data);
  if (length != 0) sum += std::uint32_t{data[0]} << 8;
  return sum;
}

std::uint16_t ones_complement(std::uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

std::uint16_t icmp6_checksum(const gid_bytes& from, const gid_bytes& to, const std::uint8_t* icmp, std::size_t length) {
  std::uint32_t sum = ones_sum(from.data(), from.size());
  sum = ones_sum(to.data(), to.size(), sum);
  sum += static_cast<std::uint32_t>(length) + protocol_icmp6;
  return ones_complement(ones_sum(icmp, length, sum));
}

gid_bytes solicited_node(const gid_bytes& target) {
  gid_bytes g{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
  std::copy(target.begin() + 13, target.end(), g.begin() + 13);
  return g;
}

std::optional<arp> parse_arp(const std::uint8_t* data, std::size_t length) {
  if (length < arp_bytes || wire::load_be16(data) != hardware_ethernet || wire::load_be16(data + 2) != type_ipv4 ||
      data[4] != mac_length || data[5] != ipv4_length)
    return std::nullopt;
  const std::uint16_t operation = wire::load_be16(data + 6);
  if (operation != 1 && operation != 2) return std::nullopt;
  arp a;
  a.operation = static_cast<arp_operation>(operation);
  std::copy_n(data + 8, 6, a.sender_mac.begin());
  a.sender = ipv4_at(data + 14);
  std::copy_n(data + 18, 6, a.target_mac.begin());
  a.target = ipv4_at(data + 24);
  return a;
}

std::vector<std::uint8_t> build_arp(const arp& a) {
  std::vector<std::uint8_t> b(arp_bytes);
  wire::store_be16(&b[0], hardware_ethernet);
  wire::store_be16(&b[2], type_ipv4);
  b[4] = mac_length;
  b[5] = ipv4_length;
  wire::store_be16(&b[6], static_cast<std::uint16_t>(a.operation));
  std::copy(a.sender_mac.begin(), a.sender_mac.end(), b.begin() + 8);
  std::copy_n(a.sender.begin() + 12, 4, b.begin() + 14);
  std::copy(a.target_mac.begin(), a.target_mac.end(), b.begin() + 18);
  std::copy_n(a.target.begin() + 12, 4, b.begin() + 24);
  return b;
}

std::vector<std::uint8_t> build_neighbour(std::uint8_t type, std::uint32_t flags, const gid_bytes& target,
                                          const mac_address& own) {
  std::vector<std::uint8_t> b(neighbour_bytes + option_unit);
  b[0] = type;
  wire::store_be32(&b[4], flags);
  std::copy(target.begin(), target.end(), b.begin() + 8);
  b[neighbour_bytes] = type == icmp6_solicitation ? 1 : 2;
  b[neighbour_bytes + 1] = 1;
  std::copy(own.begin(), own.end(), b.begin() + neighbour_bytes + 2);
  return b;
}

std::optional<mac_address> neighbour_option(const std::uint8_t* icmp, std::size_t length, std::uint8_t wanted,
                                            bool* ok) {
  std::optional<mac_address> found;
  *ok = true;
  for (std::size_t at = neighbour_bytes; at < length;) {
    const std::size_t bytes = length - at < 2 ? 0 : icmp[at + 1] * option_unit;
    if (bytes == 0 || bytes > length - at) {
      *ok = false;
      return std::nullopt;
    }
    if (icmp[at] == wanted && bytes == option_unit) {
      mac_address mac;
      std::copy_n(icmp + at + 2, mac.size(), mac.begin());
      found = mac;
    }
    at += bytes;
  }
  return found;
}

}  // namespace rnic::host_driver::messages
