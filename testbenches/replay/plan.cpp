// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model/wire/ethernet.h"
#include "model/wire/icrc.h"
#include "testbenches/bench/usage_error.h"
#include "testbenches/replay/contradictions.h"
#include "testbenches/replay/datagrams.h"
#include "testbenches/replay/frames.h"
#include "testbenches/replay/pairing.h"
#include "testbenches/replay/peer_side.h"
#include "testbenches/replay/reader.h"

namespace rnic::replay {

namespace {

/// A host is known by its MAC address, to which all its GIDs belong.
using host_votes = std::map<wire::mac_address, std::int64_t>;

bool is_host(const wire::mac_address& mac) { return !wire::is_multicast(mac) && wire::to_u64(mac) != 0; }

/// The one that mostly answers. Without answers at all (unacknowledged services) the receiver of the first packet, or
/// its sender when it goes to a group.
wire::mac_address choose_by_itself(const plan& p) {
  host_votes answers;
  wire::mac_address first{};
  for (const captured_frame& f : p.frames) {
    if (!f.roce) continue;
    for (const wire::mac_address& mac : {f.packet.dmac, f.packet.smac}) {
      if (!is_host(mac)) continue;
      if (answers.empty()) first = mac;
      answers[mac] += mac == f.packet.smac && wire::traits(f.packet.bth.opcode).response ? 1 : 0;
    }
  }
  if (answers.empty()) return {};
  const auto most = std::max_element(answers.begin(), answers.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second != 0 ? most->first : first;
}

wire::mac_address choose_held(const plan& p, const std::string& hold) {
  if (hold.empty()) return choose_by_itself(p);
  const std::optional<wire::mac_address> mac = wire::parse_mac(hold);
  const std::optional<wire::gid> gid = wire::parse_gid(hold);
  if (!mac && !gid) throw usage_error("--hold " + hold + ": expected an IPv4, IPv6 or MAC address");
  for (const captured_frame& f : p.frames) {
    if (!f.roce) continue;
    if ((f.packet.smac == mac || f.packet.sgid == gid) && is_host(f.packet.smac)) return f.packet.smac;
    if ((f.packet.dmac == mac || f.packet.dgid == gid) && is_host(f.packet.dmac)) return f.packet.dmac;
  }
  throw usage_error("--hold " + hold + ": no host with that address sends or receives RoCE here");
}

connection& add_connection(plan& p, const wire::mac_address& held_mac) {
  p.connections.emplace_back();
  p.connections.back().held_mac = held_mac;
  return p.connections.back();
}

void learn_addresses(connection& c, const captured_frame& f) {
  const wire::packet& p = f.packet;
  c.encap = p.encap;
  c.service = wire::transport_of(p.bth.opcode);
  if (c.service == wire::transport::manufacturer) c.service = wire::transport::rc;  // masked atomics
  c.held_gid = f.from_held ? p.sgid : p.dgid;
  c.peer_gid = f.from_held ? p.dgid : p.sgid;
  c.peer_mac = f.from_held ? p.dmac : p.smac;
  const bool asks = wire::traits(p.bth.opcode).request;
  if (c.service == wire::transport::xrc) c.xrc.held_asks = asks == f.from_held;
  if (f.from_held && !c.seen_from_held) c.first_from_held = p, c.seen_from_held = true;
  if (!f.from_held && !c.seen_from_peer) c.first_from_peer = p, c.seen_from_peer = true;
}

/// Why a frame belongs to no connection of the held host.
std::string not_replayed(const plan& p, const wire::packet& x) {
  if (p.held_mac == wire::mac_address{}) return "no host with a unicast MAC address";
  if (is_connected(x)) return "between other hosts";
  switch (wire::transport_of(x.bth.opcode)) {
    case wire::transport::cnp:
      return "transport not replayed: CNP";
    default:
      return "transport not replayed: RD";
  }
}

/// Connections in the order of their first packets, those with packets to the held host first.
void find_connections(plan& p) {
  const pairing paired(p);
  std::vector<int> index_of(paired.size(), -1);
  std::set<std::uint32_t> numbers;
  for (std::size_t flow = 0; flow < paired.size(); ++flow)
    if (!paired.from_held(flow)) numbers.insert(paired.key(flow).dest_qp);
  std::uint32_t invented = 0x10000;  // a held queue pair that nobody ever addresses still needs a number
  for (const bool from_held : {false, true})
    for (std::size_t flow = 0; flow < paired.size(); ++flow) {
      if (paired.from_held(flow) != from_held || index_of[flow] >= 0) continue;
      connection& c = add_connection(p, p.held_mac);
      index_of[flow] = static_cast<int>(p.connections.size()) - 1;
      const std::size_t other = paired.other(flow);
      if (other != pairing::none) index_of[other] = index_of[flow];
      (from_held ? c.peer_qpn : c.held_qpn) = paired.key(flow).dest_qp;
      while (from_held && numbers.count(invented) != 0) ++invented;
      c.held_qpn_known = !from_held;
      c.peer_qpn_known = from_held || other != pairing::none;
      if (from_held)
        c.held_qpn = invented++;
      else if (other != pairing::none)
        c.peer_qpn = paired.key(other).dest_qp;
    }
  for (std::size_t i = 0; i < p.frames.size(); ++i) {
    captured_frame& f = p.frames[i];
    if (!f.roce) continue;
    f.from_held = f.packet.smac == p.held_mac;
    const wire::opcode_traits& t = wire::traits(f.packet.bth.opcode);
    if (t.reth || t.atomic_eth) p.keys.insert(t.reth ? f.packet.reth.rkey : f.packet.atomic.rkey);
    const std::size_t flow = paired.of_frame(i);
    if (wire::transport_of(f.packet.bth.opcode) == wire::transport::ud) continue;  // see find_datagrams
    if (flow == pairing::none) {
      ++p.rejected[not_replayed(p, f.packet)];
      continue;
    }
    f.connection = index_of[flow];
    learn_addresses(p.connections[static_cast<std::size_t>(f.connection)], f);
  }
}

/// Which end sent them the frames do not show.
void reject_own_frames(plan& p) {
  for (captured_frame& f : p.frames) {
    if (!f.roce || f.packet.smac != f.packet.dmac || !is_host(f.packet.smac)) continue;
    f.roce = false;
    ++p.rejected["sent and received by one MAC address: which end is the host does not show"];
  }
}

/// Connections of one queue pair number come one after the other.
void chain_numbers(plan& p) {
  std::map<std::uint32_t, std::vector<int>> users;
  std::vector<bool> seen(p.connections.size(), false);
  for (const captured_frame& f : p.frames) {  // in the order of their first packets
    if (f.connection < 0 || seen[static_cast<std::size_t>(f.connection)]) continue;
    seen[static_cast<std::size_t>(f.connection)] = true;
    std::vector<int>& before = users[p.connections[static_cast<std::size_t>(f.connection)].held_qpn];
    if (!before.empty()) p.connections[static_cast<std::size_t>(f.connection)].before = before.back();
    before.push_back(f.connection);
  }
}

/// The other end of the same run. Behind a router the held host has another MAC address there, but the same GIDs.
void read_second(plan& p, const std::string& capture, const reading_options& reading) {
  std::set<wire::gid> held;
  for (const captured_frame& f : p.frames) {
    if (!f.roce) continue;
    if (f.packet.smac == p.held_mac) held.insert(f.packet.sgid);
    if (f.packet.dmac == p.held_mac) held.insert(f.packet.dgid);
  }
  plan second;
  read_frames(reading.also, reading, second);
  join_ends(p, second, capture, reading.also, {held.begin(), held.end()});
  p.held_mac = choose_held(p, wire::to_string(*held.begin()));
}

}  // namespace

std::uint32_t captured_frame::known_payload() const {
  const std::size_t behind = bytes.size() > packet.payload_offset ? bytes.size() - packet.payload_offset : 0;
  return static_cast<std::uint32_t>(std::min<std::size_t>(behind, packet.payload_length));
}

std::vector<std::uint8_t> bytes_on_wire(const captured_frame& f) {
  std::vector<std::uint8_t> bytes = f.bytes;
  bytes.resize(std::max<std::size_t>(bytes.size(), f.wire_length));
  if (!f.new_icrc) return bytes;
  const std::uint32_t icrc = wire::icrc(bytes.data(), f.packet);
  for (unsigned i = 0; i < 4; ++i) bytes[f.packet.icrc_offset + i] = static_cast<std::uint8_t>(icrc >> 8 * i);
  return bytes;
}

plan make_plan(const std::string& capture, const std::string& hold, const reading_options& reading,
               const plan_limits& limits) {
  plan p;
  p.zeros_left = limits.zeros;
  read_frames(capture, reading, p);
  p.held_mac = choose_held(p, hold);
  if (!reading.also.empty()) read_second(p, capture, reading);
  if (p.held_mac != wire::mac_address{}) p.held = wire::to_string(p.held_mac);
  reject_own_frames(p);
  find_connections(p);
  find_datagrams(p);
  place_losses(p);
  std::set<wire::gid> gids;
  std::vector<std::vector<std::size_t>> frames(p.connections.size());
  for (std::size_t i = 0; i < p.frames.size(); ++i)
    if (p.frames[i].connection >= 0) frames[static_cast<std::size_t>(p.frames[i].connection)].push_back(i);
  asked_memory asked;
  for (std::size_t i = 0; i < p.connections.size(); ++i) {
    if (p.connections[i].service != wire::transport::ud) read_connection(p, i, frames[i], asked);
    gids.insert(p.connections[i].held_gid);
  }
  make_counters(p, asked.atomics);
  find_contradictions(p, std::move(asked.writes));
  make_regions(p, asked.accesses);
  chain_numbers(p);
  p.held_gids.assign(gids.begin(), gids.end());
  return p;
}

}  // namespace rnic::replay
