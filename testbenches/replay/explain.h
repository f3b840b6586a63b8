// SPDX-License-Identifier: Apache-2.0
// Why a replay is not as its capture, in words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "testbenches/replay/compare.h"
#include "testbenches/replay/plan.h"

namespace rnic::replay {

/// Knows of each connection what the capture holds of it and what it lacks. Says "no reason found" rather than guess.
class explainer {
 public:
  /// Keeps references to both; of use once the run is over.
  explicit explainer(const comparison& c, const plan& p);
  std::string explain(const difference& d) const;

 private:
  struct lane {
    std::unordered_map<std::uint32_t, std::size_t> held_requests, peer_requests;  // PSN -> first frame
    std::unordered_set<std::uint32_t> repeated;                                   // PSNs of the peer
    bool acknowledged = false;
    wire::psn_t acknowledged_up_to;  // by the real host, in the capture
    bool requested = false;
    wire::psn_t requested_up_to;                 // by the real host
    wire::psn_t first_asked;                     // by the peer
    std::map<std::int64_t, std::int64_t> asked;  // its requests: from there on -> up to before, in PSNs after the first
    bool hole = false;
    wire::psn_t first_hole;   // of the peer's requests
    std::size_t refused = 0;  // the adapter's last NAK: index into answers() + 1
    bool failed = false;
    bool other_pkey = false, usual_pkey = false;  // packets of the peer that the adapter must drop for it, and others
    std::uint16_t pkey = 0;                       // of the first one to be dropped
    bool after_rnr = false;                       // in the capture: RNR NAK, and nothing acknowledged since
    std::unordered_set<std::size_t> behind_rnr;   // sequence NAKs for what was under way then
    bool told_to_wait = false;                    // in the capture: the peer's last answer is an RNR NAK
    wire::psn_t not_ready;                        // the packet that it names
    std::unordered_set<std::size_t> before_rnr;   // requests sent again although that NAK acknowledged them
  };
  void read(std::size_t frame);
  void find_hole(std::size_t connection, const std::vector<std::size_t>& requests);
  std::string extra_answer(const lane& l, const obtained_frame& o) const;
  std::string extra_request(const lane& l, const obtained_frame& o) const;
  std::string missing(const lane& l, std::size_t frame) const;
  std::string other(const lane& l, const difference& d) const;
  std::string refusal(const lane& l, std::uint8_t syndrome, wire::psn_t psn) const;
  static bool was_asked(const lane& l, wire::psn_t psn);
  bool sent_twice(std::size_t frame) const;
  bool read_again(const difference& d) const;
  bool is_dropped_for_pkey(std::size_t frame) const;
  bool is_answered(int connection) const;

  const comparison& compared_;
  const plan& plan_;
  std::vector<lane> lanes_;
  std::vector<std::vector<std::size_t>> peer_requests_;
  std::map<std::tuple<int, std::uint32_t, std::uint8_t>, unsigned> answered_;  // connection, PSN, opcode: frames
};

}  // namespace rnic::replay
