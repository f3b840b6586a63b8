// SPDX-License-Identifier: Apache-2.0
// Which two flows of a capture are the two directions of one connection.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "testbenches/replay/flows.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// The pairs of flows between the held host and its peers. Knowledge comes from connection set-up by MADs (REQ and REP
/// name both queue pairs) if the capture has it. Otherwise evidence: an answer carries a PSN that was asked for before,
/// its MSN counts the messages of its own connection, most adapters use one UDP source port for both directions, and
/// equal questions are answered in the order in which they were asked. PSNs and queue pair numbers alone decide
/// nothing: different connections may have the same.
class pairing {
 public:
  static constexpr std::size_t none = ~std::size_t{0};
  explicit pairing(const plan& p);
  std::size_t size() const { return flows_.size(); }  ///< flows, in the order of their first packets
  const flow_key& key(std::size_t index) const { return finder_.flows()[index].key; }
  bool from_held(std::size_t index) const { return flows_[index].out; }
  /// The other direction, or none.
  std::size_t other(std::size_t index) const { return flows_[index].other; }
  /// Flow of a frame of the capture, or none.
  std::size_t of_frame(std::size_t frame) const { return of_frame_[frame]; }

 private:
  struct flow {
    bool out = false;
    std::uint16_t port = 0;
    bool one_port = true;
    bool requests = false;
    bool xrc = false;            // has requests or answers, never both
    wire::psn_t next;            // behind the highest request
    std::uint32_t messages = 0;  // that have ended
    unsigned answers = 0;        // compared with the requests of the other direction
    unsigned compared = 0;       // with single requests there
    std::uint32_t hosts = 0;     // number of the two addresses and the version, from and to
    std::size_t other = none;
  };
  struct evidence {
    std::uint64_t known = 0;                               ///< connection set-up said so
    std::int64_t fits = 0;                                 ///< answers that fit less those that do not
    std::uint64_t port = 0;                                ///< both directions alone have this UDP source port
    std::uint64_t order = 0;                               ///< answers in the order of the questions
    std::uint32_t msn_offset[2] = {no_offset, no_offset};  // [1]: of the held host's answers
  };
  static constexpr std::uint32_t no_offset = ~0u;
  struct question {
    std::size_t flow;
    std::uint32_t message;  ///< number of the message that ends with this PSN, 0: none does
  };
  /// All requests of one PSN between two hosts.
  struct asked {
    std::vector<question> questions;  // in order of capture
    std::size_t answered = 0;         // as if in order
  };
  using hosts_key = std::tuple<wire::gid, wire::gid, wire::encapsulation>;
  std::size_t note_flow(std::size_t frame, const captured_frame& f, bool out);
  std::uint32_t hosts_of(const wire::gid& from, const wire::gid& to, wire::encapsulation encap);
  evidence& about(std::size_t a, std::size_t b);
  void request(std::size_t index, const wire::packet& p);
  void response(std::size_t index, const wire::packet& p, bool out);
  static void judge_msn(evidence& e, bool out, const question& q, const wire::packet& p);
  void use_set_up();
  void use_ports();
  void assign();
  void assign_rest();
  bool may_join(std::size_t in, std::size_t out) const {
    return !flows_[in].xrc || !flows_[out].xrc || flows_[in].requests != flows_[out].requests;
  }
  void join(std::size_t in, std::size_t out) { flows_[in].other = out, flows_[out].other = in; }

  flow_finder finder_;
  std::vector<flow> flows_;
  std::vector<std::size_t> of_frame_;
  std::map<hosts_key, std::uint32_t> hosts_;
  std::unordered_map<std::uint64_t, asked> asked_;        // by hosts << 24 | PSN
  std::unordered_map<std::uint64_t, evidence> evidence_;  // flow to held << 32 | flow from held
};

}  // namespace rnic::replay
