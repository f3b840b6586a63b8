// SPDX-License-Identifier: Apache-2.0
// The flows of a capture: packets of one direction towards one queue pair, for as long as that is the same connection.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Packets of one direction towards one queue pair: all that a BTH says, since it has no source queue pair. A queue
/// pair number that comes back for another connection is another `generation` (0, 1, ...).
struct flow_key {
  wire::gid from{}, to{};
  std::uint32_t dest_qp = 0;
  wire::encapsulation encap = wire::encapsulation::roce_v2_ipv4;
  unsigned generation = 0;
  bool operator<(const flow_key& o) const {
    return std::tie(from, to, dest_qp, encap, generation) < std::tie(o.from, o.to, o.dest_qp, o.encap, o.generation);
  }
};

/// RC, UC or XRC, whose flows belong together in pairs.
bool is_connected(const wire::packet& p);

/// Finds the flow of each packet. Frames are to be given in the order of the capture. A queue pair number is used by a
/// new connection once the connection manager has set one up with it, or when PSNs jump by more than packets can be
/// missing.
class flow_finder {
 public:
  /// Index into flows() of a connected packet.
  std::size_t flow_of(const captured_frame& f);
  /// A datagram: perhaps a REQ or REP of the connection manager.
  void read_set_up(const captured_frame& f);

  struct flow {
    flow_key key;
    int exchange = -1;  ///< of the connection manager: the last one that named its queue pair before it began
  };
  const std::vector<flow>& flows() const { return flows_; }
  /// Exchanges of REQ and REP that set up one connection together.
  const std::vector<std::pair<int, int>>& set_ups() const { return set_ups_; }

 private:
  /// PSNs from the last packet to the end of what it asks for.
  struct line {
    bool known = false;
    wire::psn_t low, high;
  };
  struct lines {
    line requests, responses;
  };
  struct base_key {
    wire::gid from{}, to{};
    std::uint32_t dest_qp = 0;
    wire::encapsulation encap = wire::encapsulation::roce_v2_ipv4;
    bool operator<(const base_key& o) const {
      return std::tie(from, to, dest_qp, encap) < std::tie(o.from, o.to, o.dest_qp, o.encap);
    }
  };
  using hosts = std::pair<wire::gid, wire::gid>;
  bool fits(std::size_t index, const wire::packet& p) const;
  bool answers_large_read(const wire::packet& p) const;
  void advance(std::size_t index, const wire::packet& p);
  std::size_t begin(const base_key& base, std::vector<std::size_t>& generations, const wire::packet& p);
  int exchange_of(const wire::gid& host, std::uint32_t qpn) const;

  std::vector<flow> flows_;
  std::vector<lines> lines_;  // by flow
  std::map<base_key, std::vector<std::size_t>> generations_;
  std::map<hosts, std::vector<line>> large_reads_;                               // asked from the first by the second
  std::map<std::pair<wire::gid, std::uint32_t>, int> exchanges_;                 // host and queue pair -> the last one
  std::map<std::tuple<wire::gid, std::uint32_t, std::uint32_t>, int> messages_;  // host, communication ID, QPN
  std::map<std::pair<wire::gid, std::uint32_t>, int> requests_;                  // host, communication ID -> its REQ
  int next_exchange_ = 0;
  std::vector<std::pair<int, int>> set_ups_;
};

}  // namespace rnic::replay
