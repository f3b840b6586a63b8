// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/datagrams.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/wire/ethernet.h"
#include "testbenches/replay/packets.h"

namespace rnic::replay {

namespace {

constexpr std::uint32_t multicast_qpn = 0xffffff;
constexpr std::uint32_t grh_bytes = 40;  // in front of each datagram that is received

bool is_datagram(const captured_frame& f) {
  return f.roce && wire::transport_of(f.packet.bth.opcode) == wire::transport::ud;
}

class datagram_reader {
 public:
  explicit datagram_reader(plan& p) : plan_(p) {}
  void read() {
    for (std::size_t i = 0; i < plan_.frames.size(); ++i)
      if (is_datagram(plan_.frames[i])) read(i);
    for (const std::size_t i : to_groups_) read_group(i);
    for (const auto& [qpn, index] : by_number_) finish(plan_.connections[index]);
  }

 private:
  void read(std::size_t i);
  void read_group(std::size_t i);
  void finish(connection& c);
  connection& connection_of(std::uint32_t held_qpn, std::size_t frame);
  void reject(const char* why) { ++plan_.rejected[why]; }
  void receive(connection& c, std::size_t i);

  plan& plan_;
  std::map<std::uint32_t, std::size_t> by_number_;
  std::vector<std::size_t> to_groups_;
};

connection& datagram_reader::connection_of(std::uint32_t held_qpn, std::size_t frame) {
  const captured_frame& f = plan_.frames[frame];
  const auto [at, fresh] = by_number_.try_emplace(held_qpn, plan_.connections.size());
  if (fresh) {
    connection c;
    c.service = wire::transport::ud;
    c.held_mac = plan_.held_mac;
    c.held_qpn = held_qpn;
    c.mtu = 4096;  // of the port
    c.encap = f.packet.encap;
    c.held_gid = f.from_held ? f.packet.sgid : f.packet.dgid;
    c.peer_gid = f.from_held ? f.packet.dgid : f.packet.sgid;
    c.peer_mac = f.from_held ? f.packet.dmac : f.packet.smac;
    c.peer_qpn = f.from_held ? f.packet.bth.dest_qp : f.packet.deth.src_qp;
    (f.from_held ? c.first_from_held : c.first_from_peer) = f.packet;
    (f.from_held ? c.seen_from_held : c.seen_from_peer) = true;
    plan_.connections.push_back(c);
  }
  connection& c = plan_.connections[at->second];
  plan_.frames[frame].connection = static_cast<int>(at->second);
  c.order.push_back(frame);
  return c;
}

void datagram_reader::receive(connection& c, std::size_t i) {
  const wire::packet& p = plan_.frames[i].packet;
  ++c.receives.count;
  ++c.deliveries;
  c.receives.largest = std::max(c.receives.largest, p.payload_length + grh_bytes);
  ++c.datagrams.qkeys[p.deth.qkey];
}

void datagram_reader::read(std::size_t i) {
  captured_frame& f = plan_.frames[i];
  const wire::packet& p = f.packet;
  f.from_held = p.smac == plan_.held_mac;
  if (plan_.held_mac == wire::mac_address{}) return reject("no host with a unicast MAC address");
  if (p.bth.dest_qp == gsi_qpn || p.deth.src_qp == gsi_qpn) return reject("management datagrams (queue pair 1)");
  if (!f.from_held && wire::is_multicast(p.dmac)) return to_groups_.push_back(i);
  if (!f.from_held && p.dmac != plan_.held_mac) return reject("between other hosts");
  connection& c = connection_of(f.from_held ? p.deth.src_qp : p.bth.dest_qp, i);
  if (!f.from_held) return receive(c, i);
  held_message m;
  m.first_frame = i;
  m.first_psn = p.bth.psn.value();
  m.length = p.payload_length;
  m.pieces.push_back({0, i});
  m.has_immediate = wire::traits(p.bth.opcode).immediate;
  m.immediate = p.immediate;
  m.solicited = p.bth.solicited;
  c.messages.push_back(m);
}

/// To a queue pair that is known to use the group's key: the capture does not tell who joined.
void datagram_reader::read_group(std::size_t i) {
  const wire::packet& p = plan_.frames[i].packet;
  for (const auto& [qpn, index] : by_number_) {
    connection& c = plan_.connections[index];
    const bool same = std::any_of(c.order.begin(), c.order.end(),
                                  [&](std::size_t f) { return plan_.frames[f].packet.deth.qkey == p.deth.qkey; });
    if (!same || p.bth.dest_qp != multicast_qpn) continue;
    plan_.frames[i].connection = static_cast<int>(index);
    c.order.push_back(i);
    c.datagrams.groups.insert(p.dgid);
    return receive(c, i);
  }
  reject("datagrams to a group in which the held host is not known to be");
}

/// PSNs count the datagrams of a queue pair: what is not in the capture is stood in for by an empty one.
void datagram_reader::finish(connection& c) {
  std::sort(c.order.begin(), c.order.end());
  if (c.messages.empty()) return;
  c.held_start_psn = c.messages.front().first_psn;
  std::vector<held_message> all;
  wire::psn_t next(c.held_start_psn);
  for (const held_message& m : c.messages) {
    const std::int32_t missing = wire::psn_t(m.first_psn) - next;
    if (missing < 0) {
      plan_.frames[m.first_frame].repeated = true;
      continue;
    }
    for (std::int32_t i = 0; i < missing && missing <= widest_gap; ++i) {
      held_message empty;
      empty.first_frame = m.first_frame;
      empty.first_psn = (next + static_cast<std::uint32_t>(i)).value();
      empty.stand_in = true;
      all.push_back(empty);
    }
    next = wire::psn_t(m.first_psn) + 1;
    all.push_back(m);
  }
  c.messages = std::move(all);
}

}  // namespace

void find_datagrams(plan& p) { datagram_reader(p).read(); }

}  // namespace rnic::replay
