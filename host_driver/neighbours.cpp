// SPDX-License-Identifier: Apache-2.0
#include "host_driver/neighbours.h"

#include <algorithm>
#include <cstring>

#include "host_driver/neighbour_messages.h"
#include "model/wire/bytes.h"

namespace rnic::host_driver {

using namespace messages;

namespace {

constexpr std::size_t ethernet_bytes = 14, tag_bytes = 4, icmp_bytes = 8;
constexpr std::uint8_t hops_on_link = 255, hops_of_echo = 64;
constexpr std::uint32_t flag_solicited = 1u << 30, flag_override = 1u << 29;
constexpr mac_address broadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

constexpr gid_bytes every_node{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

bool unspecified(const gid_bytes& g) {
  return std::all_of(g.begin(), g.end(), [](std::uint8_t b) { return b == 0; });
}

bool is_link_local(const gid_bytes& g) { return g[0] == 0xfe && (g[1] & 0xc0) == 0x80; }

}  // namespace

void neighbours::add_address(const gid_bytes& address, std::uint16_t vlan) { addresses_.push_back({address, vlan}); }

bool neighbours::ours(const gid_bytes& address, std::uint16_t vlan) const {
  return std::any_of(addresses_.begin(), addresses_.end(),
                     [&](const own_address& a) { return a.id == address && a.vlan == vlan; });
}

std::optional<mac_address> neighbours::find(const gid_bytes& address) const {
  const auto at = table_.find(address);
  if (at == table_.end()) return std::nullopt;
  return at->second;
}

void neighbours::learn(const gid_bytes& address, const mac_address& mac) {
  if ((mac[0] & 1) != 0 || is_multicast(address) || unspecified(address)) {
    ++counters_.malformed;
    return;
  }
  if (table_.size() >= max_entries && table_.find(address) == table_.end()) {
    ++counters_.table_full;
    return;
  }
  table_[address] = mac;
}

void neighbours::receive(const std::uint8_t* frame, std::size_t length) {
  if (length < ethernet_bytes) {
    ++counters_.malformed;
    return;
  }
  packet p;
  std::copy_n(frame + 6, 6, p.from.begin());
  std::uint16_t type = wire::load_be16(frame + 12);
  std::size_t header = ethernet_bytes;
  if (type == type_vlan) {
    if (length < ethernet_bytes + tag_bytes) {
      ++counters_.malformed;
      return;
    }
    const std::uint16_t tci = wire::load_be16(frame + 14);
    if ((tci & 0xfff) != 0) p.vlan = tci & 0xfff;  // VID 0 is a priority tag
    p.priority = static_cast<std::uint8_t>(tci >> 13);
    type = wire::load_be16(frame + 16);
    header += tag_bytes;
  }
  p.data = frame + header;
  p.length = length - header;
  switch (type) {
    case type_arp:
      return receive_arp(p);
    case type_ipv4:
      return receive_ipv4(p);
    case type_ipv6:
      return receive_ipv6(p);
    default:
      ++counters_.unknown;
  }
}

void neighbours::receive_arp(const packet& p) {
  const std::optional<arp> a = parse_arp(p.data, p.length);
  if (!a) {
    ++counters_.malformed;
    return;
  }
  if (!ours(a->target, p.vlan)) {
    ++counters_.not_for_us;
    return;
  }
  const bool probe = std::all_of(a->sender.begin() + 12, a->sender.end(), [](std::uint8_t b) { return b == 0; });
  if (!probe) learn(a->sender, a->sender_mac);  // a probe has no sender yet (RFC 5227)
  if (a->operation == arp_operation::reply) {
    ++counters_.arp_replies;
    return;
  }
  ++counters_.arp_requests;
  send(p.from, p.vlan, p.priority, type_arp,
       build_arp({arp_operation::reply, own_, a->sender_mac, a->target, a->sender}));
}

void neighbours::solicit(const gid_bytes& target, const gid_bytes& source, std::uint16_t vlan) {
  ++counters_.asked;
  if (is_ipv4(target)) {
    send(broadcast, vlan, 0, type_arp, build_arp({arp_operation::request, own_, {}, source, target}));
    return;
  }
  const gid_bytes group = solicited_node(target);
  packet link;
  link.from = *implied_mac(group);
  link.vlan = vlan;
  send_icmp6(link, source, group, hops_on_link, build_neighbour(icmp6_solicitation, 0, target, own_));
}

/// ICMP echo is all of IPv4 that is answered. Fragments are not.
void neighbours::receive_ipv4(const packet& p) {
  if (p.length < ipv4_bytes || p.data[0] >> 4 != 4) {
    ++counters_.malformed;
    return;
  }
  const std::size_t header = std::size_t{p.data[0] & 15u} * 4;
  const std::size_t total = wire::load_be16(p.data + 2);
  if (header < ipv4_bytes || total < header || total > p.length || ones_complement(ones_sum(p.data, header)) != 0) {
    ++counters_.malformed;
    return;
  }
  if (!ours(ipv4_gid(wire::load_be32(p.data + 16)), p.vlan)) {
    ++counters_.not_for_us;
    return;
  }
  const bool fragment = (wire::load_be16(p.data + 6) & 0x3fff) != 0;
  const std::uint8_t* icmp = p.data + header;
  const std::size_t length = total - header;
  if (fragment || p.data[9] != protocol_icmp || length < icmp_bytes || icmp[0] != icmp_echo_request) {
    ++counters_.unknown;
    return;
  }
  if (ones_complement(ones_sum(icmp, length)) != 0) {
    ++counters_.malformed;
    return;
  }
  ++counters_.echo_requests;
  std::vector<std::uint8_t> b(p.data, p.data + ipv4_bytes);  // without options
  b.insert(b.end(), icmp, icmp + length);
  b[0] = 0x45;
  wire::store_be16(&b[2], static_cast<std::uint16_t>(ipv4_bytes + length));
  b[8] = hops_of_echo;
  wire::store_be16(&b[10], 0);
  std::copy_n(p.data + 16, 4, b.begin() + 12);
  std::copy_n(p.data + 12, 4, b.begin() + 16);
  wire::store_be16(&b[10], ones_complement(ones_sum(b.data(), ipv4_bytes)));
  std::uint8_t* reply = &b[ipv4_bytes];
  reply[0] = icmp_echo_reply;
  wire::store_be16(reply + 2, 0);
  wire::store_be16(reply + 2, ones_complement(ones_sum(reply, length)));
  send(p.from, p.vlan, p.priority, type_ipv4, b);
}

/// Neighbour discovery and echo without extension headers.
void neighbours::receive_ipv6(const packet& p) {
  if (p.length < ipv6_bytes || p.data[0] >> 4 != 6 || wire::load_be16(p.data + 4) > p.length - ipv6_bytes) {
    ++counters_.malformed;
    return;
  }
  const std::size_t length = wire::load_be16(p.data + 4);
  const std::uint8_t* icmp = p.data + ipv6_bytes;
  if (p.data[6] != protocol_icmp6 || length < icmp_bytes) {
    ++counters_.unknown;
    return;
  }
  const gid_bytes from = gid_at(p.data + 8), to = gid_at(p.data + 24);
  if (icmp6_checksum(from, to, icmp, length) != 0) {
    ++counters_.malformed;
    return;
  }
  const bool discovery = icmp[0] == icmp6_solicitation || icmp[0] == icmp6_advertisement;
  if (discovery && (p.data[7] != hops_on_link || icmp[1] != 0 || length < neighbour_bytes)) {
    ++counters_.malformed;  // RFC 4861 7.1.1, 7.1.2
  } else if (icmp[0] == icmp6_solicitation) {
    receive_solicitation(p, from, icmp, length);
  } else if (icmp[0] == icmp6_advertisement) {
    receive_advertisement(p, to, icmp, length);
  } else if (icmp[0] == icmp6_echo_request) {
    answer_echo6(p, from, to, icmp, length);
  } else {
    ++counters_.unknown;
  }
}

void neighbours::receive_solicitation(const packet& p, const gid_bytes& from, const std::uint8_t* icmp,
                                      std::size_t length) {
  const gid_bytes target = gid_at(icmp + 8);
  if (!ours(target, p.vlan)) {
    ++counters_.not_for_us;
    return;
  }
  bool ok = false;
  const auto source = neighbour_option(icmp, length, 1, &ok);
  const bool detection = unspecified(from);  // duplicate address detection: nobody to learn
  if (!ok || (detection && source)) {
    ++counters_.malformed;
    return;
  }
  ++counters_.solicitations;
  if (source) learn(from, *source);
  packet link = p;
  if (detection) link.from = *implied_mac(every_node);
  send_icmp6(link, target, detection ? every_node : from, hops_on_link,
             build_neighbour(icmp6_advertisement, flag_override | (detection ? 0 : flag_solicited), target, own_));
}

void neighbours::receive_advertisement(const packet& p, const gid_bytes& to, const std::uint8_t* icmp,
                                       std::size_t length) {
  if (!ours(to, p.vlan)) {  // unsolicited ones to all nodes change nothing that we asked for
    ++counters_.not_for_us;
    return;
  }
  bool ok = false;
  const auto mac = neighbour_option(icmp, length, 2, &ok);
  if (!ok) {
    ++counters_.malformed;
    return;
  }
  ++counters_.advertisements;
  learn(gid_at(icmp + 8), mac ? *mac : p.from);
}

/// The own address to answer from what was asked of a group: one that reaches as far as the asker's (RFC 6724, 5, rule
/// 2), else any. Nothing: the group is not ours.
std::optional<gid_bytes> neighbours::answers_for(const gid_bytes& group, const gid_bytes& asker,
                                                 std::uint16_t vlan) const {
  bool member = false;
  std::optional<gid_bytes> best;
  for (const own_address& a : addresses_) {
    if (a.vlan != vlan || is_ipv4(a.id)) continue;
    member = member || group == every_node || group == solicited_node(a.id);
    if (!best || (is_link_local(*best) != is_link_local(asker) && is_link_local(a.id) == is_link_local(asker)))
      best = a.id;
  }
  return member ? best : std::nullopt;
}

void neighbours::answer_echo6(const packet& p, const gid_bytes& from, const gid_bytes& to, const std::uint8_t* icmp,
                              std::size_t length) {
  if (unspecified(from) || is_multicast(from)) {  // nobody to answer
    ++counters_.malformed;
    return;
  }
  const auto own = ours(to, p.vlan) ? std::optional(to) : answers_for(to, from, p.vlan);
  if (!own) {
    ++counters_.not_for_us;
    return;
  }
  ++counters_.echo6_requests;
  std::vector<std::uint8_t> reply(icmp, icmp + length);
  reply[0] = icmp6_echo_reply;
  send_icmp6(p, *own, from, hops_of_echo, std::move(reply));
}

void neighbours::send_icmp6(const packet& link, const gid_bytes& from, const gid_bytes& to, std::uint8_t hops,
                            std::vector<std::uint8_t> icmp) {
  wire::store_be16(&icmp[2], 0);
  wire::store_be16(&icmp[2], icmp6_checksum(from, to, icmp.data(), icmp.size()));
  std::vector<std::uint8_t> b(ipv6_bytes);
  b[0] = 0x60;
  wire::store_be16(&b[4], static_cast<std::uint16_t>(icmp.size()));
  b[6] = protocol_icmp6;
  b[7] = hops;
  std::copy(from.begin(), from.end(), b.begin() + 8);
  std::copy(to.begin(), to.end(), b.begin() + 24);
  b.insert(b.end(), icmp.begin(), icmp.end());
  send(link.from, link.vlan, link.priority, type_ipv6, b);
}

void neighbours::send(const mac_address& to, std::uint16_t vlan, std::uint8_t priority, std::uint16_t type,
                      const std::vector<std::uint8_t>& body) {
  std::vector<std::uint8_t> frame(ethernet_bytes);
  std::copy(to.begin(), to.end(), frame.begin());
  std::copy(own_.begin(), own_.end(), frame.begin() + 6);
  if (vlan != untagged) {
    wire::store_be16(&frame[12], type_vlan);
    frame.resize(ethernet_bytes + tag_bytes);
    wire::store_be16(&frame[14], static_cast<std::uint16_t>(priority << 13 | vlan));
  }
  wire::store_be16(&frame[frame.size() - 2], type);
  frame.insert(frame.end(), body.begin(), body.end());
  out_.transmit(frame.data(), frame.size());
}

}  // namespace rnic::host_driver
