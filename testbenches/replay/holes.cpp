// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/holes.h"

#include <algorithm>

namespace rnic::replay {

namespace {

constexpr std::uint64_t cost_of_packet = 512;  // bytes of memory beside the payload, which is not kept

}  // namespace

std::size_t packet_maker::make(const wire::packet& model, const recipe& r, std::size_t before) {
  if (plan_.zeros_left < r.payload + cost_of_packet) return no_frame;
  plan_.zeros_left -= r.payload + cost_of_packet;
  captured_frame f;
  wire::packet& p = f.packet = model;
  p.bth.opcode = wire::make_opcode(wire::transport_of(model.bth.opcode), r.what);
  p.bth.psn = wire::psn_t(r.psn);
  p.udp_checksum = 0;
  p.bth.solicited = false;
  p.bth.ack_request = wire::traits(p.bth.opcode).request && wire::traits(p.bth.opcode).last;
  p.reth = r.reth;
  p.aeth = r.aeth;
  p.atomic = r.atomic;
  p.payload_length = r.payload;
  std::vector<std::uint8_t> bytes(wire::header_length(p) + r.payload + 8);  // pad and ICRC
  const std::uint8_t* first = wire::build(p, bytes.data() + wire::header_length(p));
  f.bytes.assign(first, first + p.payload_offset);
  f.wire_length = p.icrc_offset + 4;
  f.at = plan_.frames[before].at;
  f.cut = f.roce = f.new_icrc = true;
  f.connection = connection_;
  const std::size_t index = plan_.frames.size() + plan_.made_up.size();
  plan_.made_up.push_back(std::move(f));
  made_.emplace_back(before, index);
  ++plan_.remarks
        ["packets of the peer that the capture lacks and that were made up, with zeros and an ICRC of their own"];
  return index;
}

std::vector<std::size_t> packet_maker::merge(const std::vector<std::size_t>& captured) const {
  std::vector<std::pair<std::size_t, std::size_t>> made = made_;
  std::sort(made.begin(), made.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const captured_frame &x = plan_.frame(a.second), &y = plan_.frame(b.second);
    return x.packet.bth.psn.before(y.packet.bth.psn);
  });
  std::vector<std::size_t> all;
  auto next = made.begin();
  for (const std::size_t i : captured) {
    for (; next != made.end() && next->first <= i; ++next) all.push_back(next->second);
    all.push_back(i);
  }
  return all;
}

wire::reth packet_maker::invent(std::uint32_t length) {
  do plan_.invented_key += 0x100;
  while (plan_.keys.count(plan_.invented_key) != 0);
  plan_.keys.insert(plan_.invented_key);
  wire::reth r;
  r.va = 0x1000;
  r.rkey = plan_.invented_key;
  r.length = length;
  return r;
}

}  // namespace rnic::replay
