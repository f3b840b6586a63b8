// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/plan.h"

#include <algorithm>
#include <set>

#include "model/wire/ethernet.h"
#include "testbenches/bench/usage_error.h"
#include "testbenches/replay/frames.h"
#include "testbenches/replay/pairing.h"
#include "testbenches/replay/reader.h"

namespace rnic::replay {

namespace {

/// A host is known by its MAC address, to which all its GIDs belong.
using host_votes = std::map<wire::mac_address, std::int64_t>;

wire::mac_address choose_held(const plan& p, const std::string& hold) {
  const std::optional<wire::mac_address> hold_mac = wire::parse_mac(hold);
  const std::optional<wire::gid> hold_gid = wire::parse_gid(hold);
  if (!hold.empty() && !hold_mac && !hold_gid)
    throw usage_error("--hold " + hold + ": expected an IPv4, IPv6 or MAC address");
  host_votes answers;
  for (const captured_frame& f : p.frames) {
    if (!f.roce) continue;
    answers.try_emplace(f.packet.dmac, 0);
    answers[f.packet.smac] += wire::traits(f.packet.bth.opcode).response ? 1 : 0;
    if (hold.empty()) continue;
    if (f.packet.smac == hold_mac || f.packet.sgid == hold_gid) return f.packet.smac;
    if (f.packet.dmac == hold_mac || f.packet.dgid == hold_gid) return f.packet.dmac;
  }
  if (!hold.empty()) throw usage_error("--hold " + hold + ": no host with that address sends or receives RoCE here");
  if (answers.empty()) return {};
  // Without answers at all (unacknowledged services) the receiver of the first packet is held.
  const auto most = std::max_element(answers.begin(), answers.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->second != 0) return most->first;
  for (const captured_frame& f : p.frames)
    if (f.roce) return f.packet.dmac;
  return most->first;
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
  c.held_gid = f.from_held ? p.sgid : p.dgid;
  c.peer_gid = f.from_held ? p.dgid : p.sgid;
  c.peer_mac = f.from_held ? p.dmac : p.smac;
  if (f.from_held && !c.seen_from_held) c.first_from_held = p, c.seen_from_held = true;
  if (!f.from_held && !c.seen_from_peer) c.first_from_peer = p, c.seen_from_peer = true;
}

std::string not_replayed(const wire::packet& p) {
  switch (wire::transport_of(p.bth.opcode)) {
    case wire::transport::ud:
      return "transport not replayed: UD";
    case wire::transport::xrc:
      return "transport not replayed: XRC";
    case wire::transport::cnp:
      return "transport not replayed: CNP";
    default:
      return "transport not replayed: RD";
  }
}

void find_connections(plan& p) {
  const pairing paired(p);
  std::map<flow_key, int> index_of;
  for (const flow_key& in : paired.to_held()) {
    connection& c = add_connection(p, p.held_mac);
    c.held_qpn = in.dest_qp;
    const int index = static_cast<int>(p.connections.size()) - 1;
    index_of[in] = index;
    const auto out = paired.pairs().find(in);
    if (out == paired.pairs().end()) continue;
    c.peer_qpn = out->second.dest_qp;
    index_of[out->second] = index;
  }
  std::uint32_t invented = 0x10000;  // a held queue pair that nobody ever addresses still needs a number
  for (const flow_key& out : paired.from_held()) {
    if (index_of.count(out) != 0) continue;
    connection& c = add_connection(p, p.held_mac);
    c.peer_qpn = out.dest_qp;
    c.held_qpn = invented++;
    index_of[out] = static_cast<int>(p.connections.size()) - 1;
  }
  for (captured_frame& f : p.frames) {
    if (!f.roce) continue;
    f.from_held = f.packet.smac == p.held_mac;
    const auto it = is_connected(f.packet) ? index_of.find(key_of(f.packet)) : index_of.end();
    if (it == index_of.end()) {
      ++p.rejected[is_connected(f.packet) ? "between other hosts" : not_replayed(f.packet)];
      continue;
    }
    f.connection = it->second;
    learn_addresses(p.connections[static_cast<std::size_t>(it->second)], f);
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

plan make_plan(const std::string& capture, const std::string& hold, const reading_options& reading) {
  plan p;
  read_frames(capture, reading, p);
  p.held_mac = choose_held(p, hold);
  if (!reading.also.empty()) read_second(p, capture, reading);
  if (p.roce_frames != 0) p.held = wire::to_string(p.held_mac);
  find_connections(p);
  place_losses(p);
  std::set<wire::gid> gids;
  std::vector<std::vector<std::size_t>> frames(p.connections.size());
  for (std::size_t i = 0; i < p.frames.size(); ++i)
    if (p.frames[i].connection >= 0) frames[static_cast<std::size_t>(p.frames[i].connection)].push_back(i);
  for (std::size_t i = 0; i < p.connections.size(); ++i) {
    read_connection(p, i, frames[i]);
    gids.insert(p.connections[i].held_gid);
  }
  p.held_gids.assign(gids.begin(), gids.end());
  return p;
}

}  // namespace rnic::replay
