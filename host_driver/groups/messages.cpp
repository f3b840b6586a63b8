// SPDX-License-Identifier: Apache-2.0
#include "host_driver/groups/messages.h"

#include <algorithm>

#include "host_driver/neighbour_messages.h"
#include "model/wire/bytes.h"

namespace rnic::host_driver::groups {

using namespace messages;

namespace {

constexpr std::uint64_t ps_per_ms = 1'000'000'000;
constexpr std::uint8_t protocol_igmp = 2, next_hop_by_hop = 0;
constexpr std::uint8_t igmp_query = 0x11, igmp2_report = 0x16, igmp2_leave = 0x17, igmp3_report = 0x22;
constexpr std::uint8_t mld_query = 130, mld1_report = 131, mld1_done = 132, mld2_report = 143;
constexpr std::size_t igmp_bytes = 8, igmp3_query_bytes = 12, mld_bytes = 24, mld2_query_bytes = 28, report_bytes = 8;
constexpr std::size_t router_alert_bytes = 4, hop_by_hop_bytes = 8;
constexpr std::size_t room_bytes = 1500 - 56;  // of records, beside the headers of either protocol
constexpr std::uint8_t tos_control = 0xc0, one_hop = 1;

constexpr gid_bytes group6(std::uint8_t last) { return {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}; }
gid_bytes group4(std::uint8_t last) { return ipv4_gid(0xe0000000u | last); }

std::vector<std::uint8_t> link_header(const interface_addresses& from, const gid_bytes& to, std::uint16_t type) {
  std::vector<std::uint8_t> frame(14);
  const mac_address dmac = *implied_mac(to);
  std::copy(dmac.begin(), dmac.end(), frame.begin());
  std::copy(from.mac.begin(), from.mac.end(), frame.begin() + 6);
  if (from.vlan) {
    wire::store_be16(&frame[12], type_vlan);
    frame.resize(18);
    wire::store_be16(&frame[14], *from.vlan);
  }
  wire::store_be16(&frame[frame.size() - 2], type);
  return frame;
}

/// IPv4 with the router alert option, as the kernel's igmp_send_report.
std::vector<std::uint8_t> igmp_frame(const interface_addresses& from, const gid_bytes& to,
                                     std::vector<std::uint8_t> igmp) {
  wire::store_be16(&igmp[2], ones_complement(ones_sum(igmp.data(), igmp.size())));
  std::vector<std::uint8_t> ip(ipv4_bytes + router_alert_bytes);
  ip[0] = 0x46;
  ip[1] = tos_control;
  wire::store_be16(&ip[2], static_cast<std::uint16_t>(ip.size() + igmp.size()));
  wire::store_be16(&ip[6], 0x4000);  // not to be fragmented
  ip[8] = one_hop;
  ip[9] = protocol_igmp;
  std::copy_n(from.ipv4.begin() + 12, 4, ip.begin() + 12);
  std::copy_n(to.begin() + 12, 4, ip.begin() + 16);
  ip[20] = 0x94;  // router alert
  ip[21] = 4;
  wire::store_be16(&ip[10], ones_complement(ones_sum(ip.data(), ip.size())));
  std::vector<std::uint8_t> frame = link_header(from, to, type_ipv4);
  frame.insert(frame.end(), ip.begin(), ip.end());
  frame.insert(frame.end(), igmp.begin(), igmp.end());
  return frame;
}

/// IPv6 with a hop-by-hop header that has the router alert of MLD (RFC 2711).
std::vector<std::uint8_t> mld_frame(const interface_addresses& from, const gid_bytes& to,
                                    std::vector<std::uint8_t> icmp) {
  wire::store_be16(&icmp[2], icmp6_checksum(from.link_local, to, icmp.data(), icmp.size()));
  std::vector<std::uint8_t> ip(ipv6_bytes + hop_by_hop_bytes);
  ip[0] = 0x60;
  wire::store_be16(&ip[4], static_cast<std::uint16_t>(hop_by_hop_bytes + icmp.size()));
  ip[6] = next_hop_by_hop;
  ip[7] = one_hop;
  std::copy(from.link_local.begin(), from.link_local.end(), ip.begin() + 8);
  std::copy(to.begin(), to.end(), ip.begin() + 24);
  const std::uint8_t options[hop_by_hop_bytes] = {protocol_icmp6, 0, 5, 2, 0, 0, 1, 0};
  std::copy(std::begin(options), std::end(options), ip.begin() + ipv6_bytes);
  std::vector<std::uint8_t> frame = link_header(from, to, type_ipv6);
  frame.insert(frame.end(), ip.begin(), ip.end());
  frame.insert(frame.end(), icmp.begin(), icmp.end());
  return frame;
}

/// Codes of IGMPv3: from 128 on a floating-point number (RFC 3376, 4.1.1).
std::uint64_t code8(std::uint8_t code) {
  if (code < 0x80) return code;
  return std::uint64_t{(code & 0xfu) | 0x10u} << ((code >> 4 & 7u) + 3);
}
/// MLDv2's, of 16 bits (RFC 3810, 5.1.3).
std::uint64_t code16(std::uint16_t code) {
  if (code < 0x8000) return code;
  return std::uint64_t{(code & 0xfffu) | 0x1000u} << ((code >> 12 & 7u) + 3);
}

bool unspecified(const gid_bytes& g) {
  return std::all_of(g.begin(), g.end(), [](std::uint8_t b) { return b == 0; });
}

/// What both new kinds of query end with: robustness and interval, `at` the byte of the former.
void read_querier(const std::uint8_t* at, heard& out) {
  out.robustness = at[0] & 7u;
  out.query_interval_ps = code8(at[1]) * 1000 * ps_per_ms;
}

bool parse_igmp(const std::uint8_t* p, std::size_t length, heard& out) {
  if (length < igmp_bytes || ones_complement(ones_sum(p, length)) != 0) return false;
  const std::uint32_t group = wire::load_be32(p + 4);
  if (group != 0) out.group = ipv4_gid(group);
  out.report = p[0] == igmp2_report;
  if (out.report) return group != 0;
  if (p[0] != igmp_query) return false;
  out.old = length == igmp_bytes;
  if (!out.old && length < igmp3_query_bytes) return false;
  constexpr std::uint64_t tenth = 100 * ps_per_ms, of_version_1 = 10'000 * ps_per_ms;
  out.max_response_ps = out.old ? (p[1] != 0 ? p[1] * tenth : of_version_1) : code8(p[1]) * tenth;
  if (out.old && p[1] == 0) out.group.reset();  // version 1 asks of all
  if (!out.old) read_querier(p + 8, out);
  return true;
}

/// `from`: source of the packet.
bool parse_mld(const std::uint8_t* p, std::size_t length, heard& out) {
  if (length < mld_bytes) return false;
  const gid_bytes group = gid_at(p + 8);
  if (!unspecified(group)) out.group = group;
  out.mld = true;
  out.report = p[0] == mld1_report;
  if (out.report) return out.group.has_value();
  if (p[0] != mld_query) return false;
  out.old = length == mld_bytes;
  if (!out.old && length < mld2_query_bytes) return false;
  const std::uint16_t code = wire::load_be16(p + 4);
  out.max_response_ps = (out.old ? code : code16(code)) * ps_per_ms;
  if (!out.old) read_querier(p + 24, out);
  return true;
}

bool parse_ipv4(const std::uint8_t* p, std::size_t length, heard& out) {
  if (length < ipv4_bytes || p[0] >> 4 != 4 || p[9] != protocol_igmp) return false;
  const std::size_t header = std::size_t{p[0] & 15u} * 4, total = wire::load_be16(p + 2);
  if (header < ipv4_bytes || total < header || total > length || (wire::load_be16(p + 6) & 0x3fff) != 0 ||
      ones_complement(ones_sum(p, header)) != 0)
    return false;
  return parse_igmp(p + header, total - header, out);
}

/// From the link, and marked for routers (RFC 3810, 6.2).
bool parse_ipv6(const std::uint8_t* p, std::size_t length, heard& out) {
  if (length < ipv6_bytes + hop_by_hop_bytes || p[0] >> 4 != 6 || p[6] != next_hop_by_hop || p[7] != one_hop)
    return false;
  const std::size_t payload = wire::load_be16(p + 4);
  const std::uint8_t* const options = p + ipv6_bytes;
  const std::size_t header = (std::size_t{options[1]} + 1) * 8;
  if (payload > length - ipv6_bytes || header > payload || options[0] != protocol_icmp6) return false;
  bool alert = false;
  for (std::size_t at = 2; at + 1 < header;) {
    if (options[at] == 0) {
      ++at;
      continue;
    }
    const std::size_t bytes = options[at + 1];
    if (at + 2 + bytes > header) return false;
    alert |= options[at] == 5 && bytes == 2 && wire::load_be16(options + at + 2) == 0;
    at += 2 + bytes;
  }
  const gid_bytes from = gid_at(p + 8);
  if (!alert || from[0] != 0xfe || (from[1] & 0xc0) != 0x80) return false;
  const std::uint8_t* const icmp = options + header;
  if (payload - header < igmp_bytes || icmp6_checksum(from, gid_at(p + 24), icmp, payload - header) != 0) return false;
  return parse_mld(icmp, payload - header, out);
}

}  // namespace

std::vector<std::vector<std::uint8_t>> build_report(const interface_addresses& from,
                                                    const std::vector<record>& records) {
  const bool four = is_ipv4(records.front().group);
  const std::size_t address_bytes = four ? 4 : 16, record_bytes = 4 + address_bytes;
  std::vector<std::vector<std::uint8_t>> frames;
  for (auto next = records.begin(); next != records.end();) {
    std::vector<std::uint8_t> body(report_bytes);
    body[0] = four ? igmp3_report : mld2_report;
    std::uint16_t count = 0;
    for (; next != records.end() && body.size() + record_bytes <= room_bytes; ++next, ++count) {
      const std::uint8_t head[4] = {static_cast<std::uint8_t>(next->kind), 0, 0, 0};  // no sources
      body.insert(body.end(), std::begin(head), std::end(head));
      body.insert(body.end(), next->group.end() - static_cast<std::ptrdiff_t>(address_bytes), next->group.end());
    }
    wire::store_be16(&body[6], count);
    constexpr std::uint8_t routers_with_records = 22;
    frames.push_back(four ? igmp_frame(from, group4(routers_with_records), std::move(body))
                          : mld_frame(from, group6(routers_with_records), std::move(body)));
  }
  return frames;
}

std::vector<std::uint8_t> build_old(const interface_addresses& from, old_message what, const gid_bytes& group) {
  constexpr std::uint8_t routers = 2;
  const bool leave = what == old_message::leave, four = is_ipv4(group);
  std::vector<std::uint8_t> body(four ? igmp_bytes : mld_bytes);
  if (four) {
    body[0] = leave ? igmp2_leave : igmp2_report;
    std::copy_n(group.begin() + 12, 4, body.begin() + 4);
    return igmp_frame(from, leave ? group4(routers) : group, std::move(body));
  }
  body[0] = leave ? mld1_done : mld1_report;
  std::copy(group.begin(), group.end(), body.begin() + 8);
  return mld_frame(from, leave ? group6(routers) : group, std::move(body));
}

std::optional<heard> parse(const std::uint8_t* frame, std::size_t length) {
  constexpr std::size_t header = 14, tag = 4;
  if (length < header + tag) return std::nullopt;
  heard out;
  std::size_t at = header;
  std::uint16_t type = wire::load_be16(frame + 12);
  if (type == type_vlan) {
    if ((wire::load_be16(frame + 14) & 0xfff) != 0) out.vlan = wire::load_be16(frame + 14) & 0xfff;
    type = wire::load_be16(frame + 16);
    at += tag;
  }
  const bool ok = type == type_ipv4   ? parse_ipv4(frame + at, length - at, out)
                  : type == type_ipv6 ? parse_ipv6(frame + at, length - at, out)
                                      : false;
  return ok ? std::optional(out) : std::nullopt;
}

}  // namespace rnic::host_driver::groups
