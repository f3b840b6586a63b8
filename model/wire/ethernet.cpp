// SPDX-License-Identifier: Apache-2.0
// Text and arithmetic of addresses.
#include "model/wire/ethernet.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "model/wire/bytes.h"

namespace rnic::wire {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::uint32_t fold_qpn(std::uint32_t qpn) { return ((qpn ^ (qpn >> 16)) & 0xff) | (qpn & 0xff00); }

}  // namespace

std::string to_string(const mac_address& m) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
  return text;
}

std::optional<mac_address> parse_mac(std::string_view text) {
  if (text.size() != 17) return std::nullopt;
  mac_address mac{};
  for (std::size_t i = 0; i < 6; ++i) {
    const int high = hex_digit(text[3 * i]);
    const int low = hex_digit(text[3 * i + 1]);
    const bool separated = i == 5 || text[3 * i + 2] == ':' || text[3 * i + 2] == '-';
    if (high < 0 || low < 0 || !separated) return std::nullopt;
    mac[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return mac;
}

std::string to_string(const gid& id) {
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, id.data(), text, sizeof text);
}

std::optional<gid> parse_gid(std::string_view text) {
  const std::string zero_terminated(text);
  gid id{};
  if (inet_pton(AF_INET6, zero_terminated.c_str(), id.data()) == 1) return id;
  std::uint8_t v4[4];
  if (inet_pton(AF_INET, zero_terminated.c_str(), v4) == 1) return gid_from_ipv4(load_be32(v4));
  return std::nullopt;
}

mac_address mac_from_u64(std::uint64_t v) {
  mac_address mac{};
  for (std::size_t i = 0; i < 6; ++i) mac[i] = static_cast<std::uint8_t>(v >> (40 - 8 * i));
  return mac;
}

std::uint64_t to_u64(const mac_address& mac) {
  std::uint64_t v = 0;
  for (const std::uint8_t byte : mac) v = v << 8 | byte;
  return v;
}

gid gid_from_ipv4(std::uint32_t address) {
  gid id{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  store_be32(id.data() + 12, address);
  return id;
}

std::optional<std::uint32_t> ipv4_of(const gid& id) {
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(id.data(), mapped, sizeof mapped) != 0) return std::nullopt;
  return load_be32(id.data() + 12);
}

gid default_gid(const mac_address& m) {
  return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(m[0] ^ 2), m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
}

bool is_multicast(const gid& id) {
  if (id[0] == 0xff) return true;
  const auto v4 = ipv4_of(id);
  return v4.has_value() && *v4 >> 28 == 0xe;
}

mac_address multicast_mac(const gid& id) {
  if (ipv4_of(id).has_value()) return {0x01, 0x00, 0x5e, static_cast<std::uint8_t>(id[13] & 0x7f), id[14], id[15]};
  return {0x33, 0x33, id[12], id[13], id[14], id[15]};
}

std::uint16_t entropy_of_qps(std::uint32_t dest_qpn, std::uint32_t src_qpn) {
  const std::uint32_t folded = dest_qpn == src_qpn ? fold_qpn(src_qpn) : fold_qpn(dest_qpn) ^ fold_qpn(src_qpn);
  return static_cast<std::uint16_t>(0xc000 | folded);
}

}  // namespace rnic::wire
