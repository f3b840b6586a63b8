// SPDX-License-Identifier: Apache-2.0
// Which two flows of a capture are the two directions of one connection.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Packets of one direction towards one queue pair: all that a BTH says, since it has no source queue pair.
struct flow_key {
  wire::gid from{}, to{};
  std::uint32_t dest_qp = 0;
  wire::encapsulation encap = wire::encapsulation::roce_v2_ipv4;
  bool operator<(const flow_key& o) const {
    return std::tie(from, to, dest_qp, encap) < std::tie(o.from, o.to, o.dest_qp, o.encap);
  }
  bool operator==(const flow_key& o) const {
    return from == o.from && to == o.to && dest_qp == o.dest_qp && encap == o.encap;
  }
};
flow_key key_of(const wire::packet& p);

bool is_connected(const wire::packet& p);

/// The pairs of flows between the held host and its peers. Knowledge comes from connection set-up by MADs (REQ and REP
/// name both queue pairs) if the capture has it. Otherwise evidence: an answer carries a PSN that was asked for before,
/// its MSN counts the messages of its own connection, most adapters use one UDP source port for both directions, and
/// equal questions are answered in the order in which they were asked. PSNs and queue pair numbers alone decide
/// nothing: different connections may have the same.
class pairing {
 public:
  explicit pairing(const plan& p);
  const std::map<flow_key, flow_key>& pairs() const { return pairs_; }  ///< flow to held -> flow from held
  /// In the order of their first packet.
  const std::vector<flow_key>& to_held() const { return to_held_; }
  const std::vector<flow_key>& from_held() const { return from_held_; }

 private:
  struct flow {
    flow_key key;
    bool out = false;
    std::uint16_t port = 0;
    bool one_port = true;
    bool requests = false;
    wire::psn_t next;                                          // behind the highest request
    std::uint32_t messages = 0;                                // that have ended
    unsigned answers = 0;                                      // compared with the requests of the other direction
    std::unordered_map<std::uint32_t, std::uint32_t> ends_at;  // PSN of a message's last packet -> its number
    std::unordered_map<std::uint32_t, unsigned> answered;      // PSN -> answers that came, as if in order
  };
  struct evidence {
    std::uint64_t known = 0;  ///< connection set-up said so
    std::int64_t fits = 0;    ///< answers that fit less those that do not
    std::uint64_t port = 0;   ///< both directions alone have this UDP source port
    std::uint64_t order = 0;  ///< answers in the order of the questions
  };
  using request_key = std::tuple<wire::gid, wire::gid, wire::encapsulation, std::uint32_t>;  // PSN last
  std::size_t flow_of(const captured_frame& f, bool out);
  void request(std::size_t index, const wire::packet& p);
  void response(std::size_t index, const wire::packet& p, bool out);
  void judge_msn(std::pair<std::size_t, std::size_t> pair, bool out, const flow& asking, const wire::packet& p);
  void read_set_up(const captured_frame& f);
  void use_set_up();
  void use_ports();
  void assign();
  void assign_rest();

  std::vector<flow> flows_;
  std::map<flow_key, std::size_t> index_;
  std::vector<flow_key> to_held_, from_held_;
  std::map<request_key, std::vector<std::size_t>> asked_;  // flows with a request of that PSN, in order of capture
  std::map<std::pair<std::size_t, std::size_t>, evidence> evidence_;                // to held, from held
  std::map<std::tuple<std::size_t, std::size_t, bool>, std::uint32_t> msn_offset_;  // true: of the held host's answers
  std::map<std::pair<wire::gid, std::uint32_t>, std::uint32_t> set_up_requests_;    // GID, communication ID -> QPN
  struct set_up {
    wire::gid requester, replier;
    std::uint32_t requester_qpn, replier_qpn;
  };
  std::vector<set_up> set_ups_;
  std::map<flow_key, flow_key> pairs_;
};

}  // namespace rnic::replay
