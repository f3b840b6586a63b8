// SPDX-License-Identifier: Apache-2.0
// A cable that is watched and on which packets are marked or lost: what tests of congestion share.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "model/fabric/cable.h"
#include "model/payload/frame_port.h"
#include "model/wire/icrc.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {

/// A RoCE packet as it began on the line.
struct seen_packet {
  sim::time_ps at = 0;
  unsigned from = 0;             ///< 0: host a
  std::uint32_t line_bytes = 0;  ///< preamble, FCS and gap included
  std::uint8_t priority = 0;     ///< PCP; 0 untagged
  wire::packet packet;
};

inline constexpr std::uint32_t line_overhead = 24;

/// Notes what passes and marks or loses what it is told to.
class watch : public payload::frame_observer_if, public fabric::cable_fault_if {
 public:
  explicit watch(hosts::two_nodes& system) {
    system.cable().set_fault(this);
    system.cable().add_observer(*this);
  }
  void observe(unsigned from, const payload::frame& f, sim::time_ps first_bit, sim::time_ps) override {
    seen_packet s;
    if (wire::decode(f.data(), f.length, s.packet) != wire::decode_error::none) return;
    s.at = first_bit;
    s.from = from;
    s.line_bytes = f.length + line_overhead;
    s.priority = s.packet.vlan_present ? static_cast<std::uint8_t>(s.packet.vlan_tci >> 13) : std::uint8_t{0};
    all.push_back(s);
  }
  fate on_frame(unsigned from, payload::frame& f) override {
    wire::packet p;
    if (wire::decode(f.data(), f.length, p) != wire::decode_error::none) return fate::pass;
    if (p.bth.opcode == wire::opcode_cnp) return lose_cnps ? fate::lose : fate::pass;
    if (left != 0 && from == mark_from && (only_qpn == 0 || only_qpn == p.bth.dest_qp)) {
      --left;
      mark(f, p);
    }
    return fate::pass;
  }
  /// Congestion experienced, as a switch writes it: the IP header's checksum and the FCS are made right, the ICRC does
  /// not cover the field.
  static void mark(payload::frame& f, const wire::packet& p) {
    std::uint8_t* ip = f.data() + p.l3_offset;
    if (p.encap == wire::encapsulation::roce_v2_ipv4) {
      ip[1] |= 3;
      ip[10] = ip[11] = 0;
      std::uint32_t sum = 0;
      for (unsigned i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(ip[i] << 8 | ip[i + 1]);
      sum = (sum & 0xffff) + (sum >> 16);
      sum = ~(sum + (sum >> 16)) & 0xffff;
      ip[10] = static_cast<std::uint8_t>(sum >> 8);
      ip[11] = static_cast<std::uint8_t>(sum);
    } else {  // the traffic class of IPv6 and of a GRH
      ip[1] |= 0x30;
    }
    f.fcs = wire::ethernet_fcs(f.data(), f.length);
  }

  std::vector<seen_packet> cnps() const {
    std::vector<seen_packet> out;
    for (const seen_packet& s : all)
      if (s.packet.bth.opcode == wire::opcode_cnp) out.push_back(s);
    return out;
  }
  /// Mean rate in kb/s on the line of the packets from one host to a queue pair that begin in [begin, end), from the
  /// first to the last of them; 0 when there are fewer than three.
  std::uint64_t rate_kbps(unsigned from, std::uint32_t qpn, sim::time_ps begin, sim::time_ps end) const {
    std::uint64_t bytes = 0, last_bytes = 0, count = 0;
    sim::time_ps first = 0, last = 0;
    for (const seen_packet& s : all) {
      const bool counts = s.from == from && s.packet.bth.dest_qp == qpn && s.packet.bth.opcode != wire::opcode_cnp;
      if (!counts || s.at < begin || s.at >= end) continue;
      if (count++ == 0) first = s.at;
      last = s.at;
      last_bytes = s.line_bytes;
      bytes += s.line_bytes;
    }
    return count < 3 ? 0 : (bytes - last_bytes) * 8 * 1'000'000'000 / (last - first);
  }

  std::vector<seen_packet> all;
  std::uint64_t left = 0;  ///< packets to be marked
  unsigned mark_from = 0;
  std::uint32_t only_qpn = 0;  ///< destination; 0: any
  bool lose_cnps = false;
};

/// Notification and reaction enabled for priority 0 at both hosts.
inline hosts::two_nodes_config congested_system() {
  hosts::two_nodes_config c = default_system();
  c.node.adapter.congestion.reaction.priorities = 1;
  c.node.adapter.congestion.notification.priorities = 1;
  return c;
}

}  // namespace rnic::system_test
