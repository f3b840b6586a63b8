// SPDX-License-Identifier: Apache-2.0
// Decoders of the wire on any bytes: nothing outside of the frame is read, and what was understood can be written
// again.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "model/wire/ethernet.h"
#include "model/wire/icrc.h"
#include "model/wire/internet.h"
#include "model/wire/lacp.h"
#include "model/wire/packet.h"
#include "model/wire/pause.h"
#include "testbenches/fuzz/property.h"

namespace rnic::fuzz {
namespace {

using frame = std::vector<std::uint8_t>;

void try_packet(const std::uint8_t* data, std::size_t size) {
  wire::packet p;
  if (wire::decode(data, size, p) != wire::decode_error::none) return;
  demand(p.icrc_offset + 4u <= size, "the packet lies in its frame");
  demand(p.payload_offset + p.payload_length + p.bth.pad == p.icrc_offset, "payload and pad end where the ICRC is");
  demand(wire::traits(p.bth.opcode).known, "a decoded packet has an opcode of the standard");
  const std::uint32_t whole = wire::icrc(data, p);
  demand(whole == wire::icrc(p.encap, data + p.l3_offset, p.icrc_offset - p.l3_offset), "both ways to an ICRC agree");

  constexpr std::size_t headers = 256, behind = 16;
  demand(wire::header_length(p) <= headers, "headers are short");
  frame room(headers + p.payload_length + behind);
  std::copy_n(data + p.payload_offset, p.payload_length, room.begin() + headers);
  wire::packet again = p;
  const std::uint8_t* const first = wire::build(again, room.data() + headers);
  demand(again.icrc_offset == p.icrc_offset && again.payload_offset == p.payload_offset, "the layout comes again");
  // All but the pad's value and the ICRC comes back.
  demand(std::equal(first, first + p.payload_offset + p.payload_length, data), "decoded headers give the same bytes");
}

void try_pause(const std::uint8_t* data, std::size_t size) {
  wire::pause_frame p;
  if (wire::decode_pause(data, size, p) != wire::pause_kind::pause) return;
  std::array<std::uint8_t, wire::pause_frame_length> bytes{};
  wire::encode_pause(p, {2, 0, 0, 0, 0, 1}, bytes.data());
  wire::pause_frame again;
  demand(wire::decode_pause(bytes.data(), bytes.size(), again) == wire::pause_kind::pause, "an own pause is one");
  demand(again.per_priority == p.per_priority && again.enabled == p.enabled && again.quanta == p.quanta,
         "a pause says the same again");
}

void try_slow_protocol(const std::uint8_t* data, std::size_t size) {
  wire::lacp_unit lacp;
  wire::marker_unit marker;
  const wire::slow_protocol what = wire::decode_slow_protocol(data, size, lacp, marker);
  if (what != wire::slow_protocol::lacp && what != wire::slow_protocol::marker) return;
  demand(size >= wire::slow_protocol_bytes, "a unit lies in its frame");
  const bool is_lacp = what == wire::slow_protocol::lacp;
  const frame once = is_lacp ? wire::encode_lacp(lacp) : wire::encode_marker(marker);
  demand(wire::decode_slow_protocol(once.data(), once.size(), lacp, marker) == what, "an own unit is one");
  demand((is_lacp ? wire::encode_lacp(lacp) : wire::encode_marker(marker)) == once, "a unit says the same again");
}

void try_checksums(const std::uint8_t* data, std::size_t size) {
  const wire::frame_view v = wire::inspect(data, size);
  demand(v.end <= size && v.l3 <= size && v.l4 <= size, "what is found lies in the frame");
  std::uint8_t flow[36];
  for (const bool ports : {false, true}) {
    const std::size_t n = wire::flow_bytes(data, v, ports, flow);
    demand(n <= sizeof flow, "a hash is over 36 bytes at most");
    wire::toeplitz({}, flow, n);
  }
  frame copy(data, data + size);
  if (v.ipv4 || v.ipv6) wire::packet_sum(copy.data(), v);
  if (v.ipv4) {
    wire::set_ipv4_checksum(copy.data(), v);
    demand(wire::ipv4_header_sum(copy.data(), v) == 0xffff, "a header's checksum that was set is right");
  }
  if (v.tcp || v.udp) {
    wire::set_l4_checksum(copy.data(), v);
    demand(wire::l4_sum(copy.data(), v) == 0xffff, "a checksum that was set is right");
  }
}

void try_changes(const std::uint8_t* data, std::size_t size) {
  if (size < wire::ethernet_header_bytes) return;
  frame tagged(wire::vlan_tag_bytes);
  tagged.insert(tagged.end(), data, data + size);
  wire::insert_tag(tagged.data() + wire::vlan_tag_bytes, wire::type_ctag, 0x6064);
  const wire::frame_view v = wire::inspect(tagged.data(), tagged.size());
  demand(v.ctag && v.tci == 0x6064, "a tag that was put in is found");
  wire::remove_tag(tagged.data());
  demand(std::equal(data, data + size, tagged.begin() + wire::vlan_tag_bytes), "a tag leaves no trace");
  frame segment(data, data + size);
  wire::segment_header(segment.data(), segment.size(), size & 7, static_cast<std::uint32_t>(size), (size & 1) != 0);
}

void try_text(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  if (const auto id = wire::parse_gid(text)) demand(wire::parse_gid(wire::to_string(*id)) == id, "a GID's text is it");
  if (const auto mac = wire::parse_mac(text))
    demand(wire::parse_mac(wire::to_string(*mac)) == mac, "a MAC's text is it");
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnic::fuzz;
  try_packet(data, size);
  try_pause(data, size);
  try_slow_protocol(data, size);
  try_checksums(data, size);
  try_changes(data, size);
  try_text(data, size);
  return 0;
}
