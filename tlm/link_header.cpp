// SPDX-License-Identifier: Apache-2.0
#include "tlm/link_header.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <array>

#include "model/wire/bytes.h"
#include "tlm/capture.h"

namespace rnic::tlm {

namespace {

constexpr int linktype_raw = 101;  // libpcap's DLT_RAW has another number
constexpr std::uint32_t ethernet_bytes = 14, sll_bytes = 16, sll2_bytes = 20;
constexpr unsigned mac_bytes = 6;
constexpr std::uint16_t ipv4 = 0x0800, ipv6 = 0x86dd;
enum packet_type : std::uint8_t { to_us = 0, broadcast = 1, multicast = 2, to_others = 3, outgoing = 4 };  // PACKET_

/// What a link header other than Ethernet's says.
struct known {
  std::uint32_t bytes = 0;  // of the header
  std::uint16_t protocol = 0;
  const std::uint8_t* source = nullptr;  // MAC address
  frame_way way = frame_way::unknown;
};

frame_way way_of(unsigned type) {
  switch (type) {
    case to_us:
    case broadcast:
    case multicast:
      return frame_way::to_host;
    case outgoing:
      return frame_way::from_host;
    default:
      return frame_way::unknown;
  }
}

known read_header(const stored_packet& p) {
  known k;
  if (p.link_type == DLT_LINUX_SLL) {
    k.bytes = sll_bytes;
    if (p.length < k.bytes) return k;
    k.protocol = wire::load_be16(p.data + 14);
    k.way = way_of(wire::load_be16(p.data));
    if (wire::load_be16(p.data + 4) == mac_bytes) k.source = p.data + 6;
  } else if (p.link_type == DLT_LINUX_SLL2) {
    k.bytes = sll2_bytes;
    if (p.length < k.bytes) return k;
    k.protocol = wire::load_be16(p.data);
    k.way = way_of(p.data[10]);
    if (p.data[11] == mac_bytes) k.source = p.data + 12;
  } else if (p.length > 0) {
    k.protocol = p.data[0] >> 4 == 4 ? ipv4 : p.data[0] >> 4 == 6 ? ipv6 : 0;
  }
  return k;
}

}  // namespace

bool is_read(int link_type) {
  switch (link_type) {
    case DLT_EN10MB:
    case DLT_LINUX_SLL:
    case DLT_LINUX_SLL2:
    case DLT_RAW:
    case linktype_raw:
    case DLT_IPV4:
    case DLT_IPV6:
      return true;
    default:
      return false;
  }
}

std::string link_type_name(int link_type) {
  const char* name = pcap_datalink_val_to_name(link_type == linktype_raw ? DLT_RAW : link_type);
  return name != nullptr ? name : std::to_string(link_type);
}

void to_ethernet(const stored_packet& p, std::vector<std::uint8_t>& room, captured_frame& out) {
  if (p.link_type == DLT_EN10MB) {
    out.data = p.data;
    out.length = p.length;
    out.wire_length = p.wire_length;
    return;
  }
  const bool cooked = p.link_type == DLT_LINUX_SLL || p.link_type == DLT_LINUX_SLL2;
  const known k = read_header(p);
  out.link = cooked ? frame_link::cooked : frame_link::ip;
  out.way = k.way;
  room.assign(ethernet_bytes, 0);
  if (k.source != nullptr) std::copy_n(k.source, mac_bytes, room.begin() + mac_bytes);
  out.no_destination = true;
  out.no_source = std::all_of(room.begin() + mac_bytes, room.begin() + 2 * mac_bytes, [](auto b) { return b == 0; });
  room[12] = static_cast<std::uint8_t>(k.protocol >> 8);
  room[13] = static_cast<std::uint8_t>(k.protocol);
  if (p.length >= k.bytes) room.insert(room.end(), p.data + k.bytes, p.data + p.length);
  if (p.length < k.bytes) room.clear();
  out.data = room.data();
  out.length = static_cast<std::uint32_t>(room.size());
  out.wire_length = std::max(out.length, p.wire_length - std::min(p.wire_length, k.bytes) + ethernet_bytes);
}

}  // namespace rnic::tlm
