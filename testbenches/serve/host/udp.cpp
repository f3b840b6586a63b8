// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/host/udp.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "host_driver/neighbour_messages.h"
#include "model/wire/bytes.h"
#include "testbenches/serve/host/served_host.h"

namespace rnic::serve {

using namespace host_driver;
using namespace host_driver::messages;

namespace {

constexpr std::size_t ethernet_bytes = 14, tag_bytes = 4, udp_bytes = 8, mapped_prefix = 12;
constexpr std::uint8_t protocol_udp = 17, hop_limit = 64;
constexpr std::uint16_t dont_fragment = 0x4000, fragment_bits = 0x3fff;
constexpr std::uint16_t first_free_port = 49152;  // RFC 6335: dynamic ports

/// What the checksum covers beside the datagram (RFC 768, RFC 8200 8.1): the words of both kinds have the same sum.
std::uint32_t pseudo_header(const gid_bytes& from, const gid_bytes& to, std::size_t length) {
  const std::size_t skip = is_ipv4(from) ? mapped_prefix : 0;
  std::uint32_t sum = ones_sum(from.data() + skip, from.size() - skip);
  sum = ones_sum(to.data() + skip, to.size() - skip, sum);
  return sum + protocol_udp + static_cast<std::uint32_t>(length);
}

/// A packet's payload, and what its header said.
struct payload {
  const std::uint8_t* data = nullptr;
  std::size_t length = 0;
};

std::optional<payload> of_ipv4(const std::uint8_t* p, std::size_t length, udp_datagram& d) {
  if (length < ipv4_bytes || p[0] >> 4 != 4) return std::nullopt;
  const std::size_t header = std::size_t{p[0] & 15u} * 4, total = wire::load_be16(p + 2);
  if (header < ipv4_bytes || total < header || total > length || p[9] != protocol_udp ||
      (wire::load_be16(p + 6) & fragment_bits) != 0 || ones_complement(ones_sum(p, header)) != 0)
    return std::nullopt;
  d.from.address = ipv4_gid(wire::load_be32(p + 12));
  d.to.address = ipv4_gid(wire::load_be32(p + 16));
  return payload{p + header, total - header};
}

std::optional<payload> of_ipv6(const std::uint8_t* p, std::size_t length, udp_datagram& d) {
  if (length < ipv6_bytes || p[0] >> 4 != 6 || p[6] != protocol_udp) return std::nullopt;
  const std::size_t bytes = wire::load_be16(p + 4);
  d.from.address = gid_at(p + 8);
  d.to.address = gid_at(p + 24);
  // A mapped address is none of a packet: it would be taken for IPv4.
  if (bytes > length - ipv6_bytes || is_ipv4(d.from.address) || is_ipv4(d.to.address)) return std::nullopt;
  return payload{p + ipv6_bytes, bytes};
}

/// Bytes behind the length that the datagram tells are none of it.
bool take_apart(const payload& p, udp_datagram& d) {
  if (p.length < udp_bytes) return false;
  const std::size_t length = wire::load_be16(p.data + 4);
  if (length < udp_bytes || length > p.length) return false;
  const bool summed = wire::load_be16(p.data + 6) != 0;
  if (!summed && !is_ipv4(d.from.address)) return false;  // RFC 8200 8.1
  if (summed && ones_complement(ones_sum(p.data, length, pseudo_header(d.from.address, d.to.address, length))) != 0)
    return false;
  d.from.port = wire::load_be16(p.data);
  d.to.port = wire::load_be16(p.data + 2);
  d.data.assign(p.data + udp_bytes, p.data + length);
  return true;
}

void put_ipv4(std::vector<std::uint8_t>& frame, const udp_datagram& d, std::size_t length) {
  std::array<std::uint8_t, ipv4_bytes> h{};
  h[0] = 0x45;
  wire::store_be16(&h[2], static_cast<std::uint16_t>(ipv4_bytes + length));
  wire::store_be16(&h[6], dont_fragment);
  h[8] = hop_limit;
  h[9] = protocol_udp;
  std::copy(d.from.address.begin() + mapped_prefix, d.from.address.end(), h.begin() + 12);
  std::copy(d.to.address.begin() + mapped_prefix, d.to.address.end(), h.begin() + 16);
  wire::store_be16(&h[10], ones_complement(ones_sum(h.data(), h.size())));
  frame.insert(frame.end(), h.begin(), h.end());
}

void put_ipv6(std::vector<std::uint8_t>& frame, const udp_datagram& d, std::size_t length) {
  std::array<std::uint8_t, ipv6_bytes> h{};
  h[0] = 0x60;
  wire::store_be16(&h[4], static_cast<std::uint16_t>(length));
  h[6] = protocol_udp;
  h[7] = hop_limit;
  std::copy(d.from.address.begin(), d.from.address.end(), h.begin() + 8);
  std::copy(d.to.address.begin(), d.to.address.end(), h.begin() + 24);
  frame.insert(frame.end(), h.begin(), h.end());
}

void put_be16(std::vector<std::uint8_t>& frame, unsigned value) {
  frame.push_back(static_cast<std::uint8_t>(value >> 8));
  frame.push_back(static_cast<std::uint8_t>(value));
}

}  // namespace

std::optional<udp_datagram> parse_udp(const std::uint8_t* frame, std::size_t length) {
  if (length < ethernet_bytes) return std::nullopt;
  udp_datagram d;
  std::copy_n(frame + 6, d.mac.size(), d.mac.begin());
  std::uint16_t type = wire::load_be16(frame + 12);
  std::size_t header = ethernet_bytes;
  if (type == type_vlan) {
    header += tag_bytes;
    if (length < header) return std::nullopt;
    const std::uint16_t vid = wire::load_be16(frame + 14) & 0xfff;
    if (vid != 0) d.vlan = vid;
    type = wire::load_be16(frame + 16);
  }
  std::optional<payload> p;
  if (type == type_ipv4) p = of_ipv4(frame + header, length - header, d);
  if (type == type_ipv6) p = of_ipv6(frame + header, length - header, d);
  if (!p || !take_apart(*p, d)) return std::nullopt;
  return d;
}

std::vector<std::uint8_t> build_udp(const udp_datagram& d, const mac_address& own, std::uint8_t priority) {
  std::vector<std::uint8_t> frame(d.mac.begin(), d.mac.end());
  frame.insert(frame.end(), own.begin(), own.end());
  if (d.vlan != neighbours::untagged) {
    put_be16(frame, type_vlan);
    put_be16(frame, static_cast<unsigned>(priority) << 13 | d.vlan);
  }
  const bool v4 = is_ipv4(d.to.address);
  const std::size_t length = udp_bytes + d.data.size();
  put_be16(frame, v4 ? type_ipv4 : type_ipv6);
  if (v4)
    put_ipv4(frame, d, length);
  else
    put_ipv6(frame, d, length);
  const std::size_t at = frame.size();
  put_be16(frame, d.from.port);
  put_be16(frame, d.to.port);
  put_be16(frame, static_cast<unsigned>(length));
  put_be16(frame, 0);
  frame.insert(frame.end(), d.data.begin(), d.data.end());
  const std::uint16_t sum =
      ones_complement(ones_sum(&frame[at], length, pseudo_header(d.from.address, d.to.address, length)));
  wire::store_be16(&frame[at + 6], sum != 0 ? sum : 0xffff);  // zero says that there is none
  return frame;
}

udp_socket::udp_socket(served_host& host, int gid_index, std::uint16_t port, std::function<void()> arrived)
    : host_(host), arrived_(std::move(arrived)) {
  const gid_row& row = host_.device().port(1).gids[static_cast<std::size_t>(gid_index)];
  vlan_ = row.vlan == no_vlan ? neighbours::untagged : row.vlan;
  own_ = {row.id, port != 0 ? port : first_free_port};
  while (!host_.open_udp(own_.port, *this)) {
    if (port != 0 || own_.port == 0xffff)
      throw std::runtime_error("UDP port " + std::to_string(own_.port) + " of the host is taken");
    ++own_.port;
  }
}

udp_socket::~udp_socket() { host_.close_udp(own_.port); }

void udp_socket::send(const udp_end& to, const mac_address& mac, std::vector<std::uint8_t> data) {
  host_.transmit(build_udp({mac, vlan_, own_, to, std::move(data)}, host_.mac()));
}

std::optional<udp_datagram> udp_socket::take() {
  if (waiting_.empty()) return std::nullopt;
  std::optional<udp_datagram> d(std::move(waiting_.front()));
  waiting_.pop_front();
  return d;
}

void udp_socket::receive(udp_datagram&& d) {
  if (d.to.address != own_.address || d.vlan != vlan_ || waiting_.size() >= most_waiting) return;
  waiting_.push_back(std::move(d));
  arrived_();
}

}  // namespace rnic::serve
